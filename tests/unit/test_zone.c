/* SPDX-License-Identifier: BSD-3-Clause */
/* Zones: creation, splitting and merging, and bulk allocation. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "zone_unit.h"

/* ---- creation ---- */

static void
create_checks_its_arguments(void **state)
{
	(void)state;
	assert_null(pp_zone_create("zone", PP_NODE_ANY, PP_MAX_ORDER + 1));
	assert_int_equal(rte_errno, EINVAL);
	rte_errno = 0;
	assert_null(pp_zone_create(NULL, PP_NODE_ANY, 0));
	assert_int_equal(rte_errno, EINVAL);
}

static void
an_empty_zone_has_nothing_to_give(void **state)
{
	struct pp_zone *zone = pp_zone_create("empty", PP_NODE_ANY, 9);
	void *page;

	(void)state;
	assert_non_null(zone);
	assert_string_equal(pp_zone_name(zone), "empty");
	assert_int_equal(pp_zone_pages(zone), 0);
	assert_int_equal(pp_zone_free_pages(zone), 0);
	rte_errno = 0;
	assert_null(pp_zone_alloc(zone, 0, PP_ALLOC_REFILL));
	assert_int_equal(rte_errno, ENOMEM);
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, &page, 1, 0), 0);
	assert_int_equal(stats_of(zone).failed, 2);
	assert_int_equal(pp_zone_free(zone, memory, 0, 0), -EINVAL);
	assert_false(pp_zone_contains(zone, memory));
	assert_false(pp_zone_contains(zone, NULL));
	assert_int_equal(pp_zone_add_runs(zone, NULL, 0), 0);
	destroy_zone(zone);
}

static void *
create_and_fill(void *arg)
{
	const struct pp_run runs[] = {
		{.addr = memory, .stride = PP_PAGE_SIZE, .count = PAGES},
		{.addr = memory + 16 * UNIT_MIB, .stride = 2432, .count = 77},
	};
	struct pp_zone *zone = pp_zone_create("zone", PP_NODE_ANY, 9);

	(void)arg;
	if (zone == NULL)
		return NULL;
	for (uint32_t i = 0; i < RTE_DIM(runs); i++) {
		const int ret = pp_zone_add_runs(zone, &runs[i], 1);

		if (ret != 0) {
			/* what was added before is as it was */
			assert_int_equal(pp_zone_pages(zone), i == 0 ? 0 : PAGES);
			destroy_zone(zone);
			rte_errno = -ret;
			return NULL;
		}
	}
	return zone;
}

static void
every_failing_allocation_is_clean(void **state)
{
	(void)state;
	/* the zone, its place in telemetry, and for each addition runs, descriptors and table */
	assert_int_equal(unit_fail_each(create_and_fill, destroy_zone, NULL), 2 + 2 * 3);
}

static void
a_failed_addition_can_be_repeated(void **state)
{
	const struct pp_run run = {
		.addr = memory + 16 * UNIT_MIB, .stride = PP_PAGE_SIZE, .count = 64};
	struct pp_zone *zone = plain_zone(PAGES, 9);
	void *page = pp_zone_alloc(zone, 0, 0);

	(void)state;
	for (unsigned int k = 1; k <= 3; k++) {
		unit_fail_at(k);
		assert_int_equal(pp_zone_add_runs(zone, &run, 1), -ENOMEM);
		assert_true(unit_fail_reached());
		assert_int_equal(pp_zone_pages(zone), PAGES);
		assert_int_equal(pp_zone_free_pages(zone), PAGES - 1);
		assert_false(pp_zone_contains(zone, run.addr));
		assert_true(pp_zone_is_valid(zone));
	}
	assert_int_equal(pp_zone_add_runs(zone, &run, 1), 0);
	assert_int_equal(pp_zone_pages(zone), PAGES + 64);
	assert_int_equal(pp_zone_free(zone, page, 0, 0), 0);
	destroy_zone(zone);
}

