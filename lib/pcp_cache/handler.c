/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal handlers: what they may do, and when. */

#include <errno.h>

#include <rte_errno.h>

#include "pcp_internal.h"
#include "pcp_irq.h"

__thread struct pcp_thread pcp_thread;

/* ---- past the caches, by try-lock ---- */

/* All n blocks or none. */
static int
try_zone(struct pcp_depot *depot, unsigned int order, void **pages, uint32_t n)
{
	uint32_t done = 0;

	while (done < n && (pages[done] = pcp_zone_tryalloc(depot, order)) != NULL)
		done++;
	if (likely(done == n))
		return 0;
	const int rc = -rte_errno;

	while (done > 0)
		pcp_zone_tryfree(depot, pages[--done], order);
	pp_fetch_add(&depot->failed, 1);
	return rc;
}

int
pcp_handler_alloc_bulk(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n)
{
	const int rc = try_zone(cache->depot, order, pages, n);

	if (rc == 0) {
		pp_fetch_add(&cache->depot->handler_allocs, n);
		pp_fetch_add(&cache->depot->alloc_pages, (uint64_t)n << order);
		if (order > 0)
			pp_fetch_add(&cache->depot->high_order_allocs, n);
	}
	return rc;
}

void
pcp_handler_free_bulk(struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n)
{
	struct pcp_depot *depot = cache->depot;

	for (uint32_t i = 0; i < n; i++) {
		/* Counted first: never more in use than there is. */
		pp_fetch_add(&depot->handler_frees, 1);
		pp_fetch_add(&depot->free_pages, UINT64_C(1) << order);
		if (!pcp_zone_tryfree(depot, pages[i], order)) {
			pp_fetch_add(&depot->handler_frees, -UINT64_C(1));
			pp_fetch_add(&depot->free_pages, -(UINT64_C(1) << order));
		}
	}
}

int
pcp_reentered_alloc(struct pcp *pcp, unsigned int order, void **pages, uint32_t n)
{
	const int rc = try_zone(pcp->cache->depot, order, pages, n);

	pp_fetch_add(&pcp->reentered, 1);
	if (rc == 0) {
		pp_fetch_add(&pcp->reentered_allocs, n);
		pp_fetch_add(&pcp->reentered_pages, (uint64_t)n << order);
		if (order > 0)
			pp_fetch_add(&pcp->cache->depot->high_order_allocs, n);
	}
	return rc;
}

void
pcp_reentered_free(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n)
{
	pp_fetch_add(&pcp->reentered, 1);
	for (uint32_t i = 0; i < n; i++) {
		if (!pcp_zone_tryfree(pcp->cache->depot, pages[i], order))
			continue;
		pp_fetch_add(&pcp->reentered_frees, 1);
		pp_fetch_add(&pcp->reentered_pages, -(UINT64_C(1) << order));
	}
}

/*
 * The call that was interrupted will overwrite the state word with what it has computed, so this
 * one must not touch the lists, nor clear busy. Unless the other one was killed, and this is
 * another process on its lcore.
 */
bool
pcp_is_reentered(struct pcp *pcp, uint32_t interrupted)
{
	if (likely(interrupted == 0)) {
		if (likely(!(pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_HANDLER)))
			return false;
		pp_store_release(&pcp->busy, 0);
		return true;
	}
	if (pcp->owner_pid != 0 && pcp->owner_pid != pp_self && pcp_adopt(pcp)) {
		pp_store_relaxed(&pcp->busy, 1);
		pp_compiler_barrier(); /* pairs with the claimer's membarrier */
		return false;
	}
	return pcp->cache->depot->config.mode != PCP_MODE_NONE;
}

/* ---- mode irq: handlers wait for the end of what they interrupted ---- */

/* The cache of the calling thread's lcore, if any and in use by this process. */
static struct pcp *
own_pcp(struct pcp_cache *cache)
{
	const unsigned int lcore_id = rte_lcore_id();

	if (lcore_id >= RTE_MAX_LCORE || cache->pcp[lcore_id].owner_pid != pp_self)
		return NULL;
	return &cache->pcp[lcore_id];
}

/*
 * Is the thread at the lists, or about to be? A section that is being entered or left (nest is 1,
 * and not `locked`) is not: it will look at `attention` after it has set `locked`, and will not
 * touch the lists after it has looked for handlers.
 */
static bool
is_at_lists(const struct pcp *pcp)
{
	return pcp != NULL &&
	       (pp_load_relaxed(&pcp->busy) != 0 || pp_load_relaxed(&pcp->locked) != 0 ||
		       pp_load_relaxed(&pcp->nest) >= PCP_NEST_IRQ);
}

static bool
must_wait(const struct pcp *pcp)
{
	return pcp_thread.depth > 0 || pcp_thread.running != NULL || is_at_lists(pcp);
}

static bool
is_waiting(const struct pcp_slot *slot, const struct pcp_cache *cache, void (*work)(void *),
	const void *arg)
{
	return pp_load_relaxed(&slot->state) == PCP_SLOT_READY && slot->cache == cache &&
	       slot->work == work && slot->arg == arg;
}

