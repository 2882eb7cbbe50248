/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters, dump and predicates. */

#include <inttypes.h>

#include "pcp_internal.h"
#include "pcp_irq.h"

uint64_t
pcp_cached_pages(const struct pcp *pcp)
{
	uint64_t pages = 0;

	for (unsigned int order = 0; order < PCP_ORDERS; order++)
		pages += pcp_list_blocks(&pcp->list[order]) << order;
	return pages;
}

static void
add_order(const struct pcp *pcp, unsigned int order, struct pcp_stats *stats)
{
	const struct pcp_list *list = &pcp->list[order];
	const struct pcp_order_stats *counts = &pcp->stats[order];
	const uint64_t state = pp_load_relaxed(&list->state);
	const uint64_t allocs = pp_load_relaxed(&counts->allocs) + state / PCP_STATE_ALLOC;
	const uint64_t zone_allocs = pp_load_relaxed(&counts->zone_allocs);
	const uint64_t zone_frees = pp_load_relaxed(&counts->zone_frees);

	const uint64_t in_use = pcp_held(pcp, order);

	stats->frees += allocs - in_use + zone_frees;
	stats->in_use_pages += (in_use + zone_allocs - zone_frees) << order;
	stats->allocs += allocs + zone_allocs;
	stats->high_order_allocs += order > 0 ? zone_allocs : 0;
	stats->zone_allocs += zone_allocs;
	stats->zone_frees += zone_frees;
}

void
pcp_cache_get_stats(struct pcp_cache *cache, struct pcp_stats *stats)
{
	struct pcp_depot *depot = cache->depot;
	uint64_t taken, given;

	pcp_guard_begin();
	*stats = (struct pcp_stats){
		.depot_allocs = pp_load_relaxed(&depot->allocs),
		.depot_frees = pp_load_relaxed(&depot->frees),
		.unregistered = pp_load_relaxed(&depot->unregistered),
		.handler_allocs = pp_load_relaxed(&depot->handler_allocs),
		.handler_frees = pp_load_relaxed(&depot->handler_frees),
		.deferred = pp_load_relaxed(&depot->deferred),
		.lost_handlers = pp_load_relaxed(&depot->lost_handlers),
		.reentered = pp_load_relaxed(&depot->reentered),
		.failed = pp_load_relaxed(&depot->failed),
		.refills = pp_load_relaxed(&depot->refills),
		.drains = pp_load_relaxed(&depot->drains),
		.drain_blocks = pp_load_relaxed(&depot->drain_blocks),
		.high_order_allocs = pp_load_relaxed(&depot->high_order_allocs),
		.depot_pages = pcp_depot_pages(depot),
	};
	pcp_depot_exchanges(depot, &taken, &given);
	stats->exchanges = taken + given;
	stats->taken = taken;
	pp_lock(&depot->reclaim_lock);
	stats->reclaims = depot->reclaims;
	stats->reclaim_blocks = depot->reclaim_blocks;
	stats->membarriers = depot->membarriers;
	stats->buried = depot->buried;
	pp_unlock(&depot->reclaim_lock);

	stats->allocs = stats->depot_allocs + stats->handler_allocs;
	stats->frees = stats->depot_frees + stats->handler_frees;
	stats->in_use_pages =
		pp_load_relaxed(&depot->alloc_pages) - pp_load_relaxed(&depot->free_pages);
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		const struct pcp *pcp = &pcp_caches(cache)[i];

		for (unsigned int order = 0; order < PCP_ORDERS; order++)
			add_order(pcp, order, stats);
		stats->cached_pages += pcp_cached_pages(pcp);
		stats->reentered += pp_load_relaxed(&pcp->reentered);
		stats->allocs += pp_load_relaxed(&pcp->reentered_allocs);
		stats->zone_allocs += pp_load_relaxed(&pcp->reentered_allocs);
		stats->frees += pp_load_relaxed(&pcp->reentered_frees);
		stats->zone_frees += pp_load_relaxed(&pcp->reentered_frees);
		stats->in_use_pages += pp_load_relaxed(&pcp->reentered_pages);
	}

	pp_zone_recover(depot->zone);
	stats->bad_pages = pp_zone_bad_pages(depot->zone);
	for (unsigned int kind = 0; kind < PP_BAD_KINDS; kind++)
		stats->bad[kind] = pp_zone_bad(depot->zone, kind);

	const uint64_t elsewhere = stats->in_use_pages + stats->bad_pages + stats->cached_pages +
				   stats->depot_pages + pp_zone_free_pages(depot->zone);
	const uint64_t pages = pp_zone_pages(depot->zone);

	stats->missing_pages = pages > elsewhere ? pages - elsewhere : 0;
	pcp_guard_end();
}

uint64_t
pcp_cache_free_pages(struct pcp_cache *cache)
{
	uint64_t pages = 0;

	pcp_guard_begin();
	/* In the order in which pages that nobody has move, so that none slips by uncounted. */
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++)
		pages += pcp_cached_pages(&pcp_caches(cache)[i]);
	pages += pcp_depot_pages(cache->depot);
	pp_zone_recover(cache->depot->zone);
	pages += pp_zone_free_pages(cache->depot->zone);
	pcp_guard_end();
	return pages;
}

