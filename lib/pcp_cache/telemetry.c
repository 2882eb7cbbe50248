/* SPDX-License-Identifier: BSD-3-Clause */
/* /pagepool/pcp,N: the caches over a zone, under the names of the kernel's page_pool. */

#include <rte_telemetry.h>

#include "pcp_internal.h"

/* Of lcores, or in mode preempt CPUs, that have a cache: ids, and pages in their magazines. */
static int
add_lcores(struct rte_tel_data *data, struct pcp_cache *cache)
{
	uint64_t id[RTE_MAX_LCORE], pages[RTE_MAX_LCORE];
	uint32_t n = 0;

	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		const struct pcp *pcp = &pcp_caches(cache)[i];

		if (pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_OFFLINE)
			continue;
		id[n] = i;
		pages[n++] = pcp_cached_pages(pcp);
	}
	const int err = pp_telemetry_array(data, "lcores", id, n);

	return err != 0 ? err : pp_telemetry_array(data, "lcore_pages", pages, n);
}

/* Counters that lcores change meanwhile may seem to owe a few. */
static uint64_t
difference(uint64_t all, uint64_t some)
{
	return (int64_t)(all - some) > 0 ? all - some : 0;
}

static int
show(struct pcp_cache *cache, void *data)
{
	struct pcp_config config;
	struct pcp_stats stats;

	pcp_cache_get_config(cache, &config);
	pcp_cache_get_stats(cache, &stats);
	const uint64_t past_allocs = stats.zone_allocs + stats.depot_allocs + stats.handler_allocs;
	const uint64_t past_frees = stats.zone_frees + stats.depot_frees + stats.handler_frees;
	const struct pp_counter counters[] = {
		{"batch", config.batch},
		{"high", config.high},
		{"alloc_fast", difference(stats.allocs, past_allocs)},
		{"alloc_slow", difference(past_allocs, stats.high_order_allocs)},
		{"alloc_slow_high_order", stats.high_order_allocs},
		{"alloc_refill", stats.taken},
		{"alloc_empty", stats.refills},
		{"alloc_failed", stats.failed},
		{"recycle_cached", difference(stats.frees, past_frees)},
		{"recycle_cache_full", stats.exchanges - stats.taken},
		{"recycle_ring", past_frees},
		{"recycle_ring_full", stats.drain_blocks},
		{"inflight", difference(stats.in_use_pages, 0)},
		{"cached_pages", stats.cached_pages},
		{"depot_pages", stats.depot_pages},
		{"missing_pages", stats.missing_pages},
		{"bad_pages", stats.bad_pages},
		{"unregistered", stats.unregistered},
		{"handler_allocs", stats.handler_allocs},
		{"handler_frees", stats.handler_frees},
		{"reentered", stats.reentered},
		{"deferred", stats.deferred},
		{"lost_handlers", stats.lost_handlers},
		{"reclaims", stats.reclaims},
		{"reclaim_blocks", stats.reclaim_blocks},
		{"membarriers", stats.membarriers},
		{"buried", stats.buried},
	};
	int err = rte_tel_data_start_dict(data);

	if (err == 0)
		err = rte_tel_data_add_dict_string(data, "name", pp_zone_name(cache->depot->zone));
	if (err == 0)
		err = rte_tel_data_add_dict_string(data, "mode", pcp_mode_name(config.mode));
	if (err == 0)
		err = rte_tel_data_add_dict_string(data, "checks", pcp_checks_name(config.checks));
	if (err == 0)
		err = pp_telemetry_counters(data, counters, RTE_DIM(counters));
	return err != 0 ? err : add_lcores(data, cache);
}

int
pcp_telemetry_show(const char *cmd __rte_unused, const char *params, struct rte_tel_data *data)
{
	uint32_t id;
	const int err = pp_telemetry_id(params, &id);

	return err != 0 ? err : pcp_process_with_cache(id, show, data);
}