/* Single steps: a handler may be interrupted by another one that does the same. */
static bool
move_slot(struct pcp_slot *slot, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(
		&slot->state, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static int
defer(struct pcp_cache *cache, struct pcp *pcp, void (*work)(void *), void *arg)
{
	struct pcp_slot *slot = pcp_thread.slot;
	unsigned int i;

	for (i = 0; i < PCP_DEFERRED_MAX; i++)
		if (is_waiting(&slot[i], cache, work, arg))
			return -EINPROGRESS;
	for (i = 0; i < PCP_DEFERRED_MAX; i++)
		if (move_slot(&slot[i], PCP_SLOT_FREE, PCP_SLOT_BUSY))
			break;
	if (i == PCP_DEFERRED_MAX) {
		pp_fetch_add(&cache->depot->lost_handlers, 1);
		return -ENOBUFS;
	}
	slot[i].cache = cache;
	slot[i].work = work;
	slot[i].arg = arg;
	pp_compiler_barrier();
	pp_store_relaxed(&slot[i].state, PCP_SLOT_READY);
	pp_store_relaxed(&pcp_thread.any_deferred, 1);
	if (is_at_lists(pcp))
		pp_fetch_or(&pcp->attention, PCP_ATTENTION_PENDING);
	pp_fetch_add(&cache->depot->deferred, 1);
	return -EINPROGRESS;
}

/* As if it had interrupted the thread outside of everything. */
static void
run(struct pcp_cache *cache, struct pcp *pcp, void (*work)(void *), void *arg)
{
	const int saved_errno = errno, saved_rte_errno = rte_errno;
	const uint32_t nest = pcp != NULL ? pp_load_relaxed(&pcp->nest) : 0;

	pcp_thread.running = cache;
	if (unlikely(nest != 0)) /* see is_at_lists() */
		pp_store_release(&pcp->nest, 0);
	pp_compiler_barrier();
	work(arg);
	pp_compiler_barrier();
	if (unlikely(nest != 0))
		pp_store_relaxed(&pcp->nest, nest);
	pcp_thread.running = NULL;
	rte_errno = saved_rte_errno;
	errno = saved_errno;
}

/* Whether it has run. One whose section, of another cache, is still open stays. */
static bool
replay_one(struct pcp_slot *slot)
{
	if (!move_slot(slot, PCP_SLOT_READY, PCP_SLOT_BUSY))
		return false;
	const struct pcp_slot got = *slot;
	struct pcp *pcp = own_pcp(got.cache);
	const bool wait = is_at_lists(pcp);

	pp_compiler_barrier();
	pp_store_relaxed(&slot->state, wait ? PCP_SLOT_READY : PCP_SLOT_FREE);
	if (wait)
		pp_store_relaxed(&pcp_thread.any_deferred, 1);
	else
		run(got.cache, pcp, got.work, got.arg);
	return !wait;
}

void
pcp_replay(void)
{
	bool any = true;

	/* While one runs, more may come to wait. */
	while (any && pcp_thread.depth == 0 && pcp_thread.running == NULL) {
		pp_store_relaxed(&pcp_thread.any_deferred, 0);
		pp_compiler_barrier();
		any = false;
		for (unsigned int i = 0; i < PCP_DEFERRED_MAX; i++)
			any = replay_one(&pcp_thread.slot[i]) || any;
	}
}

/* ---- the entries ---- */

/* In the other modes: at once, and the calls that are not for handlers notice. */
static void
run_watched(struct pcp_cache *cache, void (*work)(void *), void *arg)
{
	const unsigned int lcore_id = rte_lcore_id();
	uint32_t before = PCP_ATTENTION_HANDLER;

	if (cache->cpu != NULL) {
		pcp_thread.watched++;
		pp_compiler_barrier();
		work(arg);
		pp_compiler_barrier();
		pcp_thread.watched--;
		return;
	}
	if (lcore_id < RTE_MAX_LCORE && cache->depot->config.mode != PCP_MODE_NONE)
		before = pp_fetch_or(&cache->pcp[lcore_id].attention, PCP_ATTENTION_HANDLER);
	work(arg);
	if (!(before & PCP_ATTENTION_HANDLER))
		pp_fetch_and(&cache->pcp[lcore_id].attention, ~(uint32_t)PCP_ATTENTION_HANDLER);
}

int
pcp_handler_enter(struct pcp_cache *cache, void (*work)(void *arg), void *arg)
{
	if (cache->depot->config.mode != PCP_MODE_IRQ) {
		run_watched(cache, work, arg);
		return 0;
	}
	struct pcp *pcp = own_pcp(cache);

	if (must_wait(pcp))
		return defer(cache, pcp, work, arg);
	run(cache, pcp, work, arg);
	pcp_replay_any();
	return 0;
}

/* The lcore's cache, when the caller is a function that may use it. */
static struct pcp *
usable_pcp(struct pcp_cache *cache, unsigned int order)
{
	return pcp_thread.running == cache && order <= cache->depot->config.max_order
		       ? own_pcp(cache)
		       : NULL;
}

void *
pcp_handler_alloc(struct pcp_cache *cache, unsigned int order)
{
	struct pcp *pcp = usable_pcp(cache, order);
	void *page;

	if (cache->cpu != NULL)
		return pcp_cpu_handler_alloc(cache, order, &page) == 0 ? page : NULL;
	if (pcp != NULL)
		return pcp_alloc_pages(pcp, order);
	return pcp_handler_alloc_bulk(cache, order, &page, 1) == 0 ? page : NULL;
}

void
pcp_handler_free(struct pcp_cache *cache, void *page, unsigned int order)
{
	struct pcp *pcp = usable_pcp(cache, order);

	if (cache->cpu != NULL)
		pcp_cpu_handler_free(cache, order, page);
	else if (pcp != NULL)
		pcp_free_pages(pcp, page, order);
	else
		pcp_handler_free_bulk(cache, order, &page, 1);
}
