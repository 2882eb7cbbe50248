/* SPDX-License-Identifier: BSD-3-Clause */
/* What a cache is made of: capacities, defaults, refusals, and odd sizes. */

#include <errno.h>

#include <rte_errno.h>

#include "pcp_unit.h"

static struct pcp_config
completed(uint32_t pages, struct pcp_config asked)
{
	struct pcp_config config;

	pcp_unit_open(pages, asked);
	pcp_cache_get_config(cache, &config);
	pcp_unit_close();
	return config;
}

/* min(256, N / (8 x lcores)), at least 1. */
static void
capacity_follows_pages_and_lcores(void **state)
{
	static const struct {
		uint32_t pages, lcores, batch;
	} expected[] = {
		{1, 1, 1},
		{1, 128, 1},
		{15, 2, 1},
		{16, 2, 1},
		{32, 2, 2},
		{100, 3, 4},
		{4096, 2, 256},
		{4095, 2, 255},
		{4096, 4, 128},
		{100000, 1, 256},
		{100000, 4000, 3},
		{100000, UINT32_MAX, 1},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(expected); i++) {
		const struct pcp_config asked = {.lcores = expected[i].lcores};

		assert_int_equal(completed(expected[i].pages, asked).batch, expected[i].batch);
	}
}

static void
defaults_are_replaced_and_the_rest_is_kept(void **state)
{
	(void)state;
	const struct pcp_config config = completed(1000, (struct pcp_config){0});

	assert_int_equal(config.mode, PCP_MODE_BH);
	assert_int_equal(config.batch, 62);
	assert_int_equal(config.high, 1000);
	assert_int_equal(config.max_order, 0);
	assert_int_equal(config.pages, 1000);

	const struct pcp_config asked = {.mode = PCP_MODE_SPIN,
		.batch = 13,
		.high = 99,
		.max_order = 2,
		.lcores = 7,
		.pages = 500};
	const struct pcp_config got = completed(1000, asked);

	assert_int_equal(got.mode, asked.mode);
	assert_int_equal(got.batch, asked.batch);
	assert_int_equal(got.high, asked.high);
	assert_int_equal(got.max_order, asked.max_order);
	assert_int_equal(got.lcores, asked.lcores);
	assert_int_equal(got.pages, asked.pages);
}

static void
lcores_default_to_those_of_eal(void **state)
{
	struct pcp_config config = {0};

	(void)state;
	zone = plain_zone(1000, 9);
	cache = pcp_cache_create(zone, &config);
	assert_non_null(cache);
	pcp_cache_get_config(cache, &config);
	assert_int_equal(config.lcores, rte_lcore_count());
	pcp_unit_close();
}

static void
nonsense_is_refused(void **state)
{
	const struct pcp_config bad[] = {
		{.max_order = PCP_MAX_ORDER + 1},
		{.batch = PCP_BATCH_MAX + 1},
		{.mode = PCP_MODE_NONE + 1},
		{.mode = (enum pcp_mode)UINT32_MAX},
		{.checks = PCP_CHECKS_FULL + 1},
		{.poison_len = 8},
		{.poison_len = 8, .checks = PCP_CHECKS_DEFERRED},
	};
	struct unit_resources before;

	(void)state;
	zone = plain_zone(100, 9);
	unit_resources_get(&before);
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		rte_errno = 0;
		assert_null(pcp_cache_create(zone, &bad[i]));
		assert_int_equal(rte_errno, EINVAL);
	}
	unit_resources_assert(&before);
	destroy_zone(zone);

	/* blocks that the zone does not have */
	zone = plain_zone(100, 2);
	rte_errno = 0;
	assert_null(pcp_cache_create(zone, &(struct pcp_config){.max_order = 3}));
	assert_int_equal(rte_errno, EINVAL);
	destroy_zone(zone);

	/* no pages, and no word of any to come */
	zone = pp_zone_create("empty", PP_NODE_ANY, 9);
	rte_errno = 0;
	assert_null(pcp_cache_create(zone, &(struct pcp_config){0}));
	assert_int_equal(rte_errno, EINVAL);
	destroy_zone(zone);
}

