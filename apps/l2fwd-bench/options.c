/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_mempool.h>

#include "options.h"

#define DEFAULT_MBCACHE 512
#define NOT_GIVEN       UINT32_MAX

static const char *const mode_words[] = {"io", "mac", "macswap", "rxonly", "txonly", NULL};
static const char *const pool_words[] = {
	"pages", "pagepool", "ring_mp_mc", "stack", "lf_stack", NULL};

/* In the order of enum pcp_mode; "none" would corrupt the pool and is not offered. */
static const char *const pcp_words[] = {"bh", "spin", "bypass", "irq", "preempt", NULL};

/* In the order of enum pcp_checks. */
static const char *const checks_words[] = {"off", "deferred", "full", NULL};

/* In the order of enum recycle, as the driver mlx5pp knows them. */
static const char *const recycle_words[] = {"off", "cache", "reuse", "pool", NULL};

/* In the order of enum free_on. */
static const char *const free_on_words[] = {"same", "other", NULL};

static struct options parsed;
static const char *ports_text;

static const struct cli_option table[] = {
	{"ports", "LIST", "ports, as 0,2-4; neighbours forward to each other (all)", CLI_TEXT,
		.value = &ports_text},
	{"mode", "MODE", "io, mac, macswap, rxonly or txonly (io)", CLI_WORD, .words = mode_words,
		.value = &parsed.mode},
	{"pool", "POOL", "pages, pagepool, ring_mp_mc, stack or lf_stack (pages)", CLI_WORD,
		.words = pool_words, .value = &parsed.pool},
	{"pcp", "MODE", "page caches: bh, spin, bypass, irq or preempt (bh)", CLI_WORD,
		.words = pcp_words, .value = &parsed.pcp},
	{"checks", "LEVEL", "of page caches: off, deferred or full (off)", CLI_WORD,
		.words = checks_words, .value = &parsed.checks},
	{"recycle", "MODE", "of mlx5pp ports: off, cache, reuse or pool (as --vdev says)", CLI_WORD,
		.words = recycle_words, .value = &parsed.recycle},
	{"hold", "N", "packets that rxonly holds before it frees the oldest (0)", CLI_NUMBER, 0,
		1 << 20, .value = &parsed.hold},
	{"free-on", "LCORE", "where rxonly frees: same, or other, the main lcore (same)", CLI_WORD,
		.words = free_on_words, .value = &parsed.free_on},
	{"contend", "N", "buffers that the main lcore takes and frees, again and again (0)",
		CLI_NUMBER, 0, BURST_MAX, .value = &parsed.contend},
	{"batch", "N", "pages per magazine (by the pool's size)", CLI_NUMBER, 1, PCP_BATCH_MAX,
		.value = &parsed.batch},
	{"high", "N", "pages that the depot keeps (all)", CLI_NUMBER, 1, UINT32_MAX,
		.value = &parsed.high},
	{"mbcache", "N", "the mempool library's own cache (512; 0 with pages and pagepool)",
		CLI_NUMBER, 0, RTE_MEMPOOL_CACHE_MAX_SIZE, .value = &parsed.mbcache},
	{"burst", "N", "packets per call (32)", CLI_NUMBER, 1, BURST_MAX, .value = &parsed.burst},
	{"frame-size", "N", "of txonly, with the FCS (64)", CLI_NUMBER, FRAME_SIZE_MIN,
		FRAME_SIZE_MAX, .value = &parsed.frame_size},
	{"duration", "SECONDS", "0: until a signal (10)", CLI_NUMBER, 0, 30 * 24 * 3600,
		.value = &parsed.duration},
	{"rxq", "N", "RX and TX queues per port (1)", CLI_NUMBER, 1, RTE_MAX_QUEUES_PER_PORT,
		.value = &parsed.rxq},
	{"rxd", "N", "RX descriptors per queue (1024)", CLI_NUMBER, 1, 32768, .value = &parsed.rxd},
	{"txd", "N", "TX descriptors per queue (1024)", CLI_NUMBER, 1, 32768, .value = &parsed.txd},
	{"pool-size", "N", "packet buffers (as many as can be needed)", CLI_NUMBER, 1, 1 << 30,
		.value = &parsed.pool_size},
	{"yield", NULL, "after an empty poll let others have the processor", CLI_FLAG,
		.value = &parsed.yield},
	{"json", "FILE", "write the results there", CLI_TEXT, .value = &parsed.json},
	{"help", NULL, "this text", CLI_FLAG, .value = &parsed.help},
	{"version", NULL, "the versions of " PROGRAM " and DPDK", CLI_FLAG,
		.value = &parsed.version},
	{.name = NULL},
};

