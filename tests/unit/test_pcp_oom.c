/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation that page caches make, failing in turn; and what works without. */

#include <errno.h>

#include <rte_errno.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "pcp_unit.h"

#define SOME 100u

static void *
create(void *config)
{
	return pcp_cache_create(zone, config);
}

static void
destroy(void *object)
{
	pcp_cache_destroy(object);
}

static void
every_failing_allocation_of_create_is_clean(void **state)
{
	(void)state;
	for (unsigned int order = 0; order <= PCP_MAX_ORDER; order++) {
		struct pcp_config config = {.max_order = order};

		zone = plain_zone(SOME, 9);
		/* caches, depot, magazines, slots, membership, lcore callback */
		assert_int_equal(unit_fail_each(create, destroy, &config), 6);
		destroy_zone(zone);
	}
}

/* A cache whose magazines cannot be had: every call works, by way of the zone. */
static void
use_without_magazines(unsigned int order, bool section)
{
	struct pcp *pcp = handle(0);
	const uint32_t blocks = SOME >> order;
	void *page[SOME];

	for (uint32_t i = 0; i < blocks; i++) {
		unit_fail_calls("rte_zmalloc_socket", ENOMEM);
		if (section)
			pcp_bh_disable(pcp);
		page[i] = i % 2 == 0 && section ? pcp_alloc_pages_nested(pcp, order)
						: pcp_alloc_pages(pcp, order);
		if (section)
			pcp_bh_enable(pcp);
		assert_non_null(page[i]);
		assert_balance(i + 1, (i + 1) << order);
	}
	assert_null(pcp_alloc_pages(pcp, order));
	assert_int_equal(rte_errno, ENOMEM);
	for (uint32_t i = blocks; i > 0; i--) {
		if (section)
			pcp_bh_disable(pcp);
		if (i % 2 == 0 && section)
			pcp_free_pages_nested(pcp, page[i - 1], order);
		else
			pcp_free_pages(pcp, page[i - 1], order);
		if (section)
			pcp_bh_enable(pcp);
		assert_balance(i - 1, (i - 1) << order);
	}
	assert_true(pcp_unit_stats().zone_allocs >= blocks);
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
	if (order == 0) {
		assert_int_equal(pcp_alloc_bulk(pcp, page, SOME), 0);
		assert_int_equal(pcp_alloc_bulk(pcp, page, 1), -ENOMEM);
		pcp_free_bulk(pcp, page, SOME);
		assert_balance(0, 0);
	}
	/* another lcore can have what this one did not cache */
	unit_fail_calls(NULL, 0);
	pcp_free(handle(1), pcp_alloc(handle(1)));
	pcp_cache_drain(cache);
	/* and when there is memory again, this one caches, too */
	pcp_free(pcp, pcp_alloc(pcp));
	assert_true(pcp_unit_stats().cached_pages > 0);
	pcp_cache_drain(cache);
}

static void
use_all_without_magazines(enum pcp_mode mode, enum pcp_checks checks)
{
	for (unsigned int order = 0; order <= PCP_MAX_ORDER; order++) {
		for (unsigned int section = 0; section < 2; section++) {
			pcp_unit_open(SOME, (struct pcp_config){.mode = mode,
						    .batch = 7,
						    .max_order = 3,
						    .checks = checks});
			use_without_magazines(order, section > 0);
			pcp_unit_close();
		}
	}
}

static void
an_lcore_without_magazines_works_by_the_zone(void **state)
{
	(void)state;
	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_NONE; mode++)
		for (enum pcp_checks checks = PCP_CHECKS_OFF; checks <= PCP_CHECKS_FULL; checks++)
			use_all_without_magazines(mode, checks);
}

/* As a secondary process without memory in its first call. */
static void
a_process_that_cannot_join_works_by_the_zone(void **state)
{
	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = 7});
	pcp_process_leaves(cache);
	unit_fail_calls("rte_lcore_callback_register", ENOMEM);
	for (unsigned int i = 0; i < 3; i++)
		pcp_free(handle(0), pcp_alloc(handle(0)));
	assert_int_equal(pcp_unit_stats().zone_allocs, 3);
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
	assert_true(handle(0)->attention & PCP_ATTENTION_OFFLINE);
	unit_fail_calls(NULL, 0);
	pcp_free(handle(0), pcp_alloc(handle(0)));
	assert_int_equal(pcp_unit_stats().zone_allocs, 3);
	assert_int_equal(pcp_unit_stats().cached_pages, 7);
	/* and one that leaves without having used them */
	pcp_process_leaves(cache);
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
	pcp_process_leaves(cache);
	pcp_unit_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failing_allocation_of_create_is_clean),
		cmocka_unit_test(an_lcore_without_magazines_works_by_the_zone),
		cmocka_unit_test(a_process_that_cannot_join_works_by_the_zone),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
