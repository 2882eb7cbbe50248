/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that allocate, free, enter and leave sections at random, exchange pages, come and go,
 * while another drains, shrinks and looks on; at rest everything must balance. Usage:
 * test_pcp_stress [seed [seconds]]; the seed is printed.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pcp_unit.h"
#include "worker.h"

#define SOME     400u
#define WORKERS  3u
#define OWN_MAX  200u
#define BULK_MAX 32u
#define ROUNDS   1500u /* of a worker, between two rests */

static uint64_t seed;
static double seconds = 4;

/* By whom a page is held: exchanged, so that handing it out twice shows at once. */
static uint32_t holder[SOME];

struct actor {
	struct worker *worker;
	uint32_t id;
	uint64_t rng;
	uint32_t n;
	struct block {
		void *page;
		unsigned int order;
	} own[OWN_MAX];
};

static struct actor actor[WORKERS];

/* Pages that one worker leaves for another to free. */
static void *counter[4];

static uint32_t
random_below(struct actor *a, uint32_t n)
{
	return unit_random_below(&a->rng, n);
}

static uint32_t
number(const void *page)
{
	return (uint32_t)(((uintptr_t)page - (uintptr_t)memory) / PP_PAGE_SIZE);
}

static void
take(struct actor *a, void *page, unsigned int order)
{
	for (uint32_t i = 0; i < 1u << order; i++)
		if (pp_exchange(&holder[number(page) + i], a->id) != 0)
			abort();
	a->own[a->n++] = (struct block){page, order};
}

static void *
leave(struct actor *a, uint32_t i, unsigned int *order)
{
	const struct block block = a->own[i];

	a->own[i] = a->own[--a->n];
	for (uint32_t k = 0; k < 1u << block.order; k++)
		if (pp_exchange(&holder[number(block.page) + k], 0) != a->id)
			abort();
	*order = block.order;
	return block.page;
}

static void
act_alloc(struct actor *a, struct pcp *pcp, bool nested)
{
	const unsigned int order = random_below(a, 8) == 0 ? random_below(a, 4) : 0;
	void *page;

	if (a->n == OWN_MAX)
		return;
	if (pcp == NULL)
		page = pcp_depot_alloc(cache, order);
	else if (nested)
		page = pcp_alloc_pages_nested(pcp, order);
	else
		page = pcp_alloc_pages(pcp, order);
	if (page != NULL)
		take(a, page, order);
}

static void
act_free(struct actor *a, struct pcp *pcp, bool nested)
{
	unsigned int order;

	if (a->n == 0)
		return;
	void *page = leave(a, random_below(a, a->n), &order);

	if (pcp == NULL)
		pcp_depot_free(cache, page, order);
	else if (nested)
		pcp_free_pages_nested(pcp, page, order);
	else
		pcp_free_pages(pcp, page, order);
}

static void
act_bulk(struct actor *a)
{
	const uint32_t n = 1 + random_below(a, BULK_MAX);
	void *page[BULK_MAX];

	if (a->n + n > OWN_MAX || pcp_cache_alloc_bulk(cache, page, n) != 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		take(a, page[i], 0);
}

/* Leave an order-0 page on the counter, and free what lay there: another thread's, mostly. */
static void
act_exchange(struct actor *a)
{
	void **place = &counter[random_below(a, RTE_DIM(counter))];
	unsigned int order;

	if (a->n == 0 || a->own[a->n - 1].order != 0)
		return;
	void *page = pp_exchange(place, leave(a, a->n - 1, &order));

	if (page != NULL)
		pcp_cache_free(cache, page);
}

static void
act(void *arg)
{
	struct actor *a = arg;
	struct pcp *pcp = pcp_this(cache);
	uint32_t nest = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		/* a few hold much, for a while: the zone runs dry now and then */
		const uint32_t share = round / 256 % 2 == a->id % 2 ? 65 : 40;
		const uint32_t dice = random_below(a, 100);

		if (dice < 3 && pcp != NULL && nest < 3) {
			pcp_bh_disable(pcp);
			nest++;
		} else if (dice < 8 && nest > 0) {
			pcp_bh_enable(pcp);
			nest--;
		} else if (dice < 12) {
			act_exchange(a);
		} else if (dice < 14) {
			act_bulk(a);
		} else if (random_below(a, 100) < share) {
			act_alloc(a, pcp, nest > 0 && dice % 2 == 0);
		} else {
			act_free(a, pcp, nest > 0 && dice % 2 == 0);
		}
	}
	for (; nest > 0; nest--)
		pcp_bh_enable(pcp);
}

