/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call does when the loaded magazine cannot serve it. */

#include <errno.h>

#include <rte_errno.h>

#include "pcp_internal.h"

/* How often one call tries before it fails although pages seem to be about. */
#define TRIES_MAX 64

/* What one call has seen of the depot, and how often it has tried. */
struct attempt {
	uint64_t arrivals;
	uint32_t tries;
};

static void
attempt_begins(struct attempt *attempt, const struct pcp_depot *depot)
{
	attempt->arrivals = pp_load_acquire(&depot->arrivals);
	attempt->tries++;
}

/* ---- exchanges: by who owns or has claimed the cache ---- */

/*
 * A counter that one thread writes and any may read. What goes is counted before it goes, and what
 * comes after it came: a kill in between shows as missing, never as in two places.
 */
static void
add(uint64_t *counter, uint64_t n)
{
	pp_store_relaxed(counter, *counter + n);
}

/* The state word's allocation count has 48 bits; every exchange moves it to the statistics. */
static void
fold_allocs(struct pcp *pcp, unsigned int order)
{
	struct pcp_list *list = &pcp->list[order];
	const uint64_t state = pp_load_relaxed(&list->state);

	add(&pcp->stats[order].allocs, state / PCP_STATE_ALLOC);
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
move_in(struct pcp *pcp, unsigned int order, struct attempt *attempt)
{
	struct pcp_depot *depot = pcp->cache->depot;
	struct pcp_list *list = &pcp->list[order];

	fold_allocs(pcp, order);
	if (list->previous_count > 0) {
		swap_magazines(list, list->previous_count, 0);
		return true;
	}
	attempt_begins(attempt, depot);
	struct pcp_magazine *full = pcp_depot_take_full(depot, order, list->loaded);

	if (full != NULL) {
		const uint32_t count = full->count;

		pcp_prefetch_magazine(full, count, false);
		list->loaded = full;
		pcp_set_count(list, count);
		add(&pcp->stats[order].in, count);
		return true;
	}
	const uint32_t got = pp_zone_alloc_bulk(
		depot->zone, order, list->loaded->page, list->capacity, PP_ALLOC_REFILL);

	pcp_set_count(list, got);
	add(&pcp->stats[order].in, got);
	pp_fetch_add(&depot->refills, got > 0);
	return got > 0;
}

/*
 * Pages for an empty loaded magazine: the previous one, the depot's, the zone's. False when dry;
 * `attempt` begins here.
 */
static bool
refill(struct pcp *pcp, unsigned int order, struct attempt *attempt)
{
	begin_move(pcp, order);
	const bool any = move_in(pcp, order, attempt);

	end_move(pcp);
	return any;
}

static void
move_out(struct pcp *pcp, unsigned int order)
{
	struct pcp_depot *depot = pcp->cache->depot;
	struct pcp_list *list = &pcp->list[order];
	const uint32_t count = pcp_count(list);

	fold_allocs(pcp, order);
	if (list->previous_count == 0) {
		swap_magazines(list, 0, count);
		return;
	}
	add(&pcp->stats[order].out, count);
	struct pcp_magazine *empty = pcp_depot_give_full(depot, order, list->loaded);

	if (likely(empty != NULL)) {
		pcp_prefetch_magazine(empty, list->capacity, true);
		list->loaded = empty;
	} else {
		/* More pages than the zone has: it will know the ones freed twice. */
		pp_zone_free_bulk(depot->zone, order, list->loaded->page, count);
	}
	pcp_set_count(list, 0);
}

/* Room for a full loaded magazine: the previous one, an empty one of the depot, or the zone. */
static void
make_room(struct pcp *pcp, unsigned int order)
{
	begin_move(pcp, order);
	move_out(pcp, order);
	end_move(pcp);
}

static void
flush_magazine(
	struct pcp_depot *depot, unsigned int order, struct pcp_magazine *magazine, uint32_t count)
{
	const uint32_t done = pcp_depot_put(depot, order, magazine->page, count);

	if (unlikely(done < count))
		pp_zone_free_bulk(depot->zone, order, magazine->page + done, count - done);
}

static uint32_t
flush_list(struct pcp *pcp, unsigned int order)
{
	struct pcp_depot *depot = pcp->cache->depot;
	struct pcp_list *list = &pcp->list[order];
	const uint32_t loaded = pcp_count(list) + list->parked, previous = list->previous_count;

	if (loaded + previous == 0)
		return 0;
	begin_move(pcp, order);
	fold_allocs(pcp, order);
	add(&pcp->stats[order].out, loaded + previous);
	flush_magazine(depot, order, list->previous, previous);
	flush_magazine(depot, order, list->loaded, loaded);
	/* Whoever sees the list empty must see that its pages have arrived. */
	pp_store_release(&list->previous_count, 0);
	pp_store_release(&list->parked, 0);
	pp_store_release(&list->state, pp_load_relaxed(&list->state) & ~PCP_STATE_COUNT);
	end_move(pcp);
	return loaded + previous;
}

uint64_t
pcp_flush(struct pcp *pcp)
{
	uint64_t moved = 0;

	for (unsigned int order = 0; order <= pcp->cache->depot->config.max_order; order++)
		moved += flush_list(pcp, order);
	return moved;
}

/* ---- past the magazines ---- */

/* What lies in magazines of other orders goes to the zone, to be merged or split. */
static uint64_t
drain_other_orders(struct pcp_depot *depot, struct pcp *pcp, unsigned int order)
{
	uint64_t moved = 0;

	for (unsigned int other = 0; other <= depot->config.max_order; other++) {
		if (other == order)
			continue;
		if (pcp != NULL && pcp->list[other].capacity > 0)
			flush_list(pcp, other);
		moved += pcp_depot_drain(depot, other, 0);
	}
	return moved;
}

/* In a section of mode bypass the own pages are out of the way, but not out of reach. */
static bool
flush_parked(struct pcp *pcp)
{
	return pcp != NULL && pcp->cache->depot->config.mode == PCP_MODE_BYPASS && pcp->nest > 0 &&
	       pcp_flush(pcp) > 0;
}

/*
 * Nothing left here, since the attempt began at least: is it worth while to try again? Who finds
 * depot and zone dry, and then no cache with pages, may have missed some that moved in between.
 */
static bool
reclaim(struct pcp_cache *cache, struct pcp *pcp, unsigned int order, const struct attempt *attempt)
{
	if (attempt->tries >= TRIES_MAX)
		return false;
	return flush_parked(pcp) || drain_other_orders(cache->depot, pcp, order) > 0 ||
	       pcp_reclaim(cache, pcp) ||
	       pp_load_acquire(&cache->depot->arrivals) != attempt->arrivals;
}

/*
 * A request that cannot succeed takes nothing, or others would find the pool empty while it
 * collects. Only asked when depot and zone have less, for it looks at every cache.
 */
static bool
is_hopeless(struct pcp_cache *cache, unsigned int order, uint32_t n)
{
	const struct pcp_depot *depot = cache->depot;
	const uint64_t pages = (uint64_t)n << order;
	uint64_t near = pp_zone_free_pages(depot->zone);

	if (order <= depot->config.max_order)
		near += pcp_depot_hint(depot, order) << order;
	return pages > near && pages > pcp_cache_free_pages(cache);
}

static int
failed(struct pcp_depot *depot)
{
	pp_fetch_add(&depot->failed, 1);
	rte_errno = ENOMEM;
	return -ENOMEM;
}

/* As many of n blocks as zone and depot have between them, zone first. */
static uint32_t
zone_alloc(struct pcp_depot *depot, unsigned int order, void **pages, uint32_t n,
	struct attempt *attempt)
{
	attempt_begins(attempt, depot);
	uint32_t done = pp_zone_alloc_bulk(depot->zone, order, pages, n, PP_ALLOC_REFILL);

	if (unlikely(done < n) && order <= depot->config.max_order)
		done += pcp_depot_take(depot, order, pages + done, n - done);
	return done;
}

int
pcp_depot_alloc_bulk(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n)
{
	struct pcp_depot *depot = cache->depot;
	struct attempt attempt = {0};
	uint32_t done = 0;

	if (unlikely(order > pp_zone_max_order(depot->zone))) {
		rte_errno = EINVAL;
		return -EINVAL;
	}
	if (unlikely(is_hopeless(cache, order, n)))
		return failed(depot);
	if (order <= depot->config.max_order)
		done = pcp_depot_take(depot, order, pages, n);
	do {
		if (done < n)
			done += zone_alloc(depot, order, pages + done, n - done, &attempt);
	} while (unlikely(done < n) && reclaim(cache, NULL, order, &attempt));

	if (unlikely(done < n)) {
		pp_zone_free_bulk(depot->zone, order, pages, done);
		return failed(depot);
	}
	pp_fetch_add(&depot->allocs, n);
	pp_fetch_add(&depot->alloc_pages, (uint64_t)n << order);
	if (unlikely(rte_lcore_id() == LCORE_ID_ANY))
		pp_fetch_add(&depot->unregistered, n);
	return 0;
}

void
pcp_depot_free_bulk(struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n)
{
	struct pcp_depot *depot = cache->depot;
	uint32_t done = 0;

	pp_fetch_add(&depot->frees, n);
	pp_fetch_add(&depot->free_pages, (uint64_t)n << order);
	if (likely(order <= depot->config.max_order))
		done = pcp_depot_put(depot, order, pages, n);
	if (unlikely(done < n))
		pp_zone_free_bulk(depot->zone, order, pages + done, n - done);
	if (unlikely(rte_lcore_id() == LCORE_ID_ANY))
		pp_fetch_add(&depot->unregistered, n);
}

void *
pcp_depot_alloc(struct pcp_cache *cache, unsigned int order)
{
	void *page;

	return pcp_depot_alloc_bulk(cache, order, &page, 1) == 0 ? page : NULL;
}

void
pcp_depot_free(struct pcp_cache *cache, void *page, unsigned int order)
{
	pcp_depot_free_bulk(cache, order, &page, 1);
}

void *
pcp_handler_alloc(struct pcp_cache *cache, unsigned int order)
{
	struct pcp_depot *depot = cache->depot;
	void *page = pp_zone_alloc(depot->zone, order, PP_ALLOC_REFILL | PP_ALLOC_TRYLOCK);

	if (page != NULL) {
		pp_fetch_add(&depot->handler_allocs, 1);
		pp_fetch_add(&depot->alloc_pages, UINT64_C(1) << order);
	} else {
		pp_fetch_add(&depot->failed, 1);
	}
	return page;
}

void
pcp_handler_free(struct pcp_cache *cache, void *page, unsigned int order)
{
	struct pcp_depot *depot = cache->depot;

	pp_fetch_add(&depot->handler_frees, 1);
	pp_fetch_add(&depot->free_pages, UINT64_C(1) << order);
	if (pp_zone_free(depot->zone, page, order, PP_ALLOC_TRYLOCK) != 0) {
		pp_fetch_add(&depot->handler_frees, -UINT64_C(1));
		pp_fetch_add(&depot->free_pages, -(UINT64_C(1) << order));
	}
}

/* ---- calls whose owner may use the lists, or must keep off them (capacity 0) ---- */

static int
zone_alloc_all(struct pcp *pcp, unsigned int order, void **pages, uint32_t n)
{
	struct pcp_depot *depot = pcp->cache->depot;
	struct attempt attempt = {0};
	uint32_t done = 0;

	if (unlikely(is_hopeless(pcp->cache, order, n)))
		return failed(depot);
	do
		done += zone_alloc(depot, order, pages + done, n - done, &attempt);
	while (unlikely(done < n) && reclaim(pcp->cache, pcp, order, &attempt));

	if (unlikely(done < n)) {
		pp_zone_free_bulk(depot->zone, order, pages, done);
		return failed(depot);
	}
	add(&pcp->stats[order].zone_allocs, n);
	return 0;
}

static void
zone_free_all(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n)
{
	add(&pcp->stats[order].zone_frees, n);
	const uint32_t done = pp_zone_free_bulk(pcp->cache->depot->zone, order, pages, n);

	add(&pcp->stats[order].zone_frees, -(uint64_t)(n - done)); /* refused: not of this zone */
}

static void
list_free(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n)
{
	struct pcp_list *list = &pcp->list[order];

	while (n > 0) {
		const uint32_t count = pcp_count(list);
		const uint32_t k = RTE_MIN(n, list->capacity - count);

		if (k == 0) {
			make_room(pcp, order);
			continue;
		}
		pcp_copy(&list->loaded->page[count], pages, k);
		pcp_set_count(list, count + k);
		pages += k;
		n -= k;
	}
}

static int
list_alloc(struct pcp *pcp, unsigned int order, void **pages, uint32_t n)
{
	struct pcp_list *list = &pcp->list[order];
	struct attempt attempt = {0};
	uint32_t done = 0;

	/* More than the lists and one refill have. */
	if (unlikely(n > pcp_count(list) + list->previous_count + list->capacity) &&
		is_hopeless(pcp->cache, order, n))
		return failed(pcp->cache->depot);
	while (done < n) {
		const uint32_t count = pcp_count(list);
		const uint32_t k = RTE_MIN(n - done, count);

		if (k == 0) {
			if (likely(refill(pcp, order, &attempt)) ||
				reclaim(pcp->cache, pcp, order, &attempt))
				continue;
			break;
		}
		pcp_copy(pages + done, &list->loaded->page[count - k], k);
		pp_store_relaxed(
			&list->state, pp_load_relaxed(&list->state) + k * (PCP_STATE_ALLOC - 1));
		done += k;
	}
	if (unlikely(done < n)) {
		/* Not allocations after all; and what is counted as freed follows from them. */
		fold_allocs(pcp, order);
		add(&pcp->stats[order].allocs, -(uint64_t)done);
		list_free(pcp, order, pages, done);
		return failed(pcp->cache->depot);
	}
	return 0;
}

/* ---- entry points ---- */

static int
alloc_blocks(struct pcp *pcp, unsigned int order, void **pages, uint32_t n)
{
	if (unlikely(pcp->list[order].capacity == 0))
		return zone_alloc_all(pcp, order, pages, n);
	return list_alloc(pcp, order, pages, n);
}

static void
free_blocks(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n)
{
	if (unlikely(pcp->list[order].capacity == 0))
		zone_free_all(pcp, order, pages, n);
	else
		list_free(pcp, order, pages, n);
}

void *
pcp_alloc_nested_slow(struct pcp *pcp, unsigned int order)
{
	void *page;

	return alloc_blocks(pcp, order, &page, 1) == 0 ? page : NULL;
}

void
pcp_free_nested_slow(struct pcp *pcp, void *page, unsigned int order)
{
	free_blocks(pcp, order, &page, 1);
}

/*
 * The call was made from a handler that interrupted another call. That one will overwrite the state
 * word with what it has computed, so this one must not touch the lists, nor clear busy. Unless the
 * other one was killed, and this is another process on its lcore.
 */
static bool
reentered(struct pcp *pcp, uint32_t interrupted)
{
	if (likely(interrupted == 0))
		return false;
	if (pcp->owner_pid != 0 && pcp->owner_pid != pp_self && pcp_adopt(pcp)) {
		pp_store_relaxed(&pcp->busy, 1);
		pp_compiler_barrier(); /* pairs with the claimer's membarrier */
		return false;
	}
	return pcp->cache->depot->config.mode != PCP_MODE_NONE;
}

static int
reentered_alloc(struct pcp *pcp, unsigned int order, void **pages, uint32_t n)
{
	struct pp_zone *zone = pcp->cache->depot->zone;
	const uint32_t done =
		pp_zone_alloc_bulk(zone, order, pages, n, PP_ALLOC_REFILL | PP_ALLOC_TRYLOCK);

	pp_fetch_add(&pcp->reentered, 1);
	if (done < n) {
		for (uint32_t i = 0; i < done; i++)
			pp_zone_free(zone, pages[i], order, PP_ALLOC_TRYLOCK);
		pp_fetch_add(&pcp->cache->depot->failed, 1);
		return -rte_errno;
	}
	pp_fetch_add(&pcp->reentered_allocs, n);
	pp_fetch_add(&pcp->reentered_pages, (uint64_t)n << order);
	return 0;
}

static void
reentered_free(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n)
{
	pp_fetch_add(&pcp->reentered, 1);
	pp_fetch_add(&pcp->reentered_frees, n);
	pp_fetch_add(&pcp->reentered_pages, -((uint64_t)n << order));
	for (uint32_t i = 0; i < n; i++)
		pp_zone_free(pcp->cache->depot->zone, pages[i], order, PP_ALLOC_TRYLOCK);
}

static int
alloc_slow(struct pcp *pcp, unsigned int order, void **pages, uint32_t n, uint32_t interrupted)
{
	if (unlikely(reentered(pcp, interrupted)))
		return reentered_alloc(pcp, order, pages, n);

	pcp_enter(pcp);
	const int rc = alloc_blocks(pcp, order, pages, n);

	pcp_leave(pcp);
	return rc;
}

static void
free_slow(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n, uint32_t interrupted)
{
	if (unlikely(reentered(pcp, interrupted))) {
		reentered_free(pcp, order, pages, n);
		return;
	}
	pcp_enter(pcp);
	free_blocks(pcp, order, pages, n);
	pcp_leave(pcp);
}

void *
pcp_alloc_slow(struct pcp *pcp, unsigned int order, uint32_t interrupted)
{
	void *page;

	return alloc_slow(pcp, order, &page, 1, interrupted) == 0 ? page : NULL;
}

void
pcp_free_slow(struct pcp *pcp, void *page, unsigned int order, uint32_t interrupted)
{
	free_slow(pcp, order, &page, 1, interrupted);
}

int
pcp_alloc_bulk_slow(struct pcp *pcp, void **pages, uint32_t n, uint32_t interrupted)
{
	return alloc_slow(pcp, 0, pages, n, interrupted);
}

void
pcp_free_bulk_slow(struct pcp *pcp, void *const *pages, uint32_t n, uint32_t interrupted)
{
	free_slow(pcp, 0, pages, n, interrupted);
}