static int
parse_ports(struct options *options, const char *text)
{
	struct cli_list list;
	uint32_t i;

	if (strcmp(text, "all") == 0)
		return 0;
	if (cli_parse_list("ports", text, 0, RTE_MAX_ETHPORTS - 1, &list) < 0)
		return -EINVAL;
	for (i = 0; i < list.n; i++)
		options->ports[i] = list.number[i];
	options->n_ports = list.n;
	return 0;
}

/* Options that contradict each other. */
static int
check(const struct options *options)
{
	if (!pool_kind_is_paged(options->pool) &&
		(options->pcp >= 0 || options->checks >= 0 || options->batch != 0 ||
			options->high != 0)) {
		cli_error("--%s has no meaning with --pool %s; leave it out, or use pages or "
			  "pagepool",
			options->pcp >= 0      ? "pcp"
			: options->checks >= 0 ? "checks"
			: options->batch != 0  ? "batch"
					       : "high",
			pool_kind_name(options->pool));
		return -EINVAL;
	}
	if (options->pool == POOL_PAGES && options->mbcache != NOT_GIVEN && options->mbcache != 0) {
		cli_error("--mbcache has no meaning with --pool pages, whose page caches are the "
			  "pool's only ones; leave it out");
		return -EINVAL;
	}
	if (options->recycle > RECYCLE_OFF &&
		(!pool_kind_is_paged(options->pool) ||
			(options->mbcache != NOT_GIVEN && options->mbcache != 0))) {
		cli_error("--recycle %s cannot see what returns to other pools or a mempool cache; "
			  "give --pool pages or pagepool, and no --mbcache",
			recycle_name(options->recycle));
		return -EINVAL;
	}
	if ((options->hold > 0 || options->free_on != FREE_ON_SAME) &&
		options->mode != FORWARD_RXONLY) {
		cli_error("--%s has a meaning only in rxonly, which alone frees what it receives; "
			  "give --mode rxonly",
			options->hold > 0 ? "hold" : "free-on");
		return -EINVAL;
	}
	return 0;
}

int
options_parse(struct options *options, int argc, char **argv)
{
	parsed = (struct options){
		.pcp = -1,
		.recycle = -1,
		.checks = -1,
		.mbcache = NOT_GIVEN,
		.burst = 32,
		.frame_size = FRAME_SIZE_MIN,
		.duration = 10,
		.rxq = 1,
		.rxd = 1024,
		.txd = 1024,
	};
	ports_text = "all";
	if (cli_parse(table, argc, argv) < 0)
		return -EINVAL;
	if (parsed.help || parsed.version) {
		*options = parsed;
		return 0;
	}
	if (parse_ports(&parsed, ports_text) < 0 || check(&parsed) < 0)
		return -EINVAL;
	if (parsed.pcp < 0)
		parsed.pcp = PCP_MODE_BH;
	if (parsed.checks < 0)
		parsed.checks = PCP_CHECKS_OFF;
	if (parsed.mbcache == NOT_GIVEN)
		parsed.mbcache = pool_kind_is_paged(parsed.pool) ? 0 : DEFAULT_MBCACHE;
	*options = parsed;
	return 0;
}

bool
options_knows(const char *word)
{
	return cli_find(table, word) != NULL;
}

void
options_print_help(FILE *f)
{
	fprintf(f,
		"usage: " PROGRAM " [EAL options] -- [options]\n\n"
		"Forward packets between ports, measure the rate, and account for every packet\n"
		"and buffer. One lcore polls one RX queue; the main lcore polls only when there\n"
		"are as many queues as lcores.\n\n");
	cli_print_options(table, f);
	fprintf(f, "\nWithout a choice among EAL's memory options, --in-memory is added.\n"
		   "Example: " PROGRAM " -l 0,1 --no-pci --vdev net_null0 --vdev net_null1 "
		   "-- --duration 5\n");
}

const char *
forward_mode_name(int mode)
{
	return mode_words[mode];
}

const char *
pool_kind_name(int kind)
{
	return pool_words[kind];
}

const char *
recycle_name(int recycle)
{
	return recycle_words[recycle];
}
