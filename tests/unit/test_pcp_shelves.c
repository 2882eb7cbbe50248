/* SPDX-License-Identifier: BSD-3-Clause */
/* The depot's shelves: whose magazines an lcore gets, and that none is out of reach. */

#include <sched.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "pcp_unit.h"
#include "worker.h"

#define BATCH  16u
#define N      (4 * BATCH) /* two magazines for the lcore, two for its shelf */
#define LCORES (PCP_SHELVES + 1)

/* Lcores that share no shelf, and none with 0. */
#define ONE   1u
#define OTHER 2u

static void
take(unsigned int lcore_id, void **page, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_non_null(page[i] = pcp_alloc(handle(lcore_id)));
}

static void
give(unsigned int lcore_id, void *const *page, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		pcp_free(handle(lcore_id), page[i]);
}

static uint32_t
on_shelf(unsigned int lcore_id, enum pcp_kind kind)
{
	return pcp_stack_count(&cache->depot->list[0].shelf[lcore_id % PCP_SHELVES].stack[kind]);
}

static bool
is_among(const void *page, void *const *pages, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (pages[i] == page)
			return true;
	return false;
}

static void
an_lcore_gets_its_own_magazines_back(void **state)
{
	void *one[N], *other[N], *again[N];

	(void)state;
	pcp_unit_open(1024, (struct pcp_config){.batch = BATCH});
	take(ONE, one, N);
	take(OTHER, other, N);
	give(ONE, one, N);
	give(OTHER, other, N); /* the last ones in the depot */
	assert_int_equal(on_shelf(ONE, PCP_FULL), 2);
	assert_int_equal(on_shelf(OTHER, PCP_FULL), 2);
	take(ONE, again, N);
	for (uint32_t i = 0; i < N; i++)
		assert_true(is_among(again[i], one, N));
	/* and what it emptied is what it fills */
	assert_int_equal(on_shelf(ONE, PCP_EMPTY), 2);
	give(ONE, again, N);
	assert_int_equal(on_shelf(ONE, PCP_EMPTY), 0);
	assert_int_equal(on_shelf(ONE, PCP_FULL), 2);
	pcp_unit_close();
}

static void
with_an_empty_shelf_it_gets_any_others(void **state)
{
	void *page[N], *again[2 * BATCH];

	(void)state;
	for (unsigned int lcore_id = 0; lcore_id < LCORES; lcore_id++) {
		pcp_unit_open(1024, (struct pcp_config){.batch = BATCH});
		const unsigned int next = (lcore_id + 1) % LCORES;

		take(lcore_id, page, N);
		give(lcore_id, page, N);
		const uint64_t asked = pcp_unit_stats().refills;

		take(next, again, 2 * BATCH);
		assert_int_equal(pcp_unit_stats().refills, asked); /* the zone: not again */
		for (uint32_t i = 0; i < 2 * BATCH; i++)
			assert_true(is_among(again[i], page, N));
		assert_int_equal(on_shelf(lcore_id, PCP_FULL), 0);
		give(next, again, 2 * BATCH);
		pcp_unit_close();
	}
}

/* Whoever frees, and whoever then wants them all; threads without a number, too. */
static void
any_lcore_can_have_all_pages(void **state)
{
	static void *page[1000];

	(void)state;
	pcp_unit_open(RTE_DIM(page), (struct pcp_config){.batch = BATCH});
	cache->depot->backoff_cycles = 0; /* each failure is followed by a success */
	for (unsigned int lcore_id = 0; lcore_id < LCORES; lcore_id++) {
		take(lcore_id, page, RTE_DIM(page));
		assert_null(pcp_alloc(handle(lcore_id)));
		for (uint32_t i = 0; i < RTE_DIM(page); i++)
			pcp_free(handle(i / (2 * BATCH) % LCORES), page[i]);
		assert_balance(0, 0);
		assert_int_equal(pcp_depot_alloc_bulk(
					 cache, 0, page, (uint32_t)pcp_unit_stats().depot_pages),
			0);
		const uint32_t n = (uint32_t)pcp_unit_stats().in_use_pages;

		assert_int_equal(pcp_unit_stats().depot_pages, 0);
		pcp_depot_free_bulk(cache, 0, page, n);
		assert_balance(0, 0);
	}
	pcp_unit_close();
}

