/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode irq: handlers are put off as a whole, and run when what they interrupted is over. */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include <rte_errno.h>

#include <pcp_irq.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "pcp_unit.h"
#include "worker.h"

#define SOME  600u
#define SLOTS 8 /* handlers that may wait on one thread */

/* ---- a handler whose every step is seen ---- */

static int entered;      /* what pcp_handler_enter() said last */
static int signals, ran; /* of handlers, and of their work */
static void *got;        /* the page that the work took */

static void
take_or_give(void *arg __rte_unused)
{
	ran++;
	if (got == NULL) {
		got = pcp_handler_alloc(cache, 0);
	} else {
		pcp_handler_free(cache, got, 0);
		got = NULL;
	}
}

static void
on_signal(int signo __rte_unused)
{
	signals++;
	entered = pcp_handler_enter(cache, take_or_give, NULL);
}

static void
interrupt_me(void)
{
	assert_int_equal(raise(SIGUSR1), 0);
}

static int
open_irq(void **state __rte_unused)
{
	const struct sigaction action = {.sa_handler = on_signal};

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	entered = -1;
	signals = ran = 0;
	got = NULL;
	pcp_unit_open(SOME, (struct pcp_config){.mode = PCP_MODE_IRQ, .batch = 16});
	pcp_free(handle(0), pcp_alloc(handle(0))); /* online */
	return 0;
}

static int
close_irq(void **state)
{
	if (got != NULL)
		pcp_free(handle(0), got);
	return pcp_unit_teardown(state);
}

/* Whatever it does uses the cache, as a normal call would. */
static void
assert_by_the_cache(void)
{
	const struct pcp_stats stats = pcp_unit_stats();

	assert_int_equal(stats.zone_allocs + stats.zone_frees, 0);
	assert_int_equal(stats.handler_allocs + stats.handler_frees, 0);
	assert_int_equal(stats.reentered, 0);
}

static void
outside_it_runs_at_once(void **state __rte_unused)
{
	interrupt_me();
	assert_int_equal(entered, 0);
	assert_int_equal(ran, 1);
	assert_non_null(got);
	assert_balance(1, 1);
	interrupt_me();
	assert_int_equal(ran, 2);
	assert_null(got);
	assert_int_equal(pcp_unit_stats().deferred, 0);
	assert_by_the_cache();
}

/* What a section that waits for a claimer does between two looks. */
static void (*at_yield)(void);

int __wrap_sched_yield(void);
int
__wrap_sched_yield(void)
{
	if (at_yield != NULL)
		at_yield();
	return 0;
}

static void
interrupt_and_release(void)
{
	interrupt_me();
	pp_fetch_and(&handle(0)->attention, ~(uint32_t)PCP_ATTENTION_CLAIMED);
	at_yield = NULL;
}

/* A handler that ran now would come after the section's last look at claims. */
static void
a_section_being_entered_puts_it_off(void **state __rte_unused)
{
	pp_fetch_or(&handle(0)->attention, PCP_ATTENTION_CLAIMED);
	at_yield = interrupt_and_release;
	pcp_bh_disable(handle(0));
	assert_null(at_yield);
	assert_int_equal(entered, -EINPROGRESS);
	assert_int_equal(ran, 0);
	pcp_bh_enable(handle(0));
	assert_int_equal(ran, 1);
	assert_balance(1, 1);
}

static void
see_nest(void *arg)
{
	*(uint32_t *)arg = handle(0)->nest;
}

/*
 * On the way into a section, or out of it, the thread is not at the lists: what runs there heeds
 * claims, as if it had interrupted it outside.
 */
static void
in_no_section_yet_it_runs_as_if_outside(void **state __rte_unused)
{
	uint32_t seen = UINT32_MAX;

	handle(0)->nest = 1;
	assert_int_equal(pcp_handler_enter(cache, see_nest, &seen), 0);
	assert_int_equal(seen, 0);
	assert_int_equal(handle(0)->nest, 1);
	handle(0)->nest = 0;
}

