/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * pcp_cache: per-lcore page caches over a pagepool zone.
 *
 * An lcore owns, per order, two magazines of page addresses: the loaded one, which every call pops
 * from or pushes to, and the previous one, always full or empty. Whole magazines move through the
 * zone's depot, so hundreds of pages change hands for the price of one exchange.
 *
 * Exclusion is asymmetric, as the kernel's softirq rule is: the owner publishes by plain stores
 * that it is inside a call (busy) or a section (nest), then looks at one word, `attention`, and
 * only then at the lists. Whoever wants the pages of another lcore's cache sets CLAIMED there, pays
 * for a membarrier, and takes the cache only if its owner is in neither.
 *
 *	handle calls    pcp_*            the caller has its lcore's struct pcp in hand
 *	nested calls    pcp_*_nested     the same, inside pcp_bh_disable() .. pcp_bh_enable()
 *	public calls    pcp_cache_*      find the caller's cache; any thread
 *	handler calls   pcp_handler_*    from signal handlers
 *	per-CPU calls   pcp_cpu_*        pcp_cpu.h: for threads that are not pinned
 *	irq sections    pcp_irq_*        pcp_irq.h: nested calls that no handler interrupts
 *
 * Threads: a struct pcp is its lcore's alone; everything else may be called by any thread. Inside a
 * section nothing may block. A child made by fork() must use none of its parent's: pcp_this() gives
 * it NULL.
 *
 * Allocation calls return NULL with rte_errno ENOMEM, or -ENOMEM, only when every page of the zone
 * is in use, set aside, or in the hands of an lcore inside a section or call; above order 0 also
 * when what is free does not merge to a block. Orders go up to PCP_MAX_ORDER; larger blocks come
 * from the zone.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_debug.h>
#include <rte_lcore.h>

#include <pagepool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PCP_MAX_ORDER 3   /* larger blocks are not cached */
#define PCP_BATCH_MAX 256 /* pages per magazine, at most */

enum pcp_mode {
	PCP_MODE_BH,   /* sections by plain stores; others take the cache by claim and membarrier */
	PCP_MODE_SPIN, /* a try-lock per call or section; on failure the zone */
	PCP_MODE_BYPASS,  /* as bh, but sections keep off the cache: the regression of Linux 4.11-rc
			   */
	PCP_MODE_IRQ,     /* as bh, and handlers wait until the call or section they met is over */
	PCP_MODE_PREEMPT, /* a cache per CPU, by restartable sequences; sections mean nothing */
	PCP_MODE_NONE,    /* no exclusion: to be shown corrupting; never use it */
};

/* What is looked at, and when; the fast path's instructions are the same whatever is chosen. */
enum pcp_checks {
	PCP_CHECKS_OFF,
	PCP_CHECKS_DEFERRED, /* a magazine when it is refilled, or drained to the depot */
	PCP_CHECKS_FULL,     /* every block when it is handed out and taken back: the slow entry */
};

/* Page addresses on their way between lcores. The header's line is touched at exchanges only. */
struct pcp_magazine {
	uint32_t count; /* valid while in the depot */
	void *page[] __rte_cache_aligned;
} __rte_cache_aligned;

/*
 * The state word of a list: pages in the loaded magazine (16 bits) and allocations since the last
 * exchange. One word, so that counting costs no store of its own; frees follow from the counts.
 */
#define PCP_STATE_COUNT UINT64_C(0xffff)
#define PCP_STATE_ALLOC UINT64_C(0x10000)

struct pcp_list {
	uint64_t state;
	struct pcp_magazine *loaded;
	struct pcp_magazine *previous;
	uint32_t capacity;       /* of the loaded magazine; 0 while parked */
	uint32_t previous_count; /* pages in `previous`: 0 or all */
	uint32_t parked;         /* pages in `loaded` while the list must look empty to its owner */
};

/* Bits of pcp.attention: why a call may not take the fast path. */
enum pcp_attention {
	PCP_ATTENTION_CLAIMED = 1u << 0, /* another thread holds this cache */
	PCP_ATTENTION_DRAIN = 1u << 1,   /* give the pages to the depot when outside sections */
	PCP_ATTENTION_OFFLINE = 1u << 2, /* has no magazines yet */
	PCP_ATTENTION_MODE = 1u << 3,    /* the mode, or checks, need the slow entry */
	PCP_ATTENTION_HANDLER = 1u << 4, /* a handler runs, that must keep off the lists */
	PCP_ATTENTION_PENDING = 1u << 5, /* handlers wait for the end of an irq section */
};