static void
a_drain_takes_from_all_shelves(void **state)
{
	static void *page[LCORES][N];

	(void)state;
	pcp_unit_open(1024, (struct pcp_config){.batch = BATCH});
	for (unsigned int lcore_id = 0; lcore_id < LCORES; lcore_id++)
		take(lcore_id, page[lcore_id], N);
	for (unsigned int lcore_id = 0; lcore_id < LCORES; lcore_id++)
		give(lcore_id, page[lcore_id], N);
	/* Magazines 0 and 8 lie on one shelf: the fullest, and the first to be drained. */
	assert_int_equal(on_shelf(0, PCP_FULL), 4);
	const uint64_t all = pcp_unit_stats().depot_pages;

	assert_int_equal(all, 2 * LCORES * BATCH);
	assert_int_equal(pcp_cache_shrink(cache, all - BATCH), BATCH);
	assert_int_equal(on_shelf(0, PCP_FULL), 3);
	assert_int_equal(
		pcp_cache_shrink(cache, PCP_SHELVES * BATCH), all - BATCH - PCP_SHELVES * BATCH);
	for (unsigned int shelf = 0; shelf < PCP_SHELVES; shelf++)
		assert_int_equal(on_shelf(shelf, PCP_FULL), 1);
	assert_int_equal(pcp_cache_shrink(cache, 0), PCP_SHELVES * BATCH);
	assert_int_equal(pcp_unit_stats().depot_pages, 0);
	pcp_unit_close();
}

static struct pcp_shelf *
shelf_of(unsigned int lcore_id)
{
	return &cache->depot->list[0].shelf[lcore_id % PCP_SHELVES];
}

/* While an lcore finds its magazines on its shelf, it needs no lock of anybody else's. */
static void
exchanges_are_with_the_own_shelf_alone(void **state)
{
	void *page[N];

	(void)state;
	pcp_unit_open(1024, (struct pcp_config){.batch = BATCH});
	take(ONE, page, N);
	give(ONE, page, N);
	const uint64_t before = pcp_unit_stats().exchanges;

	assert_true(pp_trylock(&cache->depot->lock));
	for (unsigned int lcore_id = 0; lcore_id < PCP_SHELVES; lcore_id++)
		if (lcore_id != ONE)
			assert_true(pp_trylock(&shelf_of(lcore_id)->lock));
	take(ONE, page, N);
	give(ONE, page, N);
	for (unsigned int lcore_id = 0; lcore_id < PCP_SHELVES; lcore_id++)
		if (lcore_id != ONE)
			pp_unlock(&shelf_of(lcore_id)->lock);
	pp_unlock(&cache->depot->lock);
	assert_int_equal(pcp_unit_stats().exchanges, before + 4);
	pcp_unit_close();
}

/* How often somebody who waited for a lock has made way. */
static uint32_t yields;

int __real_sched_yield(void);
int __wrap_sched_yield(void);

int
__wrap_sched_yield(void)
{
	pp_fetch_add(&yields, 1);
	return __real_sched_yield();
}

static void *got;
static bool has_returned;

static void
alloc_one(void *arg __rte_unused)
{
	got = pcp_cache_alloc(cache);
	pp_store_release(&has_returned, true);
}

/*
 * Pages that somebody has taken off a shelf of an order and not yet given to the zone: no reason to
 * fail.
 */
static void
drain_under_way(unsigned int order)
{
	static void *page[1022];
	struct pcp_shelf *shelf;

	pcp_unit_open(RTE_DIM(page) + 2, (struct pcp_config){.batch = BATCH, .max_order = 1});
	void *drained = pp_zone_alloc(zone, 1, 0);

	assert_non_null(drained);
	take(ONE, page, RTE_DIM(page));
	struct worker *worker = worker_start(true);

	shelf = order == 0 ? shelf_of(OTHER) : &cache->depot->list[order].shelf[0];
	assert_true(pp_trylock(&shelf->lock));
	yields = 0;
	has_returned = false;
	worker_begin(worker, alloc_one, NULL);
	while (pp_load_relaxed(&yields) == 0 && !pp_load_acquire(&has_returned))
		rte_pause();
	assert_false(has_returned);
	pp_zone_free(zone, drained, 1, 0);
	pcp_count_arrival(cache->depot);
	pp_unlock(&shelf->lock);
	worker_wait(worker);
	assert_non_null(got);
	worker_end(worker, true);
	pcp_cache_free(cache, got);
	give(ONE, page, RTE_DIM(page));
	pcp_unit_close();
}

static void
a_drain_under_way_is_waited_for(void **state)
{
	(void)state;
	drain_under_way(0);
	drain_under_way(1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_lcore_gets_its_own_magazines_back),
		cmocka_unit_test(with_an_empty_shelf_it_gets_any_others),
		cmocka_unit_test(any_lcore_can_have_all_pages),
		cmocka_unit_test(a_drain_takes_from_all_shelves),
		cmocka_unit_test(exchanges_are_with_the_own_shelf_alone),
		cmocka_unit_test(a_drain_under_way_is_waited_for),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
