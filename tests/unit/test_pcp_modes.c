/* SPDX-License-Identifier: BSD-3-Clause */
/* What a mode does with sections. The rest of it is in test_pcp_contexts.c. */

#include <pcp_irq.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "pcp_unit.h"

#define SOME 600u

static void
bypass_keeps_sections_off_the_cache(void **state)
{
	struct pcp_stats before;

	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.mode = PCP_MODE_BYPASS, .batch = 16});
	struct pcp *pcp = handle(0);

	pcp_free(pcp, pcp_alloc(pcp));
	before = pcp_unit_stats();
	assert_int_equal(before.zone_allocs, 0);
	assert_int_equal(before.cached_pages, 16);

	pcp_bh_disable(pcp);
	for (unsigned int i = 0; i < 10; i++)
		pcp_free_nested(pcp, pcp_alloc_nested(pcp));
	pcp_free(pcp, pcp_alloc(pcp));
	assert_int_equal(pcp_unit_stats().zone_allocs, 11);
	assert_int_equal(pcp_unit_stats().zone_frees, 11);
	assert_int_equal(pcp_unit_stats().cached_pages, 16);
	pcp_bh_enable(pcp);

	for (unsigned int i = 0; i < 10; i++)
		pcp_free(pcp, pcp_alloc(pcp));
	assert_int_equal(pcp_unit_stats().zone_allocs, 11);
	assert_int_equal(pcp_unit_stats().zone_frees, 11);
	assert_int_equal(stats_of(zone).allocs[0], 16 + 11);
	pcp_unit_close();
}

/* Sections of the other kind use it; they, too, end for a thread that does not end them. */
static void
bypass_ends_irq_sections_of_threads_that_leave(void **state)
{
	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.mode = PCP_MODE_BYPASS, .batch = 16});
	struct pcp *pcp = handle(5);

	pcp_free(pcp, pcp_alloc(pcp));
	pcp_irq_save(pcp);
	pcp_free_nested(pcp, pcp_alloc_nested(pcp));
	assert_int_equal(pcp_unit_stats().zone_allocs, 0);
	assert_int_equal(pcp_unit_stats().cached_pages, 16);
	pcp_lcore_leaves(5, cache);
	unit_assert_logged("lcore 5 leaves inside a section");
	assert_int_equal(pcp->nest, 0);
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
	/* the next thread there has a cache that works */
	pcp_free(pcp, pcp_alloc(pcp));
	assert_int_equal(pcp_unit_stats().zone_allocs, 0);
	assert_int_equal(pcp_unit_stats().cached_pages, 16);
	pcp_unit_close();
}

static void
the_other_modes_use_it(void **state)
{
	static const enum pcp_mode modes[] = {
		PCP_MODE_BH, PCP_MODE_SPIN, PCP_MODE_IRQ, PCP_MODE_NONE};

	(void)state;
	for (size_t m = 0; m < RTE_DIM(modes); m++) {
		pcp_unit_open(SOME, (struct pcp_config){.mode = modes[m], .batch = 16});
		struct pcp *pcp = handle(0);

		pcp_bh_disable(pcp);
		for (unsigned int i = 0; i < 10; i++)
			pcp_free_nested(pcp, pcp_alloc_nested(pcp));
		pcp_bh_enable(pcp);
		for (unsigned int i = 0; i < 10; i++)
			pcp_free(pcp, pcp_alloc(pcp));
		assert_int_equal(pcp_unit_stats().zone_allocs, 0);
		assert_int_equal(pcp_unit_stats().zone_frees, 0);
		assert_int_equal(stats_of(zone).allocs[0], 16);
		pcp_unit_close();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bypass_keeps_sections_off_the_cache),
		cmocka_unit_test(bypass_ends_irq_sections_of_threads_that_leave),
		cmocka_unit_test(the_other_modes_use_it),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
