/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call does when the loaded magazine cannot serve it, and calls past the caches. */

#include <errno.h>

#include <rte_errno.h>

#include "pcp_internal.h"

/* How often one call tries before it fails although pages seem to be about. */
#define TRIES_MAX 64

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
			pcp_flush_list(pcp, other);
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
reclaim(struct pcp_cache *cache, struct pcp *pcp, unsigned int order,
	const struct pcp_attempt *attempt)
{
	if (attempt->tries >= TRIES_MAX)
		return false;
	return flush_parked(pcp) || drain_other_orders(cache->depot, pcp, order) > 0 ||
	       pcp_reclaim(cache, pcp) || pcp_attempt_missed(attempt, cache->depot);
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

	if (unlikely(order > pp_zone_max_order(depot->zone)))
		return true;
	if (pages > near && order <= depot->config.max_order)
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

/* Out of the depot's magazines, for a user. */
static uint32_t
depot_alloc(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order, void **pages,
	uint32_t n)
{
	uint32_t done = 0, got, good;

	if (order > depot->config.max_order)
		return 0;
	do {
		got = pcp_depot_take(depot, lcore_id, order, pages + done, n - done);
		good = pcp_check(
			depot, PP_PLACE_REST, PP_PLACE_OUT, lcore_id, order, pages + done, got);
		done += good;
	} while (unlikely(good < got));
	return done;
}

/* As many of n blocks as zone and depot have between them, zone first. */
static uint32_t
zone_alloc(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order, void **pages,
	uint32_t n, struct pcp_attempt *attempt)
{
	uint32_t done = pcp_zone_alloc_bulk(depot, PP_PLACE_OUT, lcore_id, order, pages, n);

	if (likely(done == n))
		return done;
	pcp_attempt_begins(attempt, depot);
	done += pcp_zone_alloc_bulk(depot, PP_PLACE_OUT, lcore_id, order, pages + done, n - done);
	return done + depot_alloc(depot, lcore_id, order, pages + done, n - done);
}

int
pcp_alloc_past(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n)
{
	struct pcp_depot *depot = cache->depot;
	const unsigned int lcore_id = rte_lcore_id();
	struct pcp_attempt attempt = {0};

	if (unlikely(is_hopeless(cache, order, n)))
		return failed(depot);
	uint32_t done = depot_alloc(depot, lcore_id, order, pages, n);

	do {
		if (done < n)
			done += zone_alloc(
				depot, lcore_id, order, pages + done, n - done, &attempt);
	} while (unlikely(done < n) && reclaim(cache, NULL, order, &attempt));

	if (unlikely(done < n)) {
		pcp_zone_free_bulk(depot, PP_PLACE_OUT, lcore_id, order, pages, done);
		return failed(depot);
	}
	pp_fetch_add(&depot->allocs, n);
	pp_fetch_add(&depot->alloc_pages, (uint64_t)n << order);
	if (order > 0)
		pp_fetch_add(&depot->high_order_allocs, n);
	if (unlikely(lcore_id == LCORE_ID_ANY))
		pp_fetch_add(&depot->unregistered, n);
	return 0;
}

static void
count_frees(struct pcp_depot *depot, unsigned int order, uint64_t n)
{
	pp_fetch_add(&depot->frees, n);
	pp_fetch_add(&depot->free_pages, n << order);
}

/* Blocks that rest, but those of orders that are not cached. */
static void
depot_free(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order, void *const *pages,
	uint32_t n)
{
	const bool cached = order <= depot->config.max_order;
	uint32_t done = 0;

	/* First: never more in use than there is. */
	count_frees(depot, order, n);
	if (likely(cached))
		done = pcp_depot_put(depot, lcore_id, order, pages, n);
	if (likely(done == n))
		return;
	done += pcp_zone_free_bulk(depot, PP_PLACE_REST, lcore_id, order, pages + done, n - done);
	count_frees(depot, order, -(uint64_t)(n - done)); /* refused: not of this zone */
}

void
pcp_free_past(struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n)
{
	struct pcp_depot *depot = cache->depot;
	const unsigned int lcore_id = rte_lcore_id();

	if (unlikely(lcore_id == LCORE_ID_ANY))
		pp_fetch_add(&depot->unregistered, n);
	if (likely(depot->tag == 0)) {
		depot_free(depot, lcore_id, order, pages, n);
		return;
	}
	for (uint32_t i = 0; i < n; i += PCP_CHECK_CHUNK) {
		const uint32_t k = RTE_MIN(n - i, PCP_CHECK_CHUNK);
		void *good[PCP_CHECK_CHUNK];

		pcp_copy(good, pages + i, k);
		depot_free(depot, lcore_id, order, good,
			pcp_check(depot, PP_PLACE_OUT, PP_PLACE_REST, lcore_id, order, good, k));
	}
}

/* A handler that interrupted what may hold the locks; `none` does not care. */
static bool
is_inside(const struct pcp_cache *cache)
{
	if (likely(pcp_thread.depth == 0) || cache->depot->config.mode == PCP_MODE_NONE)
		return false;
	pp_fetch_add(&cache->depot->reentered, 1);
	return true;
}

/* In mode preempt threads without an lcore id have caches, too. */
static bool
is_for_cpus(const struct pcp_cache *cache)
{
	return unlikely(cache->cpu != NULL) && rte_lcore_id() == LCORE_ID_ANY;
}

int
pcp_depot_alloc_bulk(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n)
{
	if (unlikely(order > pp_zone_max_order(cache->depot->zone))) {
		rte_errno = EINVAL;
		return -EINVAL;
	}
	if (unlikely(is_for_cpus(cache)))
		return pcp_cpu_alloc_any(cache, order, pages, n);
	if (unlikely(is_inside(cache)))
		return pcp_handler_alloc_bulk(cache, order, pages, n);
	pcp_guard_begin();
	const int rc = pcp_alloc_past(cache, order, pages, n);

	pcp_guard_end();
	return rc;
}

void
pcp_depot_free_bulk(struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n)
{
	if (unlikely(is_for_cpus(cache))) {
		pcp_cpu_free_any(cache, order, pages, n);
		return;
	}
	if (unlikely(is_inside(cache))) {
		pcp_handler_free_bulk(cache, order, pages, n);
		return;
	}
	pcp_guard_begin();
	pcp_free_past(cache, order, pages, n);
	pcp_guard_end();
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

/* ---- calls whose owner may use the lists, or must keep off them (capacity 0) ---- */

static int
zone_alloc_all(struct pcp *pcp, unsigned int order, void **pages, uint32_t n)
{
	struct pcp_depot *depot = pcp->cache->depot;
	const unsigned int lcore_id = pcp_lcore_id(pcp);
	struct pcp_attempt attempt = {0};
	uint32_t done = 0;

	if (unlikely(is_hopeless(pcp->cache, order, n)))
		return failed(depot);
	do
		done += zone_alloc(depot, lcore_id, order, pages + done, n - done, &attempt);
	while (unlikely(done < n) && reclaim(pcp->cache, pcp, order, &attempt));

	if (unlikely(done < n)) {
		pcp_zone_free_bulk(depot, PP_PLACE_OUT, lcore_id, order, pages, done);
		return failed(depot);
	}
	pcp_add(&pcp->stats[order].zone_allocs, n);
	return 0;
}

static void
zone_free_all(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n)
{
	pcp_add(&pcp->stats[order].zone_frees, n);
	const uint32_t done = pcp_zone_free_bulk(
		pcp->cache->depot, PP_PLACE_OUT, pcp_lcore_id(pcp), order, pages, n);

	pcp_add(&pcp->stats[order].zone_frees,
		-(uint64_t)(n - done)); /* refused: not of this zone */
}

static void
list_push(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n)
{
	struct pcp_list *list = &pcp->list[order];

	while (n > 0) {
		const uint32_t count = pcp_count(list);
		const uint32_t k = RTE_MIN(n, list->capacity - count);

		if (k == 0) {
			pcp_make_room(pcp, order);
			continue;
		}
		pcp_copy(&list->loaded->page[count], pages, k);
		pp_compiler_barrier(); /* a kill leaves no count without its pages */
		pcp_set_count(list, count + k);
		pages += k;
		n -= k;
	}
}

static void
list_free(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n)
{
	struct pcp_depot *depot = pcp->cache->depot;

	if (likely(!depot->checks_full)) {
		list_push(pcp, order, pages, n);
		return;
	}
	for (uint32_t i = 0; i < n; i += PCP_CHECK_CHUNK) {
		const uint32_t k = RTE_MIN(n - i, PCP_CHECK_CHUNK);
		void *good[PCP_CHECK_CHUNK];

		pcp_copy(good, pages + i, k);
		list_push(pcp, order, good,
			pcp_check(depot, PP_PLACE_OUT, PP_PLACE_REST, pcp_lcore_id(pcp), order,
				good, k));
	}
}

/* Out of the lists, but not to the user: no allocations after all. */
static void
uncount_allocs(struct pcp *pcp, unsigned int order, uint32_t n)
{
	pcp_fold_allocs(pcp, order);
	pcp_add(&pcp->stats[order].allocs, -(uint64_t)n);
}

/* k blocks have just come out of the lists. Returns how many the user may have. */
static uint32_t
check_popped(struct pcp *pcp, unsigned int order, void **pages, uint32_t k)
{
	struct pcp_depot *depot = pcp->cache->depot;
	const uint32_t good = pcp_check(
		depot, depot->in_magazine, PP_PLACE_OUT, pcp_lcore_id(pcp), order, pages, k);

	if (unlikely(good < k)) {
		uncount_allocs(pcp, order, k - good);
		pcp_add(&pcp->stats[order].out, k - good);
	}
	return good;
}

static int
list_alloc(struct pcp *pcp, unsigned int order, void **pages, uint32_t n)
{
	struct pcp_list *list = &pcp->list[order];
	struct pcp_attempt attempt = {0};
	uint32_t done = 0;

	/* More than the lists and one refill have. */
	if (unlikely(n > pcp_count(list) + list->previous_count + list->capacity) &&
		is_hopeless(pcp->cache, order, n))
		return failed(pcp->cache->depot);
	while (done < n) {
		const uint32_t count = pcp_count(list);
		const uint32_t k = RTE_MIN(n - done, count);

		if (k == 0) {
			if (likely(pcp_refill(pcp, order, &attempt)) ||
				reclaim(pcp->cache, pcp, order, &attempt))
				continue;
			break;
		}
		pcp_copy(pages + done, &list->loaded->page[count - k], k);
		pp_store_relaxed(
			&list->state, pp_load_relaxed(&list->state) + k * (PCP_STATE_ALLOC - 1));
		done += check_popped(pcp, order, pages + done, k);
	}
	if (unlikely(done < n)) {
		/* What is counted as freed follows from the allocations. */
		uncount_allocs(pcp, order, done);
		list_free(pcp, order, pages, done);
		return failed(pcp->cache->depot);
	}
	return 0;
}

/* ---- entry points ---- */

int
pcp_alloc_blocks(struct pcp *pcp, unsigned int order, void **pages, uint32_t n)
{
	int rc;

	pcp_lists_begin(pcp);
	if (unlikely(pcp->list[order].capacity == 0))
		rc = zone_alloc_all(pcp, order, pages, n);
	else
		rc = list_alloc(pcp, order, pages, n);
	pcp_lists_end(pcp);
	return rc;
}

void
pcp_free_blocks(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n)
{
	pcp_lists_begin(pcp);
	if (unlikely(pcp->list[order].capacity == 0))
		zone_free_all(pcp, order, pages, n);
	else
		list_free(pcp, order, pages, n);
	pcp_lists_end(pcp);
}

void *
pcp_alloc_nested_slow(struct pcp *pcp, unsigned int order)
{
	void *page;

	if (unlikely(pcp->cache->cpu != NULL))
		return pcp_cpu_alloc_any(pcp->cache, order, &page, 1) == 0 ? page : NULL;
	return pcp_alloc_blocks(pcp, order, &page, 1) == 0 ? page : NULL;
}

void
pcp_free_nested_slow(struct pcp *pcp, void *page, unsigned int order)
{
	if (unlikely(pcp->cache->cpu != NULL))
		pcp_cpu_free_any(pcp->cache, order, &page, 1);
	else
		pcp_free_blocks(pcp, order, &page, 1);
}

/* In mode preempt an lcore's cache has no lists, and its calls are not inside of it. */
static bool
is_of_cpus(struct pcp *pcp, uint32_t interrupted)
{
	if (likely(pcp->cache->cpu == NULL))
		return false;
	if (interrupted == 0)
		pp_store_release(&pcp->busy, 0);
	return true;
}

static int
alloc_slow(struct pcp *pcp, unsigned int order, void **pages, uint32_t n, uint32_t interrupted)
{
	if (unlikely(is_of_cpus(pcp, interrupted)))
		return pcp_cpu_alloc_any(pcp->cache, order, pages, n);
	if (unlikely(pcp_is_reentered(pcp, interrupted)))
		return pcp_reentered_alloc(pcp, order, pages, n);

	pcp_enter(pcp);
	const int rc = pcp_alloc_blocks(pcp, order, pages, n);

	pcp_leave(pcp);
	return rc;
}

static void
free_slow(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n, uint32_t interrupted)
{
	if (unlikely(is_of_cpus(pcp, interrupted))) {
		pcp_cpu_free_any(pcp->cache, order, pages, n);
		return;
	}
	if (unlikely(pcp_is_reentered(pcp, interrupted))) {
		pcp_reentered_free(pcp, order, pages, n);
		return;
	}
	pcp_enter(pcp);
	pcp_free_blocks(pcp, order, pages, n);
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