/* In blocks of the order. */
struct pcp_order_stats {
	uint64_t allocs;      /* folded out of the state word */
	uint64_t in;          /* moved into the magazines, by exchange or refill */
	uint64_t out;         /* moved out of them, by exchange, flush or theft */
	uint64_t zone_allocs; /* past the magazines */
	uint64_t zone_frees;
};

struct pcp_cache;
struct pcp_memory;

/* One lcore's cache. All that a call at order 0 touches lies in the first line. */
struct pcp {
	uint32_t nest; /* sections the owner is in, irq ones above; written by the owner alone */
	uint32_t busy; /* the owner is inside a single call; stores of constants do not chain calls
			*/
	uint32_t attention; /* pcp_attention bits; written by anybody */
	uint32_t owner_pid; /* claims work inside one process only */
	struct pcp_cache *cache;
	struct pcp_list list[PCP_MAX_ORDER + 1];
	struct pp_lock lock; /* PCP_MODE_SPIN only */
	uint32_t locked;     /* spin: the section holds `lock`; irq: it puts handlers off */
	uint32_t open;       /* checks full: calls may take the lists out of their parking */
	uint32_t moving; /* order + 1 whose magazines change places: not to be trusted after a kill
			  */
	struct pcp_memory *magazines; /* of those that this cache brought along, ever */
	struct pcp_order_stats stats[PCP_MAX_ORDER + 1];
	uint64_t held; /* blocks of the order `moving` that were out of the magazines before */
	/* From handlers that interrupted another call: calls, and blocks past the cache. Atomic. */
	uint64_t reentered, reentered_allocs, reentered_frees;
	uint64_t reentered_pages; /* allocated less freed */
} __rte_cache_aligned;

static_assert(offsetof(struct pcp, list[1]) <= RTE_CACHE_LINE_SIZE, "order 0 must touch one line");

struct pcp_depot;

/* The caches of all lcores, which the public calls index, and what they share. */
struct pcp_cache {
	struct pcp pcp[RTE_MAX_LCORE];
	struct pcp_depot *depot;
	struct pcp *cpu; /* mode preempt: those of the CPUs, RTE_MAX_LCORE of them */
};

/* ---- caches of a zone ---- */

struct pcp_config {
	enum pcp_mode mode;
	uint32_t batch;     /* pages per order-0 magazine; 0: min(256, pages / (8 x lcores)) */
	uint64_t high;      /* pages that the depot keeps; the surplus goes to the zone; 0: all */
	uint32_t max_order; /* of cached blocks, <= PCP_MAX_ORDER and the zone's */
	uint32_t lcores;    /* expected; 0: rte_lcore_count() */
	uint64_t pages;     /* of the zone, once it is filled; 0: what it has now */
	enum pcp_checks checks;
	/*
	 * With checks full: bytes of each page to fill while it is free, and to look at before it
	 * is handed out. Only where nobody else keeps anything; len 0: none.
	 */
	uint32_t poison_offset, poison_len;
};

/*
 * Caches for all lcores over `zone`, which must outlive them, or NULL: ENOMEM, EINVAL for a
 * configuration out of bounds (blocks larger than the zone's, poison without checks full), or when
 * the zone has no pages and `pages` promises none. Where the kernel has no membarrier
 * all modes become `spin`, and where threads have no restartable sequences `preempt` does, with a
 * log line. Destroy with pcp_cache_destroy().
 *
 * In mode preempt the caches are those of the creating process: others that share them work with
 * depot and zone.
 */
struct pcp_cache *pcp_cache_create(struct pp_zone *zone, const struct pcp_config *config);

/*
 * Gives all cached pages to the zone. By the process that created them; no thread of any may be
 * using the caches. NULL is ignored.
 */
void pcp_cache_destroy(struct pcp_cache *cache);

