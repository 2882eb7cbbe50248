/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Caches whose owner is another process, dead or alive, one step at a time: what test_pcp_killed
 * meets by chance, with the owner's pid written by hand.
 */

#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_errno.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "pcp_unit.h"
#include "worker.h"

#define ZONE_PAGES 512u
#define BATCH      16u
#define LCORE      5

/* How often somebody has made way; while nobody does, that takes no time. */
static unsigned int yields;
static bool stay_on;

int __real_sched_yield(void);
int __wrap_sched_yield(void);

int
__wrap_sched_yield(void)
{
	if (!stay_on)
		return __real_sched_yield();
	yields++;
	return 0;
}

static int
open_caches(void **state __rte_unused)
{
	pcp_unit_open(ZONE_PAGES, (struct pcp_config){.batch = BATCH});
	return 0;
}

static uint32_t
living_pid(void)
{
	return (uint32_t)getppid();
}

/* Pages in the cache of LCORE, which then belongs to `owner`. */
static struct pcp *
cached_by(uint32_t owner)
{
	struct pcp *pcp = handle(LCORE);
	void *page[BATCH / 2];

	for (unsigned int i = 0; i < RTE_DIM(page); i++)
		assert_non_null(page[i] = pcp_alloc(pcp));
	for (unsigned int i = 0; i < RTE_DIM(page); i++)
		pcp_free(pcp, page[i]);
	assert_true(pcp_unit_stats().cached_pages >= RTE_DIM(page));
	pcp->owner_pid = owner;
	return pcp;
}

/* Whatever lcore 0 can get; then it goes back. */
static uint32_t
obtainable(void)
{
	static void *page[ZONE_PAGES + 1];
	uint32_t n = 0;

	while (n <= ZONE_PAGES && (page[n] = pcp_alloc(handle(0))) != NULL)
		n++;
	for (uint32_t i = 0; i < n; i++)
		pcp_free(handle(0), page[i]);
	return n;
}

static void
nobodys_and_ones_own_are_adopted_as_they_are(void **state __rte_unused)
{
	struct pcp *pcp = cached_by(pp_self);
	const uint64_t cached = pcp_unit_stats().cached_pages;

	assert_true(pcp_adopt(pcp));
	assert_int_equal(handle(LCORE + 1)->owner_pid, 0);
	assert_true(pcp_adopt(handle(LCORE + 1)));
	assert_int_equal(pcp_unit_stats().cached_pages, cached);
	assert_int_equal(pcp_unit_stats().buried, 0);
}

static void
magazines_of_the_dead_are_used_on(void **state __rte_unused)
{
	struct pcp *pcp = cached_by(dead_pid());
	const struct pcp_memory *magazines = pcp->magazines;

	/* it was a claimer, too */
	pp_fetch_or(&pcp->attention, PCP_ATTENTION_CLAIMED | PCP_ATTENTION_DRAIN);
	assert_true(pcp_adopt(pcp));
	assert_int_equal(pcp->attention, PCP_ATTENTION_OFFLINE);
	assert_int_equal(pcp_unit_stats().buried, 1);
	assert_balance(0, 0);

	void *page = pcp_alloc(pcp);

	assert_non_null(page);
	assert_ptr_equal(pcp->magazines, magazines);
	assert_int_equal(pcp_unit_stats().missing_pages, 0);
	pcp_free(pcp, page);
}

/* It set busy; the next process on its lcore is not a handler that interrupted it. */
static void
death_in_a_call_is_no_reentrance(void **state __rte_unused)
{
	struct pcp *pcp = cached_by(dead_pid());

	pcp->busy = 1;

	void *page = pcp_alloc(pcp);

	assert_non_null(page);
	assert_int_equal(pcp->busy, 0);
	assert_int_equal(pcp->owner_pid, pp_self);
	assert_int_equal(pcp_unit_stats().reentered, 0);
	assert_int_equal(pcp_unit_stats().buried, 1);
	pcp_free(pcp, page);
}

/*
 * The first call on an lcore takes memory. A handler's call that interrupts it must not: EAL's lock
 * may be the very thing that was interrupted.
 */
static void
the_first_call_may_be_interrupted(void **state __rte_unused)
{
	struct pcp *pcp = handle(LCORE);

	pcp->busy = 1; /* not yet anybody's */

	void *page = pcp_alloc(pcp);

	assert_non_null(page);
	assert_int_equal(pcp_unit_stats().reentered, 1);
	assert_int_equal(pcp->busy, 1);
	assert_null(pcp->list[0].loaded);
	pcp_free(pcp, page);
	pcp->busy = 0;
}

