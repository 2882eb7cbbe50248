/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the files of lib/pcp_cache share. */

#include <rte_log.h>
#include <rte_prefetch.h>

#include "pcp.h"

#define PCP_ORDERS (PCP_MAX_ORDER + 1)

extern int pcp_logtype;

#define PCP_LOG(level, fmt, ...)                                                                   \
	rte_log(RTE_LOG_##level, pcp_logtype, "pcp_cache: " fmt "\n", ##__VA_ARGS__)

/*
 * A process may be killed at any instruction. What the depot holds is therefore changed by single
 * stores, each of which takes a magazine in or out: whatever was between two places is lost, and
 * counted, but nothing is ever in two. The same holds for an lcore's lists but while `moving` is
 * set.
 */

/* Last in, first out; the coldest comes off the bottom. A power of two of slots. */
struct pcp_stack {
	struct pcp_magazine **slot;
	uint32_t bottom, top;
};

/* Without the shelf's lock a hint. Neither end moves down past the other's first look. */
static inline uint32_t
pcp_stack_count(const struct pcp_stack *stack)
{
	const uint32_t bottom = pp_load_acquire(&stack->bottom);
	const uint32_t top = pp_load_acquire(&stack->top);

	return top - bottom;
}

enum pcp_kind {
	PCP_EMPTY,
	PCP_FULL, /* B pages each */
	PCP_KINDS
};

/*
 * What lcores of one number, modulo the shelves, put down: their cores' caches have its lines, and
 * nobody else wants its lock, as long as they find there what they look for.
 */
struct pcp_shelf {
	struct pp_lock lock;
	uint32_t mask;  /* of the slots */
	uint64_t taken; /* exchanges of an empty magazine for one with pages */
	uint64_t given; /* of a full one for an empty one */
	struct pcp_stack stack[PCP_KINDS];
} __rte_cache_aligned;

static_assert(sizeof(struct pcp_shelf) == RTE_CACHE_LINE_SIZE, "an exchange writes one line");

#define PCP_SHELVES 8

/*
 * Magazines of one order that no lcore has loaded. With B pages per magazine and N in the zone the
 * depot was born with ceil(N/B) + 1, and each cache brought two along: whatever the caches hold,
 * an empty one is there for whoever has a full one to give, but for those that drains of several
 * shelves have outside of them. It is on some shelf: who finds nothing on its own takes from the
 * others.
 */
struct pcp_depot_list {
	struct pcp_magazine *partial; /* the one that flushes pour into: 0..B pages */
	uint32_t batch;
	uint32_t high;             /* full magazines beyond this go to the zone */
	uint32_t n_shelves;        /* a power of two */
	uint32_t found[PCP_KINDS]; /* the shelf that had one when an lcore's own had none */
	struct pcp_shelf shelf[PCP_SHELVES];
};

/* Memory of magazines; it outlives the cache that brought it, for they wander. */
struct pcp_memory {
	struct pcp_memory *next;
} __rte_cache_aligned;

/* What the caches of a zone share. */
struct pcp_depot {
	/* Of the partial magazines; taken before a shelf's. */
	struct pp_lock lock;
	/* Of free pages: from caches, but for those that are `given`, or from the depot in the
	 * zone. Atomic. */
	uint64_t arrivals;
	uint64_t taken; /* partial magazines, for an empty one */
	bool inherited; /* of a lock here: its holder may have taken a magazine along */

	struct pcp_depot_list list[PCP_ORDERS] __rte_cache_aligned;

	struct pp_lock reclaim_lock __rte_cache_aligned; /* one reclaim at a time */
	uint64_t backoff_until;                          /* TSC; no membarrier before */
	uint64_t reclaims, reclaim_blocks, membarriers, buried;

	/* Atomic, and off the other lines: blocks but for those named otherwise, and the last
	 * lines. */
	uint64_t allocs __rte_cache_aligned;
	uint64_t frees, alloc_pages, free_pages, unregistered;
	uint64_t handler_allocs, handler_frees;
	uint64_t high_order_allocs; /* of those, and of handlers' */
	uint64_t failed, refills, drains, drain_blocks;
	uint64_t reentered, deferred, lost_handlers; /* calls */

	struct pp_zone *zone __rte_cache_aligned;
	struct pcp_config config;
	uint64_t backoff_cycles;
	struct pcp_memory *magazines; /* of those the depot was born with */
	struct pcp_magazine **slots;  /* of all stacks */
	uint8_t tag; /* by which the zone's descriptors know these caches; 0: no checks */
	bool checks_full;
	enum pp_place in_magazine; /* where blocks in an lcore's magazines are, to checks */
};

/* RTE_MAX_LCORE caches: those that have lists. */
static inline struct pcp *
pcp_caches(struct pcp_cache *cache)
{
	return unlikely(cache->cpu != NULL) ? cache->cpu : cache->pcp;
}

/* ---- lists: only by who owns or has claimed the cache ---- */

static inline uint32_t
pcp_count(const struct pcp_list *list)
{
	return pp_load_relaxed(&list->state) & PCP_STATE_COUNT;
}

/* Blocks in an lcore's magazines of one order. */
static inline uint64_t
pcp_list_blocks(const struct pcp_list *list)
{
	return pcp_count(list) + pp_load_relaxed(&list->parked) +
	       pp_load_relaxed(&list->previous_count);
}

/* Blocks that came into the magazines, and are neither there nor gone otherwise. */
static inline uint64_t
pcp_held(const struct pcp *pcp, unsigned int order)
{
	const struct pcp_order_stats *stats = &pcp->stats[order];

	return pp_load_relaxed(&stats->in) - pp_load_relaxed(&stats->out) -
	       pcp_list_blocks(&pcp->list[order]);
}

/* Keeps the allocation count. */
static inline void
pcp_set_count(struct pcp_list *list, uint32_t count)
{
	pp_store_relaxed(&list->state, (pp_load_relaxed(&list->state) & ~PCP_STATE_COUNT) | count);
}

/*
 * Make the list look empty and full at once, so that every call takes the slow path. Pages are
 * nowhere for a moment, never in two places.
 */
static inline void
pcp_park_lists(struct pcp *pcp)
{
	for (unsigned int order = 0; order < PCP_ORDERS; order++) {
		struct pcp_list *list = &pcp->list[order];
		const uint32_t count = pcp_count(list);

		list->capacity = 0;
		pcp_set_count(list, 0);
		pp_store_release(&list->parked, count);
	}
}

static inline void
pcp_unpark_lists(struct pcp *pcp)
{
	for (unsigned int order = 0; order < PCP_ORDERS; order++) {
		struct pcp_list *list = &pcp->list[order];
		const uint32_t count = pp_load_relaxed(&list->parked);

		if (list->loaded == NULL)
			continue;
		pp_store_relaxed(&list->parked, 0);
		pp_compiler_barrier();
		list->capacity = pcp->cache->depot->list[order].batch;
		pcp_set_count(list, count);
	}
}

/*
 * What a mode does to keep calls off the lists, and to let them. With checks full they stay parked,
 * and every call that may use them takes them out for itself.
 */
static inline void
pcp_park(struct pcp *pcp)
{
	if (unlikely(pcp->cache->depot->checks_full))
		pcp->open = 0;
	else
		pcp_park_lists(pcp);
}

static inline void
pcp_unpark(struct pcp *pcp)
{
	if (unlikely(pcp->cache->depot->checks_full))
		pcp->open = 1;
	else
		pcp_unpark_lists(pcp);
}

/* Ask for all lines of a magazine at once: it may come from another core's cache. */
static inline void
pcp_prefetch_magazine(const struct pcp_magazine *magazine, uint32_t count, bool for_write)
{
	for (uint32_t i = 0; i < count; i += RTE_CACHE_LINE_SIZE / sizeof(magazine->page[0])) {
		if (for_write)
			rte_prefetch0_write(&magazine->page[i]);
		else
			rte_prefetch0(&magazine->page[i]);
	}
}

/* Zeroed memory on the zone's node, or NULL. */
void *pcp_meta_alloc(const struct pp_zone *zone, size_t size);

/* ---- depot.c, depot_create.c; they take the depot's locks ---- */

/* Magazines of a kind on all shelves: a hint, but under all locks. */
uint64_t pcp_depot_count(const struct pcp_depot_list *list, enum pcp_kind kind);

/* All of them: nothing moves in the depot, nor into it or out of it. */
void pcp_depot_lock(struct pcp_depot *depot);
void pcp_depot_unlock(struct pcp_depot *depot);

struct pcp_depot *pcp_depot_create(struct pp_zone *zone, const struct pcp_config *config);
void pcp_depot_destroy(struct pcp_depot *depot);

/* The depot was born with: ceil(N/B) + 1, the partial one included. */
uint64_t pcp_depot_magazines(const struct pcp_depot *depot, unsigned int order);

/* Bytes of a magazine of `batch` pages. */
size_t pcp_magazine_size(uint32_t batch);

/* What one call has seen of the depot, and how often it has tried. */
struct pcp_attempt {
	uint64_t arrivals;
	uint32_t tries;
};

/* Free pages have come where an attempt may have looked: before their former place looks empty. */
static inline void
pcp_count_arrival(struct pcp_depot *depot)
{
	pp_fetch_add_release(&depot->arrivals, 1);
}

/* Before the first look at what, found dry, lets the attempt fail. */
void pcp_attempt_begins(struct pcp_attempt *attempt, const struct pcp_depot *depot);

/* Whether free pages may have been where the attempt had already looked. */
bool pcp_attempt_missed(const struct pcp_attempt *attempt, const struct pcp_depot *depot);

/*
 * An lcore's own magazines are the first it gets back, the last one first. Any number will do, as
 * LCORE_ID_ANY: it only says which shelf is looked at first.
 *
 * Swap an empty magazine for one with pages; NULL, and the empty one kept, when there is none: then
 * `attempt` has begun.
 */
struct pcp_magazine *pcp_depot_take_full(struct pcp_depot *depot, unsigned int lcore_id,
	unsigned int order, struct pcp_magazine *empty, struct pcp_attempt *attempt);

/*
 * Swap a full magazine for an empty one; the surplus above `high` goes to the zone. NULL, and the
 * full one kept, when pages were freed that do not exist, or others exchanged the last ones while
 * shelves were looked at.
 */
struct pcp_magazine *pcp_depot_give_full(struct pcp_depot *depot, unsigned int lcore_id,
	unsigned int order, struct pcp_magazine *full);

/* Take up to n blocks out of the magazines; put n back. Returns how many. */
uint32_t pcp_depot_take(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order,
	void **pages, uint32_t n);
uint32_t pcp_depot_put(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order,
	void *const *pages, uint32_t n);

/* Give whole magazines to the zone until at most `keep` blocks are left. Returns blocks moved. */
uint64_t pcp_depot_drain(struct pcp_depot *depot, unsigned int order, uint64_t keep);

/* Blocks of an order in the depot, without its locks: a hint. */
uint64_t pcp_depot_hint(const struct pcp_depot *depot, unsigned int order);

/* Exchanges for full magazines, and for empty ones: at rest, or a hint. */
void pcp_depot_exchanges(const struct pcp_depot *depot, uint64_t *taken, uint64_t *given);

/* Pages in the depot, all orders. */
uint64_t pcp_depot_pages(struct pcp_depot *depot);

/* A counter that one thread writes and any may read. */
static inline void
pcp_add(uint64_t *counter, uint64_t n)
{
	pp_store_relaxed(counter, *counter + n);
}

/* ---- exchange.c; only who owns or has claimed the cache ---- */

/* The state word's allocation count has 48 bits; every exchange moves it to the statistics. */
void pcp_fold_allocs(struct pcp *pcp, unsigned int order);

/*
 * Pages for an empty loaded magazine: the previous one, the depot's, the zone's. False when dry;
 * `attempt` begins here.
 */
bool pcp_refill(struct pcp *pcp, unsigned int order, struct pcp_attempt *attempt);

/* Room for a full loaded magazine: the previous one, an empty one of the depot, or the zone. */
void pcp_make_room(struct pcp *pcp, unsigned int order);

/* Empty the lists of one order, or all, into the depot. Returns blocks moved. */
uint32_t pcp_flush_list(struct pcp *pcp, unsigned int order);
uint64_t pcp_flush(struct pcp *pcp);

/* ---- check.c ---- */

/* Blocks of a caller's array that are copied, and checked, at once. */
#define PCP_CHECK_CHUNK 64u

/* Of the lcore, or the CPU, that the cache is for. */
static inline unsigned int
pcp_lcore_id(const struct pcp *pcp)
{
	const struct pcp_cache *cache = pcp->cache;
	const bool of_lcore = pcp >= cache->pcp && pcp < cache->pcp + RTE_MAX_LCORE;

	return (unsigned int)(pcp - (of_lcore ? cache->pcp : cache->cpu));
}

uint32_t pcp_check_pages(
	struct pcp_depot *depot, const struct pp_check *check, void **pages, uint32_t n);

/* n blocks move; those that are bad drop out. Returns how many are left. */
static __rte_always_inline uint32_t
pcp_check(struct pcp_depot *depot, enum pp_place from, enum pp_place to, unsigned int lcore_id,
	unsigned int order, void **pages, uint32_t n)
{
	if (likely(depot->tag == 0) || from == to)
		return n;
	return pcp_check_pages(depot,
		&(struct pp_check){.from = from, .to = to, .lcore_id = lcore_id, .order = order},
		pages, n);
}

/* As pp_zone_alloc_bulk() with PP_ALLOC_REFILL and pp_zone_free_bulk(), with checks. */
uint32_t pcp_zone_alloc_bulk(struct pcp_depot *depot, enum pp_place to, unsigned int lcore_id,
	unsigned int order, void **pages, uint32_t n);
uint32_t pcp_zone_free_bulk(struct pcp_depot *depot, enum pp_place from, unsigned int lcore_id,
	unsigned int order, void *const *pages, uint32_t n);

/* The same for one block, from a handler: whatever lock is held, and nothing is logged. */
void *pcp_zone_tryalloc(struct pcp_depot *depot, unsigned int order);
bool pcp_zone_tryfree(struct pcp_depot *depot, void *page, unsigned int order);

/* Whether a block lies in both magazines of a list; the counts are right. */
bool pcp_magazines_overlap(const struct pcp_list *list);

/*
 * Counts that cannot be are reported, and what they counted is forgotten: nobody knows what is
 * there. It counts as in use from now on.
 */
void pcp_check_lists(struct pcp *pcp);
void pcp_check_shelf(struct pcp_depot *depot, unsigned int order, struct pcp_shelf *shelf);
void pcp_check_partial(struct pcp_depot *depot, unsigned int order);

/* One that says otherwise is full all the same: what its slots name must be at rest, or drops out.
 */
void pcp_check_full_magazine(
	struct pcp_depot *depot, unsigned int order, struct pcp_magazine *magazine);

/* Around whatever uses the lists of a cache: counts are sane, and the lists where calls find them.
 */
static inline void
pcp_lists_begin(struct pcp *pcp)
{
	const struct pcp_depot *depot = pcp->cache->depot;

	if (likely(depot->tag == 0))
		return;
	/* Who did not get the lock works past them: they are another thread's. */
	if (depot->config.mode == PCP_MODE_SPIN && !pcp->locked)
		return;
	pcp_check_lists(pcp);
	if (pcp->open)
		pcp_unpark_lists(pcp);
}

static inline void
pcp_lists_end(struct pcp *pcp)
{
	if (unlikely(pcp->open))
		pcp_park_lists(pcp);
}

/* ---- process.c ---- */

/*
 * What a process needs before its lcores use the caches: once per process. `created`: it also will
 * destroy them. False: no memory.
 */
bool pcp_process_joins(struct pcp_cache *cache, bool created);
void pcp_process_leaves(struct pcp_cache *cache);

/*
 * Call `show` with the cache over the zone of that number, if this process created it: it stays
 * there until that returns. What `show` returns, or -ENOENT.
 */
int pcp_process_with_cache(
	uint32_t zone_id, int (*show)(struct pcp_cache *cache, void *arg), void *arg);

/* Of another process, that is gone. Costs a system call where it is another's. */
bool pcp_is_orphan(const struct pcp *pcp);

/* Killed in the middle of an exchange: what the lists name may be elsewhere by now. */
void pcp_drop_lists(struct pcp *pcp);

/*
 * Under the reclaim lock, for a cache whose process has died: nobody owns it any more, and what its
 * lists can be trusted to hold goes to the depot. Returns blocks moved.
 */
uint64_t pcp_bury(struct pcp *pcp);

/* ---- section.c ---- */

/* Give the cache its magazines: without memory it stays offline, and works. */
void pcp_online(struct pcp *pcp);

/* Of those it has ever brought: when no cache has a magazine any more. */
void pcp_free_magazines(struct pcp *pcp);

/* A single call, busy already set, becomes the only user of the lists, if it may use them. */
void pcp_enter(struct pcp *pcp);

/* Serves what others asked for, then clears busy. */
void pcp_leave(struct pcp *pcp);

/* Serves a request to drain. */
void pcp_flush_if_asked(struct pcp *pcp);

/* ---- handler.c ---- */

/* Handlers that wait on one thread, each different from the others. */
#define PCP_DEFERRED_MAX 8

enum pcp_slot_state {
	PCP_SLOT_FREE,
	PCP_SLOT_BUSY, /* being filled or taken, by something that was interrupted */
	PCP_SLOT_READY,
};

/*
 * What a thread is doing here, for the handlers that interrupt it. They run on the thread itself,
 * to their end before it goes on: the compiler is all that must be kept from reordering.
 */
struct pcp_thread {
	uint32_t depth;            /* calls that may hold locks, or will */
	uint32_t watched;          /* handlers that run meanwhile, in mode preempt */
	uint32_t any_deferred;     /* look into the slots */
	struct pcp_cache *running; /* a deferrable handler of this cache runs */
	struct pcp_slot {
		uint32_t state; /* pcp_slot_state */
		struct pcp_cache *cache;
		void (*work)(void *arg);
		void *arg;
	} slot[PCP_DEFERRED_MAX];
};

extern __thread struct pcp_thread pcp_thread;

/* Run the handlers that waited, and need not any more. */
void pcp_replay(void);

static inline void
pcp_replay_any(void)
{
	pp_compiler_barrier();
	if (unlikely(pp_load_relaxed(&pcp_thread.any_deferred)))
		pcp_replay();
}

/* Around what takes locks of the cache or its zone outside of single calls and sections. */
static inline void
pcp_guard_begin(void)
{
	pp_store_relaxed(&pcp_thread.depth, pcp_thread.depth + 1);
	pp_compiler_barrier();
}

static inline void
pcp_guard_end(void)
{
	pp_compiler_barrier();
	pp_store_relaxed(&pcp_thread.depth, pcp_thread.depth - 1);
	pcp_replay_any();
}

/*
 * The call was made from a handler that interrupted another one, or must keep off the lists for
 * another reason. `interrupted`: what pcp_open() found.
 */
bool pcp_is_reentered(struct pcp *pcp, uint32_t interrupted);

/* What such calls do: the zone by try-lock. All n blocks or -EBUSY, -ENOMEM; free never fails. */
int pcp_reentered_alloc(struct pcp *pcp, unsigned int order, void **pages, uint32_t n);
void pcp_reentered_free(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n);

/* The same for calls that concern no lcore's cache. */
int pcp_handler_alloc_bulk(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n);
void pcp_handler_free_bulk(
	struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n);

/* ---- slow.c ---- */

/* By who may use the lists; where there are none (capacity 0), by the zone. */
int pcp_alloc_blocks(struct pcp *pcp, unsigned int order, void **pages, uint32_t n);
void pcp_free_blocks(struct pcp *pcp, unsigned int order, void *const *pages, uint32_t n);

/* Past all caches, under pcp_guard_begin(). */
int pcp_alloc_past(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n);
void pcp_free_past(struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n);

/* ---- cpu.c: mode preempt ---- */

/* Why there are no restartable sequences; NULL: there are. */
const char *pcp_rseq_obstacle(void);

bool pcp_cpu_create(struct pcp_cache *cache);
void pcp_cpu_destroy(struct pcp_cache *cache);

/* As pcp_cpu_alloc_bulk() and pcp_cpu_free_bulk(), of any order of the zone. */
int pcp_cpu_alloc_any(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n);
void pcp_cpu_free_any(struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n);

/* The same in a handler: the sequence, or the zone by try-lock. */
int pcp_cpu_handler_alloc(struct pcp_cache *cache, unsigned int order, void **page);
void pcp_cpu_handler_free(struct pcp_cache *cache, unsigned int order, void *page);

/*
 * The CPU's pages go to the depot; -EAGAIN when somebody else has its cache right now, -ENOENT when
 * there is none for it, or none for this process or thread.
 */
int pcp_cpu_drain_local(struct pcp_cache *cache);

/*
 * Another CPU's cache: between these it is the caller's, once a pcp_membarrier_rseq() has
 * succeeded. `served`: bits of `attention` that need no more attention.
 */
bool pcp_cpu_trylock(struct pcp *pcp);
void pcp_cpu_unlock(struct pcp *pcp, uint32_t served);

/* ---- reclaim.c ---- */

/*
 * The zone and the depot are dry: move what other lcores' caches hold to the depot. True when it
 * is worth while to try again.
 */
bool pcp_reclaim(struct pcp_cache *cache, const struct pcp *self);

/* One round over all caches but `self`. Returns blocks moved to the depot. */
uint64_t pcp_reclaim_round(struct pcp_cache *cache, const struct pcp *self);

/* ---- cache.c ---- */

/* Its index among n names; -1: it is none of them. */
int pcp_find_name(const char *const *names, unsigned int n, const char *name);

/* An lcore of this process will not come back: its section ends, and its pages go to the depot. */
void pcp_lcore_leaves(unsigned int lcore_id, void *cache);

/* ---- dump.c ---- */

/* Pages in an lcore's magazines: a snapshot. */
uint64_t pcp_cached_pages(const struct pcp *pcp);

/* ---- telemetry.c ---- */

struct rte_tel_data;

/* A telemetry command. */
int pcp_telemetry_show(const char *cmd, const char *params, struct rte_tel_data *data);

/* ---- membarrier.c ---- */

/* Whether this process may call pcp_membarrier() from now on. */
bool pcp_membarrier_register(void);

/* Every running thread of the process passes a full barrier. False when the kernel refuses. */
bool pcp_membarrier(void);

/* The same, and no thread is in the middle of a restartable sequence that it goes on with. */
bool pcp_membarrier_rseq_register(void);
bool pcp_membarrier_rseq(void);
