/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two lcores do something each, the second all of it at one step of the first: before its first
 * access to a shared word, before its second, and so on. Where it must wait for the first, that
 * goes on. No page is in two places, none is lost, and nobody fails while there are pages.
 *
 * Built with PP_STALLS only, for pp_stall() is where turns change.
 */

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "pcp_unit.h"
#include "worker.h"

#define BATCH               4u
#define ZONE_PAGES          40u
#define HELD                (2 * BATCH) /* by each at first */
#define CACHED              2           /* by each lcore */
#define IDLE_LCORE          7
#define PATIENCE            3 /* times that the second makes way until the first goes on */
#define WAITS_FOR_A_RECLAIM 3200

struct actor {
	struct pcp *pcp;
	uint32_t n;
	void *page[ZONE_PAGES];
	bool failed;
};

static struct actor first, second;

/* ---- whose turn it is ---- */

static __thread bool is_first, is_second;
static uint64_t steps;         /* of the first until the second's turn; 0: it has come */
static uint32_t turn, is_over; /* the second may begin; it has ended */
static uint32_t yields;        /* of the second */
static uint32_t waits;         /* and of both */

int __real_sched_yield(void);
int __wrap_sched_yield(void);

int
__wrap_sched_yield(void)
{
	if (is_second)
		__atomic_fetch_add(&yields, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
	return __real_sched_yield();
}

void
pp_stall(void)
{
	if (!is_first || steps == 0 || --steps > 0)
		return;
	__atomic_store_n(&turn, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE) &&
		__atomic_load_n(&yields, __ATOMIC_RELAXED) < PATIENCE)
		__real_sched_yield();
}

/* ---- what they do ---- */

static void
get(struct actor *actor, int rc, uint32_t n)
{
	if (rc == 0)
		actor->n += n;
	else
		actor->failed = true;
}

static void
take(struct actor *actor)
{
	void *page = pcp_alloc(actor->pcp);

	actor->page[actor->n] = page;
	get(actor, page != NULL ? 0 : -1, 1);
}

static void
give(struct actor *actor)
{
	pcp_free(actor->pcp, actor->page[--actor->n]);
}

static void
take_bulk(struct actor *actor)
{
	get(actor, pcp_alloc_bulk(actor->pcp, &actor->page[actor->n], BATCH), BATCH);
}

static void
give_bulk(struct actor *actor)
{
	actor->n -= HELD;
	pcp_free_bulk(actor->pcp, &actor->page[actor->n], HELD);
}

static void
section(struct actor *actor)
{
	pcp_bh_disable(actor->pcp);
	void *page = pcp_alloc_nested(actor->pcp);

	if (page != NULL)
		pcp_free_nested(actor->pcp, page);
	else
		actor->failed = true;
	pcp_free_nested(actor->pcp, actor->page[--actor->n]);
	pcp_bh_enable(actor->pcp);
}

static void
take_past(struct actor *actor)
{
	get(actor, pcp_depot_alloc_bulk(cache, 0, &actor->page[actor->n], BATCH), BATCH);
}

static void
give_past(struct actor *actor)
{
	actor->n -= BATCH + 1;
	pcp_depot_free_bulk(cache, 0, &actor->page[actor->n], BATCH + 1);
}

static void
drain(struct actor *actor __rte_unused)
{
	pcp_cache_drain(cache);
}

static void
shrink(struct actor *actor __rte_unused)
{
	pcp_cache_shrink(cache, 0);
}

static void (*const deeds[])(struct actor *actor) = {
	take, give, take_bulk, give_bulk, section, take_past, give_past, drain, shrink};
static const char *const names[] = {"take", "give", "take_bulk", "give_bulk", "section",
	"take_past", "give_past", "drain", "shrink"};

/* ---- where the pages are that nobody has ---- */

enum place {
	ZONE,
	DEPOT,
	IDLE, /* in the cache of a third lcore, and no more than the two may want */
	PLACES,
};

static void *away[ZONE_PAGES]; /* with the application */
static uint32_t n_away;

/* For an actor: some in its hands, and some in its lcore's cache. */
static void
equip(struct actor *actor)
{
	actor->n = HELD;
	actor->failed = false;
	assert_int_equal(pcp_depot_alloc_bulk(cache, 0, actor->page, HELD + CACHED), 0);
	for (uint32_t i = 0; i < CACHED; i++)
		pcp_free(actor->pcp, actor->page[HELD + i]);
}