/* So does a process that was killed at that moment leave it; the next one is no handler. */
static void
killed_in_the_first_call(void **state __rte_unused)
{
	struct pcp *pcp = handle(LCORE);

	pcp->busy = 1;
	pcp->nest = 1;
	assert_true(pcp_adopt(pcp));
	assert_int_equal(pcp->nest, 0);

	void *page = pcp_alloc(pcp);

	assert_non_null(page);
	assert_int_equal(pcp_unit_stats().reentered, 0);
	assert_non_null(pcp->list[0].loaded);
	pcp_free(pcp, page);
}

/* A failing allocation stays cheap: nothing can be had of those that never held anything. */
static void
the_dead_without_magazines_are_left_alone(void **state __rte_unused)
{
	static void *page[ZONE_PAGES + 1];

	assert_int_equal(pcp_depot_alloc_bulk(cache, 0, page, ZONE_PAGES), 0);
	handle(LCORE)->owner_pid = dead_pid();
	assert_int_equal(pcp_depot_alloc_bulk(cache, 0, &page[ZONE_PAGES], 1), -ENOMEM);
	assert_int_equal(pcp_unit_stats().reclaims, 0);
	pcp_depot_free_bulk(cache, 0, page, ZONE_PAGES);
	handle(LCORE)->owner_pid = 0;
}

static void
a_living_owner_in_a_call_is_not_interfered_with(void **state __rte_unused)
{
	struct pcp *pcp = cached_by(living_pid());

	pcp->busy = 1;

	void *page = pcp_alloc(pcp);

	assert_non_null(page);
	assert_int_equal(pcp_unit_stats().reentered, 1);
	assert_int_equal(pcp->busy, 1);
	pcp_free(pcp, page);
	pcp->owner_pid = pp_self;
	pcp->busy = 0;
}

/* A handler that interrupted a call gets all that it wants, or nothing. */
static void
reentered_bulks_are_all_or_nothing(void **state __rte_unused)
{
	static void *page[ZONE_PAGES];
	struct pcp *pcp = handle(0);
	void *more[4];

	pcp_free(pcp, pcp_alloc(pcp));
	pcp_cache_drain(cache);
	assert_int_equal(pcp_depot_alloc_bulk(cache, 0, page, ZONE_PAGES - 2), 0);
	pcp->busy = 1;
	assert_int_equal(pcp_alloc_bulk(pcp, more, 4), -ENOMEM);
	assert_int_equal(pp_zone_free_pages(zone), 2);
	assert_int_equal(pcp_alloc_bulk(pcp, more, 2), 0);
	assert_int_equal(pp_zone_free_pages(zone), 0);
	pcp_free_bulk(pcp, more, 2);
	pcp->busy = 0;
	assert_int_equal(pcp_unit_stats().reentered, 3);
	pcp_depot_free_bulk(cache, 0, page, ZONE_PAGES - 2);
}

static void
the_living_are_only_asked(void **state __rte_unused)
{
	struct pcp *pcp = cached_by(living_pid());
	const uint32_t theirs = (uint32_t)pcp_unit_stats().cached_pages;

	assert_int_equal(obtainable(), ZONE_PAGES - theirs);
	assert_true(pcp->attention & PCP_ATTENTION_DRAIN);
	assert_false(pcp->attention & PCP_ATTENTION_CLAIMED);
	assert_int_equal(pcp_unit_stats().membarriers, 0);
	/* not again at once: each look costs a system call */
	assert_true(cache->depot->backoff_until > 0);

	/* and give when they are at it */
	pcp->owner_pid = pp_self;

	void *page = pcp_alloc(pcp);

	pcp_free(pcp, page);
	assert_int_equal(pcp->attention & PCP_ATTENTION_DRAIN, 0);
	assert_int_equal(obtainable(), ZONE_PAGES);
}

static void
the_dead_give_everything(void **state __rte_unused)
{
	cached_by(dead_pid());
	assert_int_equal(obtainable(), ZONE_PAGES);
	assert_int_equal(pcp_unit_stats().buried, 1);
}

/* It died while it reclaimed, holding that lock. */
static void
the_reclaim_lock_is_inherited(void **state __rte_unused)
{
	cached_by(pp_self);
	cache->depot->reclaim_lock.holder = dead_pid();
	assert_int_equal(obtainable(), ZONE_PAGES);
	assert_int_equal(cache->depot->reclaim_lock.holder, 0);
	assert_true(pcp_unit_stats().reclaims > 0);
}