static void
a_zone_in_use_is_not_destroyed(void **state)
{
	struct pp_zone *zone = plain_zone(PAGES, 9);
	void *page = pp_zone_alloc(zone, 2, 0);

	(void)state;
	unit_log_clear();
	assert_int_equal(pp_zone_destroy(zone), -EBUSY);
	unit_assert_logged("4 pages are in use");
	assert_int_equal(pp_zone_free_pages(zone), PAGES - 4);
	assert_int_equal(pp_zone_free(zone, page, 2, 0), 0);
	destroy_zone(zone);
}

static void
an_abandoned_zone_tells_what_was_in_use(void **state)
{
	struct unit_resources before;

	(void)state;
	unit_resources_get(&before);
	struct pp_zone *zone = plain_zone(PAGES, 9);

	assert_non_null(pp_zone_alloc(zone, 2, 0));
	assert_non_null(pp_zone_alloc(zone, 0, 0));
	assert_int_equal(pp_zone_abandon(zone), 5);
	zone = plain_zone(PAGES, 9);
	assert_int_equal(pp_zone_abandon(zone), 0);
	unit_resources_assert(&before);
}

/* ---- splitting and merging ---- */

static void
one_page_splits_a_block_and_merges_back(void **state)
{
	static const uint64_t whole[10] = {[9] = 2};
	static const uint64_t split[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	struct pp_zone *zone = plain_zone(PAGES, 9);

	(void)state;
	assert_free_blocks(zone, whole, 9);

	const uint64_t merges = stats_of(zone).merges;
	void *page = pp_zone_alloc(zone, 0, 0);

	assert_non_null(page);
	assert_free_blocks(zone, split, 9);
	assert_int_equal(stats_of(zone).splits, 9);
	assert_int_equal(stats_of(zone).allocs[0], 1);
	assert_int_equal(pp_zone_free(zone, page, 0, 0), 0);
	assert_free_blocks(zone, whole, 9);
	assert_int_equal(stats_of(zone).merges - merges, 9);
	assert_int_equal(stats_of(zone).frees[0], 1);
	destroy_zone(zone);
}

/* Blocks of every order tile the zone without a gap, and merge in any order of freeing. */
static void
every_order_tiles_the_zone(void **state)
{
	static const uint64_t whole[10] = {[9] = 2};
	static void *page[PAGES];

	(void)state;
	for (unsigned int order = 0; order <= 9; order++) {
		struct pp_zone *zone = plain_zone(PAGES, 9);
		const uint32_t n = PAGES >> order;

		for (uint32_t i = 0; i < n; i++) {
			page[i] = pp_zone_alloc(zone, order, 0);
			assert_non_null(page[i]);
		}
		rte_errno = 0;
		assert_null(pp_zone_alloc(zone, order, 0));
		assert_int_equal(rte_errno, ENOMEM);
		assert_int_equal(pp_zone_free_pages(zone), 0);
		qsort(page, n, sizeof(page[0]), compare_addresses);
		for (uint32_t i = 0; i < n; i++)
			assert_ptr_equal(page[i], memory + ((size_t)i << order) * PP_PAGE_SIZE);
		shuffle(page, n);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(pp_zone_free(zone, page[i], order, 0), 0);
		assert_free_blocks(zone, whole, 9);
		assert_int_equal(stats_of(zone).allocs[order], n);
		assert_int_equal(stats_of(zone).frees[order], n);
		destroy_zone(zone);
	}
}

static void
blocks_do_not_exceed_the_zones_order(void **state)
{
	void *page[PAGES];

	(void)state;
	for (unsigned int max_order = 0; max_order <= 3; max_order++) {
		uint64_t whole[4] = {0};
		struct pp_zone *zone = plain_zone(PAGES, max_order);

		whole[max_order] = PAGES >> max_order;
		assert_free_blocks(zone, whole, max_order);
		rte_errno = 0;
		assert_null(pp_zone_alloc(zone, max_order + 1, 0));
		assert_int_equal(rte_errno, EINVAL);
		rte_errno = 0;
		assert_int_equal(pp_zone_alloc_bulk(zone, UINT32_MAX, page, 1, 0), 0);
		assert_int_equal(rte_errno, EINVAL);
		assert_int_equal(pp_zone_alloc_bulk(zone, 0, page, PAGES, 0), PAGES);
		assert_int_equal(pp_zone_free_bulk(zone, 0, page, PAGES), PAGES);
		assert_free_blocks(zone, whole, max_order);
		assert_int_equal(pp_zone_free(zone, memory, UINT32_MAX, 0), -EINVAL);
		destroy_zone(zone);
	}
}

static void
a_gib_is_one_block(void **state)
{
	struct pp_zone *zone = plain_zone(2u << 18, 18);
	uint64_t blocks[19] = {[18] = 2};

	(void)state;
	assert_free_blocks(zone, blocks, 18);
	void *gib = pp_zone_alloc(zone, 18, 0);
	void *page = pp_zone_alloc(zone, 0, 0);

	assert_non_null(gib);
	assert_non_null(page);
	for (unsigned int order = 0; order < 18; order++)
		blocks[order] = 1;
	blocks[18] = 0;
	assert_free_blocks(zone, blocks, 18);
	assert_int_equal(pp_zone_free(zone, page, 0, 0), 0);
	assert_int_equal(pp_zone_free(zone, gib, 18, 0), 0);
	memset(blocks, 0, sizeof(blocks));
	blocks[18] = 2;
	assert_free_blocks(zone, blocks, 18);
	destroy_zone(zone);
}

/* ---- bulk ---- */

static void
bulk_is_contiguous_where_it_can_be(void **state)
{
	static const uint32_t sizes[] = {1, 2, 3, 31, 32, 100, 255, 256, 512};
	static void *page[PAGES];

	(void)state;
	for (unsigned int order = 0; order <= 2; order++) {
		for (uint32_t k = 0; k < RTE_DIM(sizes); k++) {
			const uint32_t n = sizes[k] >> order;
			struct pp_zone *zone = plain_zone(PAGES, 9);

			assert_int_equal(pp_zone_alloc_bulk(zone, order, page, n, 0), n);
			for (uint32_t i = 1; i < n; i++)
				assert_ptr_equal(page[i],
					(char *)page[0] + ((size_t)i << order) * PP_PAGE_SIZE);
			/* what was not needed stays in blocks as large as can be */
			const uint64_t rest = PAGES - ((uint64_t)n << order);
			const struct pp_zone_stats stats = stats_of(zone);

			assert_int_equal(stats.free, rest);
			for (unsigned int i = 0; i < 9; i++)
				assert_int_equal(stats.free_blocks[i], rest >> i & 1);
			assert_int_equal(stats.allocs[order], n);
			assert_true(pp_zone_is_valid(zone));
			assert_int_equal(pp_zone_free_bulk(zone, order, page, n), n);
			assert_int_equal(stats_of(zone).frees[order], n);
			assert_int_equal(stats_of(zone).free_blocks[9], 2);
			destroy_zone(zone);
		}
	}
}

static void
bulk_splits_one_block_once(void **state)
{
	static void *page[256];
	struct pp_zone *zone = plain_zone(PAGES, 9);

	(void)state;
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, page, 256, 0), 256);
	assert_int_equal(stats_of(zone).splits, 1);
	assert_int_equal(pp_zone_free_bulk(zone, 0, page, 256), 256);
	destroy_zone(zone);
}

