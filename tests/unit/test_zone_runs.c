/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of any shape: padding, strides, colours, gaps; and what is no run. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "zone_unit.h"

static void
runs_of_any_shape_give_all_their_pages(void **state)
{
	static void *page[ODD_PAGES], *expected[ODD_PAGES];
	struct pp_zone *zone = odd_zone();
	uint64_t blocks[10] = {0};
	uint32_t n = 0;

	(void)state;
	assert_int_equal(pp_zone_pages(zone), ODD_PAGES);
	assert_int_equal(stats_of(zone).pages, ODD_PAGES);
	assert_int_equal(stats_of(zone).padding, ODD_PADDING);
	for (uint32_t k = 0; k < ODD_RUNS; k++) {
		/* a run is made of the largest blocks that its count allows */
		blocks[9] += odd_runs[k].count >> 9;
		for (unsigned int order = 0; order < 9; order++)
			blocks[order] += odd_runs[k].count >> order & 1;
		for (uint32_t i = 0; i < odd_runs[k].count; i++)
			expected[n++] = odd_page(k, i);
	}
	assert_free_blocks(zone, blocks, 9);
	for (uint32_t i = 0; i < ODD_PAGES; i++) {
		page[i] = pp_zone_alloc(zone, 0, 0);
		assert_non_null(page[i]);
		assert_true(pp_zone_contains(zone, page[i]));
	}
	assert_null(pp_zone_alloc(zone, 0, 0));
	qsort(expected, ODD_PAGES, sizeof(page[0]), compare_addresses);
	qsort(page, ODD_PAGES, sizeof(page[0]), compare_addresses);
	assert_memory_equal(page, expected, sizeof(page));
	shuffle(page, ODD_PAGES);
	assert_int_equal(pp_zone_free_bulk(zone, 0, page, ODD_PAGES), ODD_PAGES);
	assert_free_blocks(zone, blocks, 9);
	destroy_zone(zone);
}

static void
blocks_lie_inside_one_run(void **state)
{
	(void)state;
	for (unsigned int order = 0; order <= 9; order++) {
		struct pp_zone *zone = odd_zone();
		uint32_t blocks = 0;
		void *page[ODD_PAGES + 1]; /* the last one is the refusal */

		while ((page[blocks] = pp_zone_alloc(zone, order, 0)) != NULL) {
			uint32_t run, i;

			for (run = 0; run < ODD_RUNS; run++) {
				for (i = 0; i < odd_runs[run].count; i++)
					if (odd_page(run, i) == page[blocks])
						break;
				if (i < odd_runs[run].count)
					break;
			}
			assert_in_range(run, 0, ODD_RUNS - 1);
			assert_int_equal(i & ((1u << order) - 1), 0);
			assert_true(i + (1u << order) <= odd_runs[run].count);
			blocks++;
		}
		uint32_t possible = 0;

		for (uint32_t run = 0; run < ODD_RUNS; run++)
			possible += odd_runs[run].count >> order;
		assert_int_equal(blocks, possible);
		assert_int_equal(pp_zone_free_bulk(zone, order, page, blocks), blocks);
		destroy_zone(zone);
	}
}

static void
neighbouring_runs_do_not_merge(void **state)
{
	const struct pp_run runs[] = {
		{.addr = memory + 256 * PP_PAGE_SIZE, .stride = PP_PAGE_SIZE, .count = 256},
		{.addr = memory, .stride = PP_PAGE_SIZE, .count = 256},
	};
	struct pp_zone *zone = new_zone(&runs[0], 1, 9);
	static const uint64_t blocks[10] = {[8] = 2};

	(void)state;
	assert_int_equal(pp_zone_add_runs(zone, &runs[1], 1), 0);
	assert_free_blocks(zone, blocks, 9);
	assert_null(pp_zone_alloc(zone, 9, 0));
	assert_int_equal(rte_errno, ENOMEM);
	destroy_zone(zone);
}

static void
only_addresses_of_pages_are_contained(void **state)
{
	struct pp_zone *zone = odd_zone();

	(void)state;
	assert_false(pp_zone_contains(zone, NULL));
	assert_false(pp_zone_contains(zone, (void *)UINTPTR_MAX));
	assert_false(pp_zone_contains(zone, memory - 1));
	assert_false(pp_zone_contains(zone, memory + 64 * UNIT_MIB));
	for (uint32_t run = 0; run < ODD_RUNS; run++) {
		const uint32_t count = odd_runs[run].count;

		for (uint32_t i = 0; i < count; i++) {
			char *page = odd_page(run, i);

			assert_true(pp_zone_contains(zone, page));
			assert_false(pp_zone_contains(zone, page + 1));
			assert_false(pp_zone_contains(zone, page - 1));
			assert_false(pp_zone_contains(zone, page + odd_runs[run].stride / 2));
			if (odd_runs[run].colours > 1 && i % odd_runs[run].colours > 0) {
				assert_false(pp_zone_contains(
					zone, page - i % odd_runs[run].colours * PP_COLOUR_STEP));
				assert_false(pp_zone_contains(zone, page + PP_COLOUR_STEP));
			}
		}
		/* one before the first; and the padding, that has descriptors but no memory */
		assert_false(pp_zone_contains(zone, odd_page(run, 0) - odd_runs[run].stride));
		assert_false(pp_zone_contains(zone, odd_page(run, count)));
		assert_false(pp_zone_contains(zone, odd_page(run, count + 1)));
	}
	destroy_zone(zone);
}

