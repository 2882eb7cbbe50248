/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may touch an lcore's lists: sections, single calls and their modes. */

#include <sched.h>

#include <rte_malloc.h>

#include "pcp_internal.h"
#include "pcp_irq.h"

/* A claim lasts for the copy of a few hundred pointers, unless its holder is descheduled. */
#define SPINS_BEFORE_YIELD 1000

static bool
bring_magazines(struct pcp *pcp)
{
	const struct pcp_depot *depot = pcp->cache->depot;
	size_t size = sizeof(struct pcp_memory);

	for (unsigned int order = 0; order <= depot->config.max_order; order++)
		size += 2 * pcp_magazine_size(depot->list[order].batch);
	struct pcp_memory *block = pcp_meta_alloc(depot->zone, size);

	if (block == NULL)
		return false;
	block->next = pcp->magazines;
	pcp->magazines = block;

	char *memory = (char *)(block + 1);

	/* Order 0 says that all are there, so it comes last: a kill may come first. */
	for (unsigned int order = depot->config.max_order + 1; order-- > 0;) {
		struct pcp_list *list = &pcp->list[order];
		const size_t magazine_size = pcp_magazine_size(depot->list[order].batch);

		pp_store_relaxed(&list->previous, (struct pcp_magazine *)(memory + magazine_size));
		pp_store_release(&list->loaded, (struct pcp_magazine *)memory);
		memory += 2 * magazine_size;
	}
	return true;
}

void
pcp_free_magazines(struct pcp *pcp)
{
	struct pcp_memory *next;

	for (struct pcp_memory *block = pcp->magazines; block != NULL; block = next) {
		next = block->next;
		rte_free(block);
	}
}

void
pcp_online(struct pcp *pcp)
{
	/* EAL's heap has locks of its own, that a handler may have interrupted. */
	if (pcp_thread.running != NULL)
		return;
	/* Before a handler may take this call for one of a process that was killed. */
	pp_store_release(&pcp->owner_pid, pp_self);
	/* Magazines of a former owner may still be there. */
	if (!pcp_process_joins(pcp->cache, false) ||
		(pcp->list[0].loaded == NULL && !bring_magazines(pcp)))
		return;
	if (pcp->cache->depot->config.mode != PCP_MODE_SPIN)
		pcp_unpark(pcp);
	/* From here on claimers look at the cache. */
	pp_fetch_and(&pcp->attention, ~(uint32_t)PCP_ATTENTION_OFFLINE);
}

static void
wait_unclaimed(const struct pcp *pcp)
{
	for (uint32_t spins = 0; pp_load_acquire(&pcp->attention) & PCP_ATTENTION_CLAIMED;
		spins++) {
		if (spins < SPINS_BEFORE_YIELD)
			rte_pause();
		else
			sched_yield();
	}
}

void
pcp_flush_if_asked(struct pcp *pcp)
{
	if (!(pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_DRAIN))
		return;
	pp_fetch_and(&pcp->attention, ~(uint32_t)PCP_ATTENTION_DRAIN);
	pcp_flush(pcp);
}

static bool
lock_lists(struct pcp *pcp)
{
	if (!pp_trylock(&pcp->lock)) {
		if (!pp_lock_inherit(&pcp->lock))
			return false;
		if (pcp->moving) {
			pcp_drop_lists(pcp);
			pp_unlock(&pcp->lock);
			return false;
		}
	}
	pcp_unpark(pcp);
	return true;
}

static void
unlock_lists(struct pcp *pcp)
{
	pcp_flush_if_asked(pcp);
	pcp_park(pcp);
	pp_unlock(&pcp->lock);
}

void
pcp_enter(struct pcp *pcp)
{
	/* Inside a section the lists are as the section left them, and a claimer must fail. */
	if (pcp->nest > 0)
		return;
	while (pp_load_acquire(&pcp->attention) & PCP_ATTENTION_CLAIMED) {
		pp_store_release(&pcp->busy, 0);
		wait_unclaimed(pcp);
		pp_store_relaxed(&pcp->busy, 1);
		pp_compiler_barrier(); /* pairs with the claimer's membarrier */
	}
	if (unlikely(pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_OFFLINE))
		pcp_online(pcp);
	if (pcp->cache->depot->config.mode == PCP_MODE_SPIN)
		pcp->locked = lock_lists(pcp);
}

void
pcp_leave(struct pcp *pcp)
{
	if (pcp->nest == 0) {
		if (pcp->cache->depot->config.mode != PCP_MODE_SPIN) {
			pcp_flush_if_asked(pcp);
		} else if (pcp->locked) {
			pcp->locked = false;
			unlock_lists(pcp);
		}
	}
	pp_store_release(&pcp->busy, 0);
	pcp_replay_any();
}

/* An outermost section: `nest` is what it has stored there. */
static void
enter_section(struct pcp *pcp, uint32_t nest)
{
	while (pp_load_acquire(&pcp->attention) & PCP_ATTENTION_CLAIMED) {
		pp_store_release(&pcp->nest, 0);
		wait_unclaimed(pcp);
		pp_store_relaxed(&pcp->nest, nest);
		pp_compiler_barrier(); /* pairs with the claimer's membarrier */
	}
	if (unlikely(pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_OFFLINE) &&
		pcp->cache->cpu == NULL)
		pcp_online(pcp);
}

void
pcp_bh_disable_slow(struct pcp *pcp)
{
	const enum pcp_mode mode = pcp->cache->depot->config.mode;

	/* A handler that ran after the last look at `attention` would leave room for a claim. */
	if (mode == PCP_MODE_IRQ) {
		pp_store_relaxed(&pcp->locked, 1);
		pp_compiler_barrier();
	}
	enter_section(pcp, 1);
	switch (mode) {
	case PCP_MODE_SPIN:
		pcp->locked = lock_lists(pcp);
		break;
	case PCP_MODE_BYPASS:
		pcp_park(pcp);
		break;
	case PCP_MODE_IRQ:
	case PCP_MODE_BH:
	case PCP_MODE_PREEMPT:
	case PCP_MODE_NONE:
		break;
	}
}

void
pcp_bh_enable_slow(struct pcp *pcp)
{
	switch (pcp->cache->depot->config.mode) {
	case PCP_MODE_SPIN:
		if (pcp->locked) {
			pcp->locked = false;
			unlock_lists(pcp);
		}
		break;
	case PCP_MODE_BYPASS:
		/* Not parked, where an irq section ends for a thread that has gone. */
		if (pcp->list[0].capacity == 0)
			pcp_unpark(pcp);
		pcp_flush_if_asked(pcp);
		break;
	case PCP_MODE_IRQ:
		pcp_flush_if_asked(pcp);
		pp_compiler_barrier();
		pp_store_relaxed(&pcp->locked, 0);
		pcp_replay_any();
		break;
	case PCP_MODE_PREEMPT:
		break;
	case PCP_MODE_BH:
	case PCP_MODE_NONE:
		pcp_flush_if_asked(pcp);
		break;
	}
}

void
pcp_irq_save_slow(struct pcp *pcp)
{
	enter_section(pcp, PCP_NEST_IRQ);
}

void
pcp_irq_restore_slow(struct pcp *pcp)
{
	if (pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_DRAIN) {
		pcp_bh_disable(pcp);
		pcp_bh_enable(pcp);
	}
	pp_fetch_and(&pcp->attention, ~(uint32_t)PCP_ATTENTION_PENDING);
	pcp_replay_any();
}
