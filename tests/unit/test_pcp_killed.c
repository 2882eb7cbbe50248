/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes are killed at any moment: in sections, in calls, in exchanges, under any lock. The
 * others go on, no page is ever in two places, and what is lost is counted.
 *
 * EAL's memory without hugepages is a shared memfd, so a forked child works on the same caches.
 */

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/pagepool/pp_internal.h"
#include "pcp_unit.h"

#define KILL_PAGES 1024u
#ifdef PP_STALLS
#define KILLS 25 /* at better chosen moments */
#else
#define KILLS 100
#endif
#define HELD  400
#define LCORE 5 /* the children's */

static struct pcp_cache *
new_cache(enum pcp_mode mode)
{
	const struct pcp_config config = {.mode = mode, .batch = 32, .lcores = 2, .high = 256};
	struct pcp_cache *made = pcp_cache_create(zone, &config);

	assert_non_null(made);
	return made;
}

/* Single, bulk and nested calls, past the caches too, until it is killed. */
static void
churn(struct pcp_cache *shared, unsigned int seed)
{
	struct pcp *pcp = &shared->pcp[LCORE];
	void *held[HELD];
	uint32_t n = 0;

	srand(seed);
	if (!pcp_adopt(pcp))
		_exit(1);
	for (;;) {
		const uint32_t bulk = 1 + (uint32_t)rand() % 64;

		switch (rand() % 6) {
		case 0:
			if (n + bulk <= HELD && pcp_alloc_bulk(pcp, &held[n], bulk) == 0)
				n += bulk;
			break;
		case 1:
			if (n >= bulk) {
				n -= bulk;
				pcp_free_bulk(pcp, &held[n], bulk);
			}
			break;
		case 2:
			pcp_bh_disable(pcp);
			for (uint32_t i = 0; i < bulk && n < HELD; i++) {
				held[n] = pcp_alloc_nested(pcp);
				n += held[n] != NULL;
			}
			pcp_bh_enable(pcp);
			break;
		case 3:
			pcp_bh_disable(pcp);
			for (uint32_t i = 0; i < bulk && n > 0; i++)
				pcp_free_nested(pcp, held[--n]);
			pcp_bh_enable(pcp);
			break;
		case 4:
			if (n + bulk <= HELD &&
				pcp_depot_alloc_bulk(shared, 0, &held[n], bulk) == 0)
				n += bulk;
			break;
		case 5:
			if (n >= bulk) {
				n -= bulk;
				pcp_depot_free_bulk(shared, 0, &held[n], bulk);
			}
			break;
		}
	}
}

static pid_t
start_and_kill(struct pcp_cache *shared, unsigned int seed)
{
	const struct timespec time = {.tv_nsec = 100000 + rand() % 900000};
	const struct timespec moment = {.tv_nsec = 20000};
	struct pcp *pcp = &shared->pcp[LCORE];
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		churn(shared, seed);
	/* Not while it takes memory for its magazines: EAL's own heap lock survives no kill. */
	while (pp_load_acquire(&pcp->owner_pid) != (uint32_t)child ||
		pp_load_acquire(&pcp->attention) & PCP_ATTENTION_OFFLINE)
		nanosleep(&moment, NULL);
	nanosleep(&time, NULL);
	assert_int_equal(kill(child, SIGKILL), 0);
	return child;
}

/* All that can be had here, each page once; then it goes back. */
static uint32_t
obtainable(struct pcp_cache *shared, uint32_t free_pages)
{
	static void *page[KILL_PAGES + 1];
	static bool seen[KILL_PAGES];
	uint32_t n = 0;

	memset(seen, 0, sizeof(seen));
	while (n <= KILL_PAGES && (page[n] = pcp_cache_alloc(shared)) != NULL) {
		const uint64_t i = (uint64_t)((char *)page[n] - memory) / PP_PAGE_SIZE;

		assert_true(pp_zone_contains(zone, page[n]));
		assert_false(seen[i]);
		seen[i] = true;
		n++;
	}
	assert_int_equal(n, free_pages);
	for (uint32_t i = 0; i < n; i++)
		pcp_cache_free(shared, page[i]);
	return n;
}

