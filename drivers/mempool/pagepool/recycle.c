/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that drivers recycle: what enqueue does with them, and the queues they go back to. */

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_atomic.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_pause.h>
#include <rte_prefetch.h>

#include "mempool_internal.h"
#include "pp_recycle.h"
#include "pp_share.h"

/* The process that is in the middle of enqueue on an lcore; 0: none. */
struct lane {
	uint32_t busy;
} __rte_cache_aligned;

#define PROCESSES 16 /* whose threads without an lcore id are in the middle of enqueue at once */

struct pp_recycler {
	struct rte_mempool *mp;
	struct pcp_cache *cache;
	uint32_t pid; /* the process whose threads a membarrier reaches */
	bool fences;  /* there is no membarrier: who marks must fence */
	/* Threads without an lcore id in the middle of enqueue: their process, and how many. */
	uint64_t away[PROCESSES]; /* pid in the upper half; atomic */
	uint64_t died;            /* in the middle of enqueue; atomic */
	struct pp_recycle_queue *queue[PP_RECYCLE_QUEUES + 1];
	struct lane lane[RTE_MAX_LCORE];
};

static_assert(
	sizeof(struct rte_mempool_objhdr) + sizeof(struct pp_page_mark) <= RTE_CACHE_LINE_SIZE,
	"a mark lies in front of the header");

/* ---- who is in the middle of enqueue ---- */

static uint32_t
pid_of(uint64_t away)
{
	return (uint32_t)(away >> 32);
}