/* n pages where a block of `order` has left one free block of each order from there on. */
static void
bulk_leaves(unsigned int order, uint32_t n, const uint64_t blocks[10])
{
	static void *page[200];
	struct pp_zone *zone = plain_zone(PAGES, 9);
	void *first = pp_zone_alloc(zone, order, 0);

	assert_non_null(first);
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, page, n, 0), n);
	assert_free_blocks(zone, blocks, 9);
	assert_int_equal(pp_zone_free_bulk(zone, 0, page, n), n);
	assert_int_equal(pp_zone_free(zone, first, order, 0), 0);
	destroy_zone(zone);
}

static void
bulk_prefers_the_smallest_block_that_holds_all(void **state)
{
	/* the block of order 5 gave 20 pages, and kept 4 + 8 */
	static const uint64_t blocks[10] = {0, 0, 1, 1, 0, 0, 1, 1, 1, 1};

	(void)state;
	bulk_leaves(5, 20, blocks);
}

/* Crumbs are left alone as long as there is a block that holds all. */
static void
bulk_passes_by_smaller_blocks(void **state)
{
	/* from the block of order 8, of which 8 + 16 + 32 pages are left */
	static const uint64_t blocks[10] = {1, 1, 1, 2, 2, 2, 1, 1, 0, 1};

	(void)state;
	bulk_leaves(0, 200, blocks);
}

