/* SPDX-License-Identifier: BSD-3-Clause */
/* What each sub-command asks of its subjects. */

#include <rte_common.h>
#include <rte_lcore.h>

#include "result.h"
#include "tests.h"

#define REQUESTS_MAX 2048

/* A list under construction. */
struct requests {
	uint32_t n;
	struct request request[REQUESTS_MAX];
};

static void
add(struct requests *requests, struct request request)
{
	request.passes = 1;
	if (request.lcores == 0)
		request.lcores = 1;
	if (requests->n < REQUESTS_MAX)
		requests->request[requests->n++] = request;
}

/* The user's list, or the test's own. */
static const struct cli_list *
choose(const struct cli_list *asked, const struct cli_list *own)
{
	return asked->n > 0 ? asked : own;
}

/* first, 2 first, 4 first, ..., last */
static struct cli_list
powers(uint32_t first, uint32_t last)
{
	struct cli_list list = {.n = 0};

	for (uint32_t number = first; number <= last; number *= 2)
		list.number[list.n++] = number;
	return list;
}

static int
build_time(struct bench *bench)
{
	const struct request request = {.kernel = KERNEL_PAIR, .n = 1, .lcores = 1, .passes = 1};

	return bench_add(bench, &request, 1);
}

static int
build_pages(struct bench *bench)
{
	static struct requests requests;
	const struct cli_list order_0 = {.n = 1}, all = powers(1, 16384);
	const struct cli_list *orders = choose(&bench->options->orders, &order_0);
	const struct cli_list *batches = choose(&bench->options->batches, &all);

	for (uint32_t i = 0; i < orders->n; i++) {
		for (uint32_t k = 0; k < batches->n; k++) {
			struct request request = {
				.order = orders->number[i],
				.size = PP_PAGE_SIZE << orders->number[i],
				.n = batches->number[k],
			};

			request.kernel = KERNEL_SPLIT;
			add(&requests, request);
			request.kernel = KERNEL_PAIR;
			add(&requests, request);
		}
	}
	return bench_add(bench, requests.request, requests.n);
}

static int
build_kmalloc(struct bench *bench)
{
	static struct requests requests;
	const struct cli_list all = powers(8, 16384);
	const struct cli_list *sizes = choose(&bench->options->sizes, &all);

	for (uint32_t i = 0; i < sizes->n; i++)
		add(&requests, (struct request){.kernel = KERNEL_SPLIT,
				       .n = bench->options->count,
				       .size = sizes->number[i]});
	for (uint32_t i = 0; i < sizes->n; i++)
		add(&requests,
			(struct request){.kernel = KERNEL_PAIR, .n = 1, .size = sizes->number[i]});
	return bench_add(bench, requests.request, requests.n);
}

static int
build_pipeline(struct bench *bench)
{
	static struct requests requests;
	const struct cli_list bursts = {.n = 1, .number = {32}};
	const struct cli_list *batches = choose(&bench->options->batches, &bursts);

	for (uint32_t i = 0; i < batches->n; i++)
		add(&requests, (struct request){.kernel = KERNEL_PIPELINE,
				       .n = batches->number[i],
				       .size = PP_PAGE_SIZE,
				       .lcores = 2});
	return bench_add(bench, requests.request, requests.n);
}

static int
build_contend(struct bench *bench)
{
	static struct requests requests;
	const struct cli_list large = {.n = 1, .number = {16384}};
	const struct cli_list *batches = choose(&bench->options->batches, &large);
	const uint32_t lcores[] = {1, rte_lcore_count()};

	for (uint32_t i = 0; i < batches->n; i++)
		for (uint32_t k = 0; k < RTE_DIM(lcores); k++)
			add(&requests, (struct request){.kernel = KERNEL_PAIR,
					       .n = batches->number[i],
					       .size = PP_PAGE_SIZE,
					       .lcores = lcores[k]});
	return bench_add(bench, requests.request, requests.n);
}

static int
build_latency(struct bench *bench)
{
	static struct requests requests;
	const struct cli_list beyond = {.n = 1, .number = {2 * CACHE_SIZE}};
	const struct cli_list *batches = choose(&bench->options->batches, &beyond);

	for (uint32_t i = 0; i < batches->n; i++)
		for (uint32_t fresh = 0; fresh < 2; fresh++)
			add(&requests, (struct request){.kernel = KERNEL_LATENCY,
					       .n = batches->number[i],
					       .size = PP_PAGE_SIZE,
					       .fresh = fresh});
	return bench_add(bench, requests.request, requests.n);
}

/* As the mempool driver does for page pools. */
static uint32_t
choose_colours(const struct options *options)
{
	if (options->colours != 0)
		return options->colours;
	return options->size < PP_PAGE_SIZE ? (PP_PAGE_SIZE - options->size) / PP_COLOUR_STEP + 1
					    : 1;
}

static int
build_touch(struct bench *bench)
{
	static struct requests requests;
	const struct cli_list few = {.n = 3, .number = {16, 128, 1024}};
	const struct cli_list *batches = choose(&bench->options->batches, &few);

	for (uint32_t i = 0; i < batches->n; i++)
		add(&requests, (struct request){.kernel = KERNEL_TOUCH,
				       .n = batches->number[i],
				       .size = bench->options->size});
	bench->need.size = bench->options->size;
	bench->need.colours = choose_colours(bench->options);
	return bench_add(bench, requests.request, requests.n);
}

const struct test tests[] = {
	[COMMAND_TIME] = {"time", TEST_TIME, 200, 1, NULL, "operation", build_time, print_time},
	[COMMAND_PAGES] = {"pages", TEST_PAGES, 200, 1, "batch", "page", build_pages, print_matrix},
	[COMMAND_KMALLOC] = {"kmalloc", TEST_KMALLOC, 200, 1, "size", "object", build_kmalloc,
		print_matrix},
	[COMMAND_PIPELINE] = {"pipeline", TEST_PIPELINE, 2000, 2, NULL, "object", build_pipeline,
		print_list},
	[COMMAND_CONTEND] = {"contend", TEST_CONTEND, 2000, 2, "lcores", "object", build_contend,
		print_list},
	[COMMAND_LATENCY] = {"latency", TEST_LATENCY, 2000, 1, "one in N calls takes longer",
		"call", build_latency, print_latency},
	[COMMAND_TOUCH] = {"touch", TEST_TOUCH, 200, 1, "batch", "access", build_touch,
		print_matrix},
};
