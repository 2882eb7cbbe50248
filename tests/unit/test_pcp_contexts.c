/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of contexts and modes, cell by cell, while a timer's signals interrupt: what is seen of
 * the calls' counters must be what pcp_mode_outcome() says, and the table of the internals the
 * same.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pcp_contexts.h>
#include <pcp_irq.h>

#include "pcp_unit.h"
#include "storm.h"
#include "worker.h"

#define SOME     600u
#define STORM_S  0.12
#define LONGER_S 5.0 /* at most, if it has not happened yet */
#define CORRUPT_S                                                                                  \
	10.0 /* at most, until a mode without exclusion must have been seen corrupting             \
	      */
#define BATCH_TO_CORRUPT 256
#define HELD             8u
#define MAIN_PAGES       40u

static const char *internals; /* the file with the table */

/* ---- the handler ---- */

static enum pcp_context context; /* that is tried */
static enum pcp_mode mode;
static atomic_ulong n_works, n_calls; /* the handler's allocations and frees */
static void *handlers_page[HELD];
static uint32_t handlers_pages;
static atomic_bool at_lists; /* of the thread that is interrupted: see work() */
static atomic_bool came_between;

static bool
handler_calls(void)
{
	return context != PCP_CONTEXT_ENTERED && context != PCP_CONTEXT_SIGNAL;
}

static void
work(void *arg __rte_unused)
{
	const unsigned long n = n_works++;

	if (at_lists)
		came_between = true;
	if (storm_corrupted())
		return;
	if (n / HELD % 2 == 0 && handlers_pages < HELD) {
		void *page = handler_calls() ? pcp_handler_alloc(cache, 0) : pcp_cache_alloc(cache);

		n_calls++;
		if (page == NULL) /* EBUSY */
			return;
		storm_take(page, STORM_HANDLER);
		handlers_page[handlers_pages++] = page;
	} else if (handlers_pages > 0) {
		void *page = handlers_page[--handlers_pages];

		if (!storm_give(page, STORM_HANDLER))
			return;
		n_calls++;
		if (handler_calls())
			pcp_handler_free(cache, page, 0);
		else
			pcp_cache_free(cache, page);
	}
}

static void
on_signal(int signo __rte_unused)
{
	if (context == PCP_CONTEXT_SIGNAL)
		work(NULL);
	else
		pcp_handler_enter(cache, work, NULL);
}

/* ---- the thread that is interrupted ---- */

static void *held[MAIN_PAGES];
static unsigned long n_own; /* its allocations and frees */

/* Handlers are for single calls to interrupt, or for those and sections. */
static bool
in_section(unsigned int turn)
{
	if (context == PCP_CONTEXT_CALL || context == PCP_CONTEXT_SIGNAL)
		return false;
	return context == PCP_CONTEXT_SECTION || turn % 2 == 0;
}

static void
one_round(unsigned int turn)
{
	struct pcp *pcp = pcp_this(cache);
	const bool section = pcp != NULL && in_section(turn);

	if (section)
		pcp_bh_disable(pcp);
	at_lists = section;
	for (uint32_t i = 0; i < MAIN_PAGES && !storm_corrupted(); i++) {
		held[i] = section ? pcp_alloc_nested(pcp) : pcp_cache_alloc(cache);
		if (held[i] != NULL)
			storm_take(held[i], STORM_MAIN);
	}
	for (uint32_t i = 0; i < MAIN_PAGES && !storm_corrupted(); i++) {
		if (held[i] == NULL || !storm_give(held[i], STORM_MAIN))
			continue;
		if (section)
			pcp_free_nested(pcp, held[i]);
		else
			pcp_cache_free(cache, held[i]);
		held[i] = NULL;
		n_own += 2;
	}
	at_lists = false;
	if (section)
		pcp_bh_enable(pcp);
}

