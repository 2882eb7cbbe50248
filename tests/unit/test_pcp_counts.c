/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts that cannot be: reported, and no loop runs on them, nor any copy. */

#include <stdio.h>

#include <rte_common.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "checks_unit.h"

static struct pcp_list *
list_of(unsigned int lcore_id)
{
	return &handle(lcore_id)->list[order];
}

static uint32_t
batch(void)
{
	return cache->depot->list[order].batch;
}

/* Whatever a list's count says, with checks full it is here. */
static void
set_list_count(struct pcp_list *list, uint32_t count)
{
	if (checks == PCP_CHECKS_FULL)
		list->parked = count;
	else
		list->state = (list->state & ~PCP_STATE_COUNT) | count;
}

/* n blocks, the first of which came last, into lcore 1's magazines and no further. */
static void
fill_lists(void **block, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		block[i] = alloc_by(2);
	pcp_cache_drain(cache);
	for (uint32_t i = 0; i < n; i++)
		free_by(1, block[i]);
	assert_int_equal(pcp_list_blocks(list_of(1)), n);
}

static void
assert_bad_count(uint64_t expected, const char *what)
{
	char text[64];

	snprintf(text, sizeof(text), "bad count, order %u: %s", order, what);
	unit_assert_logged(text);
	unit_log_clear();
	assert_int_equal(pcp_unit_stats().bad[PP_BAD_COUNT], expected);
	assert_int_equal(bad_reports(), expected);
}

/* What a list has forgotten counts as in use; this test knows that it is not, and frees it. */
static void
find_forgotten(void *const *block, uint32_t n)
{
	pcp_cache_drain(cache);
	assert_balance(n, (uint64_t)n << order);
	for (uint32_t i = 0; i < n; i++) {
		struct pp_page *page = pp_zone_page(zone, block[i]);

		page->owner = (page->owner & ~PP_OWNER_PLACE) | PP_PLACE_OUT;
		free_by(1, block[i]);
	}
}

static void
count_above_capacity(void **state __rte_unused)
{
	static const uint32_t counts[] = {1, 1000, 0xffff - CHECKS_BATCH};
	void *block[4], *other;

	for (uint32_t i = 0; i < RTE_DIM(counts); i++) {
		fill_lists(block, RTE_DIM(block));
		other = alloc_by(2);
		set_list_count(list_of(1), batch() + counts[i]);
		free_by(1, other);
		assert_bad_count(2 * i + 1,
			checks == PCP_CHECKS_FULL ? "parked of lcore 1 is" : "count of lcore 1 is");
		find_forgotten(block, RTE_DIM(block));
		pcp_cache_drain(cache);

		/* The same, found by who takes the pages for himself. */
		fill_lists(block, RTE_DIM(block));
		set_list_count(list_of(1), batch() + counts[i]);
		pcp_cache_drain(cache);
		assert_bad_count(2 * i + 2,
			checks == PCP_CHECKS_FULL ? "parked of lcore 1 is" : "count of lcore 1 is");
		find_forgotten(block, RTE_DIM(block));
		pcp_cache_drain(cache);
	}
}

static void
wrong_previous_count(void **state __rte_unused)
{
	static const uint32_t counts[] = {1, 17, UINT32_MAX};
	void *block[2 * CHECKS_BATCH];

	for (uint32_t i = 0; i < RTE_DIM(counts); i++) {
		fill_lists(block, batch() + 1);
		assert_int_equal(list_of(1)->previous_count, batch());
		list_of(1)->previous_count = counts[i];
		/* One is in the loaded magazine, the next comes from elsewhere. */
		void *one = alloc_by(1), *two = alloc_by(1);

		free_by(1, one);
		free_by(1, two);
		assert_bad_count(i + 1, "previous_count of lcore 1 is");
		find_forgotten(block, batch());
		pcp_cache_drain(cache);
	}
}

static void
wrong_capacity(void **state __rte_unused)
{
	void *block[4], *other;

	fill_lists(block, RTE_DIM(block));
	other = alloc_by(2);
	list_of(1)->capacity = 1;
	free_by(1, other);
	assert_bad_count(1, "capacity of lcore 1 is 1 of");
	/* What the list held is known. With checks full, and the list parked, it cannot be. */
	if (checks == PCP_CHECKS_FULL)
		find_forgotten(block, 0);
	pcp_cache_drain(cache);
	assert_balance(0, 0);
}

