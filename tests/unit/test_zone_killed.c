/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process is killed at any moment, also under the zone's lock: the next one to take the lock
 * repairs the zone, and no page is lost but those the dead process held.
 *
 * EAL's memory without hugepages is a shared memfd, so a forked child works on the same zone.
 */

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/pagepool/pp_internal.h"
#include "zone_unit.h"

#define ZONE_PAGES 4096u
#define KILLS      400
#define HELD       64
#define ORDERS     4

/* Allocates and frees until it is killed. */
static void
churn(struct pp_zone *zone, unsigned int seed)
{
	void *held[HELD];
	unsigned int order[HELD];
	uint32_t n = 0;

	srand(seed);
	for (;;) {
		const unsigned int wanted = (unsigned int)rand() % ORDERS;

		if (n < HELD && rand() % 2 == 0) {
			held[n] = pp_zone_alloc(zone, wanted, 0);
			order[n] = wanted;
			n += held[n] != NULL;
		} else if (n > 0) {
			const uint32_t k = (uint32_t)rand() % n;

			pp_zone_free(zone, held[k], order[k], rand() % 8 ? 0 : PP_ALLOC_TRYLOCK);
			held[k] = held[n - 1];
			order[k] = order[n - 1];
			n--;
		}
	}
}

static void
kill_at_random(pid_t child)
{
	const struct timespec time = {.tv_nsec = 200000 + rand() % 800000};

	nanosleep(&time, NULL);
	assert_int_equal(kill(child, SIGKILL), 0);
}

/* What the descriptors say is in use goes back to the zone. */
static uint64_t
free_used(struct pp_zone *zone)
{
	const struct pp_zone_run *run = zone->runs[0];
	uint64_t pages = 0;

	for (uint32_t i = 0; i < run->run.count; i++) {
		struct pp_page *page = &run->pages[i];
		const unsigned int order = page->order;

		if (page->state != PP_PAGE_USED)
			continue;
		assert_int_equal(pp_zone_free(zone, pp_page_addr(page), order, 0), 0);
		pages += 1u << order;
	}
	return pages;
}

static uint64_t
lost_returns(const struct pp_zone *zone)
{
	const struct pp_zone_run *run = zone->runs[0];
	uint64_t pages = 0;

	for (uint32_t i = 0; i < run->run.count; i++)
		if (run->pages[i].state == PP_PAGE_RETURNED)
			pages += 1u << run->pages[i].order;
	return pages;
}

static void
kills_lose_nothing_but_what_was_held(void **state __rte_unused)
{
	struct pp_zone *zone = plain_zone(ZONE_PAGES, 9);
	uint64_t lost = 0;

	for (unsigned int round = 0; round < KILLS; round++) {
		const pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0)
			churn(zone, round);
		kill_at_random(child);
		/* Half of the rounds find a zombie holding the lock, half a pid that is gone. */
		if (round % 2 == 0)
			assert_int_equal(waitpid(child, NULL, 0), child);

		const uint64_t free_pages = stats_of(zone).free;

		assert_true(pp_zone_is_valid(zone));
		lost = lost_returns(zone);
		assert_int_equal(free_pages + free_used(zone) + lost, ZONE_PAGES);
		assert_int_equal(pp_zone_free_pages(zone) + lost, ZONE_PAGES);
		if (round % 2 == 1)
			assert_int_equal(waitpid(child, NULL, 0), child);
	}
	/* Else the test has not met the case that it is for. */
	assert_true(stats_of(zone).repairs > 0);
	if (lost == 0)
		destroy_zone(zone);
	else
		assert_int_equal(pp_zone_abandon(zone), lost);
}

