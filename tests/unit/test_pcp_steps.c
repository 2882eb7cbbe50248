/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reclaim protocol, step by step: what another thread does at one point of it, done by a
 * callback there. Each test is an interleaving that was, or could be, wrong.
 */

#include <errno.h>
#include <signal.h>

#include <rte_cycles.h>

#include <pcp_internal.h>

#include "pcp_unit.h"

#define SOME 40u

/* The calls that are replaced, and what happens at each. */
static void (*at_flush)(void);
static void (*before_reclaim)(void);
static void (*at_membarrier)(void);
static bool membarrier_fails, membarrier_absent;
static unsigned int membarriers;

/* Once, and not from within itself. */
static void
happen(void (**what)(void))
{
	void (*const now)(void) = *what;

	*what = NULL;
	if (now != NULL)
		now();
}

uint64_t __real_pcp_flush(struct pcp *pcp);
uint64_t __wrap_pcp_flush(struct pcp *pcp);
uint64_t
__wrap_pcp_flush(struct pcp *pcp)
{
	happen(&at_flush);
	return __real_pcp_flush(pcp);
}

bool __real_pcp_reclaim(struct pcp_cache *caches, const struct pcp *self);
bool __wrap_pcp_reclaim(struct pcp_cache *caches, const struct pcp *self);
bool
__wrap_pcp_reclaim(struct pcp_cache *caches, const struct pcp *self)
{
	happen(&before_reclaim);
	return __real_pcp_reclaim(caches, self);
}

bool __real_pcp_membarrier(void);
bool __wrap_pcp_membarrier(void);
bool
__wrap_pcp_membarrier(void)
{
	membarriers++;
	happen(&at_membarrier);
	return !membarrier_fails && __real_pcp_membarrier();
}

bool __real_pcp_membarrier_register(void);
bool __wrap_pcp_membarrier_register(void);
bool
__wrap_pcp_membarrier_register(void)
{
	return !membarrier_absent && __real_pcp_membarrier_register();
}

/* ---- ---- */

static void *page[SOME];

/* Let an lcore cache n of the pages, and this thread have the others; the depot and zone are dry.
 */
static void
lcore_holds(unsigned int lcore, uint32_t n)
{
	assert_int_equal(pcp_depot_alloc_bulk(cache, 0, page, SOME), 0);
	for (uint32_t i = 0; i < n; i++)
		pcp_free(handle(lcore), page[SOME - 1 - i]);
	assert_int_equal(pcp_unit_stats().cached_pages, n);
	assert_balance(SOME - n, SOME - n);
}

static void
give_back(uint32_t n)
{
	pcp_depot_free_bulk(cache, 0, page, n);
}

static void *owners_page;

static void
owner_allocates(void)
{
	owners_page = pcp_alloc(handle(1));
}

static void
owner_allocates_in_a_section(void)
{
	pcp_bh_disable(handle(1));
	owners_page = pcp_alloc_nested(handle(1));
	pcp_bh_enable(handle(1));
}

/*
 * spin: the thief has the lock when the owner comes. The owner must keep off the lists, or both
 * would hand out the same pages.
 */
static void
an_owner_that_finds_its_lock_taken_keeps_off_the_lists(void **state)
{
	void (*const ways[])(void) = {owner_allocates, owner_allocates_in_a_section};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(ways); i++) {
		pcp_unit_open(SOME, (struct pcp_config){.mode = PCP_MODE_SPIN, .batch = 10});
		lcore_holds(1, 10);
		give_back(1); /* what the owner can get elsewhere */
		pcp_cache_shrink(cache, 0);
		const uint64_t passes = pcp_unit_stats().zone_allocs;

		at_flush = ways[i];
		pcp_cache_drain(cache);
		assert_null(at_flush);
		assert_non_null(owners_page);
		assert_int_equal(pcp_unit_stats().zone_allocs, passes + 1);
		assert_balance(SOME - 10, SOME - 10);
		for (uint32_t k = 1; k < SOME - 10; k++)
			assert_ptr_not_equal(page[k], owners_page);
		pcp_free(handle(1), owners_page);
		pcp_depot_free_bulk(cache, 0, page + 1, SOME - 11);
		pcp_unit_close();
	}
}

