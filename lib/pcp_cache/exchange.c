/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Magazines changing places between an lcore, the depot and the zone: by who owns or has claimed
 * the cache. What goes is counted before it goes, and what comes after it came: a kill in between
 * shows as missing, never as in two places.
 */

#include "pcp_internal.h"

void
pcp_fold_allocs(struct pcp *pcp, unsigned int order)
{
	struct pcp_list *list = &pcp->list[order];
	const uint64_t state = pp_load_relaxed(&list->state);

	pcp_add(&pcp->stats[order].allocs, state / PCP_STATE_ALLOC);
	pp_store_relaxed(&list->state, state % PCP_STATE_ALLOC);
}

/*
 * Between these two a kill leaves lists that nobody can trust: a magazine may be in neither place,
 * or its pages in both. What the callers of this lcore hold does not change meanwhile.
 */
static void
begin_move(struct pcp *pcp, unsigned int order)
{
	pcp->held = pcp_held(pcp, order);
	pp_compiler_barrier();
	pp_store_relaxed(&pcp->moving, order + 1);
	pp_compiler_barrier();
}

static void
end_move(struct pcp *pcp)
{
	pp_compiler_barrier();
	pp_store_relaxed(&pcp->moving, 0);
}

static void
swap_magazines(struct pcp_list *list, uint32_t loaded_count, uint32_t previous_count)
{
	struct pcp_magazine *magazine = list->loaded;

	list->loaded = list->previous;
	list->previous = magazine;
	pcp_set_count(list, loaded_count);
	pp_store_relaxed(&list->previous_count, previous_count);
}

static bool
move_in(struct pcp *pcp, unsigned int order, struct pcp_attempt *attempt)
{
	struct pcp_depot *depot = pcp->cache->depot;
	struct pcp_list *list = &pcp->list[order];

	pcp_fold_allocs(pcp, order);
	if (list->previous_count > 0) {
		swap_magazines(list, list->previous_count, 0);
		return true;
	}
	for (;;) {
		struct pcp_magazine *full =
			pcp_depot_take_full(depot, pcp_lcore_id(pcp), order, list->loaded, attempt);

		if (full == NULL)
			break;
		list->loaded = full;
		pcp_prefetch_magazine(full, full->count, false);
		const uint32_t count = pcp_check(depot, PP_PLACE_REST, depot->in_magazine,
			pcp_lcore_id(pcp), order, full->page, full->count);

		pcp_set_count(list, count);
		pcp_add(&pcp->stats[order].in, count);
		if (likely(count > 0))
			return true;
	}
	const uint32_t got = pcp_zone_alloc_bulk(depot, depot->in_magazine, pcp_lcore_id(pcp),
		order, list->loaded->page, list->capacity);

	pcp_set_count(list, got);
	pcp_add(&pcp->stats[order].in, got);
	pp_fetch_add(&depot->refills, got > 0);
	return got > 0;
}

bool
pcp_refill(struct pcp *pcp, unsigned int order, struct pcp_attempt *attempt)
{
	begin_move(pcp, order);
	const bool any = move_in(pcp, order, attempt);

	end_move(pcp);
	return any;
}

/* For want of an empty magazine: pages that do not exist, which the zone will know, or bad luck. */
static void
give_to_zone(struct pcp_depot *depot, unsigned int order, void *const *pages, uint32_t n)
{
	pcp_zone_free_bulk(depot, PP_PLACE_REST, LCORE_ID_ANY, order, pages, n);
	pcp_count_arrival(depot);
}

static void
flush_magazine(struct pcp *pcp, unsigned int order, struct pcp_magazine *magazine, uint32_t count)
{
	struct pcp_depot *depot = pcp->cache->depot;
	const uint32_t done = pcp_depot_put(depot, pcp_lcore_id(pcp), order, magazine->page, count);

	if (unlikely(done < count))
		give_to_zone(depot, order, magazine->page + done, count - done);
}

