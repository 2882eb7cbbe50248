/* SPDX-License-Identifier: BSD-3-Clause */
/* "N pages, k threads: every page obtainable", whatever the threads that hold them are doing. */

#include <errno.h>
#include <sched.h>

#include "pcp_unit.h"
#include "worker.h"

#define SOME   600u
#define OWNERS 3u

static const enum pcp_mode modes[] = {PCP_MODE_BH, PCP_MODE_SPIN, PCP_MODE_BYPASS, PCP_MODE_IRQ};

static struct worker *owner[OWNERS];
static void *page[SOME];
static uint32_t held; /* by this thread, in page[] */

static void
hold(void *p)
{
	assert_non_null(p);
	page[held++] = p;
}

/* Everything that can be had, by this thread. */
static void
hold_all(uint32_t expected)
{
	for (uint32_t i = 0; i < expected; i++)
		hold(pcp_cache_alloc(cache));
	assert_null(pcp_cache_alloc(cache));
}

static void
release_all(void)
{
	while (held > 0)
		pcp_cache_free(cache, page[--held]);
}

/* ---- what owners do ---- */

static void
allocate_and_free(void *arg)
{
	void *mine[150];

	(void)arg;
	assert_int_equal(pcp_cache_alloc_bulk(cache, mine, RTE_DIM(mine)), 0);
	for (uint32_t i = 0; i < RTE_DIM(mine); i++)
		pcp_cache_free(cache, mine[i]);
}

static void
enter(void *arg)
{
	(void)arg;
	pcp_bh_disable(pcp_this(cache));
}

static void
leave(void *arg)
{
	(void)arg;
	pcp_bh_enable(pcp_this(cache));
}

static void
go_offline(void *arg)
{
	(void)arg;
	assert_int_equal(pcp_cache_drain_local(cache), 0);
}

static void
open_with_owners(enum pcp_mode mode)
{
	pcp_unit_open(SOME, (struct pcp_config){.mode = mode, .batch = 50, .max_order = 1});
	for (uint32_t i = 0; i < OWNERS; i++) {
		owner[i] = worker_start(true);
		worker_do(owner[i], allocate_and_free, NULL);
	}
	assert_int_equal(pcp_unit_stats().cached_pages, OWNERS * 100);
}

static void
close_with_owners(void)
{
	release_all();
	for (uint32_t i = 0; i < OWNERS; i++)
		worker_end(owner[i], true);
	pcp_unit_close();
}

/* ---- tests ---- */

static void
idle_owners(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		open_with_owners(modes[m]);
		hold_all(SOME);
		assert_balance(SOME, SOME);
		close_with_owners();
	}
}

static void
an_owner_inside_a_section(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		open_with_owners(modes[m]);
		worker_do(owner[1], enter, NULL);
		hold_all(SOME - 100);
		for (uint32_t i = 0; i < 100; i++)
			assert_null(pcp_cache_alloc(cache));
		worker_do(owner[1], leave, NULL);
		hold_all(100);
		close_with_owners();
	}
}

/* It has been asked before it got into the next one. */
static void
an_owner_between_two_sections(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		open_with_owners(modes[m]);
		worker_do(owner[1], enter, NULL);
		hold_all(SOME - 100);
		worker_do(owner[1], leave, NULL);
		worker_do(owner[1], enter, NULL);
		hold_all(100);
		worker_do(owner[1], leave, NULL);
		close_with_owners();
	}
}

static void
an_owner_that_went_offline(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		open_with_owners(modes[m]);
		worker_do(owner[1], go_offline, NULL);
		assert_int_equal(pcp_unit_stats().cached_pages, (OWNERS - 1) * 100);
		hold_all(SOME);
		close_with_owners();
	}
}

static void
owners_that_ended(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		for (uint32_t unregister = 0; unregister < 2; unregister++) {
			open_with_owners(modes[m]);
			worker_end(owner[1], unregister != 0);
			assert_int_equal(
				pcp_unit_stats().cached_pages, (OWNERS - unregister) * 100);
			hold_all(SOME);
			owner[1] = worker_start(true);
			close_with_owners();
		}
	}
}

