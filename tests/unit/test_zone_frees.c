/* SPDX-License-Identifier: BSD-3-Clause */
/* What is no block in use is refused, counted and logged. */

#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "zone_unit.h"

static void
wrong_frees_are_refused_counted_and_logged(void **state)
{
	struct pp_zone *zone = odd_zone();
	void *block = pp_zone_alloc(zone, 2, 0);
	char *const padding = odd_page(2, 513);
	uint64_t bad = 0;
	uint64_t free;
	int foreign;

	(void)state;
	assert_non_null(block);
	free = pp_zone_free_pages(zone);

	const struct {
		void *page;
		unsigned int order;
	} wrong[] = {
		{NULL, 0}, {&foreign, 0}, {memory - 1, 0}, {padding, 0},
		{block, 0},             /* a part of it */
		{block, 1}, {block, 3}, /* more than it */
		{block, PP_MAX_ORDER + 1}, {(char *)block + 1, 2}, {(char *)block + 64, 2},
		{(char *)block + PP_PAGE_SIZE, 0}, /* of its middle, or nothing at all */
		{odd_page(1, 0), 0},               /* free */
		{odd_page(0, 512), 0},             /* free, if the block does not come from there */
	};

	for (uint32_t i = 0; i < RTE_DIM(wrong); i++) {
		unit_log_clear();
		assert_int_equal(pp_zone_free(zone, wrong[i].page, wrong[i].order, 0), -EINVAL);
		assert_int_equal(stats_of(zone).bad_frees, ++bad);
		assert_int_equal(pp_zone_free_pages(zone), free);
		unit_assert_logged("zone: free of ");
	}
	assert_true(pp_zone_is_valid(zone));
	assert_int_equal(pp_zone_free(zone, block, 2, 0), 0);
	unit_log_clear();
	assert_int_equal(pp_zone_free(zone, block, 2, 0), -EINVAL);
	unit_assert_logged("double free?");
	assert_int_equal(stats_of(zone).bad_frees, ++bad);
	assert_int_equal(stats_of(zone).frees[2], 1);
	destroy_zone(zone);
}

/* A block that merged away is still recognised as free. */
static void
double_frees_of_merged_blocks_are_found(void **state)
{
	struct pp_zone *zone = plain_zone(PAGES, 9);
	static void *page[PAGES];

	(void)state;
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, page, PAGES, 0), PAGES);
	assert_int_equal(pp_zone_free_bulk(zone, 0, page, PAGES), PAGES);
	for (uint32_t i = 0; i < PAGES; i++)
		assert_int_equal(pp_zone_free(zone, page[i], 0, 0), -EINVAL);
	for (unsigned int order = 1; order <= 9; order++)
		assert_int_equal(pp_zone_free(zone, memory, order, 0), -EINVAL);
	assert_int_equal(stats_of(zone).bad_frees, PAGES + 9);
	assert_int_equal(stats_of(zone).free_blocks[9], 2);
	destroy_zone(zone);
}

static void
bulk_frees_take_the_good_ones(void **state)
{
	struct pp_zone *zone = plain_zone(PAGES, 9);
	void *page[8];

	(void)state;
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, page, 5, 0), 5);
	page[5] = page[1];            /* twice */
	page[6] = (char *)memory + 8; /* misaligned */
	page[7] = NULL;
	unit_log_clear();
	assert_int_equal(pp_zone_free_bulk(zone, 0, page, 8), 5);
	unit_assert_logged("zone: free of ");
	assert_int_equal(stats_of(zone).bad_frees, 3);
	assert_int_equal(stats_of(zone).frees[0], 5);
	assert_int_equal(pp_zone_free_bulk(zone, 0, page, 0), 0);
	assert_int_equal(stats_of(zone).free_blocks[9], 2);
	destroy_zone(zone);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_frees_are_refused_counted_and_logged),
		cmocka_unit_test(double_frees_of_merged_blocks_are_found),
		cmocka_unit_test(bulk_frees_take_the_good_ones),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