static void
kills(enum pcp_mode mode)
{
	uint64_t buried = 0, gone = 0;

	for (unsigned int round = 0; round < KILLS; round++) {
		struct pcp_stats stats;

		zone = plain_zone(KILL_PAGES, 9);
		struct pcp_cache *shared = new_cache(mode);

		/* The second one comes to the lcore that the first one left. */
		for (unsigned int life = 0; life < 2; life++) {
			const pid_t child = start_and_kill(shared, 2 * round + life);

			assert_int_equal(waitpid(child, NULL, 0), child);
		}
		pcp_cache_drain(shared);
		const uint64_t free_pages = pcp_cache_free_pages(shared);

		obtainable(shared, (uint32_t)free_pages);
		pcp_cache_get_stats(shared, &stats);
		assert_true(pcp_cache_is_valid(shared));
		assert_true(pp_zone_is_valid(zone));
		assert_int_equal(stats.in_use_pages + stats.missing_pages + free_pages, KILL_PAGES);
		buried += stats.buried;
		gone += stats.missing_pages;
		pcp_cache_destroy(shared);
		pp_zone_abandon(zone);
	}
	assert_true(buried >= KILLS);
	/* A kill hits an exchange now and then; pages lost by it are few. */
	assert_true(gone < KILLS * 2 * 64u);
}

static void
kills_in_bh_double_nothing(void **state __rte_unused)
{
	kills(PCP_MODE_BH);
}

static void
kills_in_spin_double_nothing(void **state __rte_unused)
{
	kills(PCP_MODE_SPIN);
}

static void
kills_in_bypass_double_nothing(void **state __rte_unused)
{
	kills(PCP_MODE_BYPASS);
}

static void
kills_in_irq_double_nothing(void **state __rte_unused)
{
	kills(PCP_MODE_IRQ);
}

/* An lcore id may not be used by two living processes. */
static void
a_living_owner_is_left_alone(void **state __rte_unused)
{
	zone = plain_zone(KILL_PAGES, 9);
	struct pcp_cache *shared = new_cache(PCP_MODE_BH);
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		void *page = pcp_alloc(&shared->pcp[LCORE]);

		pcp_free(&shared->pcp[LCORE], page);
		raise(SIGSTOP); /* alive, and outside of calls */
	}
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	unit_log_clear();
	assert_false(pcp_adopt(&shared->pcp[LCORE]));
	unit_assert_logged("belongs to process");
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(pcp_adopt(&shared->pcp[LCORE]));
	pcp_cache_destroy(shared);
	destroy_zone(zone);
}

static void
die_under_the_zone_lock(uint64_t counted)
{
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		pp_lock(&zone->lock);
		zone->free_pages = counted;
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Nothing but the lock says so: the dead one's cache holds no page, and nobody else comes by. */
static void
a_count_cut_short_is_mended(void **state __rte_unused)
{
	struct pcp_stats stats;

	zone = plain_zone(KILL_PAGES, 9);
	struct pcp_cache *shared = new_cache(PCP_MODE_BH);

	die_under_the_zone_lock(KILL_PAGES + 2);
	assert_int_equal(pcp_cache_free_pages(shared), KILL_PAGES);

	die_under_the_zone_lock(KILL_PAGES - 2);
	pcp_cache_get_stats(shared, &stats);
	assert_int_equal(stats.missing_pages, 0);

	/* A pool that looks empty, but is not. */
	die_under_the_zone_lock(0);
	void *page = pcp_depot_alloc(shared, 0);

	assert_non_null(page);
	pcp_depot_free(shared, page, 0);
	pcp_cache_destroy(shared);
	destroy_zone(zone);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(kills_in_bh_double_nothing),
		cmocka_unit_test(kills_in_spin_double_nothing),
		cmocka_unit_test(kills_in_bypass_double_nothing),
		cmocka_unit_test(kills_in_irq_double_nothing),
		cmocka_unit_test(a_living_owner_is_left_alone),
		cmocka_unit_test(a_count_cut_short_is_mended),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
