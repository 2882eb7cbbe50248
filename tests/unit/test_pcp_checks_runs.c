/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks where pages are as a mempool's objects are: odd strides, colours, gaps between runs. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "pcp_unit.h"

/* Of each page; the strides leave 64 bytes at least. */
#define POISON_OFFSET 8u
#define POISON_LEN    40u

static int
open_caches(void **state)
{
	const struct pcp_config *config = *state;

	zone = odd_zone();
	cache = pcp_cache_create(zone, config);
	assert_non_null(cache);
	unit_log_clear();
	return 0;
}

static int
close_caches(void **state __rte_unused)
{
	pcp_cache_drain(cache);
	assert_balance(0, 0);
	pcp_cache_destroy(cache);
	destroy_zone(zone);
	return 0;
}

static bool
is_page(const char *addr)
{
	return pp_zone_contains(zone, addr);
}

/* Before, behind and between pages of every run. */
static void
pointers_into_gaps(void **state __rte_unused)
{
	static const int64_t offsets[] = {-1, 1, 8, 63, 100, 2304};
	uint64_t n = 0;

	for (uint32_t r = 0; r < ODD_RUNS; r++) {
		for (uint32_t i = 0; i < odd_runs[r].count; i++) {
			char *addr = odd_page(r, i) + offsets[i % RTE_DIM(offsets)];

			if (is_page(addr))
				continue;
			pcp_free(handle(i % 3), addr);
			n++;
		}
		/* where the padding's descriptors would lie */
		pcp_free(handle(0), odd_page(r, odd_runs[r].count));
		n += !is_page(odd_page(r, odd_runs[r].count));
	}
	pcp_cache_drain(cache);
	const struct pcp_stats stats = pcp_unit_stats();

	assert_true(stats.bad[PP_BAD_FOREIGN] > 0);
	assert_true(stats.bad[PP_BAD_ALIGNMENT] > 0);
	assert_int_equal(stats.bad[PP_BAD_FOREIGN] + stats.bad[PP_BAD_ALIGNMENT], n);
	assert_int_equal(bad_reports(), n);
	assert_int_equal(stats.bad_pages, 0);
}

/* All pages come and go, and are written to by who has them: nothing is found. */
static void
good_pages_are_good(void **state __rte_unused)
{
	static void *page[ODD_PAGES];

	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < ODD_PAGES; i++) {
			page[i] = pcp_alloc(handle(i % 5));
			assert_non_null(page[i]);
			memset(page[i], (int)round, POISON_OFFSET + POISON_LEN);
		}
		assert_null(pcp_alloc(handle(0)));
		shuffle(page, ODD_PAGES);
		for (uint32_t i = 0; i < ODD_PAGES; i++)
			pcp_free(handle(i % 3), page[i]);
	}
	pcp_cache_drain(cache);
	assert_int_equal(bad_reports(), 0);
	/* What lies before the poison is the owner's, as a mempool object's header. */
	for (uint32_t r = 0; r < ODD_RUNS; r++)
		for (uint32_t k = 0; k < POISON_OFFSET; k++)
			assert_int_equal(odd_page(r, 0)[k], 19);
}

static void
each_page_is_set_aside(void **state __rte_unused)
{
	static void *page[ODD_PAGES];

	for (uint32_t i = 0; i < ODD_PAGES; i++)
		page[i] = pcp_alloc(handle(i % 5));
	for (uint32_t i = 0; i < ODD_PAGES; i++) {
		pcp_free(handle(i % 3), page[i]);
		pcp_free(handle(i % 2), page[i]);
	}
	pcp_cache_drain(cache);
	assert_int_equal(pcp_unit_stats().bad[PP_BAD_DOUBLE_FREE], ODD_PAGES);
	assert_int_equal(bad_reports(), ODD_PAGES);
	assert_int_equal(pcp_unit_stats().bad_pages, ODD_PAGES);
	assert_null(pcp_alloc(handle(0)));
	assert_int_equal(rte_errno, ENOMEM);
}

/* The same by pages that the zone has taken back, which must be cut out of its free blocks. */
static void
pages_are_cut_out_of_free_blocks(void **state __rte_unused)
{
	static void *page[ODD_PAGES];

	for (uint32_t i = 0; i < ODD_PAGES; i++)
		page[i] = pcp_alloc(handle(0));
	for (uint32_t i = 0; i < ODD_PAGES; i++)
		pcp_free(handle(0), page[i]);
	pcp_cache_drain(cache);
	shuffle(page, ODD_PAGES);
	for (uint32_t i = 0; i < ODD_PAGES; i += 3) {
		pcp_free(handle(1), page[i]);
		if (i % 64 == 0) {
			pcp_cache_drain(cache);
			assert_true(pp_zone_is_valid(zone));
			assert_balance(0, 0);
		}
	}
	pcp_cache_drain(cache);
	assert_int_equal(pcp_unit_stats().bad_pages, (ODD_PAGES + 2) / 3);
	assert_int_equal(pp_zone_free_pages(zone), ODD_PAGES - (ODD_PAGES + 2) / 3);
}

int
main(void)
{
	static const struct pcp_config configs[] = {
		{.batch = 16, .checks = PCP_CHECKS_DEFERRED},
		{.batch = 16,
			.checks = PCP_CHECKS_FULL,
			.poison_offset = POISON_OFFSET,
			.poison_len = POISON_LEN},
	};
#define TEST(f, config)                                                                            \
	cmocka_unit_test_prestate_setup_teardown(                                                  \
		f, open_caches, close_caches, (void *)(uintptr_t)&configs[config])
	const struct CMUnitTest tests[] = {
		TEST(pointers_into_gaps, 0),
		TEST(pointers_into_gaps, 1),
		TEST(good_pages_are_good, 0),
		TEST(good_pages_are_good, 1),
		TEST(each_page_is_set_aside, 0),
		TEST(each_page_is_set_aside, 1),
		TEST(pages_are_cut_out_of_free_blocks, 0),
		TEST(pages_are_cut_out_of_free_blocks, 1),
	};

	zone_unit_init();
	assert_int_equal(mprotect(memory, 16 * UNIT_MIB, PROT_READ | PROT_WRITE), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
