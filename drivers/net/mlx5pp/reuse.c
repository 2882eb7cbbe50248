/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recycle=reuse, as mlx5e's page reuse: a page has as many mbufs as frames of the MTU fit, posted
 * one after the other, and a count (pp_share.h). Pages wait in a FIFO from when they are posted,
 * with a reference of the driver's. When that is the only one at the head, all packets of the page
 * have come back, and it is posted again without a look at the pool. One packet that is kept keeps
 * its page, and blocks those behind it.
 */

#include <errno.h>

#include <rte_malloc.h>

#include "mlx5pp.h"

static struct mlx5pp_shared_page *
entry_at(const struct mlx5pp_pages *pages, uint32_t i)
{
	return &pages->fifo[i & pages->mask];
}

/* ---- posting ---- */

/* The next page to be posted, as buffers behind `got` others. Nobody else has it. */
static void
open_page(struct mlx5pp_rxq *rxq, struct rte_mbuf *page, uint32_t got)
{
	struct mlx5pp_pages *pages = &rxq->pages;
	uint32_t refs = pages->share.n;

	if (likely(pages->tail - pages->head < pages->limit)) {
		*entry_at(pages, pages->tail++) = (struct mlx5pp_shared_page){
			.page = page,
			.end = (rxq->posted << rxq->log_segs) + got + pages->share.n,
		};
		refs++;
	} else {
		/* it goes to the pool with its last packet */
		rxq->stats.cache_full++;
	}
	pp_page_set_refs(page, refs);
	pages->open = page;
	pages->used = 0;
}

/* Mbufs of the open page, to make it n; how many these are. */
static uint32_t
post_open(struct mlx5pp_pages *pages, struct rte_mbuf **bufs, uint32_t got, uint32_t n)
{
	while (got < n && pages->open != NULL) {
		bufs[got++] = pp_page_mbuf(&pages->share, pages->open, pages->used++);
		if (pages->used == pages->share.n)
			pages->open = NULL;
	}
	return got;
}

/* Pages that have come back, from the head on. */
static uint32_t
take_again(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t got, uint32_t n)
{
	struct mlx5pp_pages *pages = &rxq->pages;

	while (got < n) {
		struct rte_mbuf *page = entry_at(pages, pages->head)->page;

		if (pages->head == pages->in_ring) {
			rxq->stats.cache_empty++;
			break;
		}
		if (pp_page_refs(page) != 1) {
			rxq->stats.cache_busy++;
			break;
		}
		rte_prefetch0_write(pp_page_mark(entry_at(pages, pages->head + 2)->page));
		pages->head++;
		rxq->stats.cache_reuse++;
		open_page(rxq, page, got);
		got = post_open(pages, bufs, got, n);
	}
	return got;
}

static uint32_t
take_from_pool(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t got, uint32_t n)
{
	struct mlx5pp_pages *pages = &rxq->pages;
	struct rte_mbuf *page[MLX5PP_REFILL] = {NULL};
	uint32_t want = (n - got + pages->share.n - 1) / pages->share.n;

	/* all or nothing; but few are better than none */
	while (want > 0 && pp_recycle_pool_get(rxq->mp, rxq->cache, (void **)page, want) < 0)
		want /= 2;
	for (uint32_t i = 0; i < want; i++)
		rte_prefetch0_write(pp_page_mark(page[i]));
	for (uint32_t i = 0; i < want; i++) {
		pp_page_cut(&pages->share, page[i]);
		open_page(rxq, page[i], got);
		got = post_open(pages, bufs, got, n);
	}
	return got;
}

/*
 * The pool is empty, or has too few for one WQE. Pages that came back behind a busy head must not
 * be out of reach then.
 */