static void
modes_have_names(void **state)
{
	static const char *const names[] = {"bh", "spin", "bypass", "irq", "preempt", "none"};
	enum pcp_mode mode;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(names); i++) {
		assert_int_equal(pcp_mode_parse(names[i], &mode), 0);
		assert_string_equal(pcp_mode_name(mode), names[i]);
	}
	assert_int_equal(pcp_mode_parse("softirq", &mode), -EINVAL);
	assert_int_equal(pcp_mode_parse("", &mode), -EINVAL);
	assert_int_equal(pcp_mode_parse("BH", &mode), -EINVAL);
}

static void
checks_have_names(void **state)
{
	static const char *const names[] = {"off", "deferred", "full"};
	enum pcp_checks checks = PCP_CHECKS_FULL;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(names); i++) {
		assert_int_equal(pcp_checks_parse(names[i], &checks), 0);
		assert_int_equal(checks, i);
		assert_string_equal(pcp_checks_name(checks), names[i]);
	}
	assert_int_equal(pcp_checks_parse("on", &checks), -EINVAL);
	assert_int_equal(checks, PCP_CHECKS_FULL);
	assert_string_equal(pcp_checks_name(PCP_CHECKS_FULL + 1), "unknown");
}

/* Every page is to be had by one lcore after another, however few, and at whatever batch. */
static void
odd_sizes_lose_nothing(void **state)
{
	static const uint32_t batches[] = {0, 1, 2, 3, 7, 64, 256};

	(void)state;
	for (enum pcp_mode mode = PCP_MODE_BH; mode <= PCP_MODE_IRQ; mode++) {
		for (size_t b = 0; b < RTE_DIM(batches); b++) {
			for (uint32_t pages = 1; pages <= 20; pages++) {
				void *page[20];

				pcp_unit_open(pages, (struct pcp_config){.mode = mode,
							     .batch = batches[b],
							     .max_order = pages % 4});
				for (uint32_t round = 0; round < 5; round++) {
					struct pcp *pcp = handle(round % 3);

					for (uint32_t i = 0; i < pages; i++) {
						assert_non_null(page[i] = pcp_alloc(pcp));
						assert_balance(i + 1, i + 1);
					}
					assert_null(pcp_alloc(pcp));
					for (uint32_t i = 0; i < pages; i++)
						pcp_free(handle((round + i) % 3), page[i]);
					assert_balance(0, 0);
				}
				pcp_unit_close();
			}
		}
	}
}

/* The zone grew after the caches were made for fewer pages. */
static void
more_pages_than_expected_overflow_to_the_zone(void **state)
{
	void *page[200];

	(void)state;
	pcp_unit_open(200, (struct pcp_config){.pages = 30, .batch = 7});
	for (uint32_t i = 0; i < RTE_DIM(page); i++)
		assert_non_null(page[i] = pcp_alloc(handle(0)));
	for (uint32_t i = 0; i < RTE_DIM(page); i++)
		pcp_free(handle(i % 3), page[i]);
	assert_balance(0, 0);
	assert_int_equal(pcp_alloc_bulk(handle(1), page, RTE_DIM(page)), 0);
	pcp_depot_free_bulk(cache, 0, page, RTE_DIM(page));
	pcp_unit_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capacity_follows_pages_and_lcores),
		cmocka_unit_test(defaults_are_replaced_and_the_rest_is_kept),
		cmocka_unit_test(lcores_default_to_those_of_eal),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(modes_have_names),
		cmocka_unit_test(checks_have_names),
		cmocka_unit_test(odd_sizes_lose_nothing),
		cmocka_unit_test(more_pages_than_expected_overflow_to_the_zone),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