/* The next thread with the lcore's id begins outside sections, with a cache that works. */
static void
an_owner_that_ended_inside_a_section(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		open_with_owners(modes[m]);
		const unsigned int lcore = worker_lcore(owner[1]);

		worker_do(owner[1], enter, NULL);
		worker_do(owner[1], enter, NULL);
		unit_log_clear();
		worker_end(owner[1], true);
		unit_assert_logged("leaves inside a section");
		hold_all(SOME);
		release_all();
		owner[1] = worker_start(true);
		assert_int_equal(worker_lcore(owner[1]), lcore);
		worker_do(owner[1], allocate_and_free, NULL);
		assert_int_equal(handle(lcore)->nest, 0);
		hold_all(SOME);
		close_with_owners();
	}
}

/* ---- threads without an lcore id ---- */

static void
unregistered_takes_and_returns(void *arg)
{
	void *mine[SOME];

	assert_int_equal(rte_lcore_id(), LCORE_ID_ANY);
	assert_null(pcp_this(cache));
	assert_int_equal(pcp_cache_drain_local(cache), -ENOENT);
	for (uint32_t i = 0; i < SOME; i++)
		assert_non_null(mine[i] = pcp_cache_alloc(cache));
	assert_null(pcp_cache_alloc(cache));
	assert_balance(SOME, SOME);
	for (uint32_t i = 0; i < SOME / 2; i++)
		pcp_cache_free(cache, mine[i]);
	pcp_cache_free_bulk(cache, &mine[SOME / 2], SOME / 2);
	*(bool *)arg = true;
}

static void
unregistered_threads_reach_everything_and_are_counted(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		bool done = false;

		open_with_owners(modes[m]);
		struct worker *stranger = worker_start(false);

		worker_do(stranger, unregistered_takes_and_returns, &done);
		assert_true(done);
		worker_end(stranger, false);
		assert_int_equal(pcp_unit_stats().unregistered, 2 * SOME);
		assert_int_equal(pcp_unit_stats().depot_allocs, SOME);
		assert_int_equal(pcp_unit_stats().depot_frees, SOME);
		hold_all(SOME);
		close_with_owners();
	}
}

/* ---- two thieves ---- */

static uint32_t n_ready;

/* Begin together, and not where a wake-up ends. */
static void
meet(uint32_t n)
{
	pp_fetch_add(&n_ready, 1);
	while (pp_load_acquire(&n_ready) < n)
		sched_yield();
}

struct thief {
	uint32_t quota, got;
	uint64_t failures;
	void *page[SOME];
};

/* All of its share, which is free somewhere, though for moments in the hands of the other one. */
static void
steal(void *arg)
{
	struct thief *thief = arg;

	meet(2);
	while (thief->got < thief->quota) {
		void *p = pcp_cache_alloc(cache);

		if (p != NULL)
			thief->page[thief->got++] = p;
		else
			thief->failures++;
	}
}

static void
give_back(void *arg)
{
	struct thief *thief = arg;

	while (thief->got > 0)
		pcp_cache_free(cache, thief->page[--thief->got]);
}

static void
two_thieves_at_once(void **state)
{
	static struct thief thief[2];

	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		uint64_t failures = 0;

		open_with_owners(modes[m]);
		for (uint32_t round = 0; round < 300; round++) {
			worker_do(owner[2], allocate_and_free, NULL);
			thief[0] = (struct thief){.quota = SOME / 2};
			thief[1] = (struct thief){.quota = SOME / 2};
			pp_store_release(&n_ready, 0);
			worker_begin(owner[0], steal, &thief[0]);
			worker_begin(owner[1], steal, &thief[1]);
			worker_wait(owner[0]);
			worker_wait(owner[1]);
			assert_balance(SOME, SOME);
			failures += thief[0].failures + thief[1].failures;
			worker_do(owner[0], give_back, &thief[0]);
			worker_do(owner[1], give_back, &thief[1]);
		}
		assert_int_equal(pcp_unit_stats().failed, failures);
		close_with_owners();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_owners),
		cmocka_unit_test(an_owner_inside_a_section),
		cmocka_unit_test(an_owner_between_two_sections),
		cmocka_unit_test(an_owner_that_went_offline),
		cmocka_unit_test(owners_that_ended),
		cmocka_unit_test(an_owner_that_ended_inside_a_section),
		cmocka_unit_test(unregistered_threads_reach_everything_and_are_counted),
		cmocka_unit_test(two_thieves_at_once),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