static uint32_t
take_behind_head(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t got, uint32_t n)
{
	struct mlx5pp_pages *pages = &rxq->pages;
	const uint32_t want = (n - got + pages->share.n - 1) / pages->share.n;
	struct rte_mbuf *page[MLX5PP_REFILL];
	uint32_t found = 0, kept = pages->head;

	for (uint32_t i = pages->head; i != pages->tail; i++) {
		const struct mlx5pp_shared_page entry = *entry_at(pages, i);

		if (i == pages->in_ring)
			pages->in_ring = kept;
		if (found < want && pp_page_refs(entry.page) == 1)
			page[found++] = entry.page;
		else
			*entry_at(pages, kept++) = entry;
	}
	if (pages->in_ring == pages->tail)
		pages->in_ring = kept;
	pages->tail = kept;
	for (uint32_t i = 0; i < found; i++) {
		open_page(rxq, page[i], got);
		got = post_open(pages, bufs, got, n);
	}
	rxq->stats.cache_behind_head += found;
	return got;
}

/* Pages whose last buffer the card has filled are with the application. */
static void
learn_consumed(struct mlx5pp_rxq *rxq)
{
	struct mlx5pp_pages *pages = &rxq->pages;
	const uint32_t consumed = rxq->consumed << rxq->log_segs;

	while (pages->in_ring != pages->tail &&
		(int32_t)(entry_at(pages, pages->in_ring)->end - consumed) <= 0)
		pages->in_ring++;
}

uint32_t
mlx5pp_reuse_take(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t n)
{
	uint32_t got = post_open(&rxq->pages, bufs, 0, n);

	learn_consumed(rxq);
	got = take_again(rxq, bufs, got, n);
	if (got < n)
		got = take_from_pool(rxq, bufs, got, n);
	if (unlikely(got < 1u << rxq->log_segs))
		got = take_behind_head(rxq, bufs, got, n);
	return got;
}

/* ---- life ---- */

int
mlx5pp_reuse_setup(struct mlx5pp_rxq *rxq, uint32_t size, int socket)
{
	struct mlx5pp_pages *pages = &rxq->pages;
	/* all of the ring may be pages of one packet, and one page is open */
	const uint32_t slots = rte_align32pow2(size + rxq->n_desc + 1);

	pages->fifo = rte_zmalloc_socket(
		"mlx5pp_fifo", slots * sizeof(*pages->fifo), RTE_CACHE_LINE_SIZE, socket);
	pages->mask = slots - 1;
	pages->usable = size - 1;
	return pages->fifo != NULL ? 0 : -ENOMEM;
}

/* As many frames in a page as fit; those that do not fit the whole page take several pages. */
void
mlx5pp_reuse_choose_room(struct mlx5pp_rxq *rxq, uint32_t len)
{
	struct mlx5pp_pages *pages = &rxq->pages;
	const uint32_t room = rxq->headroom + len;

	pp_share_init(&pages->share, rxq->mp, room);
	pages->limit = pages->usable + rxq->n_desc / pages->share.n + 1;
	rxq->buf_len = pages->share.buf_len;
	if (pages->share.n == 1)
		MLX5PP_LOG(NOTICE,
			"pool %s: buffers of %u bytes are shared by no two frames of %u; make them "
			"%u or more",
			rxq->mp->name, rxq->buf_len, len,
			pp_share_room(2, rte_pktmbuf_priv_size(rxq->mp), room));
}

/* What was in the ring has been given back. */
void
mlx5pp_reuse_start(struct mlx5pp_rxq *rxq)
{
	rxq->pages.in_ring = rxq->pages.tail;
}

/* Pages that have packets left go to the pool with the last of them. */
void
mlx5pp_reuse_stop(struct mlx5pp_rxq *rxq)
{
	struct mlx5pp_pages *pages = &rxq->pages;

	if (pages->open != NULL)
		pp_page_put(pages->open, pages->share.n - pages->used);
	for (; pages->head != pages->tail; pages->head++)
		pp_page_put(entry_at(pages, pages->head)->page, 1);
	pages->open = NULL;
}