/* What was asked for, with every default replaced by its value. */
void pcp_cache_get_config(const struct pcp_cache *cache, struct pcp_config *config);
struct pp_zone *pcp_cache_zone(const struct pcp_cache *cache);

/* "bh", "spin", "bypass", "irq", "preempt" or "none"; and back: -EINVAL for other words. */
const char *pcp_mode_name(enum pcp_mode mode);
int pcp_mode_parse(const char *name, enum pcp_mode *mode);

/* "off", "deferred" or "full"; and back, as above. */
const char *pcp_checks_name(enum pcp_checks checks);
int pcp_checks_parse(const char *name, enum pcp_checks *checks);

/*
 * Give what the caches hold to the zone: the caller's, the depot's and those of idle lcores at
 * once; lcores inside a section, the caller's too, give theirs to the depot at its end. Returns the
 * pages that the zone got.
 */
uint64_t pcp_cache_drain(struct pcp_cache *cache);

/* As pcp_cache_drain(), for the depot alone, down to `pages` order-0 pages. */
uint64_t pcp_cache_shrink(struct pcp_cache *cache, uint64_t pages);

/*
 * Give the pages of the caller's lcore's cache to the depot, say before its thread rests: -EBUSY
 * inside a section, -ENOENT without an lcore id, -EAGAIN when a reclaim has the cache right now.
 * rte_thread_unregister() does it for threads that do not. In mode preempt it is the CPU's cache:
 * -ENOENT where the thread has none, never -EBUSY.
 */
int pcp_cache_drain_local(struct pcp_cache *cache);

/* In blocks, whatever their order, but for those named pages. */
struct pcp_stats {
	uint64_t allocs, frees;             /* all of them */
	uint64_t zone_allocs, zone_frees;   /* of these, by registered threads past their cache */
	uint64_t depot_allocs, depot_frees; /* of these, by pcp_depot_*_bulk() */
	uint64_t unregistered;              /* of the latter, by threads without an lcore id */
	uint64_t handler_allocs, handler_frees; /* of these, by handlers, past the caches */
	uint64_t high_order_allocs; /* of those past a cache, in whatever way, above order 0 */
	uint64_t deferred, lost_handlers; /* by pcp_handler_enter(): put off; no room for */
	uint64_t failed;                  /* calls that got nothing */
	uint64_t reentered;
	uint64_t exchanges;                /* of magazines with the depot */
	uint64_t taken;                    /* of these, to get pages */
	uint64_t refills, drains;          /* of magazines from and to the zone */
	uint64_t drain_blocks;             /* what the latter held */
	uint64_t reclaims, reclaim_blocks; /* rounds, and what they moved to the depot */
	uint64_t membarriers;
	uint64_t cached_pages; /* in the lcores' magazines */
	uint64_t depot_pages;
	uint64_t in_use_pages;      /* handed out by calls above, and not given back */
	uint64_t buried;            /* caches taken over from processes that died */
	uint64_t bad_pages;         /* of the zone, set aside by checks for good */
	uint64_t bad[PP_BAD_KINDS]; /* what checks found in the zone, by kind */
	uint64_t missing_pages; /* neither free nor in use, nor bad: the zone's own calls have them,
				   or a process died moving them */
};

/* Exact at rest, a snapshot otherwise. */
void pcp_cache_get_stats(struct pcp_cache *cache, struct pcp_stats *stats);

/* Free pages anywhere: caches, depot and zone. Exact at rest. */
uint64_t pcp_cache_free_pages(struct pcp_cache *cache);

/* A line per online lcore, the depot, and the counters. */
void pcp_cache_dump(struct pcp_cache *cache, FILE *f);

/* Magazines, counts and lists agree. Only while no thread is inside a call. */
bool pcp_cache_is_valid(struct pcp_cache *cache);

/* ---- the slow paths behind the inline functions ---- */

/* `interrupted`: the call that this one, from a handler, interrupted had set busy. */
void *pcp_alloc_slow(struct pcp *pcp, unsigned int order, uint32_t interrupted);
void pcp_free_slow(struct pcp *pcp, void *page, unsigned int order, uint32_t interrupted);
int pcp_alloc_bulk_slow(struct pcp *pcp, void **pages, uint32_t n, uint32_t interrupted);
void pcp_free_bulk_slow(struct pcp *pcp, void *const *pages, uint32_t n, uint32_t interrupted);
void *pcp_alloc_nested_slow(struct pcp *pcp, unsigned int order);
void pcp_free_nested_slow(struct pcp *pcp, void *page, unsigned int order);
void pcp_bh_disable_slow(struct pcp *pcp);
void pcp_bh_enable_slow(struct pcp *pcp);

