/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode preempt: caches of CPUs, for threads that are preempted, migrated and interrupted. */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_errno.h>

#include <pcp_cpu.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "preempt_unit.h"
#include "storm.h"
#include "worker.h"

#define SOME    PREEMPT_PAGES
#define STORM_S 0.5

static bool refuse_registration, refuse_barrier;

bool __real_pcp_membarrier_rseq_register(void);
bool __wrap_pcp_membarrier_rseq_register(void);
bool __real_pcp_membarrier_rseq(void);
bool __wrap_pcp_membarrier_rseq(void);

bool
__wrap_pcp_membarrier_rseq_register(void)
{
	return !refuse_registration && __real_pcp_membarrier_rseq_register();
}

bool
__wrap_pcp_membarrier_rseq(void)
{
	return !refuse_barrier && __real_pcp_membarrier_rseq();
}

/* ---- every kind of call, by threads of every kind ---- */

static void
threads_of_all_kinds_use_all_calls(void **state __rte_unused)
{
	open_preempt((struct pcp_config){.batch = 16, .max_order = 2});
	storm_record_reset();
	use_all_calls(NULL);
	assert_balance(0, 0);
	for (int registered = 0; registered < 2; registered++) {
		struct worker *worker = worker_start(registered);

		worker_do(worker, use_all_calls, NULL);
		worker_end(worker, registered);
		assert_balance(0, 0);
	}
	assert_int_equal(pcp_unit_stats().failed, 0);
	assert_false(storm_corrupted());
	pcp_unit_close();
}

static void
threads_without_an_lcore_use_the_cache(void **state __rte_unused)
{
	open_preempt((struct pcp_config){.batch = 16});
	struct worker *worker = worker_start(false);

	worker_do(worker, use_one_page, NULL);
	worker_end(worker, false);
	assert_int_equal(pcp_unit_stats().allocs, 100);
	assert_int_equal(pcp_unit_stats().unregistered, 0);
	assert_int_equal(pcp_unit_stats().depot_allocs, 0);
	assert_true(pcp_unit_stats().cached_pages >= 16);
	assert_int_equal(pcp_cache_drain_local(cache), 0);
	pcp_cache_drain(cache);
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
	pcp_unit_close();
}

/* ---- nothing is stranded ---- */

static void *all[SOME];

static void
free_all_on_another_cpu(void *arg __rte_unused)
{
	pin_to(processor(1));
	for (uint32_t i = 0; i < SOME; i++)
		pcp_cache_free(cache, all[i]);
}

static void
take_all(void)
{
	for (uint32_t i = 0; i < SOME; i++) {
		all[i] = pcp_cache_alloc(cache);
		assert_non_null(all[i]);
	}
	assert_null(pcp_cache_alloc(cache));
	assert_int_equal(rte_errno, ENOMEM);
}

static void
nobody_gets_what_is_not_there(void **state __rte_unused)
{
	open_preempt((struct pcp_config){.batch = 64});
	take_all();
	assert_null(pcp_cpu_alloc(cache));
	pcp_bh_disable(pcp_this(cache));
	assert_null(pcp_alloc_nested(pcp_this(cache)));
	pcp_bh_enable(pcp_this(cache));
	assert_int_equal(pcp_unit_stats().failed, 3);
	for (uint32_t i = 0; i < SOME; i++)
		pcp_cpu_free(cache, all[i]);
	pcp_unit_close();
}

static void
what_other_cpus_cache_is_to_be_had(void **state __rte_unused)
{
	open_preempt((struct pcp_config){.batch = 64});
	struct worker *worker = worker_start(false);

	pin_to(processor(0));
	for (int i = 0; i < 3; i++) {
		take_all();
		worker_do(worker, free_all_on_another_cpu, NULL);
		assert_balance(0, 0);
	}
	assert_int_equal(pcp_unit_stats().failed, 3);
	take_all();
	worker_do(worker, free_all_on_another_cpu, NULL);
	/* and without the barrier nobody may touch it */
	if (processor(0) != processor(1)) {
		const uint64_t cached = pcp_unit_stats().cached_pages;

		assert_true(cached > 0);
		refuse_barrier = true;
		pcp_cache_drain(cache);
		refuse_barrier = false;
		assert_int_equal(pcp_unit_stats().cached_pages, cached);
	}
	worker_end(worker, false);
	pcp_unit_close();
}

/* ---- what a call does when the cache cannot be had ---- */

