/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call may not do: take what it cannot keep, wait for ever, trust a handler's moment. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_errno.h>

#include "pcp_unit.h"

#define PAGES_HERE 1024u

static void
open_caches(enum pcp_mode mode)
{
	pcp_unit_open(PAGES_HERE, (struct pcp_config){.mode = mode, .batch = 32, .lcores = 2});
}

/* More than there is: not a single page moves, and nobody else finds the pool empty meanwhile. */
static void
a_hopeless_request_moves_nothing(void **state)
{
	static void *page[PAGES_HERE + 1];
	struct pcp_stats before, after;

	(void)state;
	open_caches(PCP_MODE_BH);
	void *held = pcp_alloc(handle(1));

	pcp_free(handle(0), pcp_alloc(handle(0)));
	before = pcp_unit_stats();
	assert_int_equal(pcp_alloc_bulk(handle(0), page, PAGES_HERE), -ENOMEM);
	assert_int_equal(pcp_depot_alloc_bulk(cache, 0, page, PAGES_HERE), -ENOMEM);
	assert_null(pcp_depot_alloc(cache, 10));
	assert_int_equal(rte_errno, EINVAL);
	after = pcp_unit_stats();
	assert_int_equal(after.failed, before.failed + 2);
	assert_int_equal(after.refills, before.refills);
	assert_int_equal(after.drains, before.drains);
	assert_int_equal(after.reclaims, before.reclaims);
	assert_int_equal(after.cached_pages, before.cached_pages);

	/* One less, and it gets everything there is, from wherever it lies. */
	assert_int_equal(pcp_alloc_bulk(handle(0), page, PAGES_HERE - 1), 0);
	pcp_free_bulk(handle(0), page, PAGES_HERE - 1);
	pcp_free(handle(1), held);
}

/* Another process sits in a section for ever: a dry call fails each time, it does not hang. */
static void
a_standing_section_hangs_nobody(void **state)
{
	static void *page[PAGES_HERE + 1];

	(void)state;
	open_caches(PCP_MODE_BH);
	pcp_free(handle(1), pcp_alloc(handle(1)));
	uint32_t n = 0;
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		pcp_bh_disable(handle(2));
		pause();
		_exit(0);
	}
	while (pp_load_acquire(&handle(2)->nest) == 0)
		rte_pause();
	while ((page[n] = pcp_alloc(handle(0))) != NULL)
		n++;
	assert_true(n >= PAGES_HERE - 64);
	for (unsigned int i = 0; i < 1000; i++)
		assert_null(pcp_alloc(handle(0)));
	while (n > 0)
		pcp_free(handle(0), page[--n]);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	pcp_cache_drain(cache);
}

/* ---- a handler in an lcore's very first call, before the cache has an owner ---- */

static void *handlers_page;
static bool armed;

void *__real_pcp_meta_alloc(const struct pp_zone *in, size_t size);
void *__wrap_pcp_meta_alloc(const struct pp_zone *in, size_t size);
void *
__wrap_pcp_meta_alloc(const struct pp_zone *in, size_t size)
{
	void *memory_got = __real_pcp_meta_alloc(in, size);

	if (armed) {
		armed = false;
		raise(SIGUSR1);
	}
	return memory_got;
}

static void
allocate_in_handler(int sig)
{
	(void)sig;
	handlers_page = pcp_alloc(handle(0));
}

static void
a_handler_in_the_first_call_is_detected(void **state)
{
	(void)state;
	open_caches(PCP_MODE_BH);
	signal(SIGUSR1, allocate_in_handler);
	armed = true;
	void *page = pcp_alloc(handle(0));

	assert_non_null(page);
	assert_non_null(handlers_page);
	assert_ptr_not_equal(page, handlers_page);
	assert_int_equal(pcp_unit_stats().reentered, 1);
	assert_balance(2, 2);
	pcp_free(handle(0), page);
	pcp_free(handle(0), handlers_page);
}

/* Its main thread has ended, which /proc shows as a zombie, but it lives. */
static void *
live_on(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

static void
a_process_without_main_thread_is_alive(void **state)
{
	(void)state;
	if (UNIT_TSAN)
		unit_skip("ThreadSanitizer lets no forked child start threads");
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, live_on, NULL);
		pthread_exit(NULL);
	}
	for (int i = 0; i < 100; i++) {
		assert_false(pp_process_is_dead((uint32_t)child));
		usleep(1000);
	}
	assert_int_equal(kill(child, SIGKILL), 0);
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_true(pp_process_is_dead((uint32_t)child)); /* a zombie now */
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(pp_process_is_dead((uint32_t)child));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_hopeless_request_moves_nothing, pcp_unit_teardown),
		cmocka_unit_test_teardown(a_standing_section_hangs_nobody, pcp_unit_teardown),
		cmocka_unit_test_teardown(
			a_handler_in_the_first_call_is_detected, pcp_unit_teardown),
		cmocka_unit_test(a_process_without_main_thread_is_alive),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
