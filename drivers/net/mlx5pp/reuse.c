/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recycle=reuse, as mlx5e's page reuse: a page has as many mbufs as frames of the MTU fit, posted
 * one after the other, and a count (pp_share.h), with a reference of the driver's. When the card
 * has filled the last buffer of a page, it goes to a FIFO. When the driver's reference is the only
 * one at its head, all packets of that page have come back, and it is posted again without a look
 * at the pool. One packet that is kept keeps its page, and blocks those behind it.
 */

#include <errno.h>

#include <rte_malloc.h>

#include "mlx5pp.h"

static struct mlx5pp_page *
entry_at(const struct mlx5pp_page_fifo *fifo, uint32_t i)
{
	return &fifo->entry[i & fifo->mask];
}

static uint32_t
count(const struct mlx5pp_page_fifo *fifo)
{
	return fifo->tail - fifo->head;
}

/* ---- pages that leave the ring ---- */

/* To the FIFO or, where that is full, to the pool with the last packet. */
static void
give(struct mlx5pp_rxq *rxq, struct rte_mbuf *page)
{
	struct mlx5pp_page_fifo *given = &rxq->pages.given;

	if (likely(count(given) < rxq->pages.usable)) {
		entry_at(given, given->tail++)->page = page;
	} else {
		rxq->stats.cache_full++;
		pp_page_put(page, 1);
	}
}

/* Those whose last buffer the card has filled. */
static void
give_consumed(struct mlx5pp_rxq *rxq)
{
	struct mlx5pp_page_fifo *posted = &rxq->pages.posted;
	const uint32_t consumed = rxq->consumed << rxq->log_segs;

	while (count(posted) > 0 && (int32_t)(entry_at(posted, posted->head)->end - consumed) <= 0)
		give(rxq, entry_at(posted, posted->head++)->page);
}

/* ---- pages that are posted ---- */

/* The next one, as buffers behind `got` others. Nobody else has it. */
static void
open_page(struct mlx5pp_rxq *rxq, struct rte_mbuf *page, uint32_t got)
{
	struct mlx5pp_pages *pages = &rxq->pages;

	*entry_at(&pages->posted, pages->posted.tail++) = (struct mlx5pp_page){
		.page = page,
		.end = (rxq->posted << rxq->log_segs) + got + pages->share.n,
	};
	pp_page_set_refs(page, pages->share.n + 1);
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
	struct mlx5pp_page_fifo *given = &rxq->pages.given;

	while (got < n) {
		if (count(given) == 0) {
			rxq->stats.cache_empty++;
			break;
		}
		struct rte_mbuf *page = entry_at(given, given->head)->page;

		if (pp_page_refs(page) != 1) {
			rxq->stats.cache_busy++;
			break;
		}
		rte_prefetch0_write(pp_page_mark(entry_at(given, given->head + 2)->page));
		given->head++;
		rxq->stats.cache_reuse++;
		open_page(rxq, page, got);
		got = post_open(&rxq->pages, bufs, got, n);
	}
	return got;
}

static uint32_t
pages_for(const struct mlx5pp_pages *pages, uint32_t bufs)
{
	return (bufs + pages->share.n - 1) / pages->share.n;
}