static void
a_claimed_cache_is_left_alone(void **state __rte_unused)
{
	open_preempt((struct pcp_config){.batch = 16});
	use_one_page(NULL);
	pin_to(processor(0));
	use_one_page(NULL);
	struct pcp *pcp = &cache->cpu[sched_getcpu()];
	const uint64_t depot_allocs = pcp_unit_stats().depot_allocs;

	assert_true(pp_trylock(&pcp->lock));
	pp_fetch_or(&pcp->attention, PCP_ATTENTION_CLAIMED);
	void *page = pcp_cache_alloc(cache);

	assert_non_null(page);
	pcp_cache_free(cache, page);
	assert_int_equal(pcp_unit_stats().depot_allocs, depot_allocs + 1);
	assert_int_equal(pcp_cache_drain_local(cache), -EAGAIN);
	/* who is asked meanwhile serves it later */
	pcp_cache_drain(cache);
	assert_true(pcp->attention & PCP_ATTENTION_DRAIN);
	pp_fetch_and(&pcp->attention, ~(uint32_t)PCP_ATTENTION_CLAIMED);
	pp_unlock(&pcp->lock);
	assert_true(pcp_unit_stats().cached_pages > 0);
	use_one_page(NULL);
	assert_int_equal(pcp->attention, 0);
	pcp_unit_close();
}

/* Another process has created the caches: this one's threads are not its threads. */
static void
other_processes_work_past_the_caches(void **state __rte_unused)
{
	open_preempt((struct pcp_config){.batch = 16});
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++)
		cache->cpu[i].owner_pid = 1;
	use_one_page(NULL);
	assert_int_equal(pcp_unit_stats().depot_allocs, 100);
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++)
		cache->cpu[i].owner_pid = pp_self;
	pcp_unit_close();
}

static uint32_t
obtainable(void)
{
	uint32_t n = 0;

	while (n < SOME && (all[n] = pcp_cache_alloc(cache)) != NULL)
		n++;
	pcp_depot_free_bulk(cache, 0, all, n);
	return n;
}

/* What it has there: the living are asked for it, the dead are buried. */
static void
caches_of_another_process(void **state __rte_unused)
{
	open_preempt((struct pcp_config){.batch = 16});
	pin_to(processor(0));
	use_one_page(NULL);
	struct pcp *pcp = &cache->cpu[sched_getcpu()];
	const uint32_t there = (uint32_t)pcp_unit_stats().cached_pages;

	assert_true(there > 0);
	pcp->owner_pid = (uint32_t)getppid();
	assert_int_equal(obtainable(), SOME - there);
	assert_true(pcp->attention & PCP_ATTENTION_DRAIN);
	assert_int_equal(pcp_unit_stats().buried, 0);
	pcp->owner_pid = (uint32_t)dead_pid();
	cache->depot->backoff_until = 0;
	assert_int_equal(obtainable(), SOME);
	assert_int_equal(pcp_unit_stats().buried, 1);
	assert_int_equal(pcp->owner_pid, 0);
	pcp->owner_pid = pp_self;
	pcp_unit_close();
}

/* ---- memory that is not there ---- */

static void *
create(void *arg __rte_unused)
{
	return pcp_cache_create(zone, &(struct pcp_config){.mode = PCP_MODE_PREEMPT, .batch = 16});
}

static void
destroy(void *object)
{
	pcp_cache_destroy(object);
}

static void
each_allocation_may_fail(void **state __rte_unused)
{
	open_preempt((struct pcp_config){.batch = 16});
	assert_true(unit_fail_each(create, destroy, NULL) >= 5);

	/* a CPU's magazines, at its first call */
	unit_fail_at(1);
	use_one_page(NULL);
	assert_true(unit_fail_reached());
	assert_int_equal(pcp_unit_stats().failed, 0);
	use_one_page(NULL);
	assert_true(pcp_unit_stats().cached_pages > 0);
	pcp_unit_close();
}

/* ---- handlers ---- */

static void *handlers[2];

static void
handler_takes(void *arg __rte_unused)
{
	handlers[0] = pcp_cache_alloc(cache);
	handlers[1] = pcp_handler_alloc(cache, 0);
}

static void
handler_takes_and_gives_high_orders(void *arg __rte_unused)
{
	void *block = pcp_handler_alloc(cache, PCP_MAX_ORDER + 1);

	assert_non_null(block);
	pcp_handler_free(cache, block, PCP_MAX_ORDER + 1);
}

static void
handler_gives(void *arg __rte_unused)
{
	pcp_cache_free(cache, handlers[0]);
	pcp_handler_free(cache, handlers[1], 0);
}