/* The depot's blocks rest, and descriptors tell those that do. */
static void
wrong_count_of_the_partial_magazine(void **state __rte_unused)
{
	static const uint32_t counts[] = {CHECKS_BATCH + 1, 100000, UINT32_MAX};
	void *block[3];

	for (uint32_t i = 0; i < RTE_DIM(counts); i++) {
		for (uint32_t k = 0; k < RTE_DIM(block); k++)
			block[k] = alloc_by(2);
		pcp_cache_drain(cache);
		for (uint32_t k = 0; k < RTE_DIM(block); k++)
			pcp_depot_free(cache, block[k], order);
		cache->depot->list[order].partial->count = counts[i];
		void *other = alloc_by(1), *more = pcp_depot_alloc(cache, order);

		assert_non_null(more);
		unit_assert_logged("the partial magazine is");
		free_by(1, other);
		free_by(1, more);
		pcp_cache_drain(cache);
		assert_balance(0, 0);
		assert_int_equal(pcp_unit_stats().bad[PP_BAD_COUNT], i + 1);
	}
}

static void
wrong_count_of_a_full_magazine(void **state __rte_unused)
{
	static const uint32_t counts[] = {0, 1, CHECKS_BATCH + 1, UINT32_MAX};
	struct pcp_depot_list *list = &cache->depot->list[order];
	struct pcp_shelf *shelf = &list->shelf[0]; /* with checks the only one */
	struct pcp_stack *full = &shelf->stack[PCP_FULL];
	void *block[4 * CHECKS_BATCH];

	for (uint32_t i = 0; i < RTE_DIM(counts); i++) {
		fill_lists(block, 0);
		for (uint32_t k = 0; k < 4 * batch(); k++)
			block[k] = alloc_by(2);
		for (uint32_t k = 0; k < 4 * batch(); k++)
			free_by(1, block[k]);
		assert_true(pcp_stack_count(full) > 1);
		full->slot[full->bottom & shelf->mask]->count = counts[i];
		pcp_cache_drain(cache);
		assert_bad_count(2 * i + 1, "a full magazine is");

		for (uint32_t k = 0; k < 4 * batch(); k++)
			block[k] = alloc_by(2);
		for (uint32_t k = 0; k < 4 * batch(); k++)
			free_by(1, block[k]);
		full->slot[(full->top - 1) & shelf->mask]->count = counts[i];
		free_by(3, alloc_by(3));
		assert_bad_count(2 * i + 2, "a full magazine is");
		pcp_cache_drain(cache);
		assert_balance(0, 0);
	}
}

/* Magazines that are not there: none is taken, and those that are can do without. */
static void
wrong_count_of_magazines(void **state __rte_unused)
{
	struct pcp_shelf *shelf = &cache->depot->list[order].shelf[0];
	static const uint32_t errors[] = {1, 100, UINT32_MAX / 2};
	void *block[4 * CHECKS_BATCH];

	assert_int_equal(cache->depot->list[order].n_shelves, 1);
	for (uint32_t i = 0; i < 2 * RTE_DIM(errors); i++) {
		const struct pcp_shelf was = *shelf;

		for (uint32_t k = 0; k < 4 * batch(); k++)
			block[k] = alloc_by(2);
		pcp_cache_drain(cache);
		pcp_cache_shrink(cache, 0);
		const struct pcp_shelf rest = *shelf;

		shelf->stack[i % 2 == 0 ? PCP_FULL : PCP_EMPTY].top += errors[i / 2];
		for (uint32_t k = 0; k < 4 * batch(); k++)
			free_by(1, block[k]);
		assert_bad_count(i + 1, "magazines in the depot is");
		assert_int_equal(pcp_stack_count(&shelf->stack[PCP_FULL]), 0);
		assert_int_equal(pcp_stack_count(&shelf->stack[PCP_EMPTY]), 0);
		*shelf = rest;
		pcp_cache_drain(cache);
		assert_balance(0, 0);
		assert_int_equal(pcp_stack_count(&shelf->stack[PCP_FULL]) +
					 pcp_stack_count(&shelf->stack[PCP_EMPTY]),
			pcp_stack_count(&was.stack[PCP_FULL]) +
				pcp_stack_count(&was.stack[PCP_EMPTY]));
	}
}

int
main(void)
{
	static const struct checks_test tests[] = {
		CHECKS_TEST(count_above_capacity),
		CHECKS_TEST(wrong_previous_count),
		CHECKS_TEST(wrong_capacity),
		CHECKS_TEST(wrong_count_of_the_partial_magazine),
		CHECKS_TEST(wrong_count_of_a_full_magazine),
		CHECKS_TEST(wrong_count_of_magazines),
	};

	zone_unit_init();
	return checks_run(tests, RTE_DIM(tests));
}
