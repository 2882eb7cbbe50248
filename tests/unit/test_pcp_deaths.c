/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process dies before its first access to a shared word, before its second, and so on: what
 * test_pcp_killed meets by chance, one by one. What it held is its own, what it had given back can
 * be had, no page is in two places, and few are lost.
 *
 * Built with PP_STALLS only, for pp_stall() is where it dies. EAL's memory without hugepages is a
 * shared memfd, so a forked child works on the same caches.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/pagepool/pp_internal.h"
#include "../../lib/pcp_cache/pcp_internal.h"
#include "pcp_irq.h"
#include "pcp_unit.h"

#define ZONE_PAGES 60u
#define BATCH      4u
#define BLOCKS     6u
#define LCORE      5 /* the children's, and the next one */
#define SURVIVED   7 /* exit codes */
#define DIED       8
/*
 * Two magazines of its own, or of ours that it was about to take, one that it moves on to the zone,
 * and what its call was about.
 */
#define LOST_MAX (3 * BATCH + 2)

/* Accesses until this process dies; 0: it lives on. */
static uint64_t steps_to_live;

void
pp_stall(void)
{
	if (steps_to_live > 0 && --steps_to_live == 0)
		_exit(DIED);
}

/* What the child has for sure, shared with it: not what a call is about to give or to take. */
static struct {
	uint32_t n, n_blocks;
	void *page[ZONE_PAGES];
	void *block[BLOCKS]; /* of order 1 */
} * held;

static void
held_more(void *const *page, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		held->page[held->n + i] = page[i];
	pp_compiler_barrier();
	held->n += n;
}

/* The last n of them. */
static void
held_fewer(void **page, uint32_t n)
{
	held->n -= n;
	pp_compiler_barrier();
	for (uint32_t i = 0; i < n; i++)
		page[i] = held->page[held->n + i];
}

/* ---- a life ---- */

static void
take(struct pcp *pcp, uint32_t n)
{
	for (; n > 0; n--) {
		void *page = pcp_alloc(pcp);

		if (page != NULL)
			held_more(&page, 1);
	}
}

static void
give(struct pcp *pcp, uint32_t n)
{
	for (void *page; n > 0 && held->n > 0; n--) {
		held_fewer(&page, 1);
		pcp_free(pcp, page);
	}
}

static void
take_bulk(struct pcp *pcp, uint32_t n)
{
	void *page[ZONE_PAGES];

	if (pcp_alloc_bulk(pcp, page, n) == 0)
		held_more(page, n);
}

static void
give_bulk(struct pcp *pcp, uint32_t n)
{
	void *page[ZONE_PAGES];

	n = RTE_MIN(n, held->n);
	held_fewer(page, n);
	pcp_free_bulk(pcp, page, n);
}

/* Pages of order 1, for which lists of order 0 are drained, and back. */
static void
take_and_give_blocks(struct pcp *pcp)
{
	while (held->n_blocks < BLOCKS) {
		void *block = pcp_alloc_pages(pcp, 1);

		if (block == NULL)
			break;
		held->block[held->n_blocks] = block;
		pp_compiler_barrier();
		held->n_blocks++;
	}
	while (held->n_blocks > 1) {
		held->n_blocks--;
		pp_compiler_barrier();
		pcp_free_pages(pcp, held->block[held->n_blocks], 1);
	}
}

static void
section(struct pcp *pcp)
{
	pcp_bh_disable(pcp);
	for (uint32_t i = 0; i < 2 * BATCH; i++) {
		void *page = pcp_alloc_nested(pcp);

		if (page != NULL)
			held_more(&page, 1);
	}
	for (uint32_t i = 0; i < BATCH; i++) {
		void *page;

		held_fewer(&page, 1);
		pcp_free_nested(pcp, page);
	}
	pp_fetch_or(&pcp->attention, PCP_ATTENTION_DRAIN);
	pcp_bh_enable(pcp);
}