/* Make the caller's process the owner; false while that of another living process uses it. */
bool pcp_adopt(struct pcp *pcp);

/*
 * Past every lcore cache, from the depot's magazines or the zone: for threads without an lcore id,
 * and for callers that have a cache of their own. Any order of the zone. All n blocks, or -ENOMEM,
 * -EINVAL (no such order), -EBUSY (in a handler that interrupted such a call); free never fails.
 */
int pcp_depot_alloc_bulk(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n);
void pcp_depot_free_bulk(
	struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n);

/* As above, for one block. */
void *pcp_depot_alloc(struct pcp_cache *cache, unsigned int order);
void pcp_depot_free(struct pcp_cache *cache, void *page, unsigned int order);

/*
 * What a signal handler does, as a function. In mode irq it runs when the thread that was
 * interrupted is outside of all calls and sections of `cache`, and uses that cache like anybody;
 * such functions run one at a time on a thread, and each counts once while it waits: 0 when it has
 * run, -EINPROGRESS when it will at the end of what was interrupted, -ENOBUFS when too many
 * different ones wait already, so that it never will. The thread must not call the zone itself
 * outside of sections, nor may the function touch other caches of this zone.
 *
 * In mode preempt it runs at once, and may use any call: the caches as far as they reach, else the
 * zone by try-lock. In the others it runs at once, and must use pcp_handler_alloc() and _free():
 * single calls are detected, and kept off the cache; nested ones are forbidden.
 */
int pcp_handler_enter(struct pcp_cache *cache, void (*work)(void *arg), void *arg);

/*
 * From a signal handler, whatever it interrupted: allocation by try-lock from the zone, NULL with
 * EBUSY when that is held; a free never waits and never fails. In a function that
 * pcp_handler_enter() runs in mode irq, and in mode preempt anyway, from the cache first.
 */
void *pcp_handler_alloc(struct pcp_cache *cache, unsigned int order);
void pcp_handler_free(struct pcp_cache *cache, void *page, unsigned int order);

/* ---- the fast path ---- */

/*
 * An lcore's cache, as one pointer the compiler knows nothing of: calls then address all its fields
 * from one register, which is what processors that forward stores by address expression want.
 */
static __rte_always_inline struct pcp *
pcp_of_lcore(struct pcp_cache *cache, unsigned int lcore_id)
{
	struct pcp *pcp = &cache->pcp[lcore_id];

	__asm__("" : "+r"(pcp));
	return pcp;
}

/*
 * The calling thread's cache, or NULL when it has no lcore id. Fetch once, keep for the thread. A
 * secondary process must have called it before other calls on that lcore: it takes over what a
 * process that died has left there.
 */
static inline struct pcp *
pcp_this(struct pcp_cache *cache)
{
	const unsigned int lcore_id = rte_lcore_id();

	if (unlikely(lcore_id >= RTE_MAX_LCORE))
		return NULL;
	struct pcp *pcp = pcp_of_lcore(cache, lcore_id);

	return likely(pcp->owner_pid == pp_self || pcp_adopt(pcp)) ? pcp : NULL;
}

/* Enter a section in which no other thread takes this lcore's cache. Nests. Owner only. */
static inline void
pcp_bh_disable(struct pcp *pcp)
{
	const uint32_t nest = pcp->nest;

	pp_store_relaxed(&pcp->nest, nest + 1);
	pp_compiler_barrier(); /* pairs with the claimer's membarrier */
	if (unlikely(pp_load_acquire(&pcp->attention) != 0) && nest == 0)
		pcp_bh_disable_slow(pcp);
}

/* Leave the section; the outermost one serves what others asked for meanwhile. */
static inline void
pcp_bh_enable(struct pcp *pcp)
{
	const uint32_t nest = pcp->nest - 1;

	if (nest == 0 && unlikely(pp_load_relaxed(&pcp->attention) != 0))
		pcp_bh_enable_slow(pcp);
	pp_store_release(&pcp->nest, nest);
}