static uint32_t
take_from_pool(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t got, uint32_t n)
{
	struct rte_mbuf *page[MLX5PP_REFILL] = {NULL};
	uint32_t want = pages_for(&rxq->pages, n - got);

	/* all or nothing; but few are better than none */
	while (want > 0 && pp_recycle_pool_get(rxq->mp, rxq->cache, (void **)page, want) < 0)
		want /= 2;
	for (uint32_t i = 0; i < want; i++)
		rte_prefetch0_write(pp_page_mark(page[i]));
	for (uint32_t i = 0; i < want; i++) {
		pp_page_cut(&rxq->pages.share, page[i]);
		open_page(rxq, page[i], got);
		got = post_open(&rxq->pages, bufs, got, n);
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
	struct mlx5pp_page_fifo *given = &rxq->pages.given;
	uint32_t kept = given->head, want = pages_for(&rxq->pages, n - got);

	for (uint32_t i = given->head; i != given->tail; i++) {
		struct rte_mbuf *page = entry_at(given, i)->page;

		if (want == 0 || pp_page_refs(page) != 1) {
			entry_at(given, kept++)->page = page;
			continue;
		}
		want--;
		rxq->stats.cache_behind_head++;
		open_page(rxq, page, got);
		got = post_open(&rxq->pages, bufs, got, n);
	}
	given->tail = kept;
	return got;
}

/* Too few for another WQE, which takes several pages of one buffer. */
static uint32_t
give_rest(struct mlx5pp_rxq *rxq, uint32_t got)
{
	struct mlx5pp_page_fifo *posted = &rxq->pages.posted;

	for (; (got & ((1u << rxq->log_segs) - 1)) != 0; got--) {
		struct rte_mbuf *page = entry_at(posted, --posted->tail)->page;

		pp_page_set_refs(page, 1);
		give(rxq, page);
	}
	return got;
}

uint32_t
mlx5pp_reuse_take(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t n)
{
	uint32_t got = post_open(&rxq->pages, bufs, 0, n);

	give_consumed(rxq);
	got = take_again(rxq, bufs, got, n);
	if (got < n)
		got = take_from_pool(rxq, bufs, got, n);
	if (unlikely(got < 1u << rxq->log_segs))
		got = take_behind_head(rxq, bufs, got, n);
	return give_rest(rxq, got);
}

/* ---- life ---- */

static int
make_fifo(struct mlx5pp_page_fifo *fifo, uint32_t size, int socket)
{
	const uint32_t slots = rte_align32pow2(size);

	fifo->entry = rte_zmalloc_socket(
		"mlx5pp_fifo", slots * sizeof(*fifo->entry), RTE_CACHE_LINE_SIZE, socket);
	fifo->mask = slots - 1;
	return fifo->entry != NULL ? 0 : -ENOMEM;
}

int
mlx5pp_reuse_setup(struct mlx5pp_rxq *rxq, uint32_t size, int socket)
{
	struct mlx5pp_pages *pages = &rxq->pages;
	/* a ring of pages that have one packet; one more is open, one half gone */
	const int err = make_fifo(&pages->posted, rxq->n_desc + 2, socket);

	pages->usable = size - 1;
	return err < 0 ? err : make_fifo(&pages->given, size, socket);
}

/* As many frames in a page as fit; those that do not fit the whole page take several pages. */
void
mlx5pp_reuse_choose_room(struct mlx5pp_rxq *rxq, uint32_t len)
{
	struct pp_share *share = &rxq->pages.share;
	const uint32_t room = rxq->headroom + len;

	pp_share_init(share, rxq->mp, room);
	rxq->buf_len = share->buf_len;
	if (share->n == 1)
		MLX5PP_LOG(NOTICE,
			"pool %s: buffers of %u bytes are shared by no two frames of %u; make them "
			"%u or more",
			rxq->mp->name, rxq->buf_len, len,
			pp_share_room(2, rte_pktmbuf_priv_size(rxq->mp), room));
}

/* What was in the ring before has been given back, and positions begin anew. */
void
mlx5pp_reuse_start(struct mlx5pp_rxq *rxq)
{
	struct mlx5pp_page_fifo *posted = &rxq->pages.posted;

	while (count(posted) > 0)
		give(rxq, entry_at(posted, posted->head++)->page);
}

/* Pages that have packets left go to the pool with the last of them. */
static void
let_go(struct mlx5pp_page_fifo *fifo)
{
	for (; count(fifo) > 0; fifo->head++)
		pp_page_put(entry_at(fifo, fifo->head)->page, 1);
}

void
mlx5pp_reuse_stop(struct mlx5pp_rxq *rxq)
{
	struct mlx5pp_pages *pages = &rxq->pages;

	if (pages->open != NULL)
		pp_page_put(pages->open, pages->share.n - pages->used);
	pages->open = NULL;
	let_go(&pages->posted);
	let_go(&pages->given);
}