static void
handlers_use_the_cache(void **state __rte_unused)
{
	open_preempt((struct pcp_config){.batch = 16});
	/* offline: EAL's heap is not for handlers */
	assert_int_equal(pcp_handler_enter(cache, handler_takes, NULL), 0);
	assert_non_null(handlers[0]);
	assert_non_null(handlers[1]);
	assert_int_equal(pcp_unit_stats().handler_allocs, 2);
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
	assert_int_equal(pcp_handler_enter(cache, handler_gives, NULL), 0);

	pin_to(processor(0));
	use_one_page(NULL);
	assert_int_equal(pcp_handler_enter(cache, handler_takes, NULL), 0);
	assert_int_equal(pcp_handler_enter(cache, handler_gives, NULL), 0);
	assert_int_equal(pcp_unit_stats().handler_allocs, 2);
	assert_int_equal(pcp_unit_stats().handler_frees, 2);
	assert_int_equal(pcp_handler_enter(cache, handler_takes_and_gives_high_orders, NULL), 0);
	assert_int_equal(pcp_unit_stats().handler_allocs, 3);
	assert_int_equal(pcp_unit_stats().handler_frees, 3);
	assert_balance(0, 0);
	pcp_unit_close();
}

static void
the_dump_shows_cpus(void **state __rte_unused)
{
	char *text = NULL, expected[32];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	open_preempt((struct pcp_config){.batch = 16});
	pin_to(processor(0));
	use_one_page(NULL);
	pcp_cache_dump(cache, f);
	fclose(f);
	snprintf(expected, sizeof(expected), "  cpu %d: pages 16 nest 0\n", sched_getcpu());
	assert_non_null(strstr(text, "mode preempt batch 16"));
	assert_non_null(strstr(text, expected));
	free(text);
	pcp_unit_close();
}

/* ---- everything at once ---- */

#define HELD 8u

static atomic_bool over;
static atomic_ulong rounds[3], n_handled;
static __thread void *handlers_page[HELD];
static __thread uint32_t handlers_pages;
static __thread uint32_t handled;

/* The same page may not be handed out twice, whoever was preempted or interrupted where. */
static void
on_signal_work(void *arg __rte_unused)
{
	n_handled++;
	if (handled++ / HELD % 2 == 0 && handlers_pages < HELD) {
		void *page = handled % 2 ? pcp_cache_alloc(cache) : pcp_handler_alloc(cache, 0);

		if (page == NULL)
			return;
		storm_take(page, STORM_HANDLER);
		handlers_page[handlers_pages++] = page;
	} else if (handlers_pages > 0) {
		void *page = handlers_page[--handlers_pages];

		if (storm_give(page, STORM_HANDLER))
			pcp_handler_free(cache, page, 0);
	}
}

static void
on_signal(int signo __rte_unused)
{
	pcp_handler_enter(cache, on_signal_work, NULL);
}

static void
churn(unsigned int who, bool migrate, int signo)
{
	struct storm *storm = signo != 0 ? storm_begin(signo, on_signal) : NULL;
	const unsigned int cpus[2] = {processor(0), processor(1)};
	unsigned int turn = 0;
	void *page[24];

	while (!over && !storm_corrupted()) {
		const bool bulk = turn % 3 == 0;

		if (migrate)
			pin_to(cpus[turn % 2]);
		turn++;
		for (unsigned int round = 0; round < 50; round++) {
			uint32_t n = 0;

			if (bulk && pcp_cpu_alloc_bulk(cache, page, RTE_DIM(page)) == 0)
				n = RTE_DIM(page);
			for (; !bulk && n < RTE_DIM(page); n++) {
				page[n] = n % 2 ? pcp_cpu_alloc(cache) : pcp_cache_alloc(cache);
				if (page[n] == NULL)
					break;
			}
			for (uint32_t i = 0; i < n; i++)
				storm_take(page[i], STORM_MAIN);
			for (uint32_t i = 0; i < n; i++)
				if (!storm_give(page[i], STORM_MAIN))
					return;
			if (bulk)
				pcp_cpu_free_bulk(cache, page, n);
			else
				for (uint32_t i = 0; i < n; i++)
					pcp_cpu_free(cache, page[i]);
			rounds[who]++;
		}
	}
	if (storm != NULL)
		storm_end(storm);
	while (handlers_pages > 0) {
		void *last = handlers_page[--handlers_pages];

		if (storm_give(last, STORM_HANDLER))
			pcp_cpu_free(cache, last);
	}
}

