/* SPDX-License-Identifier: BSD-3-Clause */

#include <sys/wait.h>
#include <unistd.h>

#include <pcp_irq.h>

#include "pcp_unit.h"

struct pp_zone *zone;
struct pcp_cache *cache;

void
pcp_unit_open(uint32_t pages, struct pcp_config config)
{
	if (config.lcores == 0)
		config.lcores = 2;
	zone = plain_zone(pages, 9);
	cache = pcp_cache_create(zone, &config);
	assert_non_null(cache);
	assert_ptr_equal(pcp_cache_zone(cache), zone);
	assert_balance(0, 0);
}

void
pcp_unit_close(void)
{
	assert_balance(0, 0);
	assert_int_equal(stats_of(zone).bad_frees, 0);
	assert_int_equal(bad_reports(), 0);
	assert_int_equal(pcp_unit_stats().bad_pages, 0);
	pcp_cache_destroy(cache);
	assert_int_equal(pp_zone_free_pages(zone), pp_zone_pages(zone));
	destroy_zone(zone);
}

int
pcp_unit_teardown(void **state)
{
	(void)state;
	pcp_unit_close();
	return 0;
}

struct pcp_stats
pcp_unit_stats(void)
{
	struct pcp_stats stats;

	pcp_cache_get_stats(cache, &stats);
	return stats;
}

uint64_t
bad_reports(void)
{
	const struct pcp_stats stats = pcp_unit_stats();
	uint64_t reports = 0;

	for (unsigned int kind = 0; kind < PP_BAD_KINDS; kind++)
		reports += stats.bad[kind];
	return reports;
}

void
assert_balance(uint64_t blocks_in_use, uint64_t pages_in_use)
{
	const struct pcp_stats stats = pcp_unit_stats();
	const uint64_t at_home = pp_zone_free_pages(zone) + stats.depot_pages + stats.cached_pages;

	assert_true(pcp_cache_is_valid(cache));
	assert_int_equal(at_home + pages_in_use + stats.bad_pages, pp_zone_pages(zone));
	assert_int_equal(stats.in_use_pages, pages_in_use);
	assert_int_equal(stats.missing_pages, 0);
	assert_int_equal(pcp_cache_free_pages(cache), at_home);
	assert_int_equal(stats.allocs - stats.frees, blocks_in_use);
	assert_true(stats.zone_allocs + stats.depot_allocs <= stats.allocs);
	assert_true(stats.zone_frees + stats.depot_frees <= stats.frees);
}

struct pcp *
handle(unsigned int lcore_id)
{
	return pcp_of_lcore(cache, lcore_id);
}

void
section_begin(enum section section)
{
	if (section == BH)
		pcp_bh_disable(handle(0));
	else
		pcp_irq_save(handle(0));
}

void
section_end(enum section section)
{
	if (section == BH)
		pcp_bh_enable(handle(0));
	else
		pcp_irq_restore(handle(0));
}

uint32_t
page_number(const void *page)
{
	const uintptr_t offset = (uintptr_t)page - (uintptr_t)memory;

	assert_int_equal(offset % PP_PAGE_SIZE, 0);
	assert_true(offset / PP_PAGE_SIZE < pp_zone_pages(zone));
	return (uint32_t)(offset / PP_PAGE_SIZE);
}

uint32_t
dead_pid(void)
{
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return (uint32_t)child;
}