/* Each way a change of the lists can be cut short, by hand. */
static void
repair_rebuilds_from_descriptors(void **state __rte_unused)
{
	struct pp_zone *zone = plain_zone(ZONE_PAGES, 9);
	void *page[3];

	for (unsigned int i = 0; i < RTE_DIM(page); i++)
		page[i] = pp_zone_alloc(zone, i, 0);
	const uint64_t free_pages = stats_of(zone).free;
	struct pp_page *const head = LIST_FIRST(&zone->free_list[9]);

	/* off its list, with a page of it almost handed out; the counter not yet written */
	LIST_REMOVE(head, free);
	head->state = PP_PAGE_TAIL;
	head[7].state = PP_PAGE_FREE;
	head[7].order = 5;
	zone->free_pages += 77;
	zone->nonempty = 0;

	const pid_t child = fork();

	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	zone->lock.holder = (uint32_t)child;

	assert_int_equal(stats_of(zone).free, free_pages);
	assert_int_equal(stats_of(zone).repairs, 1);
	assert_true(pp_zone_is_valid(zone));
	for (unsigned int i = 0; i < RTE_DIM(page); i++)
		assert_int_equal(pp_zone_free(zone, page[i], i, 0), 0);
	assert_int_equal(stats_of(zone).free_blocks[9], ZONE_PAGES >> 9);
	destroy_zone(zone);
}

/* What checks have set aside is no page that was on its way to be free. */
static void
repair_leaves_aside_what_was_set_aside(void **state __rte_unused)
{
	struct pp_zone *zone = plain_zone(ZONE_PAGES, 9);
	struct pp_page *page = pp_zone_page(zone, pp_zone_alloc(zone, 0, 0));
	const pid_t child = fork();

	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	page->state = PP_PAGE_BAD;
	zone->bad_pages = 1;
	zone->lock.holder = (uint32_t)child;
	assert_int_equal(stats_of(zone).free, ZONE_PAGES - 1);
	assert_int_equal(stats_of(zone).repairs, 1);
	assert_int_equal(page->state, PP_PAGE_BAD);
	destroy_zone(zone);
}

/* Whoever returned a block died before it was counted: too few are, for a while, not all but -1. */
static void
a_return_may_not_have_been_counted(void **state __rte_unused)
{
	struct pp_zone *zone = plain_zone(ZONE_PAGES, 9);
	void *page = pp_zone_alloc(zone, 0, 0);

	assert_true(pp_trylock(&zone->lock));
	assert_int_equal(pp_zone_free(zone, page, 0, PP_ALLOC_TRYLOCK), 0);
	assert_int_equal(pp_zone_free_pages(zone), ZONE_PAGES);
	zone->returned_pages = 0;
	pp_unlock(&zone->lock);
	assert_int_equal(stats_of(zone).free, ZONE_PAGES);
	assert_int_equal(pp_zone_free_pages(zone), ZONE_PAGES);
	destroy_zone(zone);
}

/* A living holder is waited for, however long: its lock is not taken over. */
static void
living_holder_keeps_the_lock(void **state __rte_unused)
{
	struct pp_zone *zone = plain_zone(ZONE_PAGES, 9);
	int about_to_wait[2];

	assert_int_equal(pipe(about_to_wait), 0);
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		const struct timespec time = {.tv_nsec = 300000000};
		char byte;

		pp_lock(&zone->lock);
		if (read(about_to_wait[0], &byte, 1) == 1)
			nanosleep(&time, NULL);
		pp_unlock(&zone->lock);
		_exit(0);
	}
	while (pp_load_acquire(&zone->lock.holder) == 0)
		rte_pause();
	assert_int_equal(write(about_to_wait[1], "", 1), 1);
	assert_int_equal(stats_of(zone).repairs, 0);
	close(about_to_wait[0]);
	close(about_to_wait[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	destroy_zone(zone);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(kills_lose_nothing_but_what_was_held),
		cmocka_unit_test(repair_rebuilds_from_descriptors),
		cmocka_unit_test(repair_leaves_aside_what_was_set_aside),
		cmocka_unit_test(a_return_may_not_have_been_counted),
		cmocka_unit_test(living_holder_keeps_the_lock),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
