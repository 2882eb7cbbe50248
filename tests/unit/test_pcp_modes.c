/* SPDX-License-Identifier: BSD-3-Clause */
/* What a mode does with calls from signal handlers, and with sections; see pcp.h. */

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "pcp_unit.h"

#define SOME    600u
#define STORM_S 0.4  /* of handlers, for what must survive them */
#define NONE_S  10.0 /* at most, for what must not */

/* ---- bypass ---- */

static void
bypass_keeps_sections_off_the_cache(void **state)
{
	struct pcp_stats before;

	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.mode = PCP_MODE_BYPASS, .batch = 16});
	struct pcp *pcp = handle(0);

	pcp_free(pcp, pcp_alloc(pcp));
	before = pcp_unit_stats();
	assert_int_equal(before.zone_allocs, 0);
	assert_int_equal(before.cached_pages, 16);

	pcp_bh_disable(pcp);
	for (unsigned int i = 0; i < 10; i++)
		pcp_free_nested(pcp, pcp_alloc_nested(pcp));
	pcp_free(pcp, pcp_alloc(pcp));
	assert_int_equal(pcp_unit_stats().zone_allocs, 11);
	assert_int_equal(pcp_unit_stats().zone_frees, 11);
	assert_int_equal(pcp_unit_stats().cached_pages, 16);
	pcp_bh_enable(pcp);

	for (unsigned int i = 0; i < 10; i++)
		pcp_free(pcp, pcp_alloc(pcp));
	assert_int_equal(pcp_unit_stats().zone_allocs, 11);
	assert_int_equal(pcp_unit_stats().zone_frees, 11);
	assert_int_equal(stats_of(zone).allocs[0], 16 + 11);
	pcp_unit_close();
}

static void
the_other_modes_use_it(void **state)
{
	static const enum pcp_mode modes[] = {PCP_MODE_BH, PCP_MODE_SPIN, PCP_MODE_NONE};

	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		pcp_unit_open(SOME, (struct pcp_config){.mode = modes[m], .batch = 16});
		struct pcp *pcp = handle(0);

		pcp_bh_disable(pcp);
		for (unsigned int i = 0; i < 10; i++)
			pcp_free_nested(pcp, pcp_alloc_nested(pcp));
		pcp_bh_enable(pcp);
		for (unsigned int i = 0; i < 10; i++)
			pcp_free(pcp, pcp_alloc(pcp));
		assert_int_equal(pcp_unit_stats().zone_allocs, 0);
		assert_int_equal(pcp_unit_stats().zone_frees, 0);
		assert_int_equal(stats_of(zone).allocs[0], 16);
		pcp_unit_close();
	}
}

/* ---- handlers: by a storm of signals from another thread ---- */

#define HANDLER_PAGES 8u
#define MAIN_PAGES    40u

static uint8_t in_use[SOME]; /* by whom: 0, MAIN or HANDLER */
#define MAIN    1
#define HANDLER 2

static atomic_bool corrupted;
static atomic_ulong n_handled;
static void *handlers_page[HANDLER_PAGES];
static uint32_t handlers_pages;
static bool handler_entry; /* pcp_handler_*, not the normal calls */
static pthread_t main_thread;
static atomic_bool storm_over;

/* A page is handed out: to nobody else, or the cache is corrupt. */
static void
take(const void *page, uint8_t who)
{
	const uintptr_t n = ((uintptr_t)page - (uintptr_t)memory) / PP_PAGE_SIZE;

	if (n >= SOME || in_use[n] != 0)
		corrupted = true;
	else
		in_use[n] = who;
}

static bool
give(const void *page, uint8_t who)
{
	const uintptr_t n = ((uintptr_t)page - (uintptr_t)memory) / PP_PAGE_SIZE;

	if (n >= SOME || in_use[n] != who)
		return false;
	in_use[n] = 0;
	return true;
}

static void
handle_signal(int signo)
{
	const unsigned long n = n_handled++;

	(void)signo;
	if (corrupted)
		return;
	/* takes and gives, by turns of a few */
	if (n / HANDLER_PAGES % 2 == 0 && handlers_pages < HANDLER_PAGES) {
		void *page = handler_entry ? pcp_handler_alloc(cache, 0) : pcp_alloc(handle(0));

		if (page == NULL)
			return;
		handlers_page[handlers_pages++] = page;
		take(page, HANDLER);
	} else if (handlers_pages > 0) {
		void *page = handlers_page[--handlers_pages];

		if (!give(page, HANDLER))
			return;
		if (handler_entry)
			pcp_handler_free(cache, page, 0);
		else
			pcp_free(handle(0), page);
	}
}

static void *
send_signals(void *arg)
{
	cpu_set_t cpus;

	(void)arg;
	memset(&cpus, 0xff, sizeof(cpus));
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	while (!storm_over) {
		const unsigned long n = n_handled;

		pthread_kill(main_thread, SIGUSR1);
		for (unsigned int i = 0; i < 1000 && n_handled == n && !storm_over; i++)
			sched_yield();
	}
	return NULL;
}

static double
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* What the thread that is interrupted does; returns whether it could. */
static void *mains_page[MAIN_PAGES];

