/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches of a zone: creation, threads that leave, drain and shrink. */

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_telemetry.h>

#include "pcp_internal.h"

RTE_LOG_REGISTER(pcp_logtype, lib.pcp_cache, NOTICE);

/* Here, where a program of static libraries has it. Without memory there is no command, no more. */
RTE_INIT(register_command)
{
	rte_telemetry_register_cmd("/pagepool/pcp", pcp_telemetry_show,
		"The page caches over a zone. Parameters: the zone's number");
}

/* A failing allocation disturbs the other lcores no more than once in this time. */
#define BACKOFF_US 50

static const char *const mode_names[] = {
	[PCP_MODE_BH] = "bh",
	[PCP_MODE_SPIN] = "spin",
	[PCP_MODE_BYPASS] = "bypass",
	[PCP_MODE_IRQ] = "irq",
	[PCP_MODE_PREEMPT] = "preempt",
	[PCP_MODE_NONE] = "none",
};

const char *
pcp_mode_name(enum pcp_mode mode)
{
	return (unsigned int)mode < RTE_DIM(mode_names) ? mode_names[mode] : "unknown";
}

int
pcp_find_name(const char *const *names, unsigned int n, const char *name)
{
	for (unsigned int i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return (int)i;
	return -1;
}

int
pcp_mode_parse(const char *name, enum pcp_mode *mode)
{
	const int i = pcp_find_name(mode_names, RTE_DIM(mode_names), name);

	if (i < 0)
		return -EINVAL;
	*mode = (enum pcp_mode)i;
	return 0;
}

/* Defaults, and what cannot be had; false when it makes no sense. */
static bool
complete_config(const struct pp_zone *zone, struct pcp_config *config)
{
	if (config->max_order > PCP_MAX_ORDER || config->max_order > pp_zone_max_order(zone) ||
		config->batch > PCP_BATCH_MAX ||
		(unsigned int)config->mode >= RTE_DIM(mode_names) ||
		(unsigned int)config->checks > PCP_CHECKS_FULL ||
		(config->poison_len > 0 && config->checks != PCP_CHECKS_FULL))
		return false;
	if (config->pages == 0)
		config->pages = pp_zone_pages(zone);
	if (config->pages == 0)
		return false;
	if (config->lcores == 0)
		config->lcores = RTE_MAX(rte_lcore_count(), 1u);
	if (config->batch == 0) {
		const uint64_t share = config->pages / (8 * (uint64_t)config->lcores);

		config->batch = (uint32_t)RTE_MIN(share, (uint64_t)PCP_BATCH_MAX);
	}
	config->batch = RTE_MAX(config->batch, 1u);
	if (config->high == 0)
		config->high = config->pages;
	if (config->mode != PCP_MODE_SPIN && config->mode != PCP_MODE_NONE &&
		!pcp_membarrier_register()) {
		PCP_LOG(NOTICE, "%s: the kernel has no membarrier: mode spin instead of %s",
			pp_zone_name(zone), pcp_mode_name(config->mode));
		config->mode = PCP_MODE_SPIN;
	}
	const char *obstacle = config->mode == PCP_MODE_PREEMPT ? pcp_rseq_obstacle() : NULL;

	if (obstacle != NULL) {
		PCP_LOG(NOTICE, "%s: no restartable sequences (%s): mode spin instead of preempt",
			pp_zone_name(zone), obstacle);
		config->mode = PCP_MODE_SPIN;
	}
	return true;
}

/* Give up an lcore's pages, in the name of its thread. */
static int
vacate(struct pcp *pcp)
{
	if (pcp->nest > 0)
		return -EBUSY;
	if (pp_load_acquire(&pcp->attention) & PCP_ATTENTION_OFFLINE)
		return 0;
	pcp_bh_disable(pcp);
	pp_fetch_or(&pcp->attention, PCP_ATTENTION_DRAIN);
	pcp_bh_enable(pcp);
	/* Served, unless in mode spin a reclaim had the lock. */
	return pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_DRAIN ? -EAGAIN : 0;
}

/* For a thread that will not end its section any more: all levels of it end here. */
static void
vacate_for_good(struct pcp *pcp)
{
	if (pcp->nest > 0) {
		pcp->nest = 1;
		pcp_bh_enable(pcp);
	}
	while (vacate(pcp) == -EAGAIN)
		rte_pause();
}

void
pcp_lcore_leaves(unsigned int lcore_id, void *arg)
{
	struct pcp_cache *cache = arg;
	struct pcp *pcp = &cache->pcp[lcore_id];

	if (pcp->owner_pid != pp_self)
		return;
	if (pcp->nest > 0)
		PCP_LOG(ERR, "%s: lcore %u leaves inside a section, which ends here",
			pp_zone_name(cache->depot->zone), lcore_id);
	vacate_for_good(pcp);
}

struct pcp_cache *
pcp_cache_create(struct pp_zone *zone, const struct pcp_config *asked)
{
	struct pcp_config config = *asked;

	if (!complete_config(zone, &config)) {
		rte_errno = EINVAL;
		return NULL;
	}
	struct pcp_cache *cache = pcp_meta_alloc(zone, sizeof(*cache));

	if (cache == NULL) {
		rte_errno = ENOMEM;
		return NULL;
	}
	cache->depot = pcp_depot_create(zone, &config);
	if (cache->depot == NULL) {
		rte_free(cache);
		return NULL;
	}
	cache->depot->backoff_cycles = rte_get_tsc_hz() / 1000000 * BACKOFF_US;
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		struct pcp *pcp = &cache->pcp[i];

		pcp->cache = cache;
		pcp->attention = PCP_ATTENTION_OFFLINE;
		if (config.mode == PCP_MODE_SPIN || config.mode == PCP_MODE_BYPASS ||
			config.mode == PCP_MODE_IRQ || config.mode == PCP_MODE_PREEMPT ||
			config.checks == PCP_CHECKS_FULL)
			pcp->attention |= PCP_ATTENTION_MODE;
	}
	if ((config.mode == PCP_MODE_PREEMPT && !pcp_cpu_create(cache)) ||
		!pcp_process_joins(cache, true)) {
		pcp_cpu_destroy(cache);
		pcp_depot_destroy(cache->depot);
		rte_free(cache);
		rte_errno = ENOMEM;
		return NULL;
	}
	return cache;
}