static void
in_a_section_it_waits_for_the_end(void **state __rte_unused)
{
	for (enum section outer = BH; outer <= IRQ; outer++) {
		for (enum section inner = BH; inner <= IRQ; inner++) {
			ran = 0;
			section_begin(outer);
			interrupt_me();
			assert_int_equal(entered, -EINPROGRESS);
			section_begin(inner);
			/* the same again counts once */
			interrupt_me();
			assert_int_equal(entered, -EINPROGRESS);
			/* single calls have an end, too, but not of the section */
			pcp_free(handle(0), pcp_alloc(handle(0)));
			section_end(inner);
			pcp_free_nested(handle(0), pcp_alloc_nested(handle(0)));
			assert_int_equal(ran, 0);
			section_end(outer);
			assert_int_equal(ran, 1);
			/* and once only */
			section_begin(outer);
			section_end(outer);
			assert_int_equal(ran, 1);
		}
	}
	assert_int_equal(pcp_unit_stats().deferred, 4);
	assert_int_equal(handle(0)->nest, 0);
	assert_by_the_cache();
}

/* As if the signal came while the call was at the lists. */
static void
in_a_call_it_waits_for_the_end(void **state __rte_unused)
{
	struct pcp *pcp = handle(0);
	void *pages[2];

	for (int i = 0; i < 4; i++) {
		ran = 0;
		pp_store_relaxed(&pcp->busy, 1);
		interrupt_me();
		assert_int_equal(entered, -EINPROGRESS);
		assert_int_equal(ran, 0);
		pp_store_relaxed(&pcp->busy, 0);
		/* the next call to end is taken for it */
		if (i == 0)
			pages[0] = pcp_alloc(pcp);
		else if (i == 1)
			pcp_free(pcp, pages[0]);
		else if (i == 2)
			assert_int_equal(pcp_alloc_bulk(pcp, pages, 2), 0);
		else
			pcp_free_bulk(pcp, pages, 2);
		assert_int_equal(ran, 1);
	}
	assert_by_the_cache();
}

static void
drain_requests_are_served_at_the_end_of_irq_sections(void **state __rte_unused)
{
	struct pcp *pcp = handle(0);

	const uint64_t pages = pcp_unit_stats().cached_pages;

	assert_true(pages > 0);
	for (int with_handler = 0; with_handler < 2; with_handler++) {
		pcp_irq_save(pcp);
		pp_fetch_or(&pcp->attention, PCP_ATTENTION_DRAIN);
		if (with_handler)
			interrupt_me();
		assert_int_equal(pcp_unit_stats().depot_pages, 0);
		pcp_irq_restore(pcp);
		assert_int_equal(pcp->attention & (PCP_ATTENTION_DRAIN | PCP_ATTENTION_PENDING), 0);
		assert_int_equal(ran, with_handler);
		/* a handler comes after the drain, and has loaded them again */
		assert_int_equal(pcp_unit_stats().depot_pages, with_handler ? 0 : pages);
		pcp_free(pcp, pcp_alloc(pcp));
	}
	assert_by_the_cache();
}

/* ---- several that wait ---- */

static int order_of[SLOTS + 1], n_ordered;

static void
note(void *arg)
{
	order_of[n_ordered++] = *(int *)arg;
}

static void
those_without_room_are_counted(void **state __rte_unused)
{
	static int number[SLOTS + 1];

	n_ordered = 0;
	pcp_irq_save(handle(0));
	for (int i = 0; i <= SLOTS; i++) {
		number[i] = i;
		assert_int_equal(pcp_handler_enter(cache, note, &number[i]),
			i < SLOTS ? -EINPROGRESS : -ENOBUFS);
	}
	assert_int_equal(pcp_handler_enter(cache, note, &number[3]), -EINPROGRESS);
	pcp_irq_restore(handle(0));
	assert_int_equal(n_ordered, SLOTS);
	for (int i = 0; i < SLOTS; i++)
		assert_int_equal(order_of[i], i);
	assert_int_equal(pcp_unit_stats().deferred, SLOTS);
	assert_int_equal(pcp_unit_stats().lost_handlers, 1);

	/* there is room again */
	pcp_irq_save(handle(0));
	assert_int_equal(pcp_handler_enter(cache, note, &number[SLOTS]), -EINPROGRESS);
	pcp_irq_restore(handle(0));
	assert_int_equal(n_ordered, SLOTS + 1);
}

