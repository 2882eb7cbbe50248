/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mode preempt: what the restartable sequences of pcp_cpu.h cannot do by themselves.
 *
 * A cache's lock makes its holder the only one that may claim it. A claim is a bit that sequences
 * look at. Set on the CPU itself, no sequence can have looked before and still commit: a thread
 * that was in one has been preempted, and starts over. Set from elsewhere, a membarrier makes those
 * start over that run there.
 */

#include <errno.h>
#include <sched.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "pcp_cpu.h"
#include "pcp_internal.h"

/* Its holder copies a magazine, unless it is descheduled: perhaps by us. */
#define YIELDS_FOR_A_LOCK 4

#if PCP_HAS_RSEQ

const char *
pcp_rseq_obstacle(void)
{
	if (__rseq_size == 0)
		return "glibc has not registered them: a tunable, a tool or an old kernel";
	if (!pcp_rseq_is_registered())
		return "this thread is not registered";
	if (!pcp_membarrier_rseq_register())
		return "the kernel's membarrier does not reach them";
	return NULL;
}

/* Under the cache's lock, for the CPU that the thread runs on: false if that is another. */
static bool
claim_on_cpu(struct pcp *pcp, uint32_t cpu)
{
	__asm__ goto(PCP_RSEQ_BEGIN "lock orl %[claimed], %c[attention](%[pcp])\n" PCP_RSEQ_END
		     :
		     : PCP_RSEQ_INPUTS(cpu), [pcp] "r"(pcp),
		     [attention] "i"(offsetof(struct pcp, attention)),
		     [claimed] "i"(PCP_ATTENTION_CLAIMED)
		     : "memory", "cc", "rax"
		     : aborted);
	return true;
aborted:
	return false;
}

/* The CPU's cache, claimed, and online if there is memory; NULL when somebody else has it. */
static struct pcp *
claim(struct pcp_cache *cache)
{
	uint32_t cpu;

	for (;;) {
		struct pcp *pcp = pcp_this_cpu(cache, &cpu);

		if (pcp == NULL || !pcp_rseq_is_registered() || !pp_trylock(&pcp->lock))
			return NULL;
		if (claim_on_cpu(pcp, cpu)) {
			if (unlikely(pp_load_relaxed(&pcp->attention) & PCP_ATTENTION_OFFLINE))
				pcp_online(pcp);
			return pcp;
		}
		pp_unlock(&pcp->lock);
	}
}

/* Whether claim() may succeed some time. */
static bool
has_cache(struct pcp_cache *cache)
{
	uint32_t cpu;

	return pcp_this_cpu(cache, &cpu) != NULL && pcp_rseq_is_registered();
}

#else

const char *
pcp_rseq_obstacle(void)
{
	return "not on this processor, or under this sanitizer";
}

static struct pcp *
claim(struct pcp_cache *cache __rte_unused)
{
	return NULL;
}

static bool
has_cache(struct pcp_cache *cache __rte_unused)
{
	return false;
}

#endif

/* Serves what others asked for meanwhile. */
static void
release(struct pcp *pcp)
{
	pcp_flush_if_asked(pcp);
	pp_fetch_and(&pcp->attention, ~(uint32_t)PCP_ATTENTION_CLAIMED);
	pp_unlock(&pcp->lock);
}

/* Handlers must not wait for locks; the sequence is all they get of the cache. */
static bool
is_handler(struct pcp_cache *cache)
{
	if (likely(pcp_thread.depth == 0 && pcp_thread.watched == 0))
		return false;
	pp_fetch_add(&cache->depot->reentered, pcp_thread.depth > 0);
	return true;
}

static int
alloc_slow(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n)
{
	struct pcp *pcp;
	int rc;

	if (is_handler(cache))
		return pcp_handler_alloc_bulk(cache, order, pages, n);
	pcp_guard_begin();
	pcp = order <= PCP_MAX_ORDER ? claim(cache) : NULL;
	if (pcp != NULL) {
		rc = pcp_alloc_blocks(pcp, order, pages, n);
		release(pcp);
	} else {
		rc = pcp_alloc_past(cache, order, pages, n);
	}
	pcp_guard_end();
	return rc;
}