/* ---- pages on the move must not look lost ---- */

static void
owner_flushes(void)
{
	pp_fetch_or(&handle(1)->attention, PCP_ATTENTION_DRAIN);
	pcp_bh_disable(handle(1));
	pcp_bh_enable(handle(1));
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
}

static void
another_reclaims(void)
{
	pcp_reclaim_round(cache, NULL);
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
}

static void
everything_is_freed_to_the_zone(void)
{
	owner_flushes();
	pcp_cache_shrink(cache, 0);
}

/*
 * The caller has found depot and zone dry; before it looks at the caches, what they hold moves to
 * where it has already looked. It must look again.
 */
static void
pages_that_move_behind_ones_back_are_found(void **state)
{
	void (*const moves[])(void) = {
		owner_flushes, another_reclaims, everything_is_freed_to_the_zone};
	static const enum pcp_mode modes[] = {
		PCP_MODE_BH, PCP_MODE_SPIN, PCP_MODE_BYPASS, PCP_MODE_IRQ};

	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		for (size_t i = 0; i < RTE_DIM(moves); i++) {
			void *got, *depot_got, *bulk[5];

			pcp_unit_open(SOME, (struct pcp_config){.mode = modes[m], .batch = 10});
			lcore_holds(1, 10);
			before_reclaim = moves[i];
			got = pcp_alloc(handle(0));
			assert_non_null(got);
			pcp_free(handle(0), got);
			give_back(SOME - 10);

			pcp_cache_drain(cache);
			lcore_holds(1, 10);
			before_reclaim = moves[i];
			depot_got = pcp_depot_alloc(cache, 0);
			assert_non_null(depot_got);
			pcp_depot_free(cache, depot_got, 0);
			give_back(SOME - 10);

			pcp_cache_drain(cache);
			lcore_holds(1, 10);
			before_reclaim = moves[i];
			pcp_bh_disable(handle(0));
			assert_int_equal(pcp_alloc_bulk(handle(0), bulk, 5), 0);
			pcp_bh_enable(handle(0));
			pcp_free_bulk(handle(0), bulk, 5);
			give_back(SOME - 10);
			pcp_unit_close();
		}
	}
}

/* Of a process that was killed before it could say so. */
static void
pages_arrive_uncounted(void)
{
	const uint64_t arrivals = cache->depot->arrivals;

	give_back(1);
	cache->depot->arrivals = arrivals;
}

/* It was killed in a call, that of its own cache: who buries that counts for it. */
static void
its_cache_is_buried(void)
{
	pages_arrive_uncounted();
	handle(1)->busy = 1;
	handle(1)->owner_pid = dead_pid();
}

/* It held a lock: who inherits that does. */
static void
its_lock_is_inherited(void)
{
	pages_arrive_uncounted();
	cache->depot->lock.holder = dead_pid();
	assert_int_equal(pcp_unit_stats().depot_pages, 1);
}

static void
what_the_dead_did_not_count_is_found(void **state)
{
	void (*const ways[])(void) = {its_cache_is_buried, its_lock_is_inherited};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(ways); i++) {
		pcp_unit_open(SOME, (struct pcp_config){.batch = 10});
		lcore_holds(1, 1);
		pcp_cache_drain(cache);
		page[SOME - 1] = pcp_depot_alloc(cache, 0);
		before_reclaim = ways[i];
		page[0] = pcp_alloc(handle(0));
		assert_non_null(page[0]);
		give_back(SOME);
		pcp_unit_close();
	}
}

/* ---- claims ---- */

static void
owner_enters(void)
{
	pp_store_release(&handle(1)->nest, 1); /* as pcp_bh_disable() before it looks up */
}