static void
note_twice(void *arg)
{
	note(arg);
	note(arg);
}

/* The same argument does not make it the same handler. */
static void
others_with_the_same_argument_wait_too(void **state __rte_unused)
{
	static int number = 7;

	n_ordered = 0;
	pcp_irq_save(handle(0));
	assert_int_equal(pcp_handler_enter(cache, note, &number), -EINPROGRESS);
	assert_int_equal(pcp_handler_enter(cache, note_twice, &number), -EINPROGRESS);
	assert_int_equal(pcp_unit_stats().deferred, 2);
	pcp_irq_restore(handle(0));
	assert_int_equal(n_ordered, 3);
}

/* What is past the caches nests: they wait for the end of all of it. */
static void
inside_what_takes_locks_it_waits_for_the_end(void **state __rte_unused)
{
	pcp_guard_begin();
	pcp_guard_begin();
	interrupt_me();
	assert_int_equal(entered, -EINPROGRESS);
	pcp_guard_end();
	assert_int_equal(ran, 0);
	pcp_guard_end();
	assert_int_equal(ran, 1);
}

/* ---- a handler that is interrupted ---- */

static int depth, deepest;

static void
interrupted_work(void *arg)
{
	int *left = arg;
	void *page = pcp_cache_alloc(cache);

	depth++;
	deepest = RTE_MAX(deepest, depth);
	if ((*left)-- > 0)
		assert_int_equal(pcp_handler_enter(cache, interrupted_work, left), -EINPROGRESS);
	errno = rte_errno = EDOM;
	pcp_cache_free(cache, page);
	depth--;
}

static void
handlers_run_one_at_a_time(void **state __rte_unused)
{
	int left = 3;

	depth = deepest = 0;
	errno = ERANGE;
	rte_errno = EPERM;
	assert_int_equal(pcp_handler_enter(cache, interrupted_work, &left), 0);
	assert_int_equal(left, -1);
	assert_int_equal(deepest, 1);
	/* and leave no trace in what they interrupted */
	assert_int_equal(errno, ERANGE);
	assert_int_equal(rte_errno, EPERM);
	assert_by_the_cache();
}

static void
work_in_sections_of_its_own(void *arg __rte_unused)
{
	struct pcp *pcp = pcp_this(cache);

	ran++;
	for (enum section section = BH; section <= IRQ; section++) {
		section_begin(section);
		pcp_free_nested(pcp, pcp_alloc_nested(pcp));
		/* another one must not come between */
		interrupt_me();
		assert_int_equal(entered, -EINPROGRESS);
		section_end(section);
	}
}

static void
handlers_have_sections(void **state __rte_unused)
{
	for (enum section section = BH; section <= IRQ; section++) {
		ran = 0;
		section_begin(section);
		assert_int_equal(
			pcp_handler_enter(cache, work_in_sections_of_its_own, NULL), -EINPROGRESS);
		section_end(section);
		assert_int_equal(ran, 2); /* and what interrupted it, once */
	}
	assert_by_the_cache();
}

/* ---- other caches, and threads without one ---- */

static void
another_caches_section_does_not_matter(void **state __rte_unused)
{
	struct pcp_cache *mine = cache;
	struct pp_zone *mine_zone = zone;

	pcp_irq_save(pcp_of_lcore(mine, 0));
	interrupt_me();
	assert_int_equal(entered, -EINPROGRESS);

	/* over another zone, in the same memory: no page of it is ever touched */
	pcp_unit_open(SOME, (struct pcp_config){.mode = PCP_MODE_IRQ, .batch = 16});
	n_ordered = 0;
	static int number = 7;

	assert_int_equal(pcp_handler_enter(cache, note, &number), 0);
	pcp_irq_save(handle(0));
	assert_int_equal(pcp_handler_enter(cache, note, &number), -EINPROGRESS);
	pcp_irq_restore(handle(0));
	assert_int_equal(n_ordered, 2);
	assert_int_equal(ran, 0); /* that one still waits */
	pcp_unit_close();

	cache = mine;
	zone = mine_zone;
	pcp_irq_restore(pcp_of_lcore(mine, 0));
	assert_int_equal(ran, 1);
}

