/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Page caches against a model of one byte per page: a million random operations by four lcores'
 * handles, which one thread uses by turns. Usage: test_pcp_model [seed [operations]].
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_errno.h>

#include "pcp_unit.h"

#define LCORES    4
#define BULK_MAX  64
#define PAGES_MAX 2048u

/* Model of a page: free, inside a used block, or the head of one of order HEAD + n. */
#define FREE 0
#define TAIL 1
#define HEAD 2

static const struct {
	uint32_t pages;
	struct pcp_config config;
} worlds[] = {
	{1000, {.mode = PCP_MODE_BH, .max_order = 3}},
	{1000, {.mode = PCP_MODE_BH, .batch = 16}},
	{2000, {.mode = PCP_MODE_SPIN, .max_order = 3, .batch = 13}},
	{500, {.mode = PCP_MODE_BYPASS, .max_order = 3, .batch = 10}},
	{777, {.mode = PCP_MODE_NONE, .max_order = 2}},
	{900, {.mode = PCP_MODE_IRQ, .max_order = 3, .batch = 12}},
	{2048, {.mode = PCP_MODE_BH, .max_order = 1, .batch = 8, .high = 100}},
	{300, {.mode = PCP_MODE_SPIN, .batch = 256}},
	{50, {.mode = PCP_MODE_BH, .max_order = 3, .batch = 1}},
	{3, {.mode = PCP_MODE_BH, .max_order = 1}},
	{1500, {.mode = PCP_MODE_BYPASS, .batch = 4, .high = 1}},
};

struct block {
	void *addr;
	unsigned int order;
};

static uint64_t seed, rng, operations = 1000000;
static struct pcp_config config;
static uint32_t total, n_live;
static uint64_t used_pages;
static uint8_t model[PAGES_MAX];
static struct block live[PAGES_MAX];
static uint32_t nest[LCORES];

static uint32_t
random_below(uint32_t n)
{
	return unit_random_below(&rng, n);
}

static void
model_take(void *page, unsigned int order)
{
	const uint32_t first = page_number(page);

	assert_true(first + (1u << order) <= total);
	for (uint32_t i = 0; i < 1u << order; i++) {
		assert_int_equal(model[first + i], FREE);
		model[first + i] = TAIL;
	}
	model[first] = (uint8_t)(HEAD + order);
	live[n_live++] = (struct block){page, order};
	used_pages += 1u << order;
}

static void *
model_put(uint32_t i)
{
	const struct block block = live[i];
	const uint32_t first = page_number(block.addr);

	assert_int_equal(model[first], HEAD + block.order);
	for (uint32_t k = 0; k < 1u << block.order; k++)
		model[first + k] = FREE;
	live[i] = live[--n_live];
	used_pages -= 1u << block.order;
	return block.addr;
}

/* Whether nothing may hide from a failing call: no open section, and no mode that cannot claim. */
static bool
all_is_obtainable(void)
{
	for (uint32_t i = 0; i < LCORES; i++)
		if (nest[i] > 0)
			return false;
	return config.mode != PCP_MODE_NONE;
}

/* A single block could not be had: there must be none. */
static void
check_failure(unsigned int order)
{
	const struct pp_zone_stats zone_stats = stats_of(zone);

	assert_int_equal(rte_errno, ENOMEM);
	if (!all_is_obtainable())
		return;
	if (order == 0)
		assert_int_equal(used_pages, total);
	/* Not enough pages anywhere: then nothing was moved for it. */
	if (used_pages + (1u << order) > total)
		return;
	assert_int_equal(pcp_unit_stats().depot_pages + pcp_unit_stats().cached_pages, 0);
	for (unsigned int i = order; i <= 9; i++)
		assert_int_equal(zone_stats.free_blocks[i], 0);
}

static void
do_alloc(uint32_t lcore)
{
	const unsigned int order = random_below(3) == 0 ? random_below(PCP_MAX_ORDER + 1) : 0;
	struct pcp *pcp = handle(lcore);
	void *page;

	rte_errno = 0;
	if (random_below(16) == 0)
		page = pcp_depot_alloc(cache, order);
	else if (nest[lcore] > 0 && random_below(2) == 0)
		page = pcp_alloc_pages_nested(pcp, order);
	else
		page = pcp_alloc_pages(pcp, order);
	if (page != NULL)
		model_take(page, order);
	else
		check_failure(order);
}

static void
do_alloc_bulk(uint32_t lcore)
{
	const uint32_t n = random_below(BULK_MAX + 1);
	void *page[BULK_MAX];
	const int rc = random_below(4) == 0 ? pcp_depot_alloc_bulk(cache, 0, page, n)
					    : pcp_alloc_bulk(handle(lcore), page, n);

	if (rc == 0) {
		for (uint32_t i = 0; i < n; i++)
			model_take(page[i], 0);
		return;
	}
	assert_int_equal(rc, -ENOMEM);
	if (all_is_obtainable())
		assert_true(total - used_pages < n);
}