static void
a_claim_fails_when_its_owner_got_in_first(void **state)
{
	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = 10});
	lcore_holds(1, 10);
	at_membarrier = owner_enters;
	assert_null(pcp_alloc(handle(0)));
	assert_int_equal(pcp_unit_stats().cached_pages, 10);
	assert_false(handle(1)->attention & PCP_ATTENTION_CLAIMED);
	/* the owner's section ends: it has been asked for its pages */
	pcp_bh_enable(handle(1));
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
	page[SOME - 10] = pcp_alloc(handle(0));
	assert_non_null(page[SOME - 10]);
	give_back(SOME - 9);
	pcp_unit_close();
}

static bool signals_are_blocked;

static void
look_at_signals(void)
{
	sigset_t blocked;

	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
	signals_are_blocked = sigismember(&blocked, SIGUSR1) == 1;
}

/* A handler could want the cache that is claimed, of an owner who waits for us. */
static void
no_handler_interrupts_a_claim(void **state)
{
	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = 10});
	lcore_holds(1, 10);
	at_membarrier = look_at_signals;
	page[SOME - 10] = pcp_alloc(handle(0));
	assert_non_null(page[SOME - 10]);
	assert_true(signals_are_blocked);
	look_at_signals();
	assert_false(signals_are_blocked);
	give_back(SOME - 9);
	pcp_unit_close();
}

static void
a_failing_membarrier_takes_nothing(void **state)
{
	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = 10});
	lcore_holds(1, 10);
	membarrier_fails = true;
	assert_null(pcp_alloc(handle(0)));
	assert_int_equal(pcp_unit_stats().cached_pages, 10);
	assert_false(handle(1)->attention & PCP_ATTENTION_CLAIMED);
	/* the owner itself still hears of it */
	pcp_free(handle(1), pcp_alloc(handle(1)));
	assert_int_equal(pcp_unit_stats().cached_pages, 1);
	membarrier_fails = false;
	pcp_free(handle(0), pcp_alloc(handle(0)));
	give_back(SOME - 10);
	pcp_unit_close();
}

static void
without_membarrier_bh_becomes_spin(void **state)
{
	static const enum pcp_mode modes[] = {PCP_MODE_BH, PCP_MODE_BYPASS, PCP_MODE_IRQ};
	struct pcp_config config;

	(void)state;
	membarrier_absent = true;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		unit_log_clear();
		pcp_unit_open(SOME, (struct pcp_config){.mode = modes[m], .batch = 10});
		unit_assert_logged("mode spin instead of");
		pcp_cache_get_config(cache, &config);
		assert_int_equal(config.mode, PCP_MODE_SPIN);
		membarriers = 0;
		lcore_holds(1, 10);
		for (uint32_t i = SOME - 10; i < SOME; i++)
			assert_non_null(page[i] = pcp_alloc(handle(0)));
		assert_null(pcp_alloc(handle(0)));
		assert_int_equal(membarriers, 0);
		give_back(SOME);
		pcp_unit_close();
	}
	membarrier_absent = false;
}

/* ---- what a failing allocation costs ---- */

static void
an_lcore_in_a_section_costs_no_membarrier(void **state)
{
	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = 10});
	lcore_holds(1, 10);
	pcp_bh_disable(handle(1));
	membarriers = 0;
	for (uint32_t i = 0; i < 1000; i++)
		assert_null(pcp_alloc(handle(0)));
	assert_int_equal(membarriers, 0);
	assert_int_equal(pcp_unit_stats().membarriers, 0);
	assert_int_equal(pcp_unit_stats().failed, 1000);
	pcp_bh_enable(handle(1));
	page[SOME - 10] = pcp_alloc(handle(0));
	assert_non_null(page[SOME - 10]);
	give_back(SOME - 9);
	pcp_unit_close();
}

/* What it gets before it fails goes back, and is neither an allocation nor a free. */
static void
a_bulk_that_fails_half_way_counts_nothing(void **state)
{
	void *bulk[12];

	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = 10});
	lcore_holds(1, 10);
	give_back(5);
	pcp_bh_disable(handle(1));
	const struct pcp_stats before = pcp_unit_stats();

	assert_int_equal(pcp_alloc_bulk(handle(0), bulk, RTE_DIM(bulk)), -ENOMEM);
	assert_int_equal(pcp_unit_stats().allocs, before.allocs);
	assert_int_equal(pcp_unit_stats().frees, before.frees);
	assert_int_equal(pcp_unit_stats().failed, before.failed + 1);
	pcp_bh_enable(handle(1));
	pcp_depot_free_bulk(cache, 0, page + 5, SOME - 15);
	pcp_unit_close();
}