static void
act_quit(void *arg)
{
	struct actor *a = arg;

	while (a->n > 0)
		act_free(a, pcp_this(cache), false);
}

/* What the control thread does meanwhile, with snapshots that may be torn but must not harm. */
static void
control(struct actor *a)
{
	struct pcp_stats stats;

	switch (random_below(a, 5)) {
	case 0:
		pcp_cache_drain(cache);
		break;
	case 1:
		pcp_cache_shrink(cache, random_below(a, SOME));
		break;
	case 2:
		pcp_cache_get_stats(cache, &stats);
		assert_true(stats.depot_pages <= SOME);
		break;
	case 3:
		assert_true(pp_zone_is_valid(zone));
		break;
	default:
		assert_true(pcp_cache_free_pages(cache) <= 3 * SOME);
		break;
	}
}

static void
assert_rest(void)
{
	uint64_t blocks = 0, pages = 0;

	for (uint32_t i = 0; i < WORKERS; i++) {
		blocks += actor[i].n;
		for (uint32_t k = 0; k < actor[i].n; k++)
			pages += 1u << actor[i].own[k].order;
	}
	for (size_t i = 0; i < RTE_DIM(counter); i++) {
		blocks += counter[i] != NULL;
		pages += counter[i] != NULL;
	}
	assert_balance(blocks, pages);
	assert_true(pp_zone_is_valid(zone));
}

static double
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void
stress(struct pcp_config config, double until)
{
	struct actor controller = {.rng = seed};

	pcp_unit_open(SOME, config);
	memset(holder, 0, sizeof(holder));
	for (uint32_t i = 0; i < WORKERS; i++)
		actor[i] = (struct actor){
			.worker = worker_start(i < 2), .id = i + 1, .rng = seed + i + 1};
	for (uint32_t rest = 1; seconds_now() < until || rest < 3; rest++) {
		for (uint32_t i = 0; i < WORKERS; i++)
			worker_begin(actor[i].worker, act, &actor[i]);
		for (uint32_t i = 0; i < 20; i++)
			control(&controller);
		for (uint32_t i = 0; i < WORKERS; i++)
			worker_wait(actor[i].worker);
		assert_rest();
		/* another thread takes over, on the same lcore or another one */
		if (rest % 8 == 0) {
			worker_end(actor[1].worker, true);
			actor[1].worker = worker_start(true);
		}
	}
	for (uint32_t i = 0; i < WORKERS; i++) {
		worker_do(actor[i].worker, act_quit, &actor[i]);
		worker_end(actor[i].worker, true);
	}
	for (size_t i = 0; i < RTE_DIM(counter); i++) {
		if (counter[i] != NULL)
			pcp_cache_free(cache, counter[i]);
		counter[i] = NULL;
	}
	pcp_unit_close();
}

static void
everything_balances_at_rest(void **state)
{
	static const struct pcp_config configs[] = {
		{.mode = PCP_MODE_BH, .max_order = 3, .batch = 16},
		{.mode = PCP_MODE_SPIN, .max_order = 3, .batch = 16},
		{.mode = PCP_MODE_BYPASS, .max_order = 1, .batch = 8},
		{.mode = PCP_MODE_BH, .batch = 3, .high = 20},
		{.mode = PCP_MODE_BH, .max_order = 3, .batch = 16, .checks = PCP_CHECKS_DEFERRED},
		{.mode = PCP_MODE_BH, .max_order = 2, .batch = 4, .checks = PCP_CHECKS_FULL},
		{.mode = PCP_MODE_SPIN, .max_order = 1, .batch = 5, .checks = PCP_CHECKS_FULL},
		{.mode = PCP_MODE_BYPASS, .batch = 8, .checks = PCP_CHECKS_FULL},
	};

	(void)state;
	print_message("seed %" PRIu64 "\n", seed);
	for (size_t i = 0; i < RTE_DIM(configs); i++)
		stress(configs[i], seconds_now() + seconds / RTE_DIM(configs));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_balances_at_rest),
	};
	const char *given = argc > 1 ? argv[1] : getenv("PP_SEED");

	seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	if (argc > 2)
		seconds = strtod(argv[2], NULL);
	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
