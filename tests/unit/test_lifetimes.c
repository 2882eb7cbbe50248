/* SPDX-License-Identifier: BSD-3-Clause */
/* Thousands of lives leave nothing behind; nothing is destroyed that somebody still uses. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_mbuf.h>

#include "mempool_unit.h"
#include "worker.h"
#include "zone_unit.h"

#define ROUNDS     3000
#define ZONE_PAGES 256u

static struct pcp_cache *
new_cache(struct pp_zone *zone)
{
	const struct pcp_config config = {.batch = 16, .lcores = 2};
	struct pcp_cache *cache = pcp_cache_create(zone, &config);

	assert_non_null(cache);
	return cache;
}

static void
a_life_of_a_zone(void)
{
	struct pp_zone *zone = plain_zone(ZONE_PAGES, 9);
	struct pcp_cache *cache = new_cache(zone);
	void *page[40];

	for (unsigned int i = 0; i < RTE_DIM(page); i++)
		assert_non_null(page[i] = pcp_cache_alloc(cache));
	for (unsigned int i = 0; i < RTE_DIM(page); i++)
		pcp_cache_free(cache, page[i]);
	pcp_cache_destroy(cache);
	destroy_zone(zone);
}

static void
a_life_of_a_page_pool(void)
{
	const struct pp_pktmbuf_config config = {.backend = PP_BACKEND_ANON};
	struct rte_mempool *mp = pp_pktmbuf_pool_create("mp", 64, 0, 2048, SOCKET_ID_ANY, &config);
	struct rte_mbuf *mbuf;

	assert_non_null(mp);
	assert_non_null(mbuf = rte_pktmbuf_alloc(mp));
	rte_pktmbuf_free(mbuf);
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
}

static void
a_life_of_a_pool(void)
{
	const struct pp_pool_config config = {
		.name = "pool",
		.backend = PP_BACKEND_ANON,
		.page_size = PP_PAGE_SIZE,
		.bytes_per_node = {2 * UNIT_MIB},
	};
	struct pp_pool *pool = pp_pool_create(&config);
	void *page;

	assert_non_null(pool);
	assert_non_null(page = pp_pool_alloc(pool, 0, 0, 0));
	assert_int_equal(pp_pool_free(pool, page, 0), 0);
	assert_int_equal(pp_pool_destroy(pool), 0);
}

static void
live_and_leave_nothing(void (*life)(void), unsigned int rounds)
{
	struct unit_resources before;

	/* what the first ones leave for good */
	for (unsigned int i = 0; i < 10; i++)
		life();
	unit_resources_get(&before);
	for (unsigned int i = 0; i < rounds; i++)
		life();
	assert_nothing_left(&before);
}

static void
zones_and_caches(void **state __rte_unused)
{
	live_and_leave_nothing(a_life_of_a_zone, ROUNDS);
}

static void
pools_of_pages(void **state __rte_unused)
{
	live_and_leave_nothing(a_life_of_a_pool, ROUNDS);
}

/* rte_pktmbuf_alloc() and the like over them; ops pools live as often in test_mempool.c */
static void
pools_of_mbufs(void **state __rte_unused)
{
	live_and_leave_nothing(a_life_of_a_page_pool, ROUNDS);
}

/* ---- what is in use is not destroyed, and its number is told ---- */

struct thief {
	struct pcp_cache *cache;
	void *page[ZONE_PAGES];
	uint32_t n;
	uint32_t stop;
	uint32_t rounds;
};

static void
take_and_give(void *arg)
{
	struct thief *thief = arg;

	for (unsigned int i = 0; i < 20; i++)
		assert_non_null(thief->page[i] = pcp_cache_alloc(thief->cache));
	for (unsigned int i = 0; i < 20; i++)
		pcp_cache_free(thief->cache, thief->page[i]);
}

