/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reclaim: what idle lcores' caches hold must not be out of the others' reach.
 *
 * The owner publishes that it is inside a call or section with plain stores and then reads
 * `attention`; a claimer sets CLAIMED there and then reads what the owner published. The owner's
 * half of the barrier between the two is free, because the claimer's is a membarrier: after it the
 * owner has either published itself, or will see the claim and wait.
 */

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <rte_cycles.h>

#include "pcp_internal.h"

/* A single call is short: worth waiting for, unless its thread is descheduled. */
#define SPINS_FOR_A_CALL 2000
/* A reclaim walks all caches: others that are dry give it about as long as one takes. */
#define YIELDS_FOR_A_RECLAIM 100

/* A hint: exact only for a cache that is claimed, or whose owner is idle. */
static bool
holds_pages(const struct pcp *pcp)
{
	for (unsigned int order = 0; order < PCP_ORDERS; order++) {
		const struct pcp_list *list = &pcp->list[order];

		if (pp_load_acquire(&list->state) % PCP_STATE_ALLOC +
				pp_load_acquire(&list->parked) +
				pp_load_acquire(&list->previous_count) >
			0)
			return true;
	}
	return false;
}

/* What a look without any barrier says of a cache. */
enum prospect {
	NOTHING,
	IN_SECTION, /* may hold pages; a claim must fail */
	IN_CALL,    /* may hold pages: a swap in progress can hide them */
	IDLE,       /* holds pages */
};

static enum prospect
look(const struct pcp *pcp)
{
	if (pp_load_acquire(&pcp->attention) & PCP_ATTENTION_OFFLINE)
		return NOTHING;
	if (pp_load_relaxed(&pcp->nest) > 0)
		return IN_SECTION;
	if (pp_load_relaxed(&pcp->busy) != 0)
		return IN_CALL;
	return holds_pages(pcp) ? IDLE : NOTHING;
}

/* Handlers leave them to others: to log it may take locks that they have interrupted. */
static bool
is_orphan(const struct pcp *pcp)
{
	return pcp_thread.running == NULL && pcp_is_orphan(pcp);
}

static void
ask_to_drain(struct pcp *pcp)
{
	if (!(pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_DRAIN))
		pp_fetch_or(&pcp->attention, PCP_ATTENTION_DRAIN);
}

/*
 * ---- spin: the lock says who may touch the lists ----
 *
 * They stay parked, as an owner that failed to get the lock must find them.
 */

static uint64_t
take_by_lock(struct pcp_cache *cache, const struct pcp *self)
{
	uint64_t moved = 0;

	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		struct pcp *pcp = &cache->pcp[i];

		if (pcp == self || look(pcp) == NOTHING)
			continue;
		if (is_orphan(pcp)) {
			moved += pcp_bury(pcp);
		} else if (pp_trylock(&pcp->lock) || pp_lock_inherit(&pcp->lock)) {
			if (pcp->moving) /* whoever held the lock was killed */
				pcp_drop_lists(pcp);
			else
				moved += pcp_flush(pcp);
			pp_unlock(&pcp->lock);
		} else {
			ask_to_drain(pcp);
		}
	}
	return moved;
}

/* ---- preempt: the lock, a claim, and a barrier for those in sequences ---- */

static uint64_t
take_from_cpus(struct pcp_cache *cache, const struct pcp *self)
{
	struct pcp *candidate[RTE_MAX_LCORE];
	unsigned int n = 0;
	uint64_t moved = 0;

	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		struct pcp *pcp = &cache->cpu[i];

		if (pcp == self || look(pcp) == NOTHING)
			continue;
		if (is_orphan(pcp))
			moved += pcp_bury(pcp);
		else if (pcp->owner_pid == pp_self && pcp_cpu_trylock(pcp))
			candidate[n++] = pcp;
		else
			ask_to_drain(pcp);
	}
	if (n == 0)
		return moved;
	const bool alone = pcp_membarrier_rseq();

	cache->depot->membarriers += alone;
	for (unsigned int i = 0; i < n; i++) {
		if (alone)
			moved += pcp_flush(candidate[i]);
		pcp_cpu_unlock(candidate[i], alone ? PCP_ATTENTION_DRAIN : 0);
	}
	return moved;
}

/* ---- bh, bypass, irq: claims ---- */

static void
release(struct pcp *pcp, uint32_t bits)
{
	pp_fetch_and(&pcp->attention, ~bits);
}

/* After the membarrier: the cache is ours if its owner is in neither section nor call. */
static bool
is_taken(const struct pcp *pcp)
{
	for (uint32_t spins = 0; pp_load_acquire(&pcp->nest) == 0; spins++) {
		if (pp_load_acquire(&pcp->busy) == 0)
			return true;
		if (spins == SPINS_FOR_A_CALL)
			return false;
		rte_pause();
	}
	return false;
}

