/* SPDX-License-Identifier: BSD-3-Clause */
/* Bulk calls: all or nothing, across magazines and beyond the zone. */

#include <errno.h>

#include "pcp_unit.h"

#define SOME 100u
#define MANY (SOME + 1) /* more than there are */

struct kind {
	int (*alloc)(void **pages, uint32_t n);
	void (*free)(void *const *pages, uint32_t n);
};

static int
alloc_handle(void **pages, uint32_t n)
{
	return pcp_alloc_bulk(handle(0), pages, n);
}

static void
free_handle(void *const *pages, uint32_t n)
{
	pcp_free_bulk(handle(0), pages, n);
}

static int
alloc_public(void **pages, uint32_t n)
{
	return pcp_cache_alloc_bulk(cache, pages, n);
}

static void
free_public(void *const *pages, uint32_t n)
{
	pcp_cache_free_bulk(cache, pages, n);
}

static int
alloc_depot(void **pages, uint32_t n)
{
	return pcp_depot_alloc_bulk(cache, 0, pages, n);
}

static void
free_depot(void *const *pages, uint32_t n)
{
	pcp_depot_free_bulk(cache, 0, pages, n);
}

static const struct kind kinds[] = {
	{alloc_handle, free_handle},
	{alloc_public, free_public},
	{alloc_depot, free_depot},
};

static void
assert_distinct(void *const *pages, uint32_t n)
{
	bool seen[SOME] = {false};

	for (uint32_t i = 0; i < n; i++) {
		assert_false(seen[page_number(pages[i])]);
		seen[page_number(pages[i])] = true;
	}
}

static void
every_length_is_all_or_nothing(void **state)
{
	void *page[2 * MANY];

	(void)state;
	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_NONE; mode++) {
		pcp_unit_open(SOME, (struct pcp_config){.mode = mode, .batch = 7});
		for (size_t k = 0; k < RTE_DIM(kinds); k++) {
			/* none, within a magazine, beyond both magazines, all */
			for (uint32_t n = 0; n <= SOME; n++) {
				assert_int_equal(kinds[k].alloc(page, n), 0);
				assert_distinct(page, n);
				assert_balance(n, n);
				shuffle(page, n);
				kinds[k].free(page, n);
				assert_balance(0, 0);
			}
			for (uint32_t n = MANY; n <= RTE_DIM(page); n++) {
				const struct pcp_stats before = pcp_unit_stats();

				assert_int_equal(kinds[k].alloc(page, n), -ENOMEM);
				assert_balance(0, 0);
				assert_int_equal(pcp_unit_stats().allocs, before.allocs);
				assert_int_equal(pcp_unit_stats().frees, before.frees);
				assert_int_equal(pcp_unit_stats().failed, before.failed + 1);
			}
			pcp_cache_drain(cache); /* the depot's calls see no lcore's pages */
		}
		pcp_unit_close();
	}
}

/* What an unsuccessful call has gathered is there for the next one. */
static void
a_failure_takes_nothing_away(void **state)
{
	void *page[SOME], *more[SOME];

	(void)state;
	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		pcp_unit_open(SOME, (struct pcp_config){.batch = 7});
		assert_int_equal(kinds[k].alloc(page, 41), 0);
		assert_int_equal(kinds[k].alloc(more, 60), -ENOMEM);
		assert_balance(41, 41);
		assert_int_equal(kinds[k].alloc(more, 59), 0);
		assert_balance(SOME, SOME);
		assert_int_equal(kinds[k].alloc(more + 59, 1), -ENOMEM);
		kinds[k].free(page, 41);
		kinds[k].free(more, 59);
		pcp_unit_close();
	}
}

static void
pages_come_in_ascending_runs_out_of_a_fresh_zone(void **state)
{
	void *page[32];

	(void)state;
	pcp_unit_open(1024, (struct pcp_config){.batch = 32});
	assert_int_equal(pcp_alloc_bulk(handle(0), page, 32), 0);
	for (uint32_t i = 1; i < 32; i++)
		assert_int_equal(page_number(page[i]), page_number(page[0]) + i);
	pcp_free_bulk(handle(0), page, 32);
	pcp_unit_close();
}

/* An exchange moves a magazine: the zone is asked once for each, not for each page. */
static void
magazines_move_as_a_whole(void **state)
{
	void *page[64];

	(void)state;
	pcp_unit_open(1024, (struct pcp_config){.batch = 16});
	for (uint32_t i = 0; i < 64; i++)
		assert_non_null(page[i] = pcp_alloc(handle(0)));
	assert_int_equal(pcp_unit_stats().refills, 4);
	assert_int_equal(pcp_unit_stats().exchanges, 0);
	/* loaded, previous, and two for the depot */
	for (uint32_t i = 0; i < 64; i++)
		pcp_free(handle(0), page[i]);
	assert_int_equal(pcp_unit_stats().exchanges, 2);
	assert_int_equal(pcp_unit_stats().depot_pages, 32);
	assert_int_equal(pcp_unit_stats().cached_pages, 32);
	assert_int_equal(stats_of(zone).allocs[0], 64);
	assert_int_equal(stats_of(zone).frees[0], 0);
	/* another lcore gets them without the zone */
	assert_int_equal(pcp_alloc_bulk(handle(1), page, 32), 0);
	assert_int_equal(pcp_unit_stats().exchanges, 4);
	assert_int_equal(pcp_unit_stats().depot_pages, 0);
	assert_int_equal(stats_of(zone).allocs[0], 64);
	pcp_free_bulk(handle(1), page, 32);
	pcp_unit_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_is_all_or_nothing),
		cmocka_unit_test(a_failure_takes_nothing_away),
		cmocka_unit_test(pages_come_in_ascending_runs_out_of_a_fresh_zone),
		cmocka_unit_test(magazines_move_as_a_whole),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
