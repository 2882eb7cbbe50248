/* SPDX-License-Identifier: BSD-3-Clause */
/* How pages leave the caches: drain, shrink, `high`, pressure, offline, destroy, frees too many. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcp_unit.h"

#define SOME  1024u
#define BATCH 16u

/* Let lcores 1.. cache what they can hold and the depot the rest of n pages. */
static void
spread(uint32_t n)
{
	void **page = calloc(n, sizeof(*page));

	assert_non_null(page);
	assert_int_equal(pcp_alloc_bulk(handle(1), page, n), 0);
	for (uint32_t i = 0; i < n; i++)
		pcp_free(handle(1 + i / BATCH % 2), page[i]);
	free(page);
}

static void
drain_gives_everything_to_the_zone(void **state)
{
	(void)state;
	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_IRQ; mode++) {
		pcp_unit_open(SOME, (struct pcp_config){.mode = mode, .batch = BATCH});
		spread(512);
		pcp_free(handle(0), pcp_alloc(handle(0))); /* the caller's own */
		const uint64_t cached = SOME - pp_zone_free_pages(zone);

		assert_true(cached >= 512);
		assert_int_equal(pcp_cache_drain(cache), cached);
		assert_int_equal(pp_zone_free_pages(zone), SOME);
		/* and merged */
		assert_int_equal(stats_of(zone).free_blocks[9], 2);
		assert_int_equal(pcp_cache_drain(cache), 0);
		pcp_unit_close();
	}
}

static void
a_section_drains_at_its_end(void **state)
{
	(void)state;
	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_IRQ; mode++) {
		pcp_unit_open(SOME, (struct pcp_config){.mode = mode, .batch = BATCH});
		spread(512);
		const uint64_t cached = pcp_unit_stats().cached_pages;

		pcp_bh_disable(handle(1));
		pcp_bh_disable(handle(1));
		pcp_cache_drain(cache);
		assert_int_equal(SOME - pp_zone_free_pages(zone), cached / 2);
		assert_balance(0, 0);
		pcp_bh_enable(handle(1));
		assert_int_equal(pcp_unit_stats().cached_pages, cached / 2);
		pcp_bh_enable(handle(1));
		assert_int_equal(pcp_unit_stats().cached_pages, 0);
		assert_int_equal(pcp_cache_drain(cache), cached / 2);
		pcp_unit_close();
	}
}

/* As the others', where it is the caller who is inside. */
static void
the_callers_section_drains_at_its_end(void **state)
{
	(void)state;
	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_IRQ; mode++) {
		pcp_unit_open(SOME, (struct pcp_config){.mode = mode, .batch = BATCH});
		pcp_free(handle(0), pcp_alloc(handle(0)));
		const uint64_t cached = pcp_unit_stats().cached_pages;

		pcp_bh_disable(handle(0));
		assert_int_equal(pcp_cache_drain(cache), 0);
		assert_int_equal(pcp_unit_stats().cached_pages, cached);
		pcp_bh_enable(handle(0));
		assert_int_equal(pcp_unit_stats().cached_pages, 0);
		assert_int_equal(pcp_cache_drain(cache), cached);
		pcp_unit_close();
	}
}

/* Whatever is asked of an lcore after each of its calls, its frees find room. */
static void
frees_never_fail_under_drains(void **state)
{
	(void)state;
	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_IRQ; mode++) {
		void *page[60];

		pcp_unit_open(60, (struct pcp_config){.mode = mode, .batch = 7, .max_order = 3});
		for (uint32_t round = 0; round < 200; round++) {
			for (uint32_t n = 0; n < 60; n++) {
				struct pcp *pcp = handle(n % 3);

				assert_non_null(page[n] = pcp_alloc(pcp));
				pp_fetch_or(&pcp->attention, PCP_ATTENTION_DRAIN);
			}
			shuffle(page, 60);
			for (uint32_t n = 60; n > 0; n--) {
				struct pcp *pcp = handle(n % 3);

				if (round % 2 == 0) {
					pcp_free(pcp, page[n - 1]);
				} else {
					pcp_bh_disable(pcp);
					pcp_free_nested(pcp, page[n - 1]);
					pcp_bh_enable(pcp);
				}
				pp_fetch_or(&pcp->attention, PCP_ATTENTION_DRAIN);
				assert_balance(n - 1, n - 1);
			}
		}
		pcp_unit_close();
	}
}

