/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * l2fwd-bench forwards packets between DPDK ports, measures the rate, and accounts for every packet
 * and every buffer. See docs/man/l2fwd-bench.1.
 *
 *	options.c	what the user wants
 *	ports.c		the ports, and what their drivers are like (drivers.c)
 *	pool.c		the packet buffers
 *	recycle.c	what mlx5pp ports are told
 *	streams.c	which lcore polls which queue
 *	run.c		begin and end of the measurement
 *	forward.c	the loop that is measured
 *	release.c	how rxonly frees
 *	contend.c	a second user of the pool
 *	stats.c		what became of every packet
 *	output_*.c	the results
 */

#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_version.h>

#include <eal.h>
#include <json.h>

#include "output.h"
#include "recycle.h"
#include "run.h"

/* Everything after EAL's start, with everything released. Returns an exit status. */
static int
bench(const struct options *options)
{
	static struct ports ports;
	static struct result results[RTE_MAX_ETHPORTS + 1];
	struct streams streams = {0};
	struct pool pool = {0};
	struct contender contender = {0};
	struct outcome outcome = {options, &ports, &streams, &pool, &contender, results, 0};
	int status = CLI_EXIT_FAILURE;

	run_catch_signals();
	if (ports_configure(&ports, options) < 0 || streams_check_lcores(options, &ports) < 0 ||
		pool_create(&pool, options, &ports) < 0 || ports_start(&ports, pool.mp) < 0 ||
		streams_create(&streams, options, &ports, &pool) < 0) {
		ports_close(&ports);
		goto out;
	}
	output_setup(&outcome);
	contender_init(&contender, options, &pool);
	outcome.seconds = run(&streams, options, &ports, &contender);
	ports_drain(&ports);
	stats_collect(&ports, &streams, results);
	streams_release(&streams);
	ports_close(&ports);
	pool_settle(&pool, &ports);

	output_table(&outcome);
	if (results[ports.n].unaccounted == 0 && pool.missing == 0)
		status = 0;
	if (options->json != NULL && output_json(&outcome) < 0)
		status = CLI_EXIT_FAILURE;
out:
	streams_free(&streams);
	pool_destroy(&pool);
	return status;
}

static int
run_program(int argc, char **argv)
{
	const int eal_argc = cli_find_word(argc, argv, "--");
	struct options options;
	int status, err;

	if (cli_has_word(eal_argc, argv, "--help") || cli_has_word(eal_argc, argv, "-h")) {
		options_print_help(stdout);
		return 0;
	}
	if (options_parse(&options, argc - eal_argc - (eal_argc < argc),
		    &argv[eal_argc + (eal_argc < argc)]) < 0)
		return CLI_EXIT_USAGE;
	if (options.help) {
		options_print_help(stdout);
		return 0;
	}
	if (options.version || cli_has_word(eal_argc, argv, "--version")) {
		printf(PROGRAM " " PAGELANE_VERSION ", %s\n", rte_version());
		return 0;
	}
	err = options.json == NULL ? 0 : json_can_save(options.json);
	if (err < 0) {
		save_failed(options.json, "json", err);
		return CLI_EXIT_FAILURE;
	}
	char *eal_argv[eal_argc + 1];

	eal_argv[eal_argc] = NULL;
	if (recycle_eal_arguments(&options, eal_argc, argv, eal_argv) < 0)
		return CLI_EXIT_FAILURE;
	status = eal_start(eal_argc, eal_argv, true, options_knows);
	if (status != 0)
		return status;
	status = bench(&options);
	rte_eal_cleanup();
	return status;
}

int
main(int argc, char **argv)
{
	cli_start(PROGRAM);
	return cli_finish(run_program(argc, argv));
}