/* One more thread of this process. False: somebody changed the word before. */
static bool
take_place(struct pp_recycler *recycler, uint64_t *slot, uint64_t word)
{
	const bool ours = pid_of(word) == pp_self;
	const uint64_t next = ours ? word + 1 : (uint64_t)pp_self << 32 | 1;

	if (!__atomic_compare_exchange_n(
		    slot, &word, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return false;
	if (!ours)
		pp_fetch_add(&recycler->died, (uint32_t)word);
	return true;
}

static uint64_t *
find_place(struct pp_recycler *recycler)
{
	uint64_t word;

	for (unsigned int i = 0; i < PROCESSES; i++) {
		word = pp_load_relaxed(&recycler->away[i]);
		if (pid_of(word) == pp_self && take_place(recycler, &recycler->away[i], word))
			return &recycler->away[i];
	}
	/* that nobody is at, or only dead ones are */
	for (unsigned int i = 0; i < PROCESSES; i++) {
		word = pp_load_relaxed(&recycler->away[i]);
		if (((uint32_t)word == 0 || pp_process_is_dead(pid_of(word))) &&
			take_place(recycler, &recycler->away[i], word))
			return &recycler->away[i];
	}
	return NULL;
}

/* Where the thread is counted. While all places are taken it waits: those there leave, or die. */
static __rte_noinline uint64_t *
enter_away(struct pp_recycler *recycler)
{
	uint64_t *place;

	while ((place = find_place(recycler)) == NULL)
		sched_yield();
	return place;
}

/* What leave() wants: where a thread without an lcore id is counted. */
static __rte_always_inline uint64_t *
enter(struct pp_recycler *recycler, uint32_t lcore)
{
	if (unlikely(lcore >= RTE_MAX_LCORE))
		return enter_away(recycler);
	pp_store_relaxed(&recycler->lane[lcore].busy, pp_self);
	if (unlikely(recycler->fences || recycler->pid != pp_self))
		rte_smp_mb();
	pp_compiler_barrier(); /* pairs with the membarrier of quiesce */
	return NULL;
}

static __rte_always_inline void
leave(struct pp_recycler *recycler, uint32_t lcore, uint64_t *away)
{
	if (unlikely(away != NULL))
		__atomic_fetch_sub(away, 1, __ATOMIC_RELEASE);
	else
		pp_store_release(&recycler->lane[lcore].busy, 0);
}

/* Whoever was there has left, or has died; that counts once. */
static void
wait_for_lane(struct pp_recycler *recycler, struct lane *lane)
{
	uint32_t busy;

	while ((busy = pp_load_acquire(&lane->busy)) != 0) {
		if (pp_process_is_dead(busy) &&
			__atomic_compare_exchange_n(
				&lane->busy, &busy, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			pp_fetch_add(&recycler->died, 1);
			return;
		}
		rte_pause();
	}
}

static void
wait_for_away(struct pp_recycler *recycler, uint64_t *slot)
{
	uint64_t away;

	while ((uint32_t)(away = pp_load_acquire(slot)) != 0) {
		if (pp_process_is_dead(pid_of(away)) &&
			__atomic_compare_exchange_n(
				slot, &away, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			pp_fetch_add(&recycler->died, (uint32_t)away);
			return;
		}
		rte_pause();
	}
}

void
pp_recycle_quiesce(struct pp_recycler *recycler)
{
	rte_smp_mb();
	if (!recycler->fences)
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++)
		wait_for_lane(recycler, &recycler->lane[i]);
	for (unsigned int i = 0; i < PROCESSES; i++)
		wait_for_away(recycler, &recycler->away[i]);
}

uint64_t
pp_recycle_died(const struct pp_recycler *recycler)
{
	return pp_load_relaxed(&recycler->died);
}

/* ---- what comes back ---- */

/* To the queue's ring; false: there is no room. */
static bool
put_ring(struct pp_recycle_queue *queue, void *page)
{
	if (likely(rte_ring_mp_enqueue(queue->ring, page) == 0))
		return true;
	pp_fetch_add(&queue->ring_full, 1);
	return false;
}

static __rte_always_inline bool
put_queue(struct pp_recycle_queue *queue, void *page, uint32_t lcore)
{
	if (unlikely(!pp_load_relaxed(&queue->open))) {
		pp_fetch_add(&queue->closed, 1);
		return false;
	}
	/* a queue without an owner has none among threads without an lcore id either */
	if (lcore == LCORE_ID_ANY || pp_load_relaxed(&queue->lcore) != lcore)
		return put_ring(queue, page);
	if (unlikely(queue->count == PP_RECYCLE_CACHE)) {
		queue->cache_full++;
		return put_ring(queue, page);
	}
	queue->cache[queue->count++] = page;
	queue->cached++;
	return true;
}

/* One of a page that others share, and those behind it of the same; how many. */
static __rte_always_inline unsigned int
put_shared(void *const *objs, unsigned int n, void **rest, unsigned int *n_rest)
{
	struct rte_mbuf *page = pp_page_of(objs[0]);
	unsigned int same = 1;

	for (; same < n && pp_page_of(objs[same]) == page; same++)
		if (same + 4 < n)
			rte_prefetch0(pp_page_mark(objs[same + 4]));
	if (pp_page_drop(page, same))
		rest[(*n_rest)++] = page;
	return same;
}

unsigned int
pp_recycle_put(struct pp_recycler *recycler, void *const *objs, unsigned int n, void **rest)
{
	const uint32_t lcore = rte_lcore_id();
	/* Others may have the owner's lcore id, and may be killed in the middle of the ring. */
	const bool may_queue = recycler->pid == pp_self;
	unsigned int n_rest = 0;

	uint64_t *const away = enter(recycler, lcore);

	for (unsigned int i = 0; i < n; i++) {
		struct pp_page_mark *mark = pp_page_mark(objs[i]);

		if (i + 4 < n)
			rte_prefetch0(pp_page_mark(objs[i + 4]));
		const uint8_t given = pp_load_relaxed(&mark->given);

		if (given != 0) {
			if (given == PP_MARK_SHARED)
				i += put_shared(&objs[i], n - i, rest, &n_rest) - 1;
			else /* all that was done with the page comes before its return */
				pp_store_release(&mark->returned, 1);
			continue;
		}
		if (mark->owner != 0) {
			struct pp_recycle_queue *queue = recycler->queue[mark->owner];

			if (likely(may_queue && put_queue(queue, objs[i], lcore)))
				continue;
			mark->owner = 0;
			pp_fetch_add(&queue->released, 1);
		}
		rest[n_rest++] = objs[i];
	}
	leave(recycler, lcore, away);
	return n_rest;
}

/* ---- pages for a queue ---- */

int
pp_recycle_pool_get(struct rte_mempool *mp, struct pcp_cache *cache, void **pages, uint32_t n)
{
	struct pcp *pcp = cache != NULL ? pcp_this(cache) : NULL;

	if (unlikely(pcp == NULL))
		return rte_mempool_get_bulk(mp, pages, n) == 0 ? (int)n : -ENOBUFS;
	pcp_bh_disable(pcp);
	const int rc = pcp_alloc_bulk(pcp, pages, n);

	pcp_bh_enable(pcp);
	return likely(rc == 0) ? (int)n : -ENOBUFS;
}

/* Another lcore polls the queue from now on; the last one may be in the middle of a free. */
static void
change_owner(struct pp_recycler *recycler, struct pp_recycle_queue *queue, uint32_t lcore)
{
	if (queue->lcore != LCORE_ID_ANY) {
		pp_store_relaxed(&queue->lcore, LCORE_ID_ANY);
		pp_recycle_quiesce(recycler);
	}
	pp_store_release(&queue->lcore, lcore);
}

static void
fill_from_pool(struct pp_recycler *recycler, struct pp_recycle_queue *queue)
{
	uint32_t n = PP_RECYCLE_REFILL;

	while (n > 0 && pp_recycle_pool_get(recycler->mp, recycler->cache, queue->cache, n) < 0)
		n /= 2;
	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0_write(pp_page_mark(queue->cache[i]));
	for (uint32_t i = 0; i < n; i++)
		pp_page_mark(queue->cache[i])->owner = queue->index;
	queue->count = n;
	queue->slow += n > 0;
	pp_store_relaxed(&queue->taken, queue->taken + n);
}

/* The cache is empty: what came back from elsewhere, or new pages. One of them is counted here. */
static void
fill(struct pp_recycler *recycler, struct pp_recycle_queue *queue)
{
	const uint32_t n =
		rte_ring_sc_dequeue_burst(queue->ring, queue->cache, PP_RECYCLE_REFILL, NULL);

	if (n == 0) {
		queue->empty++;
		fill_from_pool(recycler, queue);
		return;
	}
	queue->refill++;
	pp_store_relaxed(&queue->consumed, queue->consumed + n);
	queue->count = n;
}

uint32_t
pp_recycle_take(
	struct pp_recycler *recycler, struct pp_recycle_queue *queue, void **pages, uint32_t n)
{
	const uint32_t lcore = rte_lcore_id();
	uint32_t got = 0;

	if (unlikely(queue->lcore != lcore))
		change_owner(recycler, queue, lcore);
	while (got < n) {
		const bool dry = queue->count == 0;

		if (dry)
			fill(recycler, queue);
		const uint32_t part = RTE_MIN(n - got, queue->count);

		if (part == 0)
			break;
		queue->fast += part - dry;
		queue->count -= part;
		pcp_copy(&pages[got], &queue->cache[queue->count], part);
		got += part;
	}
	return got;
}

void
pp_recycle_release(struct pp_recycler *recycler, struct pp_recycle_queue *queue, void *const *pages,
	uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		pp_page_mark(pages[i])->owner = 0;
	pp_fetch_add(&queue->released, n);
	rte_mempool_put_bulk(recycler->mp, pages, n);
}

uint64_t
pp_recycle_inflight(const struct pp_recycle_queue *queue)
{
	/* what left is read first: it cannot be more than what had come */
	const uint64_t released = pp_load_acquire(&queue->released);

	return pp_load_relaxed(&queue->taken) - released;
}

/* ---- queues ---- */

void
pp_recycle_queue_open(struct pp_recycle_queue *queue)
{
	pp_store_release(&queue->open, 1);
}

void
pp_recycle_queue_close(struct pp_recycler *recycler, struct pp_recycle_queue *queue)
{
	void *pages[PP_RECYCLE_REFILL] = {NULL};
	uint32_t n;

	pp_store_relaxed(&queue->open, 0);
	pp_store_relaxed(&queue->lcore, LCORE_ID_ANY);
	pp_recycle_quiesce(recycler);
	if (queue->count > 0)
		pp_recycle_release(recycler, queue, queue->cache, queue->count);
	queue->count = 0;
	while ((n = rte_ring_sc_dequeue_burst(queue->ring, pages, RTE_DIM(pages), NULL)) > 0) {
		pp_recycle_release(recycler, queue, pages, n);
		queue->consumed += n;
	}
}

static struct pp_recycle_queue *
new_queue(struct pp_recycler *recycler, uint16_t index, int socket)
{
	struct pp_recycle_queue *queue =
		rte_zmalloc_socket("pp_recycle", sizeof(*queue), RTE_CACHE_LINE_SIZE, socket);
	const ssize_t size = rte_ring_get_memsize(PP_RECYCLE_RING);

	if (queue == NULL)
		return NULL;
	queue->ring = rte_zmalloc_socket("pp_recycle", (size_t)size, RTE_CACHE_LINE_SIZE, socket);
	if (queue->ring == NULL) {
		rte_free(queue);
		return NULL;
	}
	/* in memory of its own: the registry of named rings is not needed */
	rte_ring_init(queue->ring, "pp_recycle", PP_RECYCLE_RING, RING_F_SC_DEQ);
	queue->lcore = LCORE_ID_ANY;
	queue->index = index;
	recycler->queue[index] = queue;
	return queue;
}

struct pp_recycle_queue *
pp_recycle_queue_get(struct pp_recycler *recycler, int socket)
{
	for (uint16_t i = 1; i <= PP_RECYCLE_QUEUES; i++) {
		struct pp_recycle_queue *queue = recycler->queue[i];

		if (queue == NULL)
			queue = new_queue(recycler, i, socket);
		else if (queue->used)
			continue;
		if (queue != NULL)
			queue->used = true;
		return queue;
	}
	return NULL;
}

/* Its marks may still be on pages that are away, so it stays until the pool goes. */
void
pp_recycle_queue_put(struct pp_recycler *recycler, struct pp_recycle_queue *queue)
{
	pp_recycle_queue_close(recycler, queue);
	queue->used = false;
}

/* ---- pools ---- */

static void
clear_mark(struct rte_mempool *mp __rte_unused, void *arg __rte_unused, void *obj,
	unsigned int i __rte_unused)
{
	*pp_page_mark(obj) = (struct pp_page_mark){0};
}

static const char *
why_not(const struct rte_mempool *mp)
{
	if (strcmp(rte_mempool_get_ops(mp->ops_index)->name, PP_MEMPOOL_OPS_NAME) != 0)
		return "its ops are not " PP_MEMPOOL_OPS_NAME;
	if (mp->cache_size > 0)
		return "its mempool cache would hide what is returned; create it with cache size 0";
	if (mp->header_size < RTE_CACHE_LINE_SIZE)
		return "its objects are not aligned to cache lines";
	if (mp->populated_size < mp->size)
		return "it is not fully populated";
	return NULL;
}

int
pp_recycle_attach(struct rte_mempool *mp, struct pp_recycler **recycler)
{
	const char *why = why_not(mp);
	struct pp_mempool *pool = mp->pool_data;

	if (why == NULL && pool->layout != PP_MEMPOOL_LAYOUT &&
		pool->layout != PP_MEMPOOL_RECYCLING)
		why = "it was made by another driver or build";
	if (why != NULL) {
		MEMPOOL_LOG(ERR, "%s: its pages cannot be recycled: %s", mp->name, why);
		return -ENOTSUP;
	}
	*recycler = pool->recycler;
	if (*recycler != NULL)
		return 0;
	struct pp_recycler *new =
		rte_zmalloc_socket("pp_recycler", sizeof(*new), RTE_CACHE_LINE_SIZE, mp->socket_id);

	if (new == NULL)
		return -ENOMEM;
	new->mp = mp;
	new->cache = pool->cache;
	new->pid = pp_self;
	new->fences = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
	rte_mempool_obj_iter(mp, clear_mark, NULL);
	pool->recycler = new;
	pp_store_release(&pool->layout, PP_MEMPOOL_RECYCLING);
	*recycler = new;
	return 0;
}

void
pp_recycle_free(struct pp_recycler *recycler)
{
	if (recycler == NULL)
		return;
	for (unsigned int i = 1; i <= PP_RECYCLE_QUEUES; i++) {
		if (recycler->queue[i] == NULL)
			continue;
		rte_free(recycler->queue[i]->ring);
		rte_free(recycler->queue[i]);
	}
	rte_free(recycler);
}