static void
shrink_leaves_what_it_is_told(void **state)
{
	(void)state;
	for (uint64_t keep = 0; keep < 10 * BATCH; keep++) {
		pcp_unit_open(SOME, (struct pcp_config){.batch = BATCH});
		void *odd = pcp_depot_alloc(cache, 0);

		spread(512);
		pcp_depot_free(cache, odd, 0); /* to the partial magazine */
		const struct pcp_stats before = pcp_unit_stats();
		const uint64_t moved = pcp_cache_shrink(cache, keep);

		assert_int_equal(pcp_unit_stats().depot_pages, before.depot_pages - moved);
		assert_true(pcp_unit_stats().depot_pages <= keep);
		assert_true(pcp_unit_stats().depot_pages + BATCH > keep);
		assert_int_equal(pcp_unit_stats().cached_pages, before.cached_pages);
		assert_int_equal(pcp_cache_shrink(cache, keep), 0);
		pcp_unit_close();
	}
}

static void
the_depot_keeps_no_more_than_high(void **state)
{
	static const uint64_t highs[] = {1, BATCH - 1, BATCH, 3 * BATCH, 5 * BATCH + 3};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(highs); i++) {
		void *page[600];

		pcp_unit_open(SOME, (struct pcp_config){.batch = BATCH, .high = highs[i]});
		for (uint32_t k = 0; k < RTE_DIM(page); k++)
			assert_non_null(page[k] = pcp_alloc(handle(0)));
		for (uint32_t k = 0; k < RTE_DIM(page); k++) {
			pcp_free(handle(0), page[k]);
			assert_true(pcp_unit_stats().depot_pages <= highs[i]);
			assert_balance(RTE_DIM(page) - k - 1, RTE_DIM(page) - k - 1);
		}
		assert_int_equal(pcp_unit_stats().depot_pages, highs[i] / BATCH * BATCH);
		assert_true(pcp_unit_stats().drains > 0);
		pcp_unit_close();
	}
}

static void
under_pressure_the_depot_keeps_nothing(void **state)
{
	void *page[600];

	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = BATCH});
	assert_int_equal(pp_zone_set_watermarks(zone, 0, 800, 900), 0);
	assert_int_equal(pcp_alloc_bulk(handle(0), page, RTE_DIM(page)), 0);
	assert_true(pp_zone_pressure(zone));
	for (uint32_t k = 0; pp_zone_pressure(zone); k++) {
		assert_true(k < RTE_DIM(page));
		pcp_free(handle(0), page[k]);
		page[k] = NULL;
		assert_int_equal(pcp_unit_stats().depot_pages, 0);
	}
	for (uint32_t k = 0; k < RTE_DIM(page); k++)
		if (page[k] != NULL)
			pcp_free(handle(0), page[k]);
	assert_true(pcp_unit_stats().depot_pages > 0);
	pcp_unit_close();
}

static void
offline_gives_up_the_callers_pages(void **state)
{
	(void)state;
	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_NONE; mode++) {
		pcp_unit_open(SOME, (struct pcp_config){.mode = mode, .batch = BATCH});
		assert_int_equal(pcp_cache_drain_local(cache), 0); /* not online yet */
		void *page = pcp_alloc(handle(0));

		assert_true(pcp_unit_stats().cached_pages > 0);
		assert_int_equal(pcp_cache_drain_local(cache), 0);
		assert_int_equal(pcp_unit_stats().cached_pages, 0);
		assert_balance(1, 1);
		/* and it comes back by being used */
		pcp_free(handle(0), page);
		assert_int_equal(pcp_unit_stats().cached_pages, 1);
		pcp_unit_close();
	}
}