/* Copies of a few dozen pointers, where a call to memcpy would cost more than the copy. */
static __rte_always_inline void
pcp_copy(void **to, void *const *from, uint32_t n)
{
	for (; n >= 8; n -= 8, to += 8, from += 8)
		__builtin_memcpy(to, from, 8 * sizeof(*to));
	for (; n > 0; n--)
		*to++ = *from++;
}

/* Inside a section: a block of 2^order pages, or NULL. The caller owns it. */
static __rte_always_inline void *
pcp_alloc_pages_nested(struct pcp *pcp, unsigned int order)
{
	RTE_ASSERT(order <= PCP_MAX_ORDER);
	struct pcp_list *list = &pcp->list[order];
	const uint64_t state = pp_load_relaxed(&list->state);
	const uint32_t count = state & PCP_STATE_COUNT;

	if (unlikely(count == 0))
		return pcp_alloc_nested_slow(pcp, order);
	pp_store_relaxed(&list->state, state + PCP_STATE_ALLOC - 1);
	return list->loaded->page[count - 1];
}

/* Inside a section: take a block back. Never fails. */
static __rte_always_inline void
pcp_free_pages_nested(struct pcp *pcp, void *page, unsigned int order)
{
	RTE_ASSERT(order <= PCP_MAX_ORDER);
	struct pcp_list *list = &pcp->list[order];
	const uint64_t state = pp_load_relaxed(&list->state);
	const uint32_t count = state & PCP_STATE_COUNT;

	if (unlikely(count >= list->capacity)) {
		pcp_free_nested_slow(pcp, page, order);
		return;
	}
	list->loaded->page[count] = page;
	pp_compiler_barrier(); /* a kill leaves no count without its page */
	pp_store_relaxed(&list->state, state + 1);
}

/*
 * Open a single call's own section. Returns whether something forbids the fast path: attention, or
 * that the caller is a handler which interrupted another call.
 */
static __rte_always_inline bool
pcp_open(struct pcp *pcp, uint32_t *interrupted)
{
	*interrupted = pp_load_relaxed(&pcp->busy);
	pp_store_relaxed(&pcp->busy, 1);
	pp_compiler_barrier(); /* pairs with the claimer's membarrier */
	return (pp_load_acquire(&pcp->attention) | *interrupted) != 0;
}

static __rte_always_inline void
pcp_close(struct pcp *pcp)
{
	pp_store_release(&pcp->busy, 0);
}

/* A block of 2^order pages, or NULL. The caller owns it. Inside or outside of sections. */
static __rte_always_inline void *
pcp_alloc_pages(struct pcp *pcp, unsigned int order)
{
	RTE_ASSERT(order <= PCP_MAX_ORDER);
	struct pcp_list *list = &pcp->list[order];
	uint32_t interrupted;

	if (unlikely(pcp_open(pcp, &interrupted)))
		return pcp_alloc_slow(pcp, order, interrupted);

	const uint64_t state = pp_load_relaxed(&list->state);
	const uint32_t count = state & PCP_STATE_COUNT;

	if (unlikely(count == 0))
		return pcp_alloc_slow(pcp, order, 0);
	void *page = list->loaded->page[count - 1];

	pp_store_relaxed(&list->state, state + PCP_STATE_ALLOC - 1);
	pcp_close(pcp);
	return page;
}

/* Take a block back. Never fails. Inside or outside of sections. */
static __rte_always_inline void
pcp_free_pages(struct pcp *pcp, void *page, unsigned int order)
{
	RTE_ASSERT(order <= PCP_MAX_ORDER);
	struct pcp_list *list = &pcp->list[order];
	uint32_t interrupted;

	if (unlikely(pcp_open(pcp, &interrupted))) {
		pcp_free_slow(pcp, page, order, interrupted);
		return;
	}
	const uint64_t state = pp_load_relaxed(&list->state);
	const uint32_t count = state & PCP_STATE_COUNT;

	if (unlikely(count >= list->capacity)) {
		pcp_free_slow(pcp, page, order, 0);
		return;
	}
	list->loaded->page[count] = page;
	pp_compiler_barrier(); /* a kill leaves no count without its page */
	pp_store_relaxed(&list->state, state + 1);
	pcp_close(pcp);
}

