/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_eth_recycle_mbufs(), which DPDK has since 23.11: buffers that a send queue is done with go
 * into a receive ring, of this driver or another one, without a look at the pool. Both queues are
 * polled by the calling thread.
 *
 * A page that a receive queue recycles itself must come back through the pool's enqueue, which is
 * where that queue sees it: so receive queues take part with recycle=off only. Nor do they when a
 * WQE has several buffers.
 */

#include "mlx5pp.h"

#if MLX5PP_HAS_RECYCLE_MBUFS

/* Places in the receive ring, from its head on, to be filled at once. */
static uint16_t
room_of(const struct rte_eth_recycle_rxq_info *info)
{
	const uint16_t size = info->mbuf_ring_size, head = *info->refill_head;
	const uint16_t room = (uint16_t)(size - (head - *info->receive_tail)) & (size - 1);

	/* so many at once or none, and its ring does not wrap then */
	if (info->refill_requirement != 0)
		return room >= info->refill_requirement ? info->refill_requirement : 0;
	return RTE_MIN(room, (uint16_t)(size - head));
}

/* NULL: it is not for that ring, and has been freed, or others have it, too. */
static struct rte_mbuf *
take(struct rte_mbuf *m, const struct rte_mempool *mp, uint16_t buf_len, bool raw)
{
	/* the buffer of a page that packets share is shorter than the ring says */
	if (unlikely(m->pool != mp || m->next != NULL || !RTE_MBUF_DIRECT(m) ||
		     m->buf_len < buf_len)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	return raw ? m : rte_pktmbuf_prefree_seg(m);
}

uint16_t
mlx5pp_recycle_tx_reuse(void *queue, struct rte_eth_recycle_rxq_info *info)
{
	struct mlx5pp_txq *txq = queue;
	struct rte_mbuf **ring = &info->mbuf_ring[*info->refill_head];
	const uint16_t buf_len = rte_pktmbuf_data_room_size(info->mp);
	const uint16_t room = room_of(info);
	uint16_t n = 0;
	uint32_t to;

	if (room == 0 || !txq->running || !mlx5pp_tx_completed(txq, &to))
		return 0;
	for (; txq->ci != to && n < room; txq->ci++) {
		struct rte_mbuf *m = txq->bufs[txq->ci & txq->bb_mask];

		if (m != NULL)
			m = take(m, info->mp, buf_len, txq->raw_free);
		if (m != NULL)
			ring[n++] = m;
	}
	mlx5pp_tx_free(txq, to);
	if (n < info->refill_requirement) {
		rte_mempool_put_bulk(info->mp, (void **)ring, n);
		return 0;
	}
	return n;
}

void
mlx5pp_recycle_rxq_info_get(
	struct rte_eth_dev *dev, uint16_t index, struct rte_eth_recycle_rxq_info *info)
{
	struct mlx5pp_rxq *rxq = dev->data->rx_queues[index];

	*info = (struct rte_eth_recycle_rxq_info){
		.mbuf_ring = rxq->bufs,
		.mp = rxq->mp,
		.refill_head = &rxq->refill_head,
		.receive_tail = &rxq->receive_tail,
		.mbuf_ring_size = rxq->n_desc,
	};
}

#endif
