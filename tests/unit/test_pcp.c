/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of each kind at each order, one at a time, with everything checked after each. */

#include <errno.h>

#include <rte_errno.h>

#include "pcp_unit.h"

#define SOME 100u /* pages of the zone: several magazines of one lcore */

/* How a test allocates and frees. */
struct kind {
	const char *name;
	void *(*alloc)(unsigned int order);
	void (*free)(void *page, unsigned int order);
	unsigned int max_order;
	bool section; /* opened around the calls */
};

static void *
alloc_single(unsigned int order)
{
	return pcp_alloc_pages(handle(0), order);
}

static void
free_single(void *page, unsigned int order)
{
	pcp_free_pages(handle(0), page, order);
}

static void *
alloc_nested(unsigned int order)
{
	return pcp_alloc_pages_nested(handle(0), order);
}

static void
free_nested(void *page, unsigned int order)
{
	pcp_free_pages_nested(handle(0), page, order);
}

static void *
alloc_public(unsigned int order)
{
	assert_int_equal(order, 0);
	return pcp_cache_alloc(cache);
}

static void
free_public(void *page, unsigned int order)
{
	assert_int_equal(order, 0);
	pcp_cache_free(cache, page);
}

static void *
alloc_depot(unsigned int order)
{
	return pcp_depot_alloc(cache, order);
}

static void
free_depot(void *page, unsigned int order)
{
	pcp_depot_free(cache, page, order);
}

static const struct kind kinds[] = {
	{"single", alloc_single, free_single, PCP_MAX_ORDER, false},
	{"single in a section", alloc_single, free_single, PCP_MAX_ORDER, true},
	{"nested", alloc_nested, free_nested, PCP_MAX_ORDER, true},
	{"public", alloc_public, free_public, 0, false},
	{"public in a section", alloc_public, free_public, 0, true},
	{"depot", alloc_depot, free_depot, PCP_MAX_ORDER + 1, false},
};

static const enum pcp_mode modes[] = {
	PCP_MODE_BH, PCP_MODE_SPIN, PCP_MODE_BYPASS, PCP_MODE_IRQ, PCP_MODE_NONE};

/* In bypass a section must find at home what calls outside of it have cached. */
static void
drain_between_sections(void)
{
	pcp_cache_drain(cache);
	assert_balance(0, 0);
}

static void
all_pages(const struct kind *kind, unsigned int order)
{
	void *page[SOME];
	bool seen[SOME] = {false};
	const uint32_t blocks = SOME >> order;

	if (kind->section)
		pcp_bh_disable(handle(0));
	for (uint32_t i = 0; i < blocks; i++) {
		page[i] = kind->alloc(order);
		assert_non_null(page[i]);
		for (uint32_t k = 0; k < 1u << order; k++) {
			assert_false(seen[page_number(page[i]) + k]);
			seen[page_number(page[i]) + k] = true;
		}
		assert_balance(i + 1, (i + 1) << order);
	}
	const uint64_t failures = pcp_unit_stats().failed;

	rte_errno = 0;
	assert_null(kind->alloc(order));
	assert_int_equal(rte_errno, ENOMEM);
	assert_int_equal(pcp_unit_stats().failed, failures + 1);
	assert_balance(blocks, blocks << order);

	shuffle(page, blocks);
	for (uint32_t i = blocks; i > 0; i--) {
		kind->free(page[i - 1], order);
		assert_balance(i - 1, (i - 1) << order);
	}
	if (kind->section)
		pcp_bh_enable(handle(0));
}

static void
every_call_reaches_every_page(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		pcp_unit_open(
			SOME, (struct pcp_config){.mode = modes[m], .batch = 7, .max_order = 3});
		for (size_t k = 0; k < RTE_DIM(kinds); k++) {
			for (unsigned int order = 0; order <= kinds[k].max_order; order++) {
				all_pages(&kinds[k], order);
				drain_between_sections();
			}
		}
		pcp_unit_close();
	}
}

/* A page may be allocated by one kind of call and freed by another. */
static void
kinds_of_calls_mix(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		pcp_unit_open(SOME, (struct pcp_config){.mode = modes[m], .batch = 7});
		for (size_t a = 0; a < RTE_DIM(kinds); a++) {
			for (size_t f = 0; f < RTE_DIM(kinds); f++) {
				void *page[20];

				pcp_bh_disable(handle(0));
				for (uint32_t i = 0; i < RTE_DIM(page); i++)
					assert_non_null(page[i] = kinds[a].alloc(0));
				for (uint32_t i = 0; i < RTE_DIM(page); i++)
					kinds[f].free(page[i], 0);
				pcp_bh_enable(handle(0));
				drain_between_sections();
			}
		}
		pcp_unit_close();
	}
}

/* The loaded magazine is last in, first out: the page that is hot in the cache comes next. */
static void
the_last_page_freed_comes_first(void **state)
{
	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = 7});
	void *a = pcp_alloc(handle(0)), *b = pcp_alloc(handle(0));

	pcp_free(handle(0), a);
	pcp_free(handle(0), b);
	assert_ptr_equal(pcp_alloc(handle(0)), b);
	assert_ptr_equal(pcp_alloc(handle(0)), a);
	pcp_free(handle(0), a);
	pcp_free(handle(0), b);
	pcp_unit_close();
}

static void
sections_nest(void **state)
{
	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		pcp_unit_open(SOME, (struct pcp_config){.mode = modes[m], .batch = 7});
		struct pcp *pcp = handle(0);

		pcp_bh_disable(pcp);
		void *page = pcp_alloc_nested(pcp);

		pcp_bh_disable(pcp);
		pcp_free_nested(pcp, page);
		pcp_bh_enable(pcp);
		assert_int_equal(pcp->nest, 1);
		assert_int_equal(pcp_cache_drain_local(cache), -EBUSY);
		page = pcp_alloc_nested(pcp);
		pcp_free_nested(pcp, page);
		pcp_bh_enable(pcp);
		assert_int_equal(pcp->nest, 0);
		assert_int_equal(pcp_cache_drain_local(cache), 0);
		pcp_unit_close();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_reaches_every_page),
		cmocka_unit_test(kinds_of_calls_mix),
		cmocka_unit_test(the_last_page_freed_comes_first),
		cmocka_unit_test(sections_nest),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