/* n order-0 pages or none: 0 or -ENOMEM; -EBUSY in a handler that should have used its own call. */
static __rte_always_inline int
pcp_alloc_bulk(struct pcp *pcp, void **pages, uint32_t n)
{
	struct pcp_list *list = &pcp->list[0];
	uint32_t interrupted;

	if (unlikely(pcp_open(pcp, &interrupted)))
		return pcp_alloc_bulk_slow(pcp, pages, n, interrupted);

	const uint64_t state = pp_load_relaxed(&list->state);
	const uint32_t count = state & PCP_STATE_COUNT;

	if (unlikely(count < n))
		return pcp_alloc_bulk_slow(pcp, pages, n, 0);
	pcp_copy(pages, &list->loaded->page[count - n], n);
	pp_store_relaxed(&list->state, state + n * (PCP_STATE_ALLOC - 1));
	pcp_close(pcp);
	return 0;
}

/* Take n order-0 pages back. Never fails. */
static __rte_always_inline void
pcp_free_bulk(struct pcp *pcp, void *const *pages, uint32_t n)
{
	struct pcp_list *list = &pcp->list[0];
	uint32_t interrupted;

	if (unlikely(pcp_open(pcp, &interrupted))) {
		pcp_free_bulk_slow(pcp, pages, n, interrupted);
		return;
	}
	const uint64_t state = pp_load_relaxed(&list->state);
	const uint32_t count = state & PCP_STATE_COUNT;

	if (unlikely((uint64_t)count + n > list->capacity)) {
		pcp_free_bulk_slow(pcp, pages, n, 0);
		return;
	}
	pcp_copy(&list->loaded->page[count], pages, n);
	pp_compiler_barrier();
	pp_store_relaxed(&list->state, state + n);
	pcp_close(pcp);
}

static __rte_always_inline void *
pcp_alloc(struct pcp *pcp)
{
	return pcp_alloc_pages(pcp, 0);
}

static __rte_always_inline void
pcp_free(struct pcp *pcp, void *page)
{
	pcp_free_pages(pcp, page, 0);
}

static __rte_always_inline void *
pcp_alloc_nested(struct pcp *pcp)
{
	return pcp_alloc_pages_nested(pcp, 0);
}

static __rte_always_inline void
pcp_free_nested(struct pcp *pcp, void *page)
{
	pcp_free_pages_nested(pcp, page, 0);
}

/* The public calls: any thread, inside or outside of sections. */

static __rte_always_inline int
pcp_cache_alloc_bulk(struct pcp_cache *cache, void **pages, uint32_t n)
{
	const unsigned int lcore_id = rte_lcore_id();

	if (unlikely(lcore_id >= RTE_MAX_LCORE))
		return pcp_depot_alloc_bulk(cache, 0, pages, n);
	return pcp_alloc_bulk(pcp_of_lcore(cache, lcore_id), pages, n);
}

static __rte_always_inline void
pcp_cache_free_bulk(struct pcp_cache *cache, void *const *pages, uint32_t n)
{
	const unsigned int lcore_id = rte_lcore_id();

	if (unlikely(lcore_id >= RTE_MAX_LCORE))
		pcp_depot_free_bulk(cache, 0, pages, n);
	else
		pcp_free_bulk(pcp_of_lcore(cache, lcore_id), pages, n);
}

static __rte_always_inline void *
pcp_cache_alloc(struct pcp_cache *cache)
{
	const unsigned int lcore_id = rte_lcore_id();

	if (unlikely(lcore_id >= RTE_MAX_LCORE))
		return pcp_depot_alloc(cache, 0);
	return pcp_alloc(pcp_of_lcore(cache, lcore_id));
}

static __rte_always_inline void
pcp_cache_free(struct pcp_cache *cache, void *page)
{
	const unsigned int lcore_id = rte_lcore_id();

	if (unlikely(lcore_id >= RTE_MAX_LCORE))
		pcp_depot_free(cache, page, 0);
	else
		pcp_free(pcp_of_lcore(cache, lcore_id), page);
}

#ifdef __cplusplus
}
#endif
