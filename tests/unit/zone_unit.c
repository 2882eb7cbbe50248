/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "zone_unit.h"

#define MEMORY_BYTES (2048 * UNIT_MIB)

char *memory;

void
zone_unit_init(void)
{
	memory = mmap(
		NULL, MEMORY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		abort();
	unit_eal_init(64);
}

struct pp_zone *
new_zone(const struct pp_run *runs, uint32_t n_runs, unsigned int max_order)
{
	struct pp_zone *zone = pp_zone_create("zone", PP_NODE_ANY, max_order);

	assert_non_null(zone);
	assert_int_equal(pp_zone_add_runs(zone, runs, n_runs), 0);
	assert_true(pp_zone_is_valid(zone));
	return zone;
}

struct pp_zone *
plain_zone(uint32_t pages, unsigned int max_order)
{
	const struct pp_run run = {.addr = memory, .stride = PP_PAGE_SIZE, .count = pages};

	return new_zone(&run, 1, max_order);
}

void
destroy_zone(void *zone)
{
	assert_true(pp_zone_is_valid(zone));
	assert_int_equal(pp_zone_destroy(zone), 0);
}

struct pp_zone_stats
stats_of(struct pp_zone *zone)
{
	struct pp_zone_stats stats;

	pp_zone_get_stats(zone, &stats);
	return stats;
}

void
assert_free_blocks(struct pp_zone *zone, const uint64_t *blocks, unsigned int max_order)
{
	const struct pp_zone_stats stats = stats_of(zone);
	uint64_t pages = 0;

	for (unsigned int order = 0; order <= PP_MAX_ORDER; order++) {
		assert_int_equal(stats.free_blocks[order], order <= max_order ? blocks[order] : 0);
		pages += stats.free_blocks[order] << order;
	}
	assert_int_equal(stats.free, pages);
	assert_int_equal(pp_zone_free_pages(zone), pages);
	assert_true(pp_zone_is_valid(zone));
}

void
shuffle(void **page, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		const uint32_t k = (uint32_t)rand() % i;
		void *swap = page[i - 1];

		page[i - 1] = page[k];
		page[k] = swap;
	}
}

int
compare_addresses(const void *a, const void *b)
{
	const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

/* Odd counts and strides, in no order, with gaps: as chunks of a mempool are. */
const struct odd_run odd_runs[ODD_RUNS] = {
	{4 * UNIT_MIB + 192, 2496, 839, 0},
	{0, 2368, 1, 0},
	{12 * UNIT_MIB, 4096, 513, 1},
	{1 * UNIT_MIB + 8, 2368, 3, 0},
	{2 * UNIT_MIB, 4096, 100, 8},
	{8 * UNIT_MIB - 64, 64, 5, 0},
};

static void
odd_run(uint32_t i, struct pp_run *run)
{
	*run = (struct pp_run){
		.addr = memory + odd_runs[i].offset,
		.stride = odd_runs[i].stride,
		.count = odd_runs[i].count,
		.colours = odd_runs[i].colours,
	};
}

char *
odd_page(uint32_t run, uint32_t i)
{
	const uint32_t colours = odd_runs[run].colours;

	return memory + odd_runs[run].offset + i * odd_runs[run].stride +
	       (colours > 1 ? i % colours * PP_COLOUR_STEP : 0);
}

struct pp_zone *
odd_zone(void)
{
	struct pp_run runs[ODD_RUNS];

	for (uint32_t i = 0; i < ODD_RUNS; i++)
		odd_run(i, &runs[i]);
	return new_zone(runs, RTE_DIM(runs), 9);
}