static void
prepare(enum place place)
{
	const uint32_t n = ZONE_PAGES - 2 * (HELD + CACHED);
	void *page[ZONE_PAGES];

	pcp_cache_drain(cache);
	assert_int_equal(pp_zone_free_pages(zone), ZONE_PAGES);
	equip(&first);
	equip(&second);
	n_away = 0;
	if (place == ZONE)
		return;
	assert_int_equal(pcp_depot_alloc_bulk(cache, 0, page, n), 0);
	if (place == DEPOT) {
		pcp_depot_free_bulk(cache, 0, page, n);
		return;
	}
	n_away = n - 2 * BATCH;
	memcpy(away, page + 2 * BATCH, n_away * sizeof(page[0]));
	for (uint32_t i = 0; i < 2 * BATCH; i++)
		pcp_free(handle(IDLE_LCORE), page[i]);
}

static void
give_all(struct actor *actor)
{
	for (uint32_t i = 0; i < actor->n; i++)
		pcp_depot_free(cache, actor->page[i], 0);
	actor->n = 0;
}

/* Each page is had by one, or free. NULL, or what is wrong. */
static const char *
fault(void)
{
	bool gone[ZONE_PAGES] = {false};
	const struct actor *const actors[] = {&first, &second};
	uint64_t n = n_away;
	struct pcp_stats stats;

	/* Who has waited for a reclaim so often may give up: its thread had no processor. */
	if ((first.failed || second.failed) && waits < WAITS_FOR_A_RECLAIM)
		return first.failed ? "the first one failed" : "the second one failed";
	for (uint32_t i = 0; i < n_away; i++)
		gone[page_number(away[i])] = true;
	for (size_t k = 0; k < RTE_DIM(actors); k++) {
		for (uint32_t i = 0; i < actors[k]->n; i++, n++) {
			if (gone[page_number(actors[k]->page[i])])
				return "a page is in two places";
			gone[page_number(actors[k]->page[i])] = true;
		}
	}
	pcp_cache_get_stats(cache, &stats);
	if (stats.in_use_pages != n || stats.missing_pages > 0)
		return "counts are wrong";
	if (pcp_cache_free_pages(cache) != ZONE_PAGES - n)
		return "pages are lost";
	return pcp_cache_is_valid(cache) ? NULL : "the caches are not valid";
}

/* ---- ---- */

static void (*seconds_deed)(struct actor *actor);

static void
do_second(void *arg __rte_unused)
{
	is_second = true;
	while (!__atomic_load_n(&turn, __ATOMIC_ACQUIRE))
		__real_sched_yield();
	seconds_deed(&second);
	is_second = false;
	__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
}

/* Whether the first did not come to its end before. */
static bool
interleave(struct worker *worker, size_t one, size_t other, uint64_t at)
{
	turn = is_over = yields = waits = 0;
	seconds_deed = deeds[other];
	worker_begin(worker, do_second, NULL);
	steps = at;
	is_first = true;
	deeds[one](&first);
	is_first = false;
	const bool came = steps == 0;

	steps = 0;
	__atomic_store_n(&turn, 1, __ATOMIC_RELEASE);
	worker_wait(worker);
	return came;
}

/* Of each deed's steps every so many-th, or what the program is told: 1 takes two minutes. */
static uint64_t stride = UNIT_TSAN ? 397 : UNIT_ASAN ? 131 : 47;

static void
all_turns(struct worker *worker, enum place place, const struct pcp_config *config)
{
	for (size_t one = 0; one < RTE_DIM(deeds); one++) {
		for (size_t other = 0; other < RTE_DIM(deeds); other++) {
			bool came = true;

			for (uint64_t at = 1 + (one + other) % stride; came; at += stride) {
				prepare(place);
				came = interleave(worker, one, other, at);
				const char *const why = fault();

				if (why != NULL)
					fail_msg("%s, checks %s, place %u: %s by another at step "
						 "%" PRIu64 " of %s: %s; log:\n%s",
						pcp_mode_name(config->mode),
						pcp_checks_name(config->checks), place,
						names[other], at, names[one], why, unit_log());
				give_all(&first);
				give_all(&second);
				for (uint32_t i = 0; i < n_away; i++)
					pcp_depot_free(cache, away[i], 0);
			}
		}
	}
}

static void
whatever_comes_between_nothing_goes_wrong(void **state __rte_unused)
{
	struct worker *worker = worker_start(true);

	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_IRQ; mode++) {
		for (enum pcp_checks checks = PCP_CHECKS_OFF; checks <= PCP_CHECKS_FULL; checks++) {
			const struct pcp_config config = {
				.mode = mode, .checks = checks, .batch = BATCH, .high = 4 * BATCH};

			pcp_unit_open(ZONE_PAGES, config);
			first.pcp = handle(0);
			second.pcp = handle(worker_lcore(worker));
			for (enum place place = ZONE; place < PLACES; place++)
				all_turns(worker, place, &config);
			pcp_unit_close();
		}
	}
	worker_end(worker, true);
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_comes_between_nothing_goes_wrong),
	};

	if (argc > 1)
		stride = strtoul(argv[1], NULL, 0);
	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
