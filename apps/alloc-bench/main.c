/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * alloc-bench measures pagepool and its peers as the kernel measures its allocators. See
 * docs/man/alloc-bench.1.
 *
 *	options.c	what the user wants
 *	tests.c		what each sub-command asks
 *	subjects.c	whom; subject_*.c are their calls
 *	cases.c		who is asked what
 *	seats.c		where they live
 *	bench.c		rounds: who takes a sample next
 *	measure.c	one sample; loops.h are the loops that are measured
 *	worker.c	the same in a process of its own
 *	result.c	what the samples mean
 *	print_*.c, output_*.c	and how it is shown
 *	compare.c	two results
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_version.h>

#include <eal.h>
#include <json.h>

#include "result.h"
#include "tests.h"

static void
print_subjects(const struct options *options)
{
	char name[64];

	for (uint32_t s = 0; s < n_subjects; s++)
		if ((subjects[s].tests & tests[options->command].bit) != 0)
			printf("%s%s\n", subject_name(&subjects[s], name),
				subjects[s].on_demand ? " (only when it is named)" : "");
}

/* Before anything is measured for it. 0 or an exit status. */
static int
check_files(const struct options *options)
{
	const char *const paths[] = {options->json, options->csv, options->plot};
	static const char *const names[] = {"json", "csv", "plot"};

	for (uint32_t i = 0; i < RTE_DIM(paths); i++) {
		const int err = paths[i] == NULL ? 0 : json_can_save(paths[i]);

		for (uint32_t j = 0; j < i; j++) {
			if (paths[i] != NULL && paths[j] != NULL &&
				strcmp(paths[i], paths[j]) == 0) {
				cli_error("--%s and --%s both name %s; give each a file", names[j],
					names[i], paths[i]);
				return CLI_EXIT_USAGE;
			}
		}
		if (err < 0) {
			save_failed(paths[i], names[i], err);
			return CLI_EXIT_FAILURE;
		}
	}
	return options->plot == NULL || plot_check(options->plot) == 0 ? 0 : CLI_EXIT_FAILURE;
}

static int
report(struct bench *bench)
{
	const struct options *options = bench->options;
	int err = 0;

	result_compute(bench);
	bench->test->print(bench, stdout);
	print_notes(bench, stdout);
	if (options->json != NULL)
		err |= output_json(bench);
	if (options->csv != NULL)
		err |= output_csv(bench);
	if (options->plot != NULL)
		err |= output_plot(bench);
	return err == 0 && bench_conserved(bench) ? 0 : CLI_EXIT_FAILURE;
}

/* Everything after EAL's start, with everything released. Returns an exit status. */
static int
run(const struct options *options)
{
	struct bench bench = {
		.test = &tests[options->command],
		.options = options,
		.seats = calloc(n_subjects, sizeof(struct seat)),
		.seed = options->seed != 0 ? options->seed : (uint32_t)rte_rdtsc() | 1,
		.need = {.delay = options->delay},
	};
	int status = CLI_EXIT_FAILURE;

	if (rte_lcore_count() < bench.test->lcores)
		cli_error("%s needs %u lcores; give EAL -l 0,1, or --lcores 0@0,1@0 on one "
			  "processor",
			bench.test->name, bench.test->lcores);
	else if (bench.seats == NULL)
		cli_error("no memory; free some");
	else if (bench.test->build(&bench) == 0 && bench_run(&bench) == 0)
		status = report(&bench);
	if (bench.seats != NULL)
		bench_close(&bench);
	free(bench.seats);
	return status;
}

/* Where EAL's options end: at "--", at a sub-command that stands first, or at the end. */
static int
find_separator(int argc, char **argv)
{
	return argc > 1 && options_is_command(argv[1]) ? 1 : cli_find_word(argc, argv, "--");
}

static int
run_program(int argc, char **argv)
{
	const int eal_argc = find_separator(argc, argv);
	const int skip = eal_argc + (eal_argc < argc && strcmp(argv[eal_argc], "--") == 0);
	struct options options;
	int status;

	if (cli_has_word(eal_argc, argv, "--help") || cli_has_word(eal_argc, argv, "-h")) {
		options_print_help(stdout);
		return 0;
	}
	if (cli_has_word(eal_argc, argv, "--version")) {
		printf(PROGRAM " " PAGELANE_VERSION ", %s\n", rte_version());
		return 0;
	}
	if (options_parse(&options, argc - skip, &argv[skip]) < 0)
		return CLI_EXIT_USAGE;
	if (options.help) {
		options_print_help(stdout);
		return 0;
	}
	if (options.version) {
		printf(PROGRAM " " PAGELANE_VERSION ", %s\n", rte_version());
		return 0;
	}
	if (options.command == COMMAND_COMPARE)
		return compare_files(&options);
	if (options.list) {
		print_subjects(&options);
		return 0;
	}
	status = check_files(&options);
	if (status == 0)
		status = eal_start(eal_argc, argv, false, options_knows);
	if (status != 0)
		return status;
	status = run(&options);
	rte_eal_cleanup();
	return status;
}

int
main(int argc, char **argv)
{
	cli_start(PROGRAM);
	if (argc > 1 && strcmp(argv[1], WORKER_WORD) == 0)
		return worker_main(argc, argv);
	return cli_finish(run_program(argc, argv));
}