static void
pages_in_flight_and_in_caches(void **state __rte_unused)
{
	struct pp_zone *zone = plain_zone(ZONE_PAGES, 9);
	struct thief thief = {.cache = new_cache(zone)};
	struct worker *other = worker_start(true);
	void *page = pp_zone_alloc(zone, 2, 0);
	struct pcp_stats stats;
	char line[64];

	assert_non_null(page);
	worker_do(other, take_and_give, &thief);
	pcp_cache_get_stats(thief.cache, &stats);
	assert_true(stats.cached_pages > 0);
	snprintf(line, sizeof(line), "not destroyed, %u pages are in use",
		(unsigned int)(4 + stats.cached_pages + stats.depot_pages));
	unit_log_clear();
	assert_int_equal(pp_zone_destroy(zone), -EBUSY);
	unit_assert_logged(line);

	/* the caches give back what no lcore uses, theirs and others' */
	pcp_cache_destroy(thief.cache);
	assert_int_equal(pp_zone_free_pages(zone), ZONE_PAGES - 4);
	unit_log_clear();
	assert_int_equal(pp_zone_destroy(zone), -EBUSY);
	unit_assert_logged("not destroyed, 4 pages are in use");
	assert_int_equal(pp_zone_free(zone, page, 2, 0), 0);
	worker_end(other, true);
	destroy_zone(zone);
}

/* Runs dry, over and over, so that it reclaims all the time. */
static void
reclaim_until_told(void *arg)
{
	struct thief *thief = arg;

	while (!pp_load_acquire(&thief->stop)) {
		while (thief->n < ZONE_PAGES &&
			(thief->page[thief->n] = pcp_cache_alloc(thief->cache)) != NULL)
			thief->n++;
		while (thief->n > 0)
			pcp_cache_free(thief->cache, thief->page[--thief->n]);
		pcp_cache_drain(thief->cache);
		pp_store_release(&thief->rounds, thief->rounds + 1);
	}
}

static void
while_another_thread_reclaims(void **state __rte_unused)
{
	struct pp_zone *zone = plain_zone(ZONE_PAGES, 9);
	struct thief thief = {.cache = new_cache(zone)};
	struct worker *other = worker_start(true);
	void *mine = pcp_cache_alloc(thief.cache);

	assert_non_null(mine);
	worker_begin(other, reclaim_until_told, &thief);
	for (uint32_t i = 0; i < 100 || pp_load_acquire(&thief.rounds) < 20; i++) {
		void *page = pcp_cache_alloc(thief.cache);

		assert_int_equal(pp_zone_destroy(zone), -EBUSY);
		if (page != NULL)
			pcp_cache_free(thief.cache, page);
		unit_log_clear();
	}
	pp_store_release(&thief.stop, 1);
	worker_wait(other);
	worker_end(other, true);
	pcp_cache_free(thief.cache, mine);
	assert_true(pcp_cache_is_valid(thief.cache));
	pcp_cache_destroy(thief.cache);
	destroy_zone(zone);
}

static void
mbufs_in_flight(void **state __rte_unused)
{
	const struct pp_pktmbuf_config config = {.backend = PP_BACKEND_ANON};
	struct rte_mempool *mp = pp_pktmbuf_pool_create("mp", 64, 0, 2048, SOCKET_ID_ANY, &config);
	struct rte_mbuf *mbuf[5];

	assert_non_null(mp);
	assert_int_equal(rte_pktmbuf_alloc_bulk(mp, mbuf, 5), 0);
	unit_log_clear();
	assert_int_equal(pp_pktmbuf_pool_free(mp), -EBUSY);
	unit_assert_logged("mp: not freed, 5 mbufs are in use");
	rte_pktmbuf_free_bulk(mbuf, 5);
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(zones_and_caches),
		cmocka_unit_test(pools_of_pages),
		cmocka_unit_test(pools_of_mbufs),
		cmocka_unit_test(pages_in_flight_and_in_caches),
		cmocka_unit_test(while_another_thread_reclaims),
		cmocka_unit_test(mbufs_in_flight),
	};

	zone_unit_init();
	worker_end(worker_start(true), true); /* the C library keeps a stack for the next */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