static void
do_free(uint32_t lcore)
{
	struct pcp *pcp = handle(lcore);

	if (n_live == 0)
		return;
	const uint32_t i = random_below(n_live);
	const unsigned int order = live[i].order;
	void *page = model_put(i);

	if (random_below(16) == 0)
		pcp_depot_free(cache, page, order);
	else if (nest[lcore] > 0 && random_below(2) == 0)
		pcp_free_pages_nested(pcp, page, order);
	else
		pcp_free_pages(pcp, page, order);
}

static void
do_free_bulk(uint32_t lcore)
{
	uint32_t n = 0;
	void *page[BULK_MAX];

	for (uint32_t i = random_below(n_live + 1); i < n_live && n < BULK_MAX;) {
		if (live[i].order == 0)
			page[n++] = model_put(i);
		else
			i++;
	}
	if (random_below(4) == 0)
		pcp_depot_free_bulk(cache, 0, page, n);
	else
		pcp_free_bulk(handle(lcore), page, n);
}

static void
do_section(uint32_t lcore)
{
	if (nest[lcore] > 0 && random_below(3) != 0) {
		pcp_bh_enable(handle(lcore));
		nest[lcore]--;
	} else if (nest[lcore] < 3) {
		pcp_bh_disable(handle(lcore));
		nest[lcore]++;
	}
}

/* As threads that come, go, watch and tidy up. */
static void
do_control(void)
{
	const uint64_t mark = random_below(total / 2 + 1);

	switch (random_below(6)) {
	case 0:
		pcp_cache_drain(cache);
		break;
	case 1:
		pcp_cache_shrink(cache, mark);
		assert_true(pcp_unit_stats().depot_pages <= mark);
		break;
	case 2: /* lcore 0 is this thread's own */
		assert_int_equal(pcp_cache_drain_local(cache), nest[0] > 0 ? -EBUSY : 0);
		break;
	case 3:
		assert_int_equal(pp_zone_set_watermarks(zone, 0, mark, mark), 0);
		break;
	case 4:
		assert_int_equal(pp_zone_set_watermarks(zone, mark, mark, mark), 0);
		break;
	default:
		pp_fetch_or(&handle(random_below(LCORES))->attention, PCP_ATTENTION_DRAIN);
		break;
	}
}

static void
step(uint32_t alloc_share)
{
	const uint32_t lcore = random_below(LCORES), dice = random_below(200);

	if (dice == 0)
		do_control();
	else if (dice < 20)
		do_section(lcore);
	else if (random_below(100) < alloc_share)
		(dice < 40 ? do_alloc_bulk : do_alloc)(lcore);
	else
		(dice < 40 ? do_free_bulk : do_free)(lcore);
}

static void
tidy_up(void)
{
	for (uint32_t i = 0; i < LCORES; i++)
		for (; nest[i] > 0; nest[i]--)
			pcp_bh_enable(handle(i));
	while (n_live > 0)
		do_free(random_below(LCORES));
	assert_int_equal(used_pages, 0);
	pcp_unit_close();
	unit_log_clear();
}

/* Who holds a block may write to it: poison must not mind. */
static void
scribble(const struct block *block)
{
	memset(block->addr, 1 + (int)block->order, (size_t)PP_PAGE_SIZE << block->order);
}

static void
run_worlds(enum pcp_checks checks)
{
	/* the zone fills up, drains, and hovers, by turns */
	static const uint32_t alloc_share[] = {50, 70, 50, 30};

	print_message("seed %" PRIu64 "\n", seed);
	rng = seed;
	for (size_t w = 0; w < RTE_DIM(worlds); w++) {
		config = worlds[w].config;
		config.checks = checks;
		if (checks == PCP_CHECKS_FULL)
			config.poison_len = PP_PAGE_SIZE;
		total = worlds[w].pages;
		pcp_unit_open(total, config);
		pcp_cache_get_config(cache, &config);
		for (uint64_t i = 0; i < operations / RTE_DIM(worlds); i++) {
			step(alloc_share[i / 4096 % RTE_DIM(alloc_share)]);
			assert_int_equal(pcp_cache_free_pages(cache), total - used_pages);
			if (i % 64 == 0)
				assert_balance(n_live, used_pages);
			if (checks == PCP_CHECKS_FULL && n_live > 0)
				scribble(&live[random_below(n_live)]);
		}
		tidy_up();
	}
}

static void
caches_agree_with_the_model(void **state)
{
	(void)state;
	run_worlds(PCP_CHECKS_OFF);
}

static void
so_they_do_with_checks_deferred(void **state)
{
	(void)state;
	run_worlds(PCP_CHECKS_DEFERRED);
}

static void
so_they_do_with_checks_full(void **state)
{
	(void)state;
	assert_int_equal(mprotect(memory, PAGES_MAX * PP_PAGE_SIZE, PROT_READ | PROT_WRITE), 0);
	operations /= 10; /* each fills and reads pages */
	run_worlds(PCP_CHECKS_FULL);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(caches_agree_with_the_model),
		cmocka_unit_test(so_they_do_with_checks_deferred),
		cmocka_unit_test(so_they_do_with_checks_full),
	};
	const char *given = argc > 1 ? argv[1] : getenv("PP_SEED");

	seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	if (argc > 2)
		operations = strtoull(argv[2], NULL, 0);
	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
