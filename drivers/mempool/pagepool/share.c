/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that several packets share: how they are cut, and made whole again. */

#include <string.h>

#include "mempool_internal.h"
#include "pp_share.h"

/* In front of each mbuf, for its mark and its header. */
#define FRONT RTE_CACHE_LINE_SIZE

static size_t
overhead(uint32_t priv_size)
{
	return sizeof(struct rte_mbuf) + priv_size;
}

uint32_t
pp_share_room(uint32_t n, uint32_t priv_size, uint32_t room)
{
	const size_t part = RTE_ALIGN(FRONT + overhead(priv_size) + room, RTE_CACHE_LINE_SIZE);

	/* the first mbuf's front is the object's own, outside of its size */
	return (uint32_t)(n * part - FRONT - overhead(priv_size));
}

void
pp_share_init(struct pp_share *share, struct rte_mempool *mp, uint32_t room)
{
	const uint32_t priv_size = rte_pktmbuf_priv_size(mp);
	const uint16_t whole = rte_pktmbuf_data_room_size(mp);
	uint32_t n = PP_SHARE_MAX;

	while (n > 1 && pp_share_room(n, priv_size, room) > whole)
		n--;
	*share = (struct pp_share){
		.mp = mp,
		.n = n,
		.stride = (uint32_t)RTE_ALIGN_FLOOR(
			(FRONT + overhead(priv_size) + whole) / n, RTE_CACHE_LINE_SIZE),
		.buf_len = whole,
	};
	if (n > 1)
		share->buf_len = (uint16_t)(share->stride - FRONT - overhead(priv_size));
}

static void
make_mbuf(const struct pp_share *share, struct rte_mbuf *page, uint32_t i)
{
	struct rte_mbuf *m = pp_page_mbuf(share, page, i);
	struct rte_mempool_objhdr *header = rte_mempool_get_header(m);
	const uint16_t priv_size = page->priv_size;
	const rte_iova_t iova = rte_mempool_virt2iova(page);

	header->mp = share->mp;
	header->iova = iova != RTE_BAD_IOVA ? iova + i * share->stride : iova;
	memset(m, 0, overhead(priv_size));
	m->buf_addr = RTE_PTR_ADD(m, overhead(priv_size));
	rte_mbuf_iova_set(m, header->iova + overhead(priv_size));
	m->priv_size = priv_size;
	m->pool = share->mp;
	m->nb_segs = 1;
	m->port = RTE_MBUF_PORT_INVALID;
	rte_mbuf_refcnt_set(m, 1);
}

void
pp_page_cut(const struct pp_share *share, struct rte_mbuf *page)
{
	for (uint32_t i = 0; i < share->n; i++) {
		struct rte_mbuf *m = pp_page_mbuf(share, page, i);

		if (i > 0)
			make_mbuf(share, page, i);
		m->buf_len = share->buf_len;
		*pp_page_mark(m) = (struct pp_page_mark){
			.given = PP_MARK_SHARED,
			.back = i * share->stride,
		};
	}
}

void
pp_page_make_whole(struct rte_mbuf *page)
{
	*pp_page_mark(page) = (struct pp_page_mark){0};
	page->buf_len = rte_pktmbuf_data_room_size(page->pool);
}

void
pp_page_put(struct rte_mbuf *page, uint32_t n)
{
	if (pp_page_drop(page, n))
		rte_mempool_put(page->pool, page);
}