static void
rounds_in_thread(void *arg)
{
	const pthread_t *main_thread = arg;
	cpu_set_t cpus;

	/* where the lcore is */
	pthread_getaffinity_np(*main_thread, sizeof(cpus), &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	const double until = storm_seconds() + STORM_S;

	for (unsigned int turn = 0; storm_seconds() < until || turn < 10; turn++)
		one_round(turn);
}

/* ---- what is seen ---- */

static bool
mode_is_there(void)
{
	struct pcp_config config;

	pcp_cache_get_config(cache, &config);
	return config.mode == mode;
}

static bool
open_cell(uint32_t batch)
{
	pcp_unit_open(SOME, (struct pcp_config){.mode = mode, .batch = batch});
	if (!mode_is_there()) {
		pcp_unit_close();
		return false;
	}
	/* online, and half full */
	for (uint32_t i = 0; i < MAIN_PAGES; i++)
		held[i] = pcp_cache_alloc(cache);
	for (uint32_t i = 0; i < MAIN_PAGES; i++)
		pcp_cache_free(cache, held[i]);
	memset(held, 0, sizeof(held));
	storm_record_reset();
	handlers_pages = 0;
	n_works = n_calls = 0;
	n_own = 0;
	came_between = false;
	return true;
}

static void
give_handlers_pages_back(void)
{
	while (handlers_pages > 0) {
		void *page = handlers_page[--handlers_pages];

		assert_true(storm_give(page, STORM_HANDLER));
		pcp_handler_free(cache, page, 0);
	}
}

/* By the counters since `before`. */
static enum pcp_outcome
seen_of_main(const struct pcp_stats *before, const struct pcp_stats *now)
{
	const uint64_t by_zone =
		now->zone_allocs - before->zone_allocs + now->zone_frees - before->zone_frees;
	const uint64_t by_depot =
		now->depot_allocs - before->depot_allocs + now->depot_frees - before->depot_frees;

	if (by_depot >= n_own && n_own > 0)
		return PCP_OUTCOME_DEPOT;
	if (by_zone >= n_own && n_own > 0)
		return PCP_OUTCOME_ZONE;
	assert_int_equal(by_zone, 0);
	return PCP_OUTCOME_CACHE;
}

/* In mode spin: what a call or section does while another thread has the lock. */
static enum pcp_outcome
seen_without_lock(void)
{
	struct pcp *pcp = pcp_this(cache);
	const struct pcp_stats before = pcp_unit_stats();

	n_own = 0;
	assert_true(pp_trylock(&pcp->lock));
	one_round(0);
	pp_unlock(&pcp->lock);
	const struct pcp_stats now = pcp_unit_stats();

	return seen_of_main(&before, &now);
}

static enum pcp_outcome
seen_of_handlers(const struct pcp_stats *before, const struct pcp_stats *now)
{
	const uint64_t by_zone = now->handler_allocs - before->handler_allocs + now->handler_frees -
				 before->handler_frees + now->failed - before->failed;

	if (now->deferred > before->deferred) {
		assert_int_equal(by_zone, 0);
		assert_false(came_between);
		return PCP_OUTCOME_DEFERRED;
	}
	if (now->reentered > before->reentered && mode != PCP_MODE_PREEMPT)
		return PCP_OUTCOME_DETECTED;
	/* in a slow path it has to go elsewhere in mode preempt */
	return by_zone >= n_calls ? PCP_OUTCOME_TRYZONE : PCP_OUTCOME_CACHE;
}

/* The library's other functions take locks, which a handler that did not enter would wait for. */
static void
block_storm(bool block)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &signals, NULL);
}

/* What takes a signal at the right moment: worth some more time. */
static bool
is_still_to_come(enum pcp_outcome said, const struct pcp_stats *before)
{
	block_storm(true);
	const struct pcp_stats now = pcp_unit_stats();

	block_storm(false);
	return (said == PCP_OUTCOME_DETECTED && now.reentered == before->reentered) ||
	       (said == PCP_OUTCOME_DEFERRED && now.deferred == before->deferred);
}

static enum pcp_outcome
try_cell(enum pcp_outcome said)
{
	const pthread_t self = pthread_self();
	struct worker *worker = context == PCP_CONTEXT_THREAD ? worker_start(false) : NULL;
	const struct pcp_stats before = pcp_unit_stats();
	struct storm *storm = storm_begin(SIGUSR1, on_signal);
	const double until = storm_seconds() + STORM_S;
	enum pcp_outcome seen;

	if (worker != NULL) {
		/* this one is its lcore's, and is interrupted, too */
		worker_begin(worker, rounds_in_thread, (void *)(uintptr_t)&self);
		for (unsigned int i = 0; i < 100; i++)
			sched_yield();
		worker_wait(worker);
	} else {
		for (unsigned int turn = 0;
			storm_seconds() < until || n_works < 50 ||
			(storm_seconds() < until + LONGER_S && is_still_to_come(said, &before));
			turn++)
			one_round(turn);
	}
	storm_end(storm);
	if (worker != NULL)
		worker_end(worker, false);
	assert_false(storm_corrupted());
	const struct pcp_stats now = pcp_unit_stats();

	if (context <= PCP_CONTEXT_THREAD)
		seen = seen_of_main(&before, &now);
	else
		seen = seen_of_handlers(&before, &now);
	if (seen == PCP_OUTCOME_CACHE && mode == PCP_MODE_SPIN &&
		seen_without_lock() == PCP_OUTCOME_ZONE)
		seen = PCP_OUTCOME_TRYLOCK;
	give_handlers_pages_back();
	assert_int_equal(storm_taken(), 0);
	return seen;
}

/* ---- what corrupts: in a child, which sees it by the library's own means ---- */

enum {
	UNHARMED,
	SEEN,
};

/* At rest: lists are valid, and what is not free is held by somebody. */
static bool
is_sound(void)
{
	uint32_t n = handlers_pages;

	for (uint32_t i = 0; i < MAIN_PAGES; i++)
		n += held[i] != NULL;
	return pcp_cache_is_valid(cache) && pcp_cache_free_pages(cache) + n == pp_zone_pages(zone);
}

