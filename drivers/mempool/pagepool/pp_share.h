/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Several packets in one page.
 *
 * A page is an object of the pool: what the allocator hands out as one. A driver may cut a page
 * that it has into equal parts, each a whole object with header, mbuf, private area and buffer, and
 * of that pool. The first mbuf is the page's own, whose buffer is shorter meanwhile. To
 * applications they are mbufs like any other: direct, with one reference, and freed in every legal
 * way.
 *
 * The page has a count, as the kernel's has: one reference for each mbuf that is away, and one of
 * the driver's while it wants the page back. Enqueue drops that of an mbuf that was freed. A count
 * of one says that the driver has the page for itself, and may fill it again without going to the
 * pool; who drops the last one makes the page whole, and it goes to the pool. Nobody waits for
 * anybody, and the pool counts the page as one object in use all the time.
 *
 * Private areas of mbufs but the first are zero when a page is cut. Pools must have been attached
 * by pp_recycle_attach().
 */

#include <rte_mbuf.h>

#include "pp_recycle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks of the mempool library's expect a cookie behind each object that it knows. */
#ifdef RTE_LIBRTE_MEMPOOL_DEBUG
#define PP_SHARE_MAX 1
#else
#define PP_SHARE_MAX 8 /* mbufs in a page */
#endif

/* How pages are cut. */
struct pp_share {
	struct rte_mempool *mp;
	uint32_t n;
	uint32_t stride;  /* bytes from one mbuf to the next */
	uint16_t buf_len; /* of each, headroom included */
};

/*
 * As many buffers of `room` bytes or more, headroom included, as a page of the pool can hold. Where
 * two do not fit n is 1, and the buffer the page's own, whatever its length.
 */
void pp_share_init(struct pp_share *share, struct rte_mempool *mp, uint32_t room);

/* The data room that a pool needs so that pages hold n such buffers, at least. */
uint32_t pp_share_room(uint32_t n, uint32_t priv_size, uint32_t room);

/* Cut a page that is the caller's. The count is not set. */
void pp_page_cut(const struct pp_share *share, struct rte_mbuf *page);

/* The i-th mbuf of a page, from 0 on. */
static __rte_always_inline struct rte_mbuf *
pp_page_mbuf(const struct pp_share *share, struct rte_mbuf *page, uint32_t i)
{
	return (struct rte_mbuf *)RTE_PTR_ADD(page, (size_t)i * share->stride);
}

/* The first mbuf of the page that an object is in; NULL: pages are not shared. */
static __rte_always_inline struct rte_mbuf *
pp_page_of(void *obj)
{
	const struct pp_page_mark *mark = pp_page_mark(obj);

	if (pp_load_relaxed(&mark->given) != PP_MARK_SHARED)
		return NULL;
	return (struct rte_mbuf *)RTE_PTR_SUB(obj, mark->back);
}

/* Of a page that nobody else has. */
static __rte_always_inline void
pp_page_set_refs(struct rte_mbuf *page, uint32_t refs)
{
	pp_store_relaxed(&pp_page_mark(page)->refs, refs);
}

/* All that others did with the page comes before what the caller does when this is 1. */
static __rte_always_inline uint32_t
pp_page_refs(struct rte_mbuf *page)
{
	return pp_load_acquire(&pp_page_mark(page)->refs);
}

/* What pp_page_drop() does for the last one. */
void pp_page_make_whole(struct rte_mbuf *page);

/* Drop n references. True: they were the last, and the page, whole again, is the caller's. */
static __rte_always_inline bool
pp_page_drop(struct rte_mbuf *page, uint32_t n)
{
	if (likely(pp_sub_fetch(&pp_page_mark(page)->refs, n) != 0))
		return false;
	pp_page_make_whole(page);
	return true;
}

/* The same; a page that nobody has any more goes to the pool. */
void pp_page_put(struct rte_mbuf *page, uint32_t n);

#ifdef __cplusplus
}
#endif