/* A thread descheduled inside a call: at most one in 50 us. */
static void
an_lcore_in_a_call_costs_a_membarrier_now_and_then(void **state)
{
	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = 10});
	lcore_holds(1, 10);
	pp_store_release(&handle(1)->busy, 1);
	membarriers = 0;
	const uint64_t start = rte_rdtsc();

	for (uint32_t i = 0; i < 2000; i++)
		assert_null(pcp_alloc(handle(0)));
	const uint64_t intervals = (rte_rdtsc() - start) / (rte_get_tsc_hz() / 1000000 * 50);

	assert_true(membarriers >= 1);
	assert_true(membarriers <= intervals + 1);
	assert_true(membarriers < 2000);
	assert_int_equal(pcp_unit_stats().membarriers, membarriers);
	/* and until then not so much as a look at all caches */
	cache->depot->backoff_until = UINT64_MAX;
	const uint64_t reclaims = pcp_unit_stats().reclaims;

	assert_null(pcp_alloc(handle(0)));
	assert_int_equal(pcp_unit_stats().reclaims, reclaims);
	cache->depot->backoff_until = 0;
	pp_store_release(&handle(1)->busy, 0);
	page[SOME - 10] = pcp_alloc(handle(0));
	assert_non_null(page[SOME - 10]);
	give_back(SOME - 9);
	pcp_unit_close();
}

static void
an_empty_zone_costs_nothing(void **state)
{
	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = 10});
	lcore_holds(1, 0);
	membarriers = 0;
	for (uint32_t i = 0; i < 1000; i++)
		assert_null(pcp_alloc(handle(0)));
	assert_int_equal(membarriers, 0);
	assert_int_equal(pcp_unit_stats().reclaims, 0);
	give_back(SOME);
	pcp_unit_close();
}

/* Only the outermost entry heeds a claim: an inner one that stepped aside would let it in. */
static void
inner_entries_ignore_claims(void **state)
{
	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = 10});
	lcore_holds(1, 10);
	pcp_bh_disable(handle(1));
	pp_fetch_or(&handle(1)->attention, PCP_ATTENTION_CLAIMED);
	/* these would wait for ever */
	pcp_bh_disable(handle(1));
	pcp_free_nested(handle(1), pcp_alloc_nested(handle(1)));
	pcp_free(handle(1), pcp_alloc(handle(1)));
	pcp_bh_enable(handle(1));
	assert_int_equal(handle(1)->nest, 1);
	assert_int_equal(pcp_unit_stats().cached_pages, 10);
	pp_fetch_and(&handle(1)->attention, ~(uint32_t)PCP_ATTENTION_CLAIMED);
	pcp_bh_enable(handle(1));
	give_back(SOME - 10);
	pcp_unit_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_owner_that_finds_its_lock_taken_keeps_off_the_lists),
		cmocka_unit_test(pages_that_move_behind_ones_back_are_found),
		cmocka_unit_test(a_claim_fails_when_its_owner_got_in_first),
		cmocka_unit_test(what_the_dead_did_not_count_is_found),
		cmocka_unit_test(no_handler_interrupts_a_claim),
		cmocka_unit_test(a_failing_membarrier_takes_nothing),
		cmocka_unit_test(without_membarrier_bh_becomes_spin),
		cmocka_unit_test(an_lcore_in_a_section_costs_no_membarrier),
		cmocka_unit_test(a_bulk_that_fails_half_way_counts_nothing),
		cmocka_unit_test(an_lcore_in_a_call_costs_a_membarrier_now_and_then),
		cmocka_unit_test(an_empty_zone_costs_nothing),
		cmocka_unit_test(inner_entries_ignore_claims),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