static uint32_t
come_to_rest(struct pcp *pcp, unsigned int order, struct pcp_magazine *magazine, uint32_t count)
{
	struct pcp_depot *depot = pcp->cache->depot;

	return pcp_check(depot, depot->in_magazine, PP_PLACE_REST, pcp_lcore_id(pcp), order,
		magazine->page, count);
}

/* Bad ones are not counted as moved: those that do not exist were no frees. */
static uint32_t
flush_lists(struct pcp *pcp, unsigned int order)
{
	struct pcp_list *list = &pcp->list[order];
	const uint32_t previous = come_to_rest(pcp, order, list->previous, list->previous_count);
	const uint32_t loaded =
		come_to_rest(pcp, order, list->loaded, pcp_count(list) + list->parked);

	pcp_add(&pcp->stats[order].out, loaded + previous);
	flush_magazine(pcp, order, list->previous, previous);
	flush_magazine(pcp, order, list->loaded, loaded);
	/* Whoever sees the list empty must see that its pages have arrived. */
	pp_store_release(&list->previous_count, 0);
	pp_store_release(&list->parked, 0);
	pp_store_release(&list->state, pp_load_relaxed(&list->state) & ~PCP_STATE_COUNT);
	return loaded + previous;
}

/* A magazine with a bad block is not full, and what else is bad must not be handed out. */
static bool
is_sound(struct pcp *pcp, unsigned int order)
{
	struct pcp_depot *depot = pcp->cache->depot;
	struct pcp_list *list = &pcp->list[order];
	const uint32_t count = pcp_count(list);

	if (likely(depot->tag == 0) || depot->checks_full)
		return true;
	if (pcp_magazines_overlap(list))
		return false;
	const uint32_t good = come_to_rest(pcp, order, list->loaded, count);

	if (likely(good == count))
		return true;
	/* They rest now; the flush will see to the previous magazine. */
	pcp_add(&pcp->stats[order].out, good);
	flush_magazine(pcp, order, list->loaded, good);
	pcp_set_count(list, 0);
	return false;
}

static void
move_out(struct pcp *pcp, unsigned int order)
{
	struct pcp_depot *depot = pcp->cache->depot;
	struct pcp_list *list = &pcp->list[order];
	const uint32_t count = pcp_count(list);

	pcp_fold_allocs(pcp, order);
	if (list->previous_count == 0) {
		swap_magazines(list, 0, count);
		return;
	}
	if (unlikely(!is_sound(pcp, order))) {
		flush_lists(pcp, order);
		return;
	}
	pcp_add(&pcp->stats[order].out, count);
	struct pcp_magazine *empty =
		pcp_depot_give_full(depot, pcp_lcore_id(pcp), order, list->loaded);

	if (likely(empty != NULL)) {
		pcp_prefetch_magazine(empty, list->capacity, true);
		list->loaded = empty;
	} else {
		give_to_zone(depot, order, list->loaded->page, count);
	}
	pcp_set_count(list, 0);
}

void
pcp_make_room(struct pcp *pcp, unsigned int order)
{
	begin_move(pcp, order);
	move_out(pcp, order);
	end_move(pcp);
}

uint32_t
pcp_flush_list(struct pcp *pcp, unsigned int order)
{
	struct pcp_list *list = &pcp->list[order];

	if (pcp_list_blocks(list) == 0)
		return 0;
	begin_move(pcp, order);
	pcp_fold_allocs(pcp, order);
	const uint32_t moved = flush_lists(pcp, order);

	end_move(pcp);
	return moved;
}

uint64_t
pcp_flush(struct pcp *pcp)
{
	uint64_t moved = 0;

	if (unlikely(pcp->cache->depot->tag != 0))
		pcp_check_lists(pcp);
	for (unsigned int order = 0; order <= pcp->cache->depot->config.max_order; order++)
		moved += pcp_flush_list(pcp, order);
	return moved;
}