static void *
stays(void *arg __rte_unused)
{
	churn(1, false, SIGUSR1);
	return NULL;
}

static void *
stays_too(void *arg __rte_unused)
{
	churn(1, false, SIGRTMIN);
	return NULL;
}

static void *
migrates(void *arg __rte_unused)
{
	churn(2, true, SIGUSR2);
	return NULL;
}

static void *
drains(void *arg __rte_unused)
{
	pin_to(processor(1));
	while (!over) {
		pcp_cache_drain(cache);
		rounds[0]++;
		usleep(50);
	}
	return NULL;
}

static void
everything_at_once(uint32_t batch)
{
	void *(*const f[])(void *) = {stays, stays_too, migrates, drains};
	pthread_t thread[RTE_DIM(f)];

	open_preempt((struct pcp_config){.batch = batch, .lcores = 4});
	storm_record_reset();
	over = false;
	n_handled = 0;
	for (unsigned int i = 0; i < 3; i++)
		rounds[i] = 0;
	for (unsigned int i = 0; i < RTE_DIM(f); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, f[i], NULL), 0);
	const double until = storm_seconds() + STORM_S;

	while (!storm_corrupted() && (storm_seconds() < until || rounds[0] < 10 ||
					     rounds[1] < 100 || rounds[2] < 100 || n_handled < 100))
		usleep(1000);
	over = true;
	for (unsigned int i = 0; i < RTE_DIM(f); i++)
		pthread_join(thread[i], NULL);
	assert_false(storm_corrupted());
	assert_int_equal(storm_taken(), 0);
	pcp_unit_close();
}

static void
preempted_migrated_interrupted_and_drained(void **state __rte_unused)
{
	everything_at_once(2);
	everything_at_once(64);
}

/* ---- without sequences ---- */

static void
assert_fallback(const char *why)
{
	void *block;

	unit_log_clear();
	pcp_unit_open(SOME, (struct pcp_config){.mode = PCP_MODE_PREEMPT, .batch = 16});
	assert_int_equal(mode_in_effect(), PCP_MODE_SPIN);
	unit_assert_logged("mode spin instead of preempt");
	unit_assert_logged(why);
	use_one_page(NULL);
	assert_null(cache->cpu);
	pcp_cpu_free(cache, pcp_cpu_alloc(cache));
	assert_int_equal(pcp_cpu_alloc_slow(cache, 1, &block, 1), 0);
	pcp_cpu_free_slow(cache, 1, &block, 1);
	pcp_unit_close();
}

static void
without_them_it_is_spin(void **state __rte_unused)
{
	assert_fallback(PCP_HAS_RSEQ ? "glibc has not registered them" : "not on this processor");
}

static void
without_their_barrier_it_is_spin(void **state __rte_unused)
{
	open_preempt((struct pcp_config){0}); /* or skip */
	pcp_unit_close();
	refuse_registration = true;
	assert_fallback("membarrier does not reach them");
	refuse_registration = false;
}

/* This program again, as a user runs one whose glibc is told not to register them. */
static void
a_tunable_takes_them_away(void **state __rte_unused)
{
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
		execl("/proc/self/exe", "test_pcp_preempt", "without", NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest with[] = {
		cmocka_unit_test(threads_of_all_kinds_use_all_calls),
		cmocka_unit_test(threads_without_an_lcore_use_the_cache),
		cmocka_unit_test(what_other_cpus_cache_is_to_be_had),
		cmocka_unit_test(a_claimed_cache_is_left_alone),
		cmocka_unit_test(other_processes_work_past_the_caches),
		cmocka_unit_test(nobody_gets_what_is_not_there),
		cmocka_unit_test(caches_of_another_process),
		cmocka_unit_test(each_allocation_may_fail),
		cmocka_unit_test(handlers_use_the_cache),
		cmocka_unit_test(the_dump_shows_cpus),
		cmocka_unit_test(preempted_migrated_interrupted_and_drained),
		cmocka_unit_test(without_their_barrier_it_is_spin),
		cmocka_unit_test(a_tunable_takes_them_away),
	};
	const struct CMUnitTest without[] = {
		cmocka_unit_test(without_them_it_is_spin),
	};

	zone_unit_init();
	if (argc > 1 && strcmp(argv[1], "without") == 0)
		return cmocka_run_group_tests(without, NULL, NULL);
	return cmocka_run_group_tests(with, NULL, NULL);
}