static void
past_the_caches(struct pcp_cache *shared, uint32_t n)
{
	void *page[ZONE_PAGES];

	if (pcp_depot_alloc_bulk(shared, 0, page, n) == 0)
		held_more(page, n);
	held_fewer(page, n / 2);
	pcp_depot_free_bulk(shared, 0, page, n / 2);
}

/* As a handler that interrupted the holder of the zone's lock. */
static void
under_the_zones_lock(struct pcp_cache *shared, uint32_t n)
{
	void *page;

	pp_zone_lock(zone);
	for (; n > 0 && held->n > 0; n--) {
		held_fewer(&page, 1);
		pcp_handler_free(shared, page, 0);
	}
	pp_unlock(&zone->lock);
	pp_zone_lock(zone);
	pp_unlock(&zone->lock);
}

static void
live(struct pcp_cache *shared)
{
	struct pcp *pcp = &shared->pcp[LCORE], *other = &shared->pcp[LCORE + 1];

	if (!pcp_adopt(pcp) || !pcp_adopt(other))
		_exit(1);
	take(pcp, 5 * BATCH);
	give(pcp, 5 * BATCH);
	take_bulk(pcp, 3 * BATCH);
	give_bulk(pcp, BATCH + 1);
	section(pcp);
	past_the_caches(shared, BATCH + 2);
	give(other, 3 * BATCH);
	take_and_give_blocks(pcp);
	under_the_zones_lock(shared, 2);
	/* all there is: claims the other one's */
	take(pcp, ZONE_PAGES);
	give(pcp, BATCH);
	give(other, 2 * BATCH);
	pcp_cache_shrink(shared, BATCH);
	give(other, BATCH + 1);
	pcp_lcore_leaves(LCORE + 1, shared);
	pcp_cache_drain(shared);
}

static void
bury(struct pcp_cache *shared)
{
	pcp_cache_drain(shared);
}

/* ---- and what is left of it; NULL, or what is wrong ---- */

/* All that can be had here: each page once, and none that is the dead one's. */
static const char *
fault_of_pages(struct pcp_cache *shared, uint64_t free_pages)
{
	void *page[ZONE_PAGES + 1];
	bool gone[ZONE_PAGES] = {false};
	uint32_t n = 0;

	for (uint32_t i = 0; i < held->n; i++)
		gone[page_number(held->page[i])] = true;
	for (uint32_t i = 0; i < held->n_blocks; i++)
		for (uint32_t k = 0; k < 2; k++)
			gone[page_number(held->block[i]) + k] = true;
	while (n <= ZONE_PAGES && (page[n] = pcp_cache_alloc(shared)) != NULL) {
		if (gone[page_number(page[n])])
			return "a page is in two places";
		gone[page_number(page[n++])] = true;
	}
	for (uint32_t i = 0; i < n; i++)
		pcp_cache_free(shared, page[i]);
	return n == free_pages ? NULL : "free pages cannot be had";
}

static const char *
fault_of_caches(struct pcp_cache *shared)
{
	struct pcp_stats stats;

	pcp_cache_drain(shared);
	const uint64_t free_pages = pcp_cache_free_pages(shared);
	const char *fault = fault_of_pages(shared, free_pages);

	pcp_cache_get_stats(shared, &stats);
	if (fault == NULL && !pcp_cache_is_valid(shared))
		fault = "the caches are not valid";
	if (fault == NULL && stats.in_use_pages + stats.missing_pages + free_pages != ZONE_PAGES)
		fault = "counts do not add up";
	for (unsigned int kind = 0; kind < PP_BAD_KINDS; kind++)
		if (fault == NULL && stats.bad[kind] > 0)
			fault = pp_bad_kind_name(kind);
	return fault;
}

/* Without the caches: what it had is still in use, and nearly all else is free. */
static const char *
fault_of_zone(uint32_t lost_max)
{
	const uint64_t accounted = pp_zone_free_pages(zone) + held->n + 2 * held->n_blocks;

	if (!pp_zone_is_valid(zone))
		return "the zone is not valid";
	for (uint32_t i = 0; i < held->n; i++)
		if (pp_zone_page(zone, held->page[i])->state != PP_PAGE_USED)
			return "what it had is free";
	for (uint32_t i = 0; i < held->n_blocks; i++)
		if (pp_zone_page(zone, held->block[i])->state != PP_PAGE_USED)
			return "a block that it had is free";
	if (accounted > ZONE_PAGES || accounted + lost_max < ZONE_PAGES)
		return "too few pages are free";
	return stats_of(zone).bad_frees == 0 ? NULL : "a page was freed twice";
}

