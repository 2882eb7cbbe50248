/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode irq under a timer's signals: handlers corrupt nothing, and none is lost. */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include <pcp_irq.h>

#include "pcp_unit.h"
#include "storm.h"
#include "worker.h"

#define SOME    600u
#define STORM_S 0.3

#define HANDLER_PAGES 8u
#define MAIN_PAGES    40u

static atomic_ulong n_handled, n_ran;
static atomic_bool inside; /* what must not be interrupted */
static atomic_bool came_between;
static void *handlers_page[HANDLER_PAGES];
static uint32_t handlers_pages;

static void
storm_work(void *arg __rte_unused)
{
	const unsigned long n = n_ran++;

	if (inside)
		came_between = true;
	if (storm_corrupted())
		return;
	if (n / HANDLER_PAGES % 2 == 0 && handlers_pages < HANDLER_PAGES) {
		void *page = pcp_cache_alloc(cache);

		if (page == NULL)
			return;
		handlers_page[handlers_pages++] = page;
		storm_take(page, STORM_HANDLER);
	} else if (handlers_pages > 0) {
		void *page = handlers_page[--handlers_pages];

		if (storm_give(page, STORM_HANDLER))
			pcp_cache_free(cache, page);
	}
}

static void
on_storm(int signo __rte_unused)
{
	n_handled++;
	pcp_handler_enter(cache, storm_work, NULL);
}

/* What is interrupted: pages taken and given by calls, and in sections of both kinds. */
static void
round_of_calls(void)
{
	static unsigned int turn;
	const unsigned int kind = turn++ % 3;
	void *page[MAIN_PAGES];
	struct pcp *pcp = pcp_this(cache);

	if (kind < 2) {
		section_begin((enum section)kind);
		inside = true;
	}
	for (uint32_t i = 0; i < MAIN_PAGES; i++) {
		page[i] = pcp == NULL ? pcp_cache_alloc(cache)
			  : kind < 2  ? pcp_alloc_nested(pcp)
			  : i % 2     ? pcp_irq_alloc(pcp)
				      : pcp_alloc(pcp);
		if (page[i] != NULL)
			storm_take(page[i], STORM_MAIN);
	}
	if (kind < 2) {
		inside = false;
		section_end((enum section)kind);
	}
	for (uint32_t i = 0; i < MAIN_PAGES; i++) {
		if (page[i] == NULL || !storm_give(page[i], STORM_MAIN))
			continue;
		if (pcp != NULL && i % 2)
			pcp_irq_free(pcp, page[i]);
		else
			pcp_cache_free(cache, page[i]);
	}
}

static atomic_bool reclaim_over;

/* Claims the caches all the time. */
static void *
take_everything(void *arg __rte_unused)
{
	cpu_set_t cpus;

	memset(&cpus, 0xff, sizeof(cpus));
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	while (!reclaim_over)
		pcp_cache_drain(cache);
	return NULL;
}

static void
storm_of_handlers(uint32_t batch, bool with_reclaim)
{
	pthread_t thread;

	pcp_unit_open(SOME, (struct pcp_config){.mode = PCP_MODE_IRQ, .batch = batch});
	pcp_free(handle(0), pcp_alloc(handle(0)));
	storm_record_reset();
	n_handled = n_ran = 0;
	came_between = false;
	reclaim_over = false;
	if (with_reclaim)
		assert_int_equal(pthread_create(&thread, NULL, take_everything, NULL), 0);
	struct storm *storm = storm_begin(SIGUSR2, on_storm);
	const double until = storm_seconds() + STORM_S;

	while (!storm_corrupted() && (storm_seconds() < until || n_ran < 100))
		round_of_calls();
	storm_end(storm);
	reclaim_over = true;
	if (with_reclaim)
		pthread_join(thread, NULL);

	assert_false(storm_corrupted());
	assert_false(came_between);
	assert_int_equal(storm_taken(), handlers_pages);
	while (handlers_pages > 0)
		pcp_free(handle(0), handlers_page[--handlers_pages]);
	/* none was lost: what was not put off ran at once, and what was put off ran */
	assert_int_equal(pcp_unit_stats().lost_handlers, 0);
	assert_true(n_ran <= n_handled);
	assert_true(pcp_unit_stats().deferred > 0);
	assert_true(n_ran >= pcp_unit_stats().deferred);
	assert_int_equal(pcp_unit_stats().reentered, 0);
	assert_int_equal(pcp_unit_stats().handler_allocs, 0);
	pcp_unit_close();
}

static void
a_storm_of_handlers_corrupts_nothing(void **state __rte_unused)
{
	storm_of_handlers(2, false);
	storm_of_handlers(256, false);
}

static void
nor_while_others_reclaim(void **state __rte_unused)
{
	storm_of_handlers(2, true);
	storm_of_handlers(64, true);
}

/* In a thread without an lcore id: put off while it may hold the depot's or the zone's lock. */
static atomic_bool storm_thread_ok;

static void
storm_in_thread(void *arg __rte_unused)
{
	struct storm *storm = storm_begin(SIGUSR2, on_storm);
	const double until = storm_seconds() + STORM_S;

	while (storm_seconds() < until || n_ran < 100) {
		void *page = pcp_cache_alloc(cache);

		if (page == NULL)
			break;
		storm_take(page, STORM_THREAD);
		if (storm_give(page, STORM_THREAD))
			pcp_cache_free(cache, page);
		(void)pcp_cache_shrink(cache, 64);
		(void)pcp_unit_stats();
		(void)pcp_cache_free_pages(cache);
	}
	storm_end(storm);
	while (handlers_pages > 0) {
		void *page = handlers_page[--handlers_pages];

		if (storm_give(page, STORM_HANDLER))
			pcp_cache_free(cache, page);
	}
	storm_thread_ok = !storm_corrupted() && storm_taken() == 0;
}

static void
threads_without_an_lcore_put_handlers_off(void **state __rte_unused)
{
	pcp_unit_open(SOME, (struct pcp_config){.mode = PCP_MODE_IRQ, .batch = 16});
	struct worker *worker = worker_start(false);

	storm_record_reset();
	n_handled = n_ran = 0;
	inside = false;
	storm_thread_ok = false;
	worker_do(worker, storm_in_thread, NULL);
	worker_end(worker, false);
	assert_true(storm_thread_ok);
	assert_true(pcp_unit_stats().deferred > 0);
	assert_int_equal(pcp_unit_stats().handler_allocs, 0);
	assert_int_equal(pcp_unit_stats().reentered, 0);
	pcp_unit_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_storm_of_handlers_corrupts_nothing),
		cmocka_unit_test(nor_while_others_reclaim),
		cmocka_unit_test(threads_without_an_lcore_put_handlers_off),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
