/* SPDX-License-Identifier: BSD-3-Clause */
/* The reserve and pressure. */

#include <errno.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "zone_unit.h"

static void
watermarks_must_rise_and_fit(void **state)
{
	struct pp_zone *zone = plain_zone(PAGES, 9);

	(void)state;
	assert_int_equal(pp_zone_set_watermarks(zone, 2, 1, 3), -EINVAL);
	assert_int_equal(pp_zone_set_watermarks(zone, 1, 3, 2), -EINVAL);
	assert_int_equal(pp_zone_set_watermarks(zone, 1, 2, PAGES + 1), -EINVAL);
	assert_int_equal(stats_of(zone).watermark_high, 0);
	assert_int_equal(pp_zone_set_watermarks(zone, 1, 2, PAGES), 0);
	assert_int_equal(stats_of(zone).watermark_min, 1);
	assert_int_equal(stats_of(zone).watermark_low, 2);
	assert_int_equal(stats_of(zone).watermark_high, PAGES);
	assert_int_equal(pp_zone_set_watermarks(zone, PAGES, PAGES, PAGES), 0);
	assert_int_equal(pp_zone_set_watermarks(zone, 0, 0, 0), 0);
	destroy_zone(zone);
}

static void
the_reserve_is_kept_for_refills(void **state)
{
	static void *page[PAGES];
	struct pp_zone *zone = plain_zone(PAGES, 9);
	uint32_t n;

	(void)state;
	assert_int_equal(pp_zone_set_watermarks(zone, 100, 200, 300), 0);
	n = pp_zone_alloc_bulk(zone, 0, page, PAGES, 0);
	assert_int_equal(n, PAGES - 100);
	assert_int_equal(rte_errno, ENOMEM);
	rte_errno = 0;
	assert_null(pp_zone_alloc(zone, 0, 0));
	assert_int_equal(rte_errno, ENOMEM);
	page[n] = pp_zone_alloc(zone, 0, PP_ALLOC_REFILL);
	assert_non_null(page[n]);
	n++;
	assert_int_equal(pp_zone_alloc_bulk(zone, 0, page + n, PAGES, PP_ALLOC_REFILL), 99);
	assert_null(pp_zone_alloc(zone, 0, PP_ALLOC_REFILL));
	assert_int_equal(pp_zone_free_bulk(zone, 0, page, PAGES), PAGES);

	/* a block may not reach below the watermark either */
	assert_int_equal(pp_zone_set_watermarks(zone, 513, 513, 513), 0);
	assert_null(pp_zone_alloc(zone, 9, 0));
	page[0] = pp_zone_alloc(zone, 8, 0);
	assert_non_null(page[0]);
	assert_null(pp_zone_alloc(zone, 8, 0));
	assert_int_equal(pp_zone_free(zone, page[0], 8, 0), 0);
	page[0] = pp_zone_alloc(zone, 9, PP_ALLOC_REFILL);
	assert_non_null(page[0]);
	assert_int_equal(pp_zone_free(zone, page[0], 9, 0), 0);
	destroy_zone(zone);
}

static void
pressure_lasts_from_low_to_high(void **state)
{
	static void *page[PAGES];
	struct pp_zone *zone = plain_zone(PAGES, 9);
	uint32_t n = 0;

	(void)state;
	assert_false(pp_zone_pressure(zone));
	assert_int_equal(pp_zone_set_watermarks(zone, 0, 200, 300), 0);
	assert_false(pp_zone_pressure(zone));
	while (pp_zone_free_pages(zone) > 200) {
		page[n++] = pp_zone_alloc(zone, 0, 0);
		assert_false(pp_zone_pressure(zone));
	}
	page[n++] = pp_zone_alloc(zone, 0, 0);
	assert_true(pp_zone_pressure(zone)); /* 199 */
	while (pp_zone_free_pages(zone) < 299) {
		assert_int_equal(pp_zone_free(zone, page[--n], 0, 0), 0);
		assert_true(pp_zone_pressure(zone));
	}
	assert_int_equal(pp_zone_free(zone, page[--n], 0, 0), 0);
	assert_false(pp_zone_pressure(zone)); /* 300 */
	/* setting them looks at once */
	assert_int_equal(pp_zone_set_watermarks(zone, 0, 301, 400), 0);
	assert_true(pp_zone_pressure(zone));
	assert_int_equal(pp_zone_set_watermarks(zone, 0, 0, 0), 0);
	assert_false(pp_zone_pressure(zone));
	assert_int_equal(pp_zone_free_bulk(zone, 0, page, n), n);
	destroy_zone(zone);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watermarks_must_rise_and_fit),
		cmocka_unit_test(the_reserve_is_kept_for_refills),
		cmocka_unit_test(pressure_lasts_from_low_to_high),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