static void
colours_stagger_pages(void **state)
{
	const struct pp_run run = {
		.addr = memory, .stride = PP_PAGE_SIZE, .count = 64, .colours = 5};
	struct pp_zone *zone = new_zone(&run, 1, 9);
	void *page[64];

	(void)state;
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, page, 64, 0), 64);
	for (uint32_t i = 0; i < 64; i++)
		assert_ptr_equal(page[i], memory + i * PP_PAGE_SIZE + i % 5 * PP_COLOUR_STEP);
	assert_int_equal(pp_zone_free(zone, memory + PP_PAGE_SIZE, 0, 0), -EINVAL);
	assert_int_equal(pp_zone_free_bulk(zone, 0, page, 64), 64);
	destroy_zone(zone);
}

static void
an_arena_becomes_4k_pages(void **state)
{
	struct pp_arena *arena = pp_arena_create(&(struct pp_arena_config){
		.name = "arena",
		.backend = PP_BACKEND_ANON,
		.len = 2 * UNIT_MIB,
		.page_size = 4096,
		.node = PP_NODE_ANY,
	});
	struct pp_zone *zone = pp_zone_create("zone", PP_NODE_ANY, 9);

	(void)state;
	assert_non_null(arena);
	assert_int_equal(pp_zone_add_arena(zone, arena, 66), -EINVAL);
	assert_int_equal(pp_zone_add_arena(zone, arena, 16), 0);
	assert_int_equal(pp_zone_pages(zone), 512);
	void *all = pp_zone_alloc(zone, 9, 0);

	assert_ptr_equal(all, pp_arena_addr(arena));
	assert_int_equal(pp_zone_free(zone, all, 9, 0), 0);
	assert_true(pp_zone_contains(zone, (char *)all + 3 * PP_PAGE_SIZE + 3 * PP_COLOUR_STEP));
	destroy_zone(zone);
	pp_arena_destroy(arena);
}

static void
overlapping_runs_are_refused(void **state)
{
	const struct pp_run there = {
		.addr = memory + 4 * UNIT_MIB, .stride = PP_PAGE_SIZE, .count = 100};
	struct pp_zone *zone = new_zone(&there, 1, 9);
	struct unit_resources before;
	char *const end = there.addr + 100 * PP_PAGE_SIZE;
	const struct pp_run bad[] = {
		there, {.addr = there.addr + 8 * PP_PAGE_SIZE, .stride = PP_PAGE_SIZE, .count = 1},
		{.addr = end - 1, .stride = PP_PAGE_SIZE, .count = 100},
		{.addr = there.addr - 2 * PP_PAGE_SIZE + 1, .stride = PP_PAGE_SIZE, .count = 2},
		{.addr = memory, .stride = UNIT_MIB, .count = 100}, /* all around it */
	};
	const struct pp_run pair[] = {
		{.addr = memory, .stride = 2432, .count = 10},
		{.addr = memory + 9 * 2432, .stride = 2432, .count = 10},
	};
	const struct pp_run good[] = {
		{.addr = end, .stride = PP_PAGE_SIZE, .count = 10},
		{.addr = there.addr - 10 * PP_PAGE_SIZE, .stride = PP_PAGE_SIZE, .count = 10},
	};

	(void)state;
	unit_resources_get(&before);
	for (uint32_t i = 0; i < RTE_DIM(bad); i++) {
		const struct pp_run with[] = {good[0], bad[i]};

		assert_int_equal(pp_zone_add_runs(zone, &bad[i], 1), -EINVAL);
		assert_int_equal(pp_zone_add_runs(zone, with, 2), -EINVAL); /* all or nothing */
		assert_int_equal(pp_zone_pages(zone), 100);
		assert_false(pp_zone_contains(zone, good[0].addr));
	}
	assert_int_equal(pp_zone_add_runs(zone, pair, 2), -EINVAL);
	assert_int_equal(pp_zone_pages(zone), 100);
	assert_true(pp_zone_is_valid(zone));
	unit_resources_assert(&before);
	assert_int_equal(pp_zone_add_runs(zone, good, 2), 0); /* neighbours are welcome */
	assert_int_equal(pp_zone_pages(zone), 120);
	destroy_zone(zone);
}

static void
impossible_runs_are_refused(void **state)
{
	const struct pp_run bad[] = {
		{.addr = NULL, .stride = PP_PAGE_SIZE, .count = 1},
		{.addr = memory, .stride = 0, .count = 1},
		{.addr = memory, .stride = PP_PAGE_SIZE, .count = 0},
		{.addr = memory, .stride = PP_PAGE_SIZE, .count = UINT32_MAX},
		{.addr = memory, .stride = SIZE_MAX / 2, .count = 3},
		{.addr = memory, .stride = PP_PAGE_SIZE, .count = 1, .colours = 66},
		{.addr = memory, .stride = 64, .count = 1, .colours = 2},
		{.addr = memory, .stride = PP_PAGE_SIZE, .count = 1, .colours = UINT32_MAX},
	};
	struct pp_zone *zone = pp_zone_create("zone", PP_NODE_ANY, 9);

	(void)state;
	for (uint32_t i = 0; i < RTE_DIM(bad); i++)
		assert_int_equal(pp_zone_add_runs(zone, &bad[i], 1), -EINVAL);
	assert_int_equal(pp_zone_pages(zone), 0);
	destroy_zone(zone);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_of_any_shape_give_all_their_pages),
		cmocka_unit_test(blocks_lie_inside_one_run),
		cmocka_unit_test(neighbouring_runs_do_not_merge),
		cmocka_unit_test(only_addresses_of_pages_are_contained),
		cmocka_unit_test(colours_stagger_pages),
		cmocka_unit_test(an_arena_becomes_4k_pages),
		cmocka_unit_test(overlapping_runs_are_refused),
		cmocka_unit_test(impossible_runs_are_refused),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