static int
run_until_corrupt(void)
{
	const double until = storm_seconds() + CORRUPT_S;
	struct storm *storm = storm_begin(SIGUSR1, on_signal);
	bool sound = true;

	while (sound && storm_seconds() < until) {
		for (unsigned int turn = 0; turn < 20; turn++)
			one_round(turn);
		block_storm(true);
		sound = is_sound();
		/* so that what was handed out twice does not hide what was lost */
		if (sound && storm_corrupted())
			storm_record_reset();
		block_storm(false);
	}
	storm_end(storm);
	return sound ? UNHARMED : SEEN;
}

/* The status of a child that runs until its lists are corrupt. */
static int
child_until_corrupt(void)
{
	int status;

	fflush(stdout);
	const pid_t pid = fork();

	if (pid == 0) {
		/* A handler may have come while its thread had a lock, and waits for that: no use.
		 */
		alarm((unsigned int)CORRUPT_S + 5);
		if (!open_cell(BATCH_TO_CORRUPT))
			_exit(UNHARMED);
		const int seen = run_until_corrupt();

		/* EAL's memory is the parent's, too: what the lists name is anybody's guess */
		pcp_cache_destroy(cache);
		pp_zone_abandon(zone);
		_exit(seen);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static enum pcp_outcome
corruption(void)
{
	int status, n = 0;

	do
		status = child_until_corrupt();
	while (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM && ++n < 3);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), SEEN);
	return PCP_OUTCOME_CORRUPTS;
}

/* ---- a row of cells ---- */

static void
try_context(enum pcp_context tried)
{
	static const uint32_t batches[] = {
		2, BATCH_TO_CORRUPT}; /* slow paths, and the fast one alone */

	context = tried;
	for (mode = PCP_MODE_BH; mode <= PCP_MODE_NONE; mode++) {
		const enum pcp_outcome said = pcp_mode_outcome(mode, context);

		for (size_t b = 0; b < RTE_DIM(batches); b++) {
			enum pcp_outcome seen;

			if (said == PCP_OUTCOME_CORRUPTS) {
				/* under TSan signals come only between calls */
				if (!UNIT_TSAN && batches[b] == BATCH_TO_CORRUPT)
					assert_int_equal(corruption(), said);
				continue;
			}
			if (!open_cell(batches[b])) {
				unit_skip_line("mode %s is not there", pcp_mode_name(mode));
				continue;
			}
			seen = try_cell(said);
			if (seen != said)
				fail_msg("mode %s, %s, batch %u: %s instead of %s",
					pcp_mode_name(mode), pcp_context_name(context), batches[b],
					pcp_outcome_name(seen), pcp_outcome_name(said));
			pcp_unit_close();
		}
	}
}

static void
calls(void **state __rte_unused)
{
	try_context(PCP_CONTEXT_CALL);
}

static void
sections(void **state __rte_unused)
{
	try_context(PCP_CONTEXT_SECTION);
}

static void
threads_on_the_lcores_cpu(void **state __rte_unused)
{
	try_context(PCP_CONTEXT_THREAD);
}

static void
handlers_with_their_own_calls(void **state __rte_unused)
{
	try_context(PCP_CONTEXT_HANDLER);
}

static void
handlers_with_single_calls(void **state __rte_unused)
{
	try_context(PCP_CONTEXT_ENTERED);
}

static void
signal_handlers_that_did_not_enter(void **state __rte_unused)
{
	try_context(PCP_CONTEXT_SIGNAL);
}

/* ---- the internals ---- */

static void
append_cell(char line[256], const char *cell)
{
	const size_t len = strlen(line);

	snprintf(line + len, 256 - len, "%s |", cell);
}

static void
the_internals_have_the_same_table(void **state __rte_unused)
{
	char want[256] = "| mode |", have[256];
	FILE *f = fopen(internals, "r");

	assert_non_null(f);
	for (unsigned int c = 0; c < PCP_CONTEXTS; c++)
		append_cell(strcat(want, " "), pcp_context_name((enum pcp_context)c));
	do
		assert_non_null(fgets(have, sizeof(have), f));
	while (strncmp(have, want, strlen(want)) != 0);
	assert_non_null(fgets(have, sizeof(have), f)); /* the rule below */
	for (mode = PCP_MODE_BH; mode <= PCP_MODE_NONE; mode++) {
		snprintf(want, sizeof(want), "| `%s` |", pcp_mode_name(mode));
		for (unsigned int c = 0; c < PCP_CONTEXTS; c++)
			append_cell(strcat(want, " "),
				pcp_outcome_name(pcp_mode_outcome(mode, (enum pcp_context)c)));
		strcat(want, "\n");
		assert_non_null(fgets(have, sizeof(have), f));
		assert_string_equal(have, want);
	}
	fclose(f);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls),
		cmocka_unit_test(sections),
		cmocka_unit_test(threads_on_the_lcores_cpu),
		cmocka_unit_test(handlers_with_their_own_calls),
		cmocka_unit_test(handlers_with_single_calls),
		cmocka_unit_test(signal_handlers_that_did_not_enter),
		cmocka_unit_test(the_internals_have_the_same_table),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: test_pcp_contexts docs/internals.md\n");
		return 2;
	}
	internals = argv[1];
	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
