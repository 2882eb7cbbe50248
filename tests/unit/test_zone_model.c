/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A zone against a model of one byte per page: a million random operations. Usage:
 * test_zone_model [seed [operations]]; the seed is printed.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_common.h>
#include <rte_errno.h>

#include <pagepool.h>

#include "unit.h"

#define BULK_MAX 256

/* Model of a page: free, inside a used block, or the head of one of order HEAD + n. */
#define FREE 0
#define TAIL 1
#define HEAD 2

struct run {
	struct pp_run run;
	uint8_t *model;
};

static struct run runs[] = {
	{.run = {.stride = PP_PAGE_SIZE, .count = (1u << 18) + 777}},
	{.run = {.stride = 2496, .count = 839}},
	{.run = {.stride = PP_PAGE_SIZE, .count = 5000, .colours = 7}},
	{.run = {.stride = 2368, .count = 1}},
	{.run = {.stride = 64, .count = 63}},
};

struct block {
	char *addr;
	struct run *run;
	uint32_t index;
	unsigned int order;
};

static uint64_t seed, rng;
static uint64_t operations = 1000000;

static struct pp_zone *zone;
static uint64_t total_pages, free_pages, reserve;
static uint64_t allocs[PP_MAX_ORDER + 1], frees[PP_MAX_ORDER + 1], failed, bad_frees;
static struct block *live;
static uint32_t n_live;

static uint32_t
random_below(uint32_t n)
{
	return unit_random_below(&rng, n);
}

/* Small ones more often, every one now and then. */
static unsigned int
random_order(void)
{
	const unsigned int bound = random_below(64) == 0 ? PP_MAX_ORDER + 1 : 1 + random_below(10);

	return random_below(bound);
}

static char *
page_addr(const struct run *run, uint32_t index)
{
	const uint32_t colours = run->run.colours;

	return run->run.addr + index * run->run.stride + (colours > 1 ? index % colours * 64 : 0);
}

static bool
model_has_block(unsigned int order)
{
	static const uint8_t none[1u << PP_MAX_ORDER];

	for (size_t r = 0; r < RTE_DIM(runs); r++)
		for (uint32_t i = 0; i + (1u << order) <= runs[r].run.count; i += 1u << order)
			if (runs[r].model[i] == FREE &&
				memcmp(&runs[r].model[i], none, (size_t)1 << order) == 0)
				return true;
	return false;
}

/* The zone handed out `addr`: it must be a block's start, and all of it free so far. */
static void
model_take(char *addr, unsigned int order)
{
	static const uint8_t none[1u << PP_MAX_ORDER];
	struct run *run = runs;
	uint32_t index;

	while (addr < run->run.addr || addr >= run->run.addr + run->run.stride * run->run.count)
		assert_true(++run < runs + RTE_DIM(runs));
	index = (uint32_t)((size_t)(addr - run->run.addr) / run->run.stride);
	assert_ptr_equal(addr, page_addr(run, index));
	assert_int_equal(index & ((1u << order) - 1), 0);
	assert_true(index + (1u << order) <= run->run.count);
	assert_memory_equal(&run->model[index], none, (size_t)1 << order);
	memset(&run->model[index], TAIL, (size_t)1 << order);
	run->model[index] = (uint8_t)(HEAD + order);
	free_pages -= UINT64_C(1) << order;
	allocs[order]++;
	live[n_live++] = (struct block){addr, run, index, order};
}

static void
model_put(uint32_t i)
{
	const struct block block = live[i];

	assert_int_equal(block.run->model[block.index], HEAD + block.order);
	memset(&block.run->model[block.index], FREE, (size_t)1 << block.order);
	free_pages += UINT64_C(1) << block.order;
	frees[block.order]++;
	live[i] = live[--n_live];
}

static void
do_alloc(uint32_t n)
{
	const unsigned int order = random_order();
	const unsigned int flags = random_below(4) == 0 ? PP_ALLOC_REFILL : 0;
	const uint64_t kept = flags & PP_ALLOC_REFILL ? 0 : reserve;
	const uint64_t usable = free_pages > kept ? free_pages - kept : 0;
	const uint32_t allowed = (uint32_t)RTE_MIN(usable >> order, (uint64_t)n);
	void *page[BULK_MAX];
	uint32_t got;

	rte_errno = 0;
	if (n == 1) {
		page[0] = pp_zone_alloc(zone, order, flags);
		got = page[0] != NULL;
	} else {
		got = pp_zone_alloc_bulk(zone, order, page, n, flags);
	}
	assert_true(got <= allowed);
	for (uint32_t i = 0; i < got; i++)
		model_take(page[i], order);
	if (got < n) {
		failed++;
		assert_int_equal(rte_errno, ENOMEM);
	}
	/* fewer than allowed: only because no block of that order is left anywhere */
	if (got < allowed && (order > 3 || random_below(16) == 0))
		assert_false(model_has_block(order));
}

