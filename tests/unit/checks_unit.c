/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "checks_unit.h"

enum pcp_checks checks;
unsigned int order;

static uint64_t found[PP_BAD_KINDS]; /* asserted so far */

struct variant {
	enum pcp_checks checks;
	unsigned int order;
};

static int
open_variant(void **state)
{
	const struct variant *variant = *state;

	checks = variant->checks;
	order = variant->order;
	memset(found, 0, sizeof(found));
	unit_log_clear();
	pcp_unit_open(
		CHECKS_PAGES, (struct pcp_config){
				      .batch = CHECKS_BATCH,
				      .max_order = PCP_MAX_ORDER,
				      .checks = checks,
				      .poison_len = checks == PCP_CHECKS_FULL ? PP_PAGE_SIZE : 0,
			      });
	return 0;
}

/* Whatever was found, nothing is lost, and all but what was set aside can be had again. */
static int
close_variant(void **state __rte_unused)
{
	pcp_cache_drain(cache);
	assert_balance(0, 0);
	const uint64_t bad = pcp_unit_stats().bad_pages;

	for (uint64_t i = bad; i < CHECKS_PAGES; i++)
		assert_non_null(pcp_alloc(handle(0)));
	assert_null(pcp_alloc(handle(0)));
	assert_balance(CHECKS_PAGES - bad, CHECKS_PAGES - bad);
	pcp_cache_destroy(cache);
	assert_int_equal(pp_zone_abandon(zone), CHECKS_PAGES - bad);
	return 0;
}

int
checks_run(const struct checks_test *tests, size_t n)
{
	static const struct variant variants[] = {
		{PCP_CHECKS_DEFERRED, 0},
		{PCP_CHECKS_DEFERRED, 2},
		{PCP_CHECKS_FULL, 0},
		{PCP_CHECKS_FULL, 2},
	};
	struct CMUnitTest all[n * RTE_DIM(variants)];
	char name[n * RTE_DIM(variants)][64];

	assert_int_equal(mprotect(memory, CHECKS_PAGES * PP_PAGE_SIZE, PROT_READ | PROT_WRITE), 0);
	for (size_t i = 0; i < RTE_DIM(all); i++) {
		const struct checks_test *test = &tests[i / RTE_DIM(variants)];
		const struct variant *variant = &variants[i % RTE_DIM(variants)];

		snprintf(name[i], sizeof(name[i]), "%s (%s, order %u)", test->name,
			pcp_checks_name(variant->checks), variant->order);
		all[i] = (struct CMUnitTest){
			name[i], test->f, open_variant, close_variant, (void *)(uintptr_t)variant};
	}
	return _cmocka_run_group_tests("checks", all, RTE_DIM(all), NULL, NULL);
}

void *
alloc_by(unsigned int lcore_id)
{
	void *block = pcp_alloc_pages(handle(lcore_id), order);

	assert_non_null(block);
	return block;
}

void
free_by(unsigned int lcore_id, void *block)
{
	pcp_free_pages(handle(lcore_id), block, order);
}

void
assert_found(enum pp_bad_kind kind, uint32_t n, const char *last_owner)
{
	char text[64];

	found[kind] += n;
	if (checks == PCP_CHECKS_FULL)
		assert_int_equal(pcp_unit_stats().bad[kind], found[kind]);
	pcp_cache_drain(cache);
	assert_memory_equal(pcp_unit_stats().bad, found, sizeof(found));
	snprintf(text, sizeof(text), ": %s: ", pp_bad_kind_name(kind));
	unit_assert_logged(text);
	snprintf(text, sizeof(text), "last owner %s\n", last_owner);
	unit_assert_logged(text);
	unit_log_clear();
}

void
assert_set_aside(uint32_t blocks)
{
	pcp_cache_drain(cache);
	assert_int_equal(pcp_unit_stats().bad_pages, (uint64_t)blocks << order);
	assert_int_equal(pcp_unit_stats().missing_pages, 0);
	assert_true(pp_zone_is_valid(zone));
}
