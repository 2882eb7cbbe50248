/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders compete for the same pages, and none may hoard them. */

#include <stdlib.h>

#include <rte_errno.h>

#include "pcp_unit.h"

#define SOME 1024u

static const enum pcp_mode modes[] = {PCP_MODE_BH, PCP_MODE_SPIN, PCP_MODE_BYPASS, PCP_MODE_IRQ};

/* Cache all pages of the zone at one order, by two lcores and the depot. */
static void
cache_all(unsigned int order)
{
	const uint32_t blocks = SOME >> order;
	void **page = calloc(blocks, sizeof(*page));

	for (uint32_t i = 0; i < blocks; i++)
		assert_non_null(page[i] = pcp_alloc_pages(handle(i % 2), order));
	shuffle(page, blocks);
	for (uint32_t i = 0; i < blocks; i++)
		pcp_free_pages(handle(i % 2), page[i], order);
	free(page);
	assert_balance(0, 0);
}

/* By an lcore that has nothing cached; caches know orders up to PCP_MAX_ORDER only. */
static void *
take(unsigned int order)
{
	return order > PCP_MAX_ORDER ? pcp_depot_alloc(cache, order)
				     : pcp_alloc_pages(handle(2), order);
}

static void
give(void *page, unsigned int order)
{
	if (order > PCP_MAX_ORDER)
		pcp_depot_free(cache, page, order);
	else
		pcp_free_pages(handle(2), page, order);
}

/* Obtain all pages of the zone at one order. */
static void
take_all(unsigned int order)
{
	const uint32_t blocks = SOME >> order;
	void **page = calloc(blocks, sizeof(*page));

	for (uint32_t i = 0; i < blocks; i++)
		assert_non_null(page[i] = take(order));
	assert_null(take(order));
	assert_balance(blocks, SOME);
	for (uint32_t i = 0; i < blocks; i++)
		give(page[i], order);
	free(page);
	assert_balance(0, 0);
}

static void
pages_cached_at_one_order_are_there_for_all(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		pcp_unit_open(SOME, (struct pcp_config){.mode = modes[m], .max_order = 3});
		for (unsigned int cached = 0; cached <= PCP_MAX_ORDER; cached++) {
			for (unsigned int wanted = 0; wanted <= 9; wanted++) {
				cache_all(cached);
				take_all(wanted);
			}
		}
		pcp_unit_close();
	}
}

/* Also out of the cache of the very lcore that asks. */
static void
an_lcores_own_pages_serve_its_other_orders(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		pcp_unit_open(
			16, (struct pcp_config){.mode = modes[m], .batch = 16, .max_order = 3});
		void *page[16];

		assert_int_equal(pcp_alloc_bulk(handle(0), page, 16), 0);
		pcp_free_bulk(handle(0), page, 16);
		assert_int_equal(pcp_unit_stats().cached_pages, 16);
		void *big = pcp_alloc_pages(handle(0), 3);

		assert_non_null(big);
		assert_balance(1, 8);
		pcp_free_pages(handle(0), big, 3);
		assert_int_equal(pcp_alloc_bulk(handle(0), page, 16), 0);
		assert_balance(16, 16);
		pcp_free_bulk(handle(0), page, 16);
		pcp_unit_close();
	}
}

/* Loaded, previous, and 2 x lcores magazines of 256 KiB in the depot: not the whole zone. */
static void
higher_orders_do_not_hoard(void **state)
{
	const uint32_t pages = 65536, lcores = 2;

	(void)state;
	for (unsigned int order = 1; order <= PCP_MAX_ORDER; order++) {
		const uint32_t blocks = pages >> order;
		void **page = calloc(blocks, sizeof(*page));

		pcp_unit_open(pages, (struct pcp_config){.max_order = 3, .lcores = lcores});
		for (uint32_t i = 0; i < blocks; i++)
			assert_non_null(page[i] = pcp_alloc_pages(handle(0), order));
		for (uint32_t i = 0; i < blocks; i++)
			pcp_free_pages(handle(0), page[i], order);
		assert_int_equal(pcp_unit_stats().cached_pages, 2 * 64);
		assert_int_equal(pcp_unit_stats().depot_pages, 2 * lcores * 64);
		free(page);
		pcp_unit_close();
	}
}

static void
orders_above_the_limit_are_not_cached(void **state)
{
	(void)state;
	for (unsigned int limit = 0; limit <= PCP_MAX_ORDER; limit++) {
		pcp_unit_open(SOME, (struct pcp_config){.max_order = limit});
		for (unsigned int order = 0; order <= PCP_MAX_ORDER; order++) {
			const struct pcp_stats before = pcp_unit_stats();
			void *page = pcp_alloc_pages(handle(0), order);

			assert_non_null(page);
			assert_balance(1, 1u << order);
			pcp_free_pages(handle(0), page, order);
			assert_int_equal(pcp_unit_stats().zone_allocs - before.zone_allocs,
				order > limit ? 1 : 0);
			assert_int_equal(pcp_unit_stats().zone_frees - before.zone_frees,
				order > limit ? 1 : 0);
		}
		pcp_unit_close();
	}
}

/* Nor is anything drained for what cannot be. */
static void
orders_above_the_zones_fail_at_once(void **state)
{
	void *page[64];

	(void)state;
	zone = plain_zone(RTE_DIM(page), 2);
	cache = pcp_cache_create(zone, &(struct pcp_config){.batch = 4, .lcores = 2});
	assert_non_null(cache);
	assert_int_equal(pcp_alloc_bulk(handle(0), page, RTE_DIM(page)), 0);
	pcp_free_bulk(handle(0), page, RTE_DIM(page));
	rte_errno = 0;
	assert_null(pcp_alloc_pages(handle(0), 3));
	assert_int_equal(rte_errno, ENOMEM);
	assert_int_equal(pcp_unit_stats().drains, 0);
	assert_int_equal(pcp_unit_stats().cached_pages, 8);
	pcp_unit_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_cached_at_one_order_are_there_for_all),
		cmocka_unit_test(an_lcores_own_pages_serve_its_other_orders),
		cmocka_unit_test(higher_orders_do_not_hoard),
		cmocka_unit_test(orders_above_the_limit_are_not_cached),
		cmocka_unit_test(orders_above_the_zones_fail_at_once),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