static void
do_free(void)
{
	if (n_live == 0)
		return;

	const uint32_t i = random_below(n_live);

	assert_int_equal(pp_zone_free(zone, live[i].addr, live[i].order, 0), 0);
	model_put(i);
}

/* Blocks of one order, where the list of those in use begins at random. */
static void
do_free_bulk(uint32_t n)
{
	void *page[BULK_MAX];
	uint32_t picked = 0;

	if (n_live == 0)
		return;
	uint32_t i = random_below(n_live);
	const unsigned int order = live[i].order;

	for (uint32_t seen = 0; picked < n && n_live > 0 && seen < 4 * BULK_MAX; seen++) {
		if (i >= n_live)
			i = 0;
		if (live[i].order != order) {
			i++;
			continue;
		}
		page[picked++] = live[i].addr;
		model_put(i);
	}
	assert_int_equal(pp_zone_free_bulk(zone, order, page, picked), picked);
}

/* Any page, any order: refused unless it happens to be right. */
static void
do_wrong_free(void)
{
	const struct run *run = &runs[random_below(RTE_DIM(runs))];
	const uint32_t index = random_below(run->run.count + 2);
	const unsigned int order = random_below(4) == 0 ? random_order() : random_below(2);
	char *addr = page_addr(run, index) + (random_below(8) == 0 ? 1 : 0);

	if (index < run->run.count && addr == page_addr(run, index) &&
		run->model[index] == HEAD + order)
		return;
	assert_int_equal(pp_zone_free(zone, addr, order, 0), -EINVAL);
	bad_frees++;
}

static void
do_watermarks(void)
{
	reserve = random_below(2) == 0 ? 0 : random_below(20000);
	assert_int_equal(pp_zone_set_watermarks(zone, reserve, reserve, reserve), 0);
}

static void
compare(void)
{
	struct pp_zone_stats stats;

	assert_true(pp_zone_is_valid(zone));
	pp_zone_get_stats(zone, &stats);
	assert_int_equal(stats.pages, total_pages);
	assert_int_equal(stats.free, free_pages);
	assert_int_equal(stats.failed, failed);
	assert_int_equal(stats.bad_frees, bad_frees);
	assert_memory_equal(stats.allocs, allocs, sizeof(allocs));
	assert_memory_equal(stats.frees, frees, sizeof(frees));
	for (unsigned int order = 0; order <= PP_MAX_ORDER; order++)
		if (random_below(4) == 0)
			assert_int_equal(
				(stats.free_blocks[order] > 0) |
					(order < PP_MAX_ORDER ? model_has_block(order + 1) : 0),
				model_has_block(order));
	unit_log_clear();
}

static void
zone_agrees_with_the_model(void **state)
{
	(void)state;
	print_message("seed %" PRIu64 "\n", seed);
	rng = seed;
	for (uint64_t i = 0; i < operations; i++) {
		/* the zone fills up, drains, and hovers, by turns */
		static const uint32_t alloc_share[] = {50, 70, 50, 30};
		const uint32_t share = alloc_share[i / 16384 % RTE_DIM(alloc_share)];
		const uint32_t dice = random_below(100);

		if (dice == 0 && random_below(20) == 0)
			do_watermarks();
		else if (dice < 3)
			do_wrong_free();
		else if (random_below(100) < share)
			do_alloc(dice < 80 ? 1 : 2 + random_below(BULK_MAX - 1));
		else if (dice < 80)
			do_free();
		else
			do_free_bulk(1 + random_below(BULK_MAX));
		assert_int_equal(pp_zone_free_pages(zone), free_pages);
		if (i % 4096 == 0)
			compare();
	}
	while (n_live > 0)
		do_free();
	compare();
}

static int
setup(void **state)
{
	size_t room = 0;

	(void)state;
	for (size_t r = 0; r < RTE_DIM(runs); r++)
		room += runs[r].run.stride * runs[r].run.count + UNIT_MIB;
	/* never touched */
	char *memory =
		mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(memory != MAP_FAILED);
	zone = pp_zone_create("model", PP_NODE_ANY, PP_MAX_ORDER);
	assert_non_null(zone);
	for (size_t r = 0; r < RTE_DIM(runs); r++) {
		runs[r].run.addr = memory + r * 64;
		runs[r].model = calloc(runs[r].run.count, 1);
		memory += runs[r].run.stride * runs[r].run.count + UNIT_MIB / 2;
		total_pages += runs[r].run.count;
		assert_int_equal(pp_zone_add_runs(zone, &runs[r].run, 1), 0);
	}
	free_pages = total_pages;
	live = calloc(total_pages, sizeof(*live));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (size_t r = 0; r < RTE_DIM(runs); r++)
		free(runs[r].model);
	free(live);
	return pp_zone_destroy(zone);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(zone_agrees_with_the_model, setup, teardown),
	};
	const char *given = argc > 1 ? argv[1] : getenv("PP_SEED");

	seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	if (argc > 2)
		operations = strtoull(argv[2], NULL, 0);
	unit_eal_init(64);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