/* Whether a child that lives like that, for so many steps, dies of it. */
static bool
dies_after(uint64_t steps, void (*way)(struct pcp_cache *shared), struct pcp_cache *shared)
{
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		steps_to_live = steps;
		way(shared);
		_exit(SURVIVED);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_true(WEXITSTATUS(status) == DIED || WEXITSTATUS(status) == SURVIVED);
	return WEXITSTATUS(status) == DIED;
}

/* Something lies in a cache of this process, too: in mode spin any process may take it. */
static void
give_and_take_ours(struct pcp_cache *shared)
{
	void *page[BATCH + 2];

	for (uint32_t i = 0; i < RTE_DIM(page); i++)
		assert_non_null(page[i] = pcp_cache_alloc(shared));
	for (uint32_t i = 0; i < RTE_DIM(page); i++)
		pcp_cache_free(shared, page[i]);
}

/*
 * The others go on; or, every second time, they destroy the caches at once. With `burial` another
 * process comes upon what is left first, and dies at some step of its own. Whether the first did.
 */
static bool
death(const struct pcp_config *config, uint64_t steps, uint64_t burial)
{
	const uint32_t lost_max = burial > 0 ? 2 * LOST_MAX : LOST_MAX;
	const char *fault = NULL;

	zone = plain_zone(ZONE_PAGES, 5);
	struct pcp_cache *shared = pcp_cache_create(zone, config);

	assert_non_null(shared);
	held->n = held->n_blocks = 0;
	give_and_take_ours(shared);
	const bool died = dies_after(steps, live, shared);

	if (burial > 0)
		dies_after(burial, bury, shared);
	if (steps % 2 == 0)
		fault = fault_of_caches(shared);
	pcp_cache_destroy(shared);
	if (fault == NULL)
		fault = fault_of_zone(lost_max);
	if (fault != NULL)
		fail_msg("mode %s, checks %s, dead after %" PRIu64 " steps, and %" PRIu64
			 " of the burial: %s; log:\n%s",
			pcp_mode_name(config->mode), pcp_checks_name(config->checks), steps, burial,
			fault, unit_log());
	pp_zone_abandon(zone);
	unit_log_clear();
	return died;
}

/* Every so many-th step, or what the program is told: 1 takes ten minutes. Sanitizers are slow. */
static uint64_t stride = UNIT_TSAN ? 997 : UNIT_ASAN ? 299 : 97;

/* Each mode and checks begin elsewhere: together they see more. */
static void
deaths(uint64_t every, uint64_t burials)
{
	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_IRQ; mode++) {
		for (enum pcp_checks checks = PCP_CHECKS_OFF; checks <= PCP_CHECKS_FULL; checks++) {
			const struct pcp_config config = {
				.mode = mode,
				.checks = checks,
				.batch = BATCH,
				.max_order = 1,
				.lcores = 2,
				.high = 5 * BATCH,
			};
			uint64_t steps = 1 + (3 * mode + checks) * 2 % every;

			while (death(&config, steps, burials > 0 ? 1 + steps % burials : 0))
				steps += every;
		}
	}
}

static void
a_death_at_any_step_doubles_nothing(void **state __rte_unused)
{
	deaths(stride, 0);
}

/* A burial takes some hundred steps. */
static void
nor_does_the_death_of_who_buries_it(void **state __rte_unused)
{
	deaths(2 * stride, 397);
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_death_at_any_step_doubles_nothing),
		cmocka_unit_test(nor_does_the_death_of_who_buries_it),
	};

	if (argc > 1)
		stride = strtoul(argv[1], NULL, 0);
	zone_unit_init();
	held = mmap(NULL, sizeof(*held), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (held == MAP_FAILED)
		abort();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
