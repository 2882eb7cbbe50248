/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting, not waiting, and threads. */

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "zone_unit.h"

static void
trylock_does_not_wait(void **state)
{
	struct pp_zone *zone = plain_zone(PAGES, 9);
	void *held = pp_zone_alloc(zone, 3, 0);
	void *page = pp_zone_alloc(zone, 0, PP_ALLOC_TRYLOCK);
	void *bulk[4];

	(void)state;
	assert_non_null(held);
	assert_non_null(page); /* as any other while nobody holds the lock */
	assert_true(pp_trylock(&zone->lock));
	rte_errno = 0;
	assert_null(pp_zone_alloc(zone, 0, PP_ALLOC_TRYLOCK));
	assert_int_equal(rte_errno, EBUSY);
	rte_errno = 0;
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, bulk, 4, PP_ALLOC_TRYLOCK), 0);
	assert_int_equal(rte_errno, EBUSY);

	/* a free is accepted, and done by whoever takes the lock next */
	assert_int_equal(pp_zone_free(zone, page, 0, PP_ALLOC_TRYLOCK), 0);
	assert_int_equal(pp_zone_free_pages(zone), PAGES - 8);
	assert_int_equal(pp_zone_free(zone, page, 0, PP_ALLOC_TRYLOCK), -EINVAL);
	assert_int_equal(pp_zone_free(zone, held, 2, PP_ALLOC_TRYLOCK), -EINVAL);
	assert_int_equal(pp_zone_free(zone, NULL, 0, PP_ALLOC_TRYLOCK), -EINVAL);
	assert_int_equal(pp_zone_free(zone, held, 3, PP_ALLOC_TRYLOCK), 0);
	assert_int_equal(pp_zone_free_pages(zone), PAGES);
	pp_unlock(&zone->lock);

	assert_int_equal(pp_zone_free(zone, page, 0, 0), -EINVAL);
	assert_int_equal(stats_of(zone).free_blocks[9], 2);
	assert_int_equal(stats_of(zone).frees[0], 1);
	assert_int_equal(stats_of(zone).frees[3], 1);
	assert_int_equal(pp_zone_free_pages(zone), PAGES);
	destroy_zone(zone);
}

/* What was freed while the lock was held is there for the next allocation. */
static void
deferred_frees_are_not_lost(void **state)
{
	static void *page[PAGES];
	struct pp_zone *zone = plain_zone(PAGES, 9);

	(void)state;
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, page, PAGES, 0), PAGES);
	assert_true(pp_trylock(&zone->lock));
	for (uint32_t i = 0; i < PAGES; i++)
		assert_int_equal(pp_zone_free(zone, page[i], 0, PP_ALLOC_TRYLOCK), 0);
	pp_unlock(&zone->lock);
	assert_int_equal(pp_zone_alloc_bulk(zone, 9, page, 2, PP_ALLOC_TRYLOCK), 2);
	assert_int_equal(pp_zone_free_bulk(zone, 9, page, 2), 2);
	destroy_zone(zone);
}

static void *
alloc_and_free(void *zone)
{
	void *page = pp_zone_alloc(zone, 0, 0);

	return page != NULL && pp_zone_free(zone, page, 0, 0) == 0 ? NULL : zone;
}

static void
waiting_for_the_lock_is_counted(void **state)
{
	struct pp_zone *zone = plain_zone(PAGES, 9);
	pthread_t thread;
	void *failed;

	(void)state;
	assert_int_equal(stats_of(zone).contended, 0);
	assert_true(pp_trylock(&zone->lock));
	assert_int_equal(pthread_create(&thread, NULL, alloc_and_free, zone), 0);
	usleep(50000); /* it waits now */
	assert_int_equal(zone->stats.allocs[0], 0);
	pp_unlock(&zone->lock);
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_int_equal(stats_of(zone).contended, 1);
	destroy_zone(zone);
}

struct worker {
	struct pp_zone *zone;
	unsigned int flags;
	uint64_t allocs[4];
	uint64_t frees[4];
	uint64_t wrong;
};

static void *
work(void *arg)
{
	struct worker *worker = arg;
	void *page[48];

	for (int round = 0; round < 4000; round++) {
		const unsigned int order = (unsigned int)round % 4;
		const uint32_t n =
			pp_zone_alloc_bulk(worker->zone, order, page, RTE_DIM(page), worker->flags);

		worker->allocs[order] += n;
		for (uint32_t i = 0; i < n; i++) {
			if (pp_zone_free(worker->zone, page[i], order, worker->flags) == 0)
				worker->frees[order]++;
			else
				worker->wrong++;
		}
	}
	return NULL;
}

static void
threads_lose_nothing(void **state)
{
	struct pp_zone *zone = plain_zone(PAGES, 9);
	struct worker worker[3] = {
		{.zone = zone}, {.zone = zone}, {.zone = zone, .flags = PP_ALLOC_TRYLOCK}};
	pthread_t thread[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);

	const struct pp_zone_stats stats = stats_of(zone);

	for (unsigned int order = 0; order < 4; order++) {
		uint64_t allocs = 0;

		for (int i = 0; i < 3; i++) {
			allocs += worker[i].allocs[order];
			assert_int_equal(worker[i].wrong, 0);
		}
		assert_int_equal(stats.allocs[order], allocs);
		assert_int_equal(stats.frees[order], allocs);
	}
	assert_int_equal(stats.free_blocks[9], 2);
	destroy_zone(zone);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trylock_does_not_wait),
		cmocka_unit_test(deferred_frees_are_not_lost),
		cmocka_unit_test(waiting_for_the_lock_is_counted),
		cmocka_unit_test(threads_lose_nothing),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