static void
free_slow(struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n)
{
	struct pcp *pcp;

	if (is_handler(cache)) {
		pcp_handler_free_bulk(cache, order, pages, n);
		return;
	}
	pcp_guard_begin();
	pcp = order <= PCP_MAX_ORDER ? claim(cache) : NULL;
	if (pcp != NULL) {
		pcp_free_blocks(pcp, order, pages, n);
		release(pcp);
	} else {
		pcp_free_past(cache, order, pages, n);
	}
	pcp_guard_end();
}

int
pcp_cpu_alloc_any(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n)
{
	if (likely(order <= PCP_MAX_ORDER && n > 0 && pcp_rseq_pop(cache, order, pages, n)))
		return 0;
	return alloc_slow(cache, order, pages, n);
}

void
pcp_cpu_free_any(struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n)
{
	if (unlikely(order > PCP_MAX_ORDER || n == 0 || !pcp_rseq_push(cache, order, pages, n)))
		free_slow(cache, order, pages, n);
}

int
pcp_cpu_handler_alloc(struct pcp_cache *cache, unsigned int order, void **page)
{
	if (order <= PCP_MAX_ORDER && pcp_rseq_pop(cache, order, page, 1))
		return 0;
	return pcp_handler_alloc_bulk(cache, order, page, 1);
}

void
pcp_cpu_handler_free(struct pcp_cache *cache, unsigned int order, void *page)
{
	if (order > PCP_MAX_ORDER || !pcp_rseq_push(cache, order, &page, 1))
		pcp_handler_free_bulk(cache, order, &page, 1);
}

int
pcp_cpu_alloc_slow(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n)
{
	if (cache->cpu != NULL)
		return alloc_slow(cache, order, pages, n);
	return order == 0 ? pcp_cache_alloc_bulk(cache, pages, n)
			  : pcp_depot_alloc_bulk(cache, order, pages, n);
}

void
pcp_cpu_free_slow(struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n)
{
	if (cache->cpu != NULL)
		free_slow(cache, order, pages, n);
	else if (order == 0)
		pcp_cache_free_bulk(cache, pages, n);
	else
		pcp_depot_free_bulk(cache, order, pages, n);
}

int
pcp_cpu_drain_local(struct pcp_cache *cache)
{
	pcp_guard_begin();
	struct pcp *pcp = claim(cache);

	if (pcp != NULL) {
		pcp_flush(pcp);
		release(pcp);
	}
	pcp_guard_end();
	if (pcp != NULL)
		return 0;
	return has_cache(cache) ? -EAGAIN : -ENOENT;
}

/* ---- all CPUs ---- */

bool
pcp_cpu_create(struct pcp_cache *cache)
{
	cache->cpu = pcp_meta_alloc(cache->depot->zone, RTE_MAX_LCORE * sizeof(cache->cpu[0]));
	if (cache->cpu == NULL)
		return false;
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		cache->cpu[i].cache = cache;
		cache->cpu[i].attention = PCP_ATTENTION_OFFLINE;
		cache->cpu[i].owner_pid = pp_self;
	}
	return true;
}

void
pcp_cpu_destroy(struct pcp_cache *cache)
{
	for (unsigned int i = 0; cache->cpu != NULL && i < RTE_MAX_LCORE; i++)
		pcp_free_magazines(&cache->cpu[i]);
	rte_free(cache->cpu);
}

bool
pcp_cpu_trylock(struct pcp *pcp)
{
	for (int i = 0; !pp_trylock(&pcp->lock); i++) {
		if (i == YIELDS_FOR_A_LOCK)
			return false;
		sched_yield();
	}
	pp_fetch_or(&pcp->attention, PCP_ATTENTION_CLAIMED);
	return true;
}

void
pcp_cpu_unlock(struct pcp *pcp, uint32_t served)
{
	pp_fetch_and(&pcp->attention, ~(PCP_ATTENTION_CLAIMED | served));
	pp_unlock(&pcp->lock);
}
