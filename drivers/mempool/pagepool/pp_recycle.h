/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * How a network driver learns that a page it gave away came back, without holding a reference.
 *
 * Applications test reference counts, and free by ways that ignore them; all of these ways end in
 * the mempool ops' enqueue. In pools where a driver recycles, enqueue looks at a mark that lies in
 * front of each object's header, where nobody copies or clears it:
 *
 *	given	the driver has the page in a list of its own, and wants to know when it is returned:
 *		enqueue says `returned`, and the page stays the driver's
 *	shared	the object is one of several in a page, which has a count: see pp_share.h
 *	owner	enqueue puts the page into the cache or the ring of that queue, not into the pool
 *	none	of these: an object like any other
 *
 * What is in the pool has no mark. Enqueue runs on any thread of any process; a driver that takes a
 * mark back, or a queue's cache over, first waits in pp_recycle_quiesce() until nobody is in the
 * middle of enqueue, or has died there: pp_recycle_died() counts those. The marks' users pay plain
 * loads and stores for that, the one who waits a membarrier. Threads without an lcore id are told
 * apart by process: while those of 16 are in the middle of enqueue, one of yet another waits.
 *
 * Pools where nobody recycles run the code that they have always run.
 */

#include <rte_mempool.h>
#include <rte_ring.h>

#include <pcp.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PP_RECYCLE_CACHE  128  /* pages that an owner keeps at hand */
#define PP_RECYCLE_REFILL 64   /* pages moved at once */
#define PP_RECYCLE_RING   1024 /* pages on their way back from others */
#define PP_RECYCLE_QUEUES 256  /* of a pool */

#define PP_MARK_GIVEN  1
#define PP_MARK_SHARED 2

/* One writer at a time: the driver while it has the page, else who frees it. */
struct pp_page_mark {
	uint16_t owner; /* of pp_recycler.queue, from 1 on; 0: nobody */
	uint8_t given;  /* 0, or one of the above */
	uint8_t returned;
	uint32_t back; /* shared: bytes back to the page's first mbuf */
	uint32_t refs; /* shared, of the first mbuf: all that keep the page; atomic */
};

/* In the padding that aligns an object to a cache line, as far from its header as can be. */
static __rte_always_inline struct pp_page_mark *
pp_page_mark(void *obj)
{
	return (struct pp_page_mark *)RTE_PTR_SUB(obj, RTE_CACHE_LINE_SIZE);
}

/*
 * Pages of one queue on their way round. Counters are in pages. Of takes they mean what page_pool's
 * mean: each page is counted once, the first behind a refill as `refill` (of the ring's) or `slow`
 * (of the pool's), the others as `fast`; `empty` counts looks at an empty ring.
 */
struct pp_recycle_queue {
	/* The owner's: the lcore that takes pages. */
	uint32_t lcore; /* LCORE_ID_ANY: nobody's cache, all returns go to the ring */
	uint32_t count;
	uint64_t cached, cache_full;        /* returns by the owner */
	uint64_t fast, slow, empty, refill; /* takes */
	uint64_t taken;                     /* from the pool */
	uint64_t consumed;                  /* from the ring */
	void *cache[PP_RECYCLE_CACHE] __rte_cache_aligned;
	/* Everybody's. */
	uint32_t open __rte_cache_aligned; /* else what comes back goes on to the pool */
	uint16_t index;
	bool used;
	struct rte_ring *ring;
	uint64_t ring_full, closed; /* returns that went to the pool; atomic */
	uint64_t released;          /* to the pool, for any reason; atomic */
};

struct pp_recycler;

/*
 * Make a pool one whose pages can be recycled; it stays one. Any number of times. -ENOTSUP with a
 * log line: not on ops pagepool, with a mempool cache, which would hide what is returned, or
 * without room for marks. -ENOMEM. The caller serialises.
 */
int pp_recycle_attach(struct rte_mempool *mp, struct pp_recycler **recycler);

/* Wait until every thread has left the enqueue it is in, or its process has died. */
void pp_recycle_quiesce(struct pp_recycler *recycler);

/* Threads whose process was found to have died in the middle of enqueue. What they freed is lost.
 */
uint64_t pp_recycle_died(const struct pp_recycler *recycler);

/*
 * A queue of the pool, closed. NULL: no memory, or too many. Pages that an earlier queue had given
 * away may come back to it. Freeing it closes it. The caller serialises.
 */
struct pp_recycle_queue *pp_recycle_queue_get(struct pp_recycler *recycler, int socket);
void pp_recycle_queue_put(struct pp_recycler *recycler, struct pp_recycle_queue *queue);

void pp_recycle_queue_open(struct pp_recycle_queue *queue);

/* All that the queue holds goes to the pool; what is still away will, when it comes. */
void pp_recycle_queue_close(struct pp_recycler *recycler, struct pp_recycle_queue *queue);

/*
 * Up to n pages for the queue, n <= PP_RECYCLE_REFILL, from its cache, then its ring, then the
 * pool. One thread at a time; that thread's lcore becomes the owner. Returns how many.
 */
uint32_t pp_recycle_take(
	struct pp_recycler *recycler, struct pp_recycle_queue *queue, void **pages, uint32_t n);

/* The driver is done with n pages of the queue: to the pool, without mark. */
void pp_recycle_release(struct pp_recycler *recycler, struct pp_recycle_queue *queue,
	void *const *pages, uint32_t n);

/* Pages of the queue that are neither in the pool nor anybody else's. */
uint64_t pp_recycle_inflight(const struct pp_recycle_queue *queue);

/* Pages from the pool, past all that recycles: n, or -ENOBUFS. In a section of the page cache. */
int pp_recycle_pool_get(struct rte_mempool *mp, struct pcp_cache *cache, void **pages, uint32_t n);

#ifdef __cplusplus
}
#endif
