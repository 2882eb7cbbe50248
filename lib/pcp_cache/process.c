/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that share the caches of a zone: joining, and being killed. */

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "pcp_internal.h"

/* ---- what each process has of its own ---- */

struct membership {
	LIST_ENTRY(membership) link;
	struct pcp_cache *cache;
	void *lcore_callback;
	bool created; /* and destroyed by this process: it is there as long as it is here */
};

static LIST_HEAD(, membership) memberships = LIST_HEAD_INITIALIZER(memberships);
static struct pp_lock memberships_lock;

static struct membership *
find_membership(const struct pcp_cache *cache)
{
	struct membership *membership;

	LIST_FOREACH (membership, &memberships, link)
		if (membership->cache == cache)
			break;
	return membership;
}

static bool
join(struct pcp_cache *cache, bool created)
{
	struct membership *membership = malloc(sizeof(*membership));

	if (membership == NULL)
		return false;
	membership->cache = cache;
	membership->created = created;
	membership->lcore_callback =
		rte_lcore_callback_register("pcp_cache", NULL, pcp_lcore_leaves, cache);
	if (membership->lcore_callback == NULL) {
		free(membership);
		return false;
	}
	LIST_INSERT_HEAD(&memberships, membership, link);
	return true;
}

bool
pcp_process_joins(struct pcp_cache *cache, bool created)
{
	/* Else this process may not claim: its membarriers fail, and it asks. */
	pcp_membarrier_register();
	pp_lock(&memberships_lock);
	const bool joined = find_membership(cache) != NULL || join(cache, created);

	pp_unlock(&memberships_lock);
	return joined;
}

void
pcp_process_leaves(struct pcp_cache *cache)
{
	pp_lock(&memberships_lock);
	struct membership *membership = find_membership(cache);

	if (membership != NULL)
		LIST_REMOVE(membership, link);
	pp_unlock(&memberships_lock);
	if (membership == NULL)
		return;
	/* Calls pcp_lcore_leaves() for every lcore that EAL knows. */
	rte_lcore_callback_unregister(membership->lcore_callback);
	free(membership);
}

int
pcp_process_with_cache(uint32_t zone_id, int (*show)(struct pcp_cache *cache, void *arg), void *arg)
{
	const struct membership *membership;
	int rc = -ENOENT;

	pp_lock(&memberships_lock);
	LIST_FOREACH (membership, &memberships, link) {
		if (membership->created && pp_zone_id(membership->cache->depot->zone) == zone_id) {
			rc = show(membership->cache, arg);
			break;
		}
	}
	pp_unlock(&memberships_lock);
	return rc;
}

/* ---- those that were killed ---- */

bool
pcp_is_orphan(const struct pcp *pcp)
{
	const uint32_t owner = pp_load_acquire(&pcp->owner_pid);

	return owner != pp_self && owner != 0 && pp_process_is_dead(owner);
}

void
pcp_drop_lists(struct pcp *pcp)
{
	for (unsigned int order = 0; order < PCP_ORDERS; order++) {
		struct pcp_order_stats *stats = &pcp->stats[order];
		struct pcp_list *list = &pcp->list[order];

		/* The counts say that nothing but what the callers held has come out. */
		if (pcp->moving == order + 1)
			pp_store_relaxed(&stats->in, pcp->held + stats->out);
		else
			pp_store_relaxed(&stats->out, stats->out + pcp_list_blocks(list));
		list->loaded = NULL;
		list->previous = NULL;
		list->capacity = 0;
		pcp_set_count(list, 0);
		pp_store_relaxed(&list->previous_count, 0);
		pp_store_relaxed(&list->parked, 0);
	}
	pcp->moving = 0;
	pcp->open = 0;
	pp_fetch_or(&pcp->attention, PCP_ATTENTION_OFFLINE);
}

uint64_t
pcp_bury(struct pcp *pcp)
{
	struct pcp_depot *depot = pcp->cache->depot;
	struct pp_zone_stats stats;

	PCP_LOG(NOTICE, "%s: process %u died and left the cache of lcore %u%s",
		pp_zone_name(depot->zone), pcp->owner_pid, pcp_lcore_id(pcp),
		pcp->moving ? ", in the middle of an exchange" : "");
	/* If it died under the zone's lock, that is inherited, and the zone repaired, now. */
	pp_zone_get_stats(depot->zone, &stats);
	if (pcp->moving)
		pcp_drop_lists(pcp);
	/* Killed while it parked them, it left counts above the capacity: they are good. */
	for (unsigned int order = 0; order < PCP_ORDERS; order++)
		if (pcp->list[order].loaded != NULL)
			pcp->list[order].capacity = depot->list[order].batch;
	const uint64_t moved = pcp_flush(pcp);

	for (unsigned int order = 0; order < PCP_ORDERS; order++)
		pcp->list[order].capacity = 0;
	pp_store_relaxed(&pcp->locked, 0);
	pcp->open = 0;
	pp_unlock(&pcp->lock);
	pp_store_relaxed(&pcp->nest, 0);
	pp_store_relaxed(&pcp->busy, 0);
	pp_fetch_or(&pcp->attention, PCP_ATTENTION_OFFLINE);
	pp_fetch_and(&pcp->attention, ~(uint32_t)(PCP_ATTENTION_CLAIMED | PCP_ATTENTION_DRAIN |
						  PCP_ATTENTION_HANDLER | PCP_ATTENTION_PENDING));
	pp_store_release(&pcp->owner_pid, 0);
	depot->buried++;
	/* what it gave to the depot when it was killed may not have been counted */
	pcp_count_arrival(depot);
	return moved;
}

static void
log_conflict(const struct pcp *pcp, uint32_t owner)
{
	static uint32_t told;

	if (pp_exchange(&told, 1) == 0)
		PCP_LOG(ERR, "%s: lcore %u belongs to process %u, too; give each its own with -l",
			pp_zone_name(pcp->cache->depot->zone), pcp_lcore_id(pcp), owner);
}

/* A process may have been killed in its first call here, before the cache was its own. */
static void
take_over(struct pcp *pcp)
{
	uint32_t nobody = 0;

	if (!__atomic_compare_exchange_n(
		    &pcp->owner_pid, &nobody, pp_self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	pp_store_relaxed(&pcp->nest, 0);
	pp_store_relaxed(&pcp->busy, 0);
	pp_fetch_and(&pcp->attention, ~(uint32_t)PCP_ATTENTION_HANDLER);
}

bool
pcp_adopt(struct pcp *pcp)
{
	struct pcp_depot *depot = pcp->cache->depot;
	uint32_t owner;

	while ((owner = pp_load_acquire(&pcp->owner_pid)) != pp_self) {
		if (owner == 0) {
			take_over(pcp);
			continue;
		}
		if (!pp_process_is_dead(owner)) {
			log_conflict(pcp, owner);
			return false;
		}
		pcp_guard_begin();
		pp_lock(&depot->reclaim_lock);
		if (pp_load_acquire(&pcp->owner_pid) == owner)
			pcp_bury(pcp);
		pp_unlock(&depot->reclaim_lock);
		pcp_guard_end();
	}
	return true;
}