/* Their lists are not to be trusted, and their claims have no end. */
static void
bury_orphans(struct pcp_cache *cache)
{
	pp_lock(&cache->depot->reclaim_lock);
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++)
		if (pcp_is_orphan(&pcp_caches(cache)[i]))
			pcp_bury(&pcp_caches(cache)[i]);
	pp_unlock(&cache->depot->reclaim_lock);
}

void
pcp_cache_destroy(struct pcp_cache *cache)
{
	if (cache == NULL)
		return;
	pcp_process_leaves(cache);
	bury_orphans(cache);
	/* Those of other processes, and of lcores that EAL does not know any more. */
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++)
		vacate_for_good(&cache->pcp[i]);
	for (unsigned int i = 0; cache->cpu != NULL && i < RTE_MAX_LCORE; i++)
		pcp_flush(&cache->cpu[i]);
	for (unsigned int order = 0; order <= cache->depot->config.max_order; order++)
		pcp_depot_drain(cache->depot, order, 0);
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++)
		pcp_free_magazines(&cache->pcp[i]);
	pcp_cpu_destroy(cache);
	pcp_depot_destroy(cache->depot);
	rte_free(cache);
}

void
pcp_cache_get_config(const struct pcp_cache *cache, struct pcp_config *config)
{
	*config = cache->depot->config;
}

struct pp_zone *
pcp_cache_zone(const struct pcp_cache *cache)
{
	return cache->depot->zone;
}

int
pcp_cache_drain_local(struct pcp_cache *cache)
{
	if (cache->cpu != NULL)
		return pcp_cpu_drain_local(cache);
	struct pcp *pcp = pcp_this(cache);

	return pcp == NULL ? -ENOENT : vacate(pcp);
}

uint64_t
pcp_cache_shrink(struct pcp_cache *cache, uint64_t pages)
{
	struct pcp_depot *depot = cache->depot;

	pcp_guard_begin();
	uint64_t moved = pcp_depot_drain(depot, 0, pages);

	for (unsigned int order = 1; order <= depot->config.max_order; order++)
		moved += pcp_depot_drain(depot, order, 0) << order;
	pcp_guard_end();
	return moved;
}

uint64_t
pcp_cache_drain(struct pcp_cache *cache)
{
	struct pcp *self = cache->cpu == NULL ? pcp_this(cache) : NULL;

	if (self != NULL && vacate(self) == -EBUSY)
		pp_fetch_or(&self->attention, PCP_ATTENTION_DRAIN);
	pcp_guard_begin();
	pp_lock(&cache->depot->reclaim_lock);
	pcp_reclaim_round(cache, self);
	pp_unlock(&cache->depot->reclaim_lock);
	pcp_guard_end();
	return pcp_cache_shrink(cache, 0);
}