/* Whatever state the caches are left in. */
static void
destroy_gives_everything_to_the_zone(void **state)
{
	(void)state;
	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_NONE; mode++) {
		for (uint32_t section = 0; section < 2; section++) {
			pcp_unit_open(SOME,
				(struct pcp_config){.mode = mode, .batch = BATCH, .max_order = 2});
			pcp_free_pages(handle(0), pcp_alloc_pages(handle(0), 2), 2);
			spread(300);
			if (section > 0) /* its thread is gone for good */
				pcp_bh_disable(handle(2));
			pcp_cache_destroy(cache);
			assert_int_equal(pp_zone_free_pages(zone), SOME);
			destroy_zone(zone);
		}
	}
	pcp_cache_destroy(NULL);
}

static void
more_frees_than_pages_are_caught_by_the_zone(void **state)
{
	(void)state;
	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_NONE; mode++) {
		pcp_unit_open(40, (struct pcp_config){.mode = mode, .batch = 7});
		void *page = pcp_alloc(handle(0)), *other = pcp_alloc(handle(0));
		void *const both[] = {page, other};

		for (uint32_t i = 0; i < 200; i++) {
			pcp_free(handle(0), page);
			pcp_free_bulk(handle(1), both, 2);
			pcp_depot_free(cache, page, 0);
			assert_true(pcp_cache_is_valid(cache));
		}
		unit_assert_logged("double free?");
		unit_log_clear();
		pcp_cache_drain(cache);
		assert_true(pcp_cache_is_valid(cache));
		/* each page has been given back once, all others were refused */
		pcp_cache_destroy(cache);
		assert_int_equal(stats_of(zone).bad_frees, 200 * 4 - 2);
		destroy_zone(zone);
		unit_log_clear();
	}
}

/* What is not cached comes to the zone at once, and counts as it says. */
static void
frees_that_the_zone_refuses_are_none(void **state)
{
	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = BATCH});
	void *block = pcp_depot_alloc(cache, 2);

	assert_non_null(block);
	pcp_depot_free(cache, block, 2);
	pcp_depot_free(cache, block, 2);
	unit_assert_logged("double free?");
	assert_balance(0, 0);
	pcp_cache_destroy(cache);
	assert_int_equal(stats_of(zone).bad_frees, 1);
	destroy_zone(zone);
	unit_log_clear();
}

static void
the_dump_shows_lcores_depot_and_counters(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	pcp_unit_open(SOME, (struct pcp_config){.batch = BATCH});
	spread(512);
	pcp_cache_dump(cache, f);
	fclose(f);
	assert_non_null(strstr(text, "pcp_cache zone: mode bh batch 16 high 1024 max_order 0"));
	assert_non_null(strstr(text, "lcore 1: pages 32 nest 0"));
	assert_non_null(strstr(text, "lcore 2: pages 32 nest 0"));
	assert_null(strstr(text, "lcore 3"));
	assert_non_null(strstr(text, "allocs 512 frees 512 failed 0"));
	free(text);
	pcp_unit_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drain_gives_everything_to_the_zone),
		cmocka_unit_test(a_section_drains_at_its_end),
		cmocka_unit_test(the_callers_section_drains_at_its_end),
		cmocka_unit_test(frees_never_fail_under_drains),
		cmocka_unit_test(shrink_leaves_what_it_is_told),
		cmocka_unit_test(the_depot_keeps_no_more_than_high),
		cmocka_unit_test(under_pressure_the_depot_keeps_nothing),
		cmocka_unit_test(offline_gives_up_the_callers_pages),
		cmocka_unit_test(destroy_gives_everything_to_the_zone),
		cmocka_unit_test(more_frees_than_pages_are_caught_by_the_zone),
		cmocka_unit_test(frees_that_the_zone_refuses_are_none),
		cmocka_unit_test(the_dump_shows_lcores_depot_and_counters),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