static void
back_off(struct pcp_depot *depot)
{
	pp_store_relaxed(&depot->backoff_until, rte_rdtsc() + depot->backoff_cycles);
}

static uint64_t
take_by_claim(struct pcp_cache *cache, const struct pcp *self)
{
	struct pcp_depot *depot = cache->depot;
	struct pcp *candidate[RTE_MAX_LCORE];
	const bool backoff = rte_rdtsc() < pp_load_relaxed(&depot->backoff_until);
	unsigned int n = 0, foreign = 0;
	uint64_t moved = 0;

	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		struct pcp *pcp = &cache->pcp[i];
		const enum prospect prospect = pcp == self ? NOTHING : look(pcp);

		if (prospect == NOTHING)
			continue;
		if (is_orphan(pcp)) {
			moved += pcp_bury(pcp);
			continue;
		}
		ask_to_drain(pcp);
		if (pcp->owner_pid != pp_self)
			foreign++; /* membarriers do not reach it */
		else if (prospect == IDLE || (prospect == IN_CALL && !backoff))
			candidate[n++] = pcp;
	}
	if (moved == 0 && n == 0 && foreign > 0)
		back_off(depot);
	if (n == 0)
		return moved;

	for (unsigned int i = 0; i < n; i++)
		pp_fetch_or(&candidate[i]->attention, PCP_ATTENTION_CLAIMED);
	const bool ordered = pcp_membarrier();

	depot->membarriers += ordered;
	for (unsigned int i = 0; i < n; i++) {
		struct pcp *pcp = candidate[i];

		if (ordered && is_taken(pcp)) {
			moved += pcp_flush(pcp);
			release(pcp, PCP_ATTENTION_CLAIMED | PCP_ATTENTION_DRAIN);
		} else {
			release(pcp, PCP_ATTENTION_CLAIMED);
		}
	}
	if (moved == 0)
		back_off(depot);
	return moved;
}

uint64_t
pcp_reclaim_round(struct pcp_cache *cache, const struct pcp *self)
{
	struct pcp_depot *depot = cache->depot;
	sigset_t all, before;
	uint64_t moved = 0;

	/* A handler that ran here could wait for an owner that waits for us. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	switch (depot->config.mode) {
	case PCP_MODE_BH:
	case PCP_MODE_BYPASS:
	case PCP_MODE_IRQ:
		moved = take_by_claim(cache, self);
		break;
	case PCP_MODE_SPIN:
		moved = take_by_lock(cache, self);
		break;
	case PCP_MODE_PREEMPT:
		moved = take_from_cpus(cache, self);
		break;
	case PCP_MODE_NONE: /* nothing keeps the owner off its lists */
		break;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	depot->reclaims++;
	depot->reclaim_blocks += moved;
	return moved;
}

/* Is a round worth its price, for this cache? */
static bool
is_worth_a_round(const struct pcp *pcp, bool backoff)
{
	const bool asked = pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_DRAIN;
	const enum prospect prospect = look(pcp);

	/* Of another process: it can be asked once, and buried when that is dead. */
	if (prospect != NOTHING && pp_load_relaxed(&pcp->owner_pid) != pp_self)
		return !asked || (!backoff && is_orphan(pcp));
	switch (prospect) {
	case IDLE:
		return true;
	case IN_CALL:
		return !backoff;
	case IN_SECTION:
		return !asked;
	case NOTHING:
		break;
	}
	return false;
}

static bool
anything_to_get(struct pcp_cache *cache, const struct pcp *self)
{
	const bool backoff = rte_rdtsc() < pp_load_relaxed(&cache->depot->backoff_until);

	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		const struct pcp *pcp = &pcp_caches(cache)[i];

		if (pcp != self && is_worth_a_round(pcp, backoff))
			return true;
	}
	return false;
}

/* Another reclaim is under way. True when its process died, and the lock is ours. */
static bool
inherit_after_a_while(struct pp_lock *lock)
{
	uint32_t holder = 0;

	for (uint32_t i = 0; i < YIELDS_FOR_A_RECLAIM; i++) {
		holder = pp_load_acquire(&lock->holder);
		if (holder == 0)
			return false;
		sched_yield();
	}
	if (holder == pp_self || !pp_process_is_dead(holder))
		return false;
	pp_lock(lock);
	return true;
}

bool
pcp_reclaim(struct pcp_cache *cache, const struct pcp *self)
{
	struct pcp_depot *depot = cache->depot;

	if (!anything_to_get(cache, self))
		return false;
	if (!pp_trylock(&depot->reclaim_lock) && !inherit_after_a_while(&depot->reclaim_lock))
		return true;
	const uint64_t moved = pcp_reclaim_round(cache, self);

	pp_unlock(&depot->reclaim_lock);
	return moved > 0;
}