void
pcp_cache_dump(struct pcp_cache *cache, FILE *f)
{
	const struct pcp_config *config = &cache->depot->config;
	struct pcp_stats stats;

	pcp_cache_get_stats(cache, &stats);
	fprintf(f,
		"pcp_cache %s: mode %s batch %u high %" PRIu64 " max_order %u pages %" PRIu64
		" checks %s\n",
		pp_zone_name(cache->depot->zone), pcp_mode_name(config->mode), config->batch,
		config->high, config->max_order, config->pages, pcp_checks_name(config->checks));
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		const struct pcp *pcp = &pcp_caches(cache)[i];
		const uint32_t nest = pp_load_relaxed(&pcp->nest);

		if (!(pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_OFFLINE))
			fprintf(f, "  %s %u: pages %" PRIu64 " nest %u\n",
				cache->cpu != NULL ? "cpu" : "lcore", i, pcp_cached_pages(pcp),
				nest % PCP_NEST_IRQ + nest / PCP_NEST_IRQ);
	}
	fprintf(f,
		"  depot: pages %" PRIu64 " exchanges %" PRIu64 " refills %" PRIu64
		" drains %" PRIu64 "\n",
		stats.depot_pages, stats.exchanges, stats.refills, stats.drains);
	fprintf(f,
		"  allocs %" PRIu64 " frees %" PRIu64 " failed %" PRIu64 " zone_allocs %" PRIu64
		" zone_frees %" PRIu64 " unregistered %" PRIu64 " reentered %" PRIu64 "\n",
		stats.allocs, stats.frees, stats.failed, stats.zone_allocs, stats.zone_frees,
		stats.unregistered, stats.reentered);
	fprintf(f,
		"  in_use_pages %" PRIu64 " missing_pages %" PRIu64 " buried %" PRIu64
		" handler_allocs %" PRIu64 " handler_frees %" PRIu64 " deferred %" PRIu64
		" lost_handlers %" PRIu64 "\n",
		stats.in_use_pages, stats.missing_pages, stats.buried, stats.handler_allocs,
		stats.handler_frees, stats.deferred, stats.lost_handlers);
	fprintf(f, "  bad_pages %" PRIu64, stats.bad_pages);
	for (unsigned int kind = 0; kind < PP_BAD_KINDS; kind++)
		if (stats.bad[kind] > 0)
			fprintf(f, ", %s %" PRIu64, pp_bad_kind_name(kind), stats.bad[kind]);
	fprintf(f, "\n");
	fprintf(f, "  reclaims %" PRIu64 " blocks %" PRIu64 " membarriers %" PRIu64 "\n",
		stats.reclaims, stats.reclaim_blocks, stats.membarriers);
}

/* ---- predicates ---- */

static bool
list_is_valid(const struct pcp_list *list, uint32_t batch)
{
	const uint32_t count = pcp_count(list), previous = list->previous_count;

	if (list->loaded == NULL)
		return count == 0 && previous == 0 && list->parked == 0 && list->capacity == 0;
	return (list->capacity == batch || list->capacity == 0) && count <= list->capacity &&
	       list->parked <= batch && (list->capacity == 0 || list->parked == 0) &&
	       (previous == 0 || previous == batch) && list->loaded != list->previous;
}

static bool
holds_full_ones(const struct pcp_shelf *shelf, uint32_t batch)
{
	const struct pcp_stack *stack = &shelf->stack[PCP_FULL];

	for (uint32_t i = stack->bottom; i != stack->top; i++)
		if (stack->slot[i & shelf->mask]->count != batch)
			return false;
	return true;
}

/* Exchanges are one for one; only who is killed may take a magazine along. */
static bool
depot_list_is_valid(const struct pcp_depot *depot, unsigned int order)
{
	const struct pcp_depot_list *list = &depot->list[order];
	const uint64_t blocks = depot->config.pages >> order;
	const uint64_t expected = (blocks + list->batch - 1) / list->batch;
	const uint64_t n = pcp_depot_count(list, PCP_FULL) + pcp_depot_count(list, PCP_EMPTY);

	for (uint32_t i = 0; i < list->n_shelves; i++)
		if (!holds_full_ones(&list->shelf[i], list->batch))
			return false;
	return list->partial != NULL && list->partial->count <= list->batch &&
	       (n == expected ||
		       ((depot->buried > 0 || pp_load_relaxed(&depot->inherited)) && n < expected));
}

bool
pcp_cache_is_valid(struct pcp_cache *cache)
{
	struct pcp_depot *depot = cache->depot;
	bool valid = true;

	pcp_guard_begin();
	pcp_depot_lock(depot);
	for (unsigned int order = 0; order <= depot->config.max_order; order++)
		valid = valid && depot_list_is_valid(depot, order);
	pcp_depot_unlock(depot);
	pcp_guard_end();
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		const struct pcp *pcp = &pcp_caches(cache)[i];

		/* nobody buries those who died in their first call, before they had lists */
		valid = valid && (pcp->busy == 0 ||
					 pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_OFFLINE);
		for (unsigned int order = 0; order <= depot->config.max_order; order++)
			valid = valid && list_is_valid(&pcp->list[order], depot->list[order].batch);
	}
	if (!valid)
		PCP_LOG(ERR, "%s: invalid: magazines and counts disagree",
			pp_zone_name(depot->zone));
	return valid;
}