/* It died at a shelf, or at the partial magazine. */
static void
locks_of_the_depot_are_inherited(void **state __rte_unused)
{
	cached_by(pp_self);
	const uint64_t pages = pcp_unit_stats().depot_pages;

	cache->depot->lock.holder = dead_pid();
	for (uint32_t i = 0; i < PCP_SHELVES; i++)
		cache->depot->list[0].shelf[i].lock.holder = dead_pid();
	assert_int_equal(pcp_unit_stats().depot_pages, pages);
	cache->depot->lock.holder = dead_pid();
	for (uint32_t i = 0; i < PCP_SHELVES; i++)
		cache->depot->list[0].shelf[i].lock.holder = dead_pid();
	assert_int_equal(obtainable(), ZONE_PAGES);
	assert_true(pcp_cache_is_valid(cache));
}

static void
this_lcores_cache_is_not_had_while_it_is_anothers(void **state __rte_unused)
{
	void *page = pcp_alloc(pcp_this(cache));

	assert_non_null(page);
	handle(0)->owner_pid = living_pid();
	assert_null(pcp_this(cache));
	handle(0)->owner_pid = pp_self;
	pcp_free(pcp_this(cache), page);
}

static void
drain(void *arg __rte_unused)
{
	pcp_cache_drain(cache);
}

static void
anybody_can_drain(void **state __rte_unused)
{
	struct worker *nobody = worker_start(false);

	cached_by(pp_self);
	worker_do(nobody, drain, NULL);
	assert_int_equal(pp_zone_free_pages(zone), ZONE_PAGES);
	worker_end(nobody, false);
}

static void
bury_after_a_while(void *arg)
{
	const struct timespec time = {.tv_nsec = 50000000};

	pp_lock(&cache->depot->reclaim_lock);
	pp_store_release((uint32_t *)arg, 1);
	nanosleep(&time, NULL);
	pcp_bury(handle(LCORE));
	pp_unlock(&cache->depot->reclaim_lock);
}

/* Two come upon a dead owner's cache. */
static void
buried_once(void **state __rte_unused)
{
	struct worker *other = worker_start(false);
	struct pcp *pcp = cached_by(dead_pid());
	uint32_t locked = 0;

	worker_begin(other, bury_after_a_while, &locked);
	while (pp_load_acquire(&locked) == 0)
		rte_pause();
	assert_true(pcp_adopt(pcp));
	worker_wait(other);
	worker_end(other, false);
	assert_int_equal(pcp_unit_stats().buried, 1);
	assert_balance(0, 0);
}

/* The living one's reclaim takes longer than anybody waits. */
static void
the_living_keep_the_reclaim_lock(void **state __rte_unused)
{
	cached_by(pp_self);
	const uint32_t there = (uint32_t)pcp_unit_stats().cached_pages;

	cache->depot->reclaim_lock.holder = living_pid();
	stay_on = true;
	yields = 0;
	assert_int_equal(obtainable(), ZONE_PAGES - there);
	stay_on = false;
	assert_true(yields > 0);
	assert_int_equal(cache->depot->reclaim_lock.holder, living_pid());
	cache->depot->reclaim_lock.holder = 0;
	assert_int_equal(pcp_unit_stats().reclaims, 0);
	assert_int_equal(obtainable(), ZONE_PAGES);
}

/* It was asked before it died, and did not answer. */
static void
those_that_died_after_they_were_asked(void **state __rte_unused)
{
	struct pcp *pcp = cached_by(living_pid());
	const uint32_t there = (uint32_t)pcp_unit_stats().cached_pages;

	assert_int_equal(obtainable(), ZONE_PAGES - there);
	assert_true(pcp->attention & PCP_ATTENTION_DRAIN);
	pcp->owner_pid = dead_pid();
	/* nobody looks again at once */
	cache->depot->backoff_until = UINT64_MAX;
	assert_int_equal(obtainable(), ZONE_PAGES - there);
	cache->depot->backoff_until = 0;
	assert_int_equal(obtainable(), ZONE_PAGES);
	assert_int_equal(pcp_unit_stats().buried, 1);
}

/* As one that is just being buried, or taken over. */
static void
nobodys_are_only_asked(void **state __rte_unused)
{
	struct pcp *pcp = cached_by(0);
	const uint32_t there = (uint32_t)pcp_unit_stats().cached_pages;

	assert_int_equal(obtainable(), ZONE_PAGES - there);
	assert_true(pcp->attention & PCP_ATTENTION_DRAIN);
	assert_int_equal(pcp_unit_stats().buried, 0);
	pcp->owner_pid = pp_self;
	pcp_free(pcp, pcp_alloc(pcp));
	assert_int_equal(obtainable(), ZONE_PAGES);
}