/* The first call brings a cache online, with memory of EAL's, whose locks are not ours. */
static void
first_call(void *arg __rte_unused)
{
	void *page = pcp_handler_alloc(cache, 0);

	ran++;
	assert_non_null(page);
	pcp_handler_free(cache, page, 0);
}

/* The same, where the thread itself has tried, without memory. */
static void
nor_one_that_had_no_memory(void **state __rte_unused)
{
	pcp_unit_close();
	pcp_unit_open(SOME, (struct pcp_config){.mode = PCP_MODE_IRQ, .batch = 16});
	unit_fail_calls("rte_zmalloc_socket", ENOMEM);
	pcp_free(handle(0), pcp_alloc(handle(0)));
	unit_fail_calls(NULL, 0);
	assert_int_equal(handle(0)->owner_pid, pp_self);
	assert_int_equal(pcp_handler_enter(cache, first_call, NULL), 0);
	assert_int_equal(ran, 1);
	assert_true(handle(0)->attention & PCP_ATTENTION_OFFLINE);
	assert_int_equal(pcp_unit_stats().zone_allocs, 2);
	pcp_free(handle(0), pcp_alloc(handle(0)));
	assert_false(handle(0)->attention & PCP_ATTENTION_OFFLINE);
}

/* Blocks that no cache has, past it. */
static void
of_a_high_order(void *arg __rte_unused)
{
	void *block = pcp_handler_alloc(cache, 3);

	ran++;
	assert_non_null(block);
	assert_int_equal(pcp_unit_stats().in_use_pages, 8);
	pcp_handler_free(cache, block, 3);
}

static void
handlers_take_what_no_cache_has(void **state __rte_unused)
{
	assert_int_equal(pcp_handler_enter(cache, of_a_high_order, NULL), 0);
	assert_int_equal(ran, 1);
	assert_int_equal(pcp_unit_stats().handler_allocs, 1);
	assert_int_equal(pcp_unit_stats().handler_frees, 1);
	assert_balance(0, 0);
}

static void
in_a_worker(void *arg __rte_unused)
{
	assert_int_equal(pcp_handler_enter(cache, first_call, NULL), 0);
}

static void
handlers_bring_no_cache_online(void **state __rte_unused)
{
	struct worker *worker = worker_start(true);
	const unsigned int lcore = worker_lcore(worker);

	worker_do(worker, in_a_worker, NULL);
	assert_int_equal(ran, 1);
	assert_true(handle(lcore)->attention & PCP_ATTENTION_OFFLINE);
	worker_end(worker, true);
	assert_int_equal(pcp_unit_stats().handler_allocs, 1);
}

static void
threads_without_an_lcore_have_handlers_too(void **state __rte_unused)
{
	struct worker *worker = worker_start(false);

	worker_do(worker, in_a_worker, NULL);
	assert_int_equal(ran, 1);
	worker_end(worker, false);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_irq, close_irq)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(outside_it_runs_at_once),
		TEST(in_no_section_yet_it_runs_as_if_outside),
		TEST(in_a_section_it_waits_for_the_end),
		TEST(a_section_being_entered_puts_it_off),
		TEST(in_a_call_it_waits_for_the_end),
		TEST(drain_requests_are_served_at_the_end_of_irq_sections),
		TEST(those_without_room_are_counted),
		TEST(others_with_the_same_argument_wait_too),
		TEST(inside_what_takes_locks_it_waits_for_the_end),
		TEST(handlers_run_one_at_a_time),
		TEST(handlers_have_sections),
		TEST(another_caches_section_does_not_matter),
		TEST(handlers_bring_no_cache_online),
		TEST(nor_one_that_had_no_memory),
		TEST(handlers_take_what_no_cache_has),
		TEST(threads_without_an_lcore_have_handlers_too),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