static void
bulk_gathers_what_lies_apart(void **state)
{
	static void *page[PAGES], *odd[PAGES / 2];
	struct pp_zone *zone = plain_zone(PAGES, 9);

	(void)state;
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, page, PAGES, 0), PAGES);
	for (uint32_t i = 0; i < PAGES / 2; i++)
		odd[i] = page[2 * i + 1];
	assert_int_equal(pp_zone_free_bulk(zone, 0, odd, PAGES / 2), PAGES / 2);
	assert_int_equal(stats_of(zone).free_blocks[0], PAGES / 2);
	assert_null(pp_zone_alloc(zone, 1, 0));
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, odd, PAGES / 2, 0), PAGES / 2);
	assert_int_equal(pp_zone_free_pages(zone), 0);
	assert_int_equal(pp_zone_free_bulk(zone, 0, page, PAGES), PAGES);
	destroy_zone(zone);
}

static void
bulk_gives_what_there_is(void **state)
{
	static void *page[PAGES + 10];
	struct pp_zone *zone = plain_zone(PAGES, 9);

	(void)state;
	rte_errno = 0;
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, page, PAGES + 10, 0), PAGES);
	assert_int_equal(rte_errno, ENOMEM);
	assert_int_equal(stats_of(zone).failed, 1);
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, page + PAGES, 10, 0), 0);
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, page, 0, 0), 0);
	assert_int_equal(stats_of(zone).failed, 2); /* nothing asked, nothing failed */
	assert_int_equal(pp_zone_free_bulk(zone, 0, page, PAGES), PAGES);
	assert_int_equal(stats_of(zone).free_blocks[9], 2);

	/* what a hole leaves over cannot be had at a higher order */
	void *hole = pp_zone_alloc(zone, 0, 0);

	assert_int_equal(pp_zone_alloc_bulk(zone, 8, page, 4, 0), 3);
	assert_int_equal(pp_zone_free_bulk(zone, 8, page, 3), 3);
	assert_int_equal(pp_zone_free(zone, hole, 0, 0), 0);
	destroy_zone(zone);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(create_checks_its_arguments),
		cmocka_unit_test(an_empty_zone_has_nothing_to_give),
		cmocka_unit_test(every_failing_allocation_is_clean),
		cmocka_unit_test(a_failed_addition_can_be_repeated),
		cmocka_unit_test(a_zone_in_use_is_not_destroyed),
		cmocka_unit_test(an_abandoned_zone_tells_what_was_in_use),
		cmocka_unit_test(one_page_splits_a_block_and_merges_back),
		cmocka_unit_test(every_order_tiles_the_zone),
		cmocka_unit_test(blocks_do_not_exceed_the_zones_order),
		cmocka_unit_test(a_gib_is_one_block),
		cmocka_unit_test(bulk_is_contiguous_where_it_can_be),
		cmocka_unit_test(bulk_splits_one_block_once),
		cmocka_unit_test(bulk_prefers_the_smallest_block_that_holds_all),
		cmocka_unit_test(bulk_passes_by_smaller_blocks),
		cmocka_unit_test(bulk_gathers_what_lies_apart),
		cmocka_unit_test(bulk_gives_what_there_is),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
