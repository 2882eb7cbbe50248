/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches of processes that were killed, and whoever comes after them on the same lcore. */

#include "pcp_internal.h"

/*
 * Killed while magazines changed places: the lists may name one that is elsewhere by now. Whatever
 * they held and did not give away is lost; the counts say so, as nothing else has it.
 */
static void
drop_lists(struct pcp *pcp)
{
	for (unsigned int order = 0; order < PCP_ORDERS; order++) {
		struct pcp_list *list = &pcp->list[order];
		const uint64_t blocks = pcp_count(list) + list->parked + list->previous_count;

		pp_store_relaxed(&pcp->stats[order].out, pcp->stats[order].out + blocks);
		list->loaded = NULL;
		list->previous = NULL;
		pcp_set_count(list, 0);
		pp_store_relaxed(&list->previous_count, 0);
		pp_store_relaxed(&list->parked, 0);
	}
}

uint64_t
pcp_bury(struct pcp *pcp)
{
	struct pcp_depot *depot = pcp->cache->depot;
	struct pp_zone_stats stats;
	uint64_t moved = 0;

	PCP_LOG(NOTICE, "%s: process %u died and left the cache of lcore %u%s",
		pp_zone_name(depot->zone), pcp->owner_pid, (unsigned int)(pcp - pcp->cache->pcp),
		pcp->moving ? ", in the middle of an exchange" : "");
	/* If it died under the locks of depot or zone, they are inherited and repaired now. */
	pcp_depot_forget_transit(depot);
	pp_zone_get_stats(depot->zone, &stats);
	if (pcp->moving)
		drop_lists(pcp);
	else
		moved = pcp_flush(pcp);
	for (unsigned int order = 0; order < PCP_ORDERS; order++)
		pcp->list[order].capacity = 0;
	pcp->moving = 0;
	pcp->locked = 0;
	pp_unlock(&pcp->lock);
	pp_store_relaxed(&pcp->nest, 0);
	pp_store_relaxed(&pcp->busy, 0);
	pp_fetch_or(&pcp->attention, PCP_ATTENTION_OFFLINE);
	pp_fetch_and(&pcp->attention, ~(uint32_t)(PCP_ATTENTION_CLAIMED | PCP_ATTENTION_DRAIN));
	pp_store_release(&pcp->owner_pid, 0);
	depot->buried++;
	return moved;
}

bool
pcp_adopt(struct pcp *pcp)
{
	struct pcp_depot *depot = pcp->cache->depot;
	const uint32_t owner = pp_load_acquire(&pcp->owner_pid);

	if (owner == 0 || owner == pp_self)
		return true;
	if (!pp_process_is_dead(owner)) {
		PCP_LOG(ERR, "%s: lcore %u belongs to process %u, too; give each its own with -l",
			pp_zone_name(depot->zone), (unsigned int)(pcp - pcp->cache->pcp), owner);
		return false;
	}
	pp_lock(&depot->reclaim_lock);
	if (pp_load_acquire(&pcp->owner_pid) == owner)
		pcp_bury(pcp);
	pp_unlock(&depot->reclaim_lock);
	return true;
}