static void
take_until_dry(void *arg)
{
	*(uint32_t *)arg = obtainable();
}

/* A handler may have interrupted what logs: it leaves the dead to others. */
static void
handlers_bury_nobody(void **state __rte_unused)
{
	uint32_t n = 0;

	pcp_unit_close();
	pcp_unit_open(ZONE_PAGES, (struct pcp_config){.mode = PCP_MODE_IRQ, .batch = BATCH});
	pcp_free(handle(0), pcp_alloc(handle(0)));
	cached_by(dead_pid());
	const uint32_t there = BATCH;

	assert_int_equal(pcp_handler_enter(cache, take_until_dry, &n), 0);
	assert_int_equal(n, ZONE_PAGES - there);
	assert_int_equal(pcp_unit_stats().buried, 0);
	cache->depot->backoff_until = 0;
	assert_int_equal(obtainable(), ZONE_PAGES);
	assert_int_equal(pcp_unit_stats().buried, 1);
}

/* As the zone will find it. */
static void
destroy_caches(uint64_t in_use)
{
	pcp_cache_destroy(cache);
	assert_true(pp_zone_is_valid(zone));
	assert_int_equal(stats_of(zone).bad_frees, 0);
	assert_int_equal(pp_zone_abandon(zone), in_use);
}

/* It died as a claimer: nobody else would take the claim back. */
static void
claims_of_the_dead_do_not_hold_up_the_end(void **state __rte_unused)
{
	pcp_unit_open(ZONE_PAGES, (struct pcp_config){.batch = BATCH});
	pp_fetch_or(&cached_by(dead_pid())->attention, PCP_ATTENTION_CLAIMED);
	destroy_caches(0);
}

/* It died while a magazine changed places, whose pages somebody may have by now. */
static void
lists_of_the_dead_are_not_believed_at_the_end(void **state __rte_unused)
{
	pcp_unit_open(ZONE_PAGES, (struct pcp_config){.batch = BATCH});
	struct pcp *pcp = cached_by(dead_pid());
	const uint64_t there = pcp_cached_pages(pcp);

	pcp->held = pcp_held(pcp, 0);
	pcp->moving = 1;
	destroy_caches(there);
}

/* It died while it parked its lists: nothing is wrong with the counts. */
static void
half_parked_lists_are_believed(void **state __rte_unused)
{
	pcp_unit_open(
		ZONE_PAGES, (struct pcp_config){.batch = BATCH, .checks = PCP_CHECKS_DEFERRED});
	struct pcp *pcp = cached_by(dead_pid());

	pcp->list[0].capacity = 0;
	assert_int_equal(obtainable(), ZONE_PAGES);
	assert_int_equal(pcp_unit_stats().buried, 1);
	pcp_unit_close();
}

/* It died in its first call, before it had lists: there is nothing to bury, nor to complain of. */
static void
death_in_the_first_call_leaves_valid_caches(void **state __rte_unused)
{
	handle(LCORE)->owner_pid = dead_pid();
	handle(LCORE)->busy = 1;
	assert_true(pcp_cache_is_valid(cache));
}

/* It took one along from the depot, whose lock says so. */
static void
a_magazine_may_be_lost_with_a_lock(void **state __rte_unused)
{
	struct pcp_shelf *shelf = &cache->depot->list[0].shelf[0];

	shelf->lock.holder = dead_pid();
	shelf->stack[PCP_EMPTY].top--;
	assert_int_equal(obtainable(), ZONE_PAGES);
	assert_true(pcp_cache_is_valid(cache));
}

/* ---- mode spin: a lock per cache, too, may have had a holder that is dead ---- */

static void
open_spinning(void)
{
	pcp_unit_open(ZONE_PAGES, (struct pcp_config){.mode = PCP_MODE_SPIN, .batch = BATCH});
}

static void
locks_of_caches_are_inherited(void **state __rte_unused)
{
	open_spinning();

	struct pcp *pcp = cached_by(pp_self);
	void *page;

	pcp->lock.holder = dead_pid();
	assert_int_equal(obtainable(), ZONE_PAGES);
	assert_int_equal(pcp->lock.holder, 0);
	pcp->lock.holder = dead_pid();
	assert_non_null(page = pcp_alloc(pcp));
	assert_int_equal(pcp->lock.holder, 0);
	pcp_free(pcp, page);
	pcp_unit_close();
}

