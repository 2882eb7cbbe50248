/* SPDX-License-Identifier: BSD-3-Clause */
/* Page caches at the edges of what they are asked. */

#include <errno.h>
#include <string.h>

#include <rte_errno.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "pcp_unit.h"
#include "worker.h"

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

/* Nor does one that interrupted a call; what it takes may be of any order. */
static void
nor_those_that_interrupted_a_call(void **state __rte_unused)
{
	struct pcp *pcp = handle(0);

	pcp_free(pcp, pcp_alloc(pcp));
	pcp->busy = 1;
	void *block = pcp_alloc_pages(pcp, 2);

	assert_non_null(block);
	assert_int_equal(pcp_unit_stats().in_use_pages, 4);
	assert_int_equal(pcp_unit_stats().high_order_allocs, 1);
	pcp_free_pages(pcp, (char *)block + 1, 2);
	assert_int_equal(pcp_unit_stats().in_use_pages, 4);
	pcp_free_pages(pcp, block, 2);
	pcp_free_pages(pcp, block, 2);
	assert_int_equal(pcp_unit_stats().in_use_pages, 0);
	assert_int_equal(pcp_unit_stats().reentered, 4);
	assert_int_equal(stats_of(zone).bad_frees, 2);
	pcp->busy = 0;

	/* the fixture wants none */
	pcp_cache_destroy(cache);
	destroy_zone(zone);
	open_caches(NULL);
}

/* A call that interrupted one past the caches is a handler's, unless nobody is to be told apart. */
static void
calls_that_interrupt_one_past_the_caches(void **state __rte_unused)
{
	static const enum pcp_mode modes[] = {PCP_MODE_BH, PCP_MODE_NONE};

	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		const uint64_t handlers = modes[m] != PCP_MODE_NONE;

		pcp_unit_close();
		pcp_unit_open(ZONE_PAGES, (struct pcp_config){.mode = modes[m], .batch = 16});
		pcp_guard_begin();
		void *page = pcp_depot_alloc(cache, 0);

		assert_non_null(page);
		assert_int_equal(pcp_unit_stats().handler_allocs, handlers);
		pcp_depot_free(cache, page, 0);
		assert_int_equal(pcp_unit_stats().handler_frees, handlers);
		assert_int_equal(pcp_unit_stats().reentered, 2 * handlers);
		assert_int_equal(pcp_unit_stats().depot_allocs, 1 - handlers);
		pcp_guard_end();
		assert_balance(0, 0);
	}
}

static void
take_and_give(void *arg)
{
	void *page = pcp_handler_alloc(cache, 0);

	assert_non_null(page);
	pcp_handler_free(cache, page, 0);
	++*(unsigned int *)arg;
}

static void
handle_something(void *ran)
{
	assert_int_equal(pcp_handler_enter(cache, take_and_give, ran), 0);
}

static void
handlers_of_threads_without_an_lcore_run_at_once(void **state __rte_unused)
{
	struct worker *worker = worker_start(false);
	unsigned int ran = 0;

	worker_do(worker, handle_something, &ran);
	worker_end(worker, false);
	assert_int_equal(ran, 1);
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++)
		assert_false(handle(i)->attention & PCP_ATTENTION_HANDLER);
	assert_int_equal(pcp_unit_stats().handler_allocs, 1);
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
		TEST(nor_those_that_interrupted_a_call),
		TEST(calls_that_interrupt_one_past_the_caches),
		TEST(handlers_of_threads_without_an_lcore_run_at_once),
		TEST(modes_that_are_none_have_no_name),
		TEST(several_caches),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
