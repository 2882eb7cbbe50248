/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>
#include <sched.h>

#include <pcp_cpu.h>

#include "preempt_unit.h"
#include "storm.h"

enum pcp_mode
mode_in_effect(void)
{
	struct pcp_config config;

	pcp_cache_get_config(cache, &config);
	return config.mode;
}

void
open_preempt(struct pcp_config config)
{
	config.mode = PCP_MODE_PREEMPT;
	pcp_unit_open(PREEMPT_PAGES, config);
	if (mode_in_effect() == PCP_MODE_PREEMPT)
		return;
	pcp_unit_close();
	unit_skip("no restartable sequences here");
}

void
pin_to(unsigned int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus), 0);
}

unsigned int
processor(unsigned int n)
{
	static unsigned int found[2], n_found;

	for (unsigned int cpu = 0; n_found < 2 && cpu < CPU_SETSIZE; cpu++) {
		cpu_set_t cpus;

		CPU_ZERO(&cpus);
		CPU_SET(cpu, &cpus);
		if (pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus) == 0)
			found[n_found++] = cpu;
	}
	pin_to(found[0]);
	return found[n % n_found];
}

void
use_all_calls(void *unused __rte_unused)
{
	struct pcp *pcp = pcp_this(cache);
	void *pages[40], *page;

	for (uint32_t n = 1; n <= 40; n += 13) {
		assert_int_equal(pcp_cpu_alloc_bulk(cache, pages, n), 0);
		for (uint32_t i = 0; i < n; i++)
			storm_take(pages[i], STORM_MAIN);
		for (uint32_t i = 0; i < n; i++)
			assert_true(storm_give(pages[i], STORM_MAIN));
		pcp_cpu_free_bulk(cache, pages, n);
		assert_int_equal(pcp_cache_alloc_bulk(cache, pages, n), 0);
		pcp_cache_free_bulk(cache, pages, n);
	}
	assert_int_equal(pcp_cpu_alloc_bulk(cache, pages, 0), 0);
	pcp_cpu_free_bulk(cache, pages, 0);
	page = pcp_cpu_alloc(cache);
	assert_non_null(page);
	pcp_cpu_free(cache, page);
	page = pcp_cache_alloc(cache);
	assert_non_null(page);
	pcp_cache_free(cache, page);
	page = pcp_handler_alloc(cache, 0);
	assert_non_null(page);
	pcp_handler_free(cache, page, 0);
	for (unsigned int order = 0; order <= PCP_MAX_ORDER + 1; order++) {
		page = pcp_depot_alloc(cache, order);
		assert_non_null(page);
		pcp_depot_free(cache, page, order);
		if (pcp == NULL || order > PCP_MAX_ORDER)
			continue;
		page = pcp_alloc_pages(pcp, order);
		assert_non_null(page);
		pcp_free_pages(pcp, page, order);
		pcp_bh_disable(pcp);
		page = pcp_alloc_pages_nested(pcp, order);
		assert_non_null(page);
		pcp_free_pages_nested(pcp, page, order);
		page = pcp_alloc_pages(pcp, order);
		pcp_free_pages(pcp, page, order);
		pcp_bh_enable(pcp);
		assert_int_equal(pcp->busy + pcp->nest, 0);
	}
}

void
use_one_page(void *unused __rte_unused)
{
	for (unsigned int i = 0; i < 100; i++)
		pcp_cache_free(cache, pcp_cache_alloc(cache));
}