static bool
main_takes(bool section)
{
	struct pcp *pcp = handle(0);
	bool ok = true;

	if (section)
		pcp_bh_disable(pcp);
	for (uint32_t i = 0; i < MAIN_PAGES; i++) {
		mains_page[i] = section ? pcp_alloc_nested(pcp) : pcp_alloc(pcp);
		ok = ok && mains_page[i] != NULL;
		if (mains_page[i] != NULL)
			take(mains_page[i], MAIN);
	}
	if (section)
		pcp_bh_enable(pcp);
	return ok;
}

static void
main_gives(bool section)
{
	struct pcp *pcp = handle(0);

	if (section)
		pcp_bh_disable(pcp);
	for (uint32_t i = 0; i < MAIN_PAGES && !corrupted; i++) {
		if (mains_page[i] == NULL || !give(mains_page[i], MAIN))
			continue;
		if (section)
			pcp_free_nested(pcp, mains_page[i]);
		else
			pcp_free(pcp, mains_page[i]);
	}
	if (section)
		pcp_bh_enable(pcp);
}

/* Until the time is up or something is corrupt. Returns the handlers that ran. */
static unsigned long
storm(enum pcp_mode mode, uint32_t batch, bool by_handler_entry, bool sections, double seconds)
{
	const struct sigaction action = {.sa_handler = handle_signal, .sa_flags = SA_RESTART};
	struct sigaction old;
	pthread_t sender;
	bool all = true;

	pcp_unit_open(SOME, (struct pcp_config){.mode = mode, .batch = batch});
	memset(in_use, 0, sizeof(in_use));
	corrupted = false;
	n_handled = 0;
	handlers_pages = 0;
	handler_entry = by_handler_entry;
	storm_over = false;
	main_thread = pthread_self();
	/* magazines half full, so that the fast path alone is at work where it may be */
	if (!main_takes(false))
		fail();
	main_gives(false);
	sigaction(SIGUSR1, &action, &old);
	assert_int_equal(pthread_create(&sender, NULL, send_signals, NULL), 0);

	const double end = seconds_now() + seconds;

	while (!corrupted && (seconds_now() < end || n_handled < 100)) {
		for (uint32_t i = 0; i < 100 && !corrupted; i++) {
			all = main_takes(sections && i % 2 == 0) && all;
			main_gives(sections && i % 3 == 0);
		}
	}
	storm_over = true;
	pthread_join(sender, NULL);
	sigaction(SIGUSR1, &old, NULL);
	assert_true(all || corrupted);
	return n_handled;
}

/* Nothing was corrupted: the handler's pages go back, and everything balances. */
static void
assert_unharmed(void)
{
	assert_false(corrupted);
	while (handlers_pages > 0) {
		void *page = handlers_page[--handlers_pages];

		assert_true(give(page, HANDLER));
		if (handler_entry)
			pcp_handler_free(cache, page, 0);
		else
			pcp_free(handle(0), page);
	}
	for (uint32_t i = 0; i < SOME; i++)
		assert_int_equal(in_use[i], 0);
}

/* Small magazines for slow paths and locks, large ones for the fast path. */
static const uint32_t batches[] = {2, 256};

static void
normal_calls_from_handlers_are_detected(void **state)
{
	static const enum pcp_mode modes[] = {PCP_MODE_BH, PCP_MODE_SPIN};

	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		for (size_t b = 0; b < RTE_DIM(batches); b++) {
			storm(modes[m], batches[b], false, false, STORM_S);
			assert_unharmed();
			assert_true(pcp_unit_stats().reentered > 0);
			pcp_unit_close();
		}
	}
}

/* In sections, too; pages change hands by the zone, which knows of them all. */
static void
handler_calls_never_touch_the_cache(void **state)
{
	static const enum pcp_mode modes[] = {PCP_MODE_BH, PCP_MODE_SPIN, PCP_MODE_BYPASS};

	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		for (size_t b = 0; b < RTE_DIM(batches); b++) {
			const unsigned long n = storm(modes[m], batches[b], true, true, STORM_S);

			assert_unharmed();
			assert_int_equal(pcp_unit_stats().reentered, 0);
			assert_true(stats_of(zone).frees[0] > n / 4);
			pcp_unit_close();
		}
	}
}

/* What the others are there for. */
static void
none_is_corrupted_by_handlers(void **state)
{
	(void)state;
#if UNIT_TSAN
	unit_skip("ThreadSanitizer holds signals back until the call is over");
#endif
	storm(PCP_MODE_NONE, 256, false, false, NONE_S);
	const bool twice = corrupted;
	const uint64_t lost = pp_zone_pages(zone) - pcp_cache_free_pages(cache);

	print_message("%lu handlers: a page handed out twice: %s\n", (unsigned long)n_handled,
		twice ? "yes" : "no");
	assert_true(twice || lost != handlers_pages);
	/* its pages are anybody's guess */
	pcp_cache_destroy(cache);
	pp_zone_abandon(zone);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bypass_keeps_sections_off_the_cache),
		cmocka_unit_test(the_other_modes_use_it),
		cmocka_unit_test(normal_calls_from_handlers_are_detected),
		cmocka_unit_test(handler_calls_never_touch_the_cache),
		cmocka_unit_test(none_is_corrupted_by_handlers),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