/* Its holder was at an exchange: nothing of the lists is believed. Both who comes next, and owner.
 */
static void
lists_under_a_dead_ones_lock_are_dropped(void **state __rte_unused)
{
	for (unsigned int owner = 0; owner < 2; owner++) {
		open_spinning();

		struct pcp *pcp = cached_by(pp_self);
		const uint32_t there = (uint32_t)pcp_unit_stats().cached_pages;

		pcp->held = pcp_held(pcp, 0);
		pcp->moving = 1;
		pcp->lock.holder = dead_pid();
		if (owner == 1)
			pcp_free(pcp, pcp_alloc(pcp));
		assert_int_equal(obtainable(), ZONE_PAGES - there);
		assert_int_equal(pcp_unit_stats().missing_pages, there);
		assert_int_equal(pcp_unit_stats().in_use_pages, 0);
		assert_int_equal(pcp->moving, 0);
		assert_int_equal(pcp->lock.holder, 0);
		assert_true(pp_zone_is_valid(zone));
		destroy_caches(there);
	}
}

static void
hold_the_lock_for_a_while(void *arg)
{
	const struct timespec time = {.tv_nsec = 50000000};

	pp_lock(&handle(LCORE)->lock);
	pp_store_release((uint32_t *)arg, 1);
	nanosleep(&time, NULL);
	pp_unlock(&handle(LCORE)->lock);
}

/* As a reclaim has it: who leaves waits, for its pages must not stay behind. */
static void
who_leaves_waits_for_its_lock(void **state __rte_unused)
{
	struct worker *other = worker_start(false);
	uint32_t locked = 0;

	open_spinning();
	cached_by(pp_self);
	worker_begin(other, hold_the_lock_for_a_while, &locked);
	while (pp_load_acquire(&locked) == 0)
		rte_pause();
	pcp_lcore_leaves(LCORE, cache);
	worker_wait(other);
	worker_end(other, false);
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
	pcp_unit_close();
}

/* Its own is given up later, if it is not to be had. */
static void
who_drains_does_not_wait(void **state __rte_unused)
{
	open_spinning();
	pcp_free(handle(0), pcp_alloc(handle(0)));
	handle(0)->lock.holder = living_pid();
	assert_int_equal(pcp_cache_drain_local(cache), -EAGAIN);
	assert_true(pcp_unit_stats().cached_pages > 0);
	handle(0)->lock.holder = 0;
	/* asked it was: at the next call */
	void *page = pcp_alloc(handle(0));

	assert_int_equal(pcp_unit_stats().cached_pages, 0);
	pcp_free(handle(0), page);
	assert_int_equal(pcp_cache_drain_local(cache), 0);
	pcp_unit_close();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_caches, pcp_unit_teardown)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(nobodys_and_ones_own_are_adopted_as_they_are),
		TEST(magazines_of_the_dead_are_used_on),
		TEST(death_in_a_call_is_no_reentrance),
		TEST(the_first_call_may_be_interrupted),
		TEST(killed_in_the_first_call),
		TEST(the_dead_without_magazines_are_left_alone),
		TEST(a_living_owner_in_a_call_is_not_interfered_with),
		TEST(reentered_bulks_are_all_or_nothing),
		TEST(the_living_are_only_asked),
		TEST(the_dead_give_everything),
		TEST(the_reclaim_lock_is_inherited),
		TEST(the_living_keep_the_reclaim_lock),
		TEST(those_that_died_after_they_were_asked),
		TEST(nobodys_are_only_asked),
		TEST(handlers_bury_nobody),
		TEST(locks_of_the_depot_are_inherited),
		TEST(this_lcores_cache_is_not_had_while_it_is_anothers),
		TEST(anybody_can_drain),
		TEST(buried_once),
		TEST(death_in_the_first_call_leaves_valid_caches),
		TEST(a_magazine_may_be_lost_with_a_lock),
		cmocka_unit_test(claims_of_the_dead_do_not_hold_up_the_end),
		cmocka_unit_test(lists_of_the_dead_are_not_believed_at_the_end),
		cmocka_unit_test(half_parked_lists_are_believed),
		cmocka_unit_test(locks_of_caches_are_inherited),
		cmocka_unit_test(lists_under_a_dead_ones_lock_are_dropped),
		cmocka_unit_test(who_leaves_waits_for_its_lock),
		cmocka_unit_test(who_drains_does_not_wait),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
