/* SPDX-License-Identifier: BSD-3-Clause */
/* Page caches at the edges of what they are asked. */

#include <errno.h>
#include <string.h>

#include <rte_errno.h>

#include "pcp_unit.h"

#define ZONE_PAGES 256u

static int
open_caches(void **state __rte_unused)
{
	pcp_unit_open(ZONE_PAGES, (struct pcp_config){.batch = 16});
	return 0;
}

static void
orders_beyond_the_zones(void **state __rte_unused)
{
	void *page;

	rte_errno = 0;
	assert_int_equal(pcp_depot_alloc_bulk(cache, 10, &page, 1), -EINVAL);
	assert_int_equal(rte_errno, EINVAL);
	assert_null(pcp_depot_alloc(cache, PP_MAX_ORDER + 1));
}

/* A handler's free of what is not in use is refused, and does not count. */
static void
wrong_frees_of_handlers_do_not_count(void **state __rte_unused)
{
	void *page = pcp_handler_alloc(cache, 0);

	assert_non_null(page);
	pcp_handler_free(cache, (char *)page + 1, 0);
	assert_int_equal(pcp_unit_stats().handler_frees, 0);
	assert_int_equal(pcp_unit_stats().in_use_pages, 1);
	pcp_handler_free(cache, page, 0);
	pcp_handler_free(cache, page, 0);
	assert_int_equal(pcp_unit_stats().handler_frees, 1);
	assert_int_equal(pcp_unit_stats().in_use_pages, 0);
	assert_int_equal(stats_of(zone).bad_frees, 2);

	/* the fixture wants none */
	pcp_cache_destroy(cache);
	destroy_zone(zone);
	open_caches(NULL);
}

static void
modes_that_are_none_have_no_name(void **state __rte_unused)
{
	enum pcp_mode mode;

	assert_string_equal(pcp_mode_name((enum pcp_mode)99), "unknown");
	assert_int_equal(pcp_mode_parse("unknown", &mode), -EINVAL);
}

/* A process that uses several caches leaves each when that goes, in any order. */
static void
several_caches(void **state __rte_unused)
{
	static const unsigned int order[] = {1, 0, 2};
	const struct pp_run run = {.addr = memory + (size_t)ZONE_PAGES * PP_PAGE_SIZE,
		.stride = PP_PAGE_SIZE,
		.count = 64};
	struct pp_zone *zones[RTE_DIM(order)];
	struct pcp_cache *caches[RTE_DIM(order)];
	struct unit_resources before;

	unit_resources_get(&before);
	for (unsigned int i = 0; i < RTE_DIM(order); i++) {
		const struct pcp_config config = {.batch = 8, .lcores = 2};

		zones[i] = new_zone(&run, 1, 9);
		assert_non_null(caches[i] = pcp_cache_create(zones[i], &config));
		pcp_cache_free(caches[i], pcp_cache_alloc(caches[i]));
	}
	for (unsigned int i = 0; i < RTE_DIM(order); i++) {
		pcp_cache_destroy(caches[order[i]]);
		destroy_zone(zones[order[i]]);
		for (unsigned int k = i + 1; k < RTE_DIM(order); k++)
			pcp_cache_free(caches[order[k]], pcp_cache_alloc(caches[order[k]]));
	}

	struct unit_resources now;

	unit_resources_get(&now);
	assert_int_equal(now.heap_blocks, before.heap_blocks);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_caches, pcp_unit_teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(orders_beyond_the_zones),
		TEST(wrong_frees_of_handlers_do_not_count),
		TEST(modes_that_are_none_have_no_name),
		TEST(several_caches),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
