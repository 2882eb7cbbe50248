/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending. A WQE is a control segment, an Ethernet segment and a pointer for each buffer of the
 * frame, in basic blocks of 64 bytes; most frames take one. Every so many blocks one WQE asks for a
 * completion, which stands for all before it. The mbuf of a frame is kept at the index of its first
 * block, so that what has completed is a range of one array.
 */

#include "mlx5pp.h"

#define SEGS_PER_BB 4 /* of 16 bytes */

/* The card refuses to send frames whose first bytes do not come with the WQE: ConnectX-4. */
#define INLINE_LEN 18

/* ---- what is done ---- */

static __rte_always_inline void
free_range(struct mlx5pp_txq *txq, uint32_t from, uint32_t n)
{
	struct rte_mbuf **bufs = &txq->bufs[from & txq->bb_mask];

	if (likely(txq->raw_free && txq->holes == 0))
		rte_mempool_put_bulk(bufs[0]->pool, (void **)bufs, n);
	else
		rte_pktmbuf_free_bulk(bufs, n); /* which leaves NULLs out */
}

/* Blocks up to `to` have completed. */
void
mlx5pp_tx_free(struct mlx5pp_txq *txq, uint32_t to)
{
	const uint32_t n = to - txq->ci;
	const uint32_t until_end = txq->bb_mask + 1 - (txq->ci & txq->bb_mask);

	if (n == 0)
		return;
	if (n <= until_end) {
		free_range(txq, txq->ci, n);
	} else {
		free_range(txq, txq->ci, until_end);
		free_range(txq, txq->ci + until_end, n - until_end);
	}
	txq->ci = to;
	if (txq->ci == txq->pi)
		txq->holes = 0;
}

/* What was posted and did not leave is an error of the port. */
static __rte_noinline void
handle_error(struct mlx5pp_txq *txq, const struct mlx5_cqe64 *cqe)
{
	const struct mlx5_err_cqe *error = (const void *)cqe;
	const uint16_t index = be16toh(error->wqe_counter);
	const uint32_t failed = txq->ci + (uint16_t)(index - (uint16_t)txq->ci);
	uint64_t packets = 0, bytes = 0;

	for (uint32_t i = failed; i != txq->pi; i++) {
		const struct rte_mbuf *m = txq->bufs[i & txq->bb_mask];

		if (m == NULL)
			continue;
		packets++;
		bytes += m->pkt_len;
	}
	MLX5PP_LOG(NOTICE,
		"port %u: TX queue %u failed with syndrome %#x, and starts anew; %u frames were "
		"not "
		"sent",
		txq->port->data->port_id, txq->index, error->syndrome, (unsigned int)packets);
	txq->stats.recoveries++;
	txq->stats.errors += packets;
	/* those posted before the counters were reset do not count */
	txq->stats.packets -= RTE_MIN(packets, txq->stats.packets);
	txq->stats.bytes -= RTE_MIN(bytes, txq->stats.bytes);
	if (mlx5pp_txq_recover(txq) < 0)
		MLX5PP_LOG(ERR, "port %u: TX queue %u does not start again; it will be tried",
			txq->port->data->port_id, txq->index);
}

/* Take completions: blocks up to *to are done. False: there were none, or an error. */
static __rte_always_inline bool
completed(struct mlx5pp_txq *txq, uint32_t *to)
{
	const struct mlx5_cqe64 *cqe, *last = NULL;

	while ((cqe = mlx5pp_cqe(txq->cqes, txq->cq_mask, txq->log_cqes, txq->cq_ci)) != NULL) {
		if (unlikely(cqe->op_own >> 4 == MLX5_CQE_REQ_ERR)) {
			handle_error(txq, cqe);
			return false;
		}
		last = cqe;
		txq->cq_ci++;
	}
	if (last == NULL)
		return false;
	/* the index of the WQE that asked for it; behind it nothing is known to be done */
	const uint16_t index = be16toh(last->wqe_counter);
	const uint32_t block = txq->ci + (uint16_t)(index - (uint16_t)txq->ci);
	const struct mlx5_wqe_ctrl_seg *ctrl =
		(const void *)&txq->wqes[(size_t)(block & txq->bb_mask) * MLX5_SEND_WQE_BB];
	const uint32_t segs = be32toh(ctrl->qpn_ds) & 0x3f;

	*to = block + (segs + SEGS_PER_BB - 1) / SEGS_PER_BB;
	mlx5pp_doorbell(&txq->cq_db[0], txq->cq_ci & 0xffffff);
	return true;
}

bool
mlx5pp_tx_completed(struct mlx5pp_txq *txq, uint32_t *to)
{
	return completed(txq, to);
}

static __rte_always_inline void
reclaim(struct mlx5pp_txq *txq)
{
	uint32_t to;

	if (completed(txq, &to))
		mlx5pp_tx_free(txq, to);
}

/* ---- keys ---- */

static __rte_noinline uint32_t
lkey_slow(struct mlx5pp_txq *txq, const struct rte_mbuf *m, uintptr_t addr)
{
	struct mlx5pp_mr mr;
	uint32_t i;

	for (i = 1; i < MLX5PP_MRU; i++)
		if (addr >= txq->mru[i].start && addr + m->data_len <= txq->mru[i].end)
			break;
	if (i < MLX5PP_MRU) {
		mr = (struct mlx5pp_mr){
			.start = txq->mru[i].start,
			.end = txq->mru[i].end,
			.lkey_be = txq->mru[i].lkey_be,
		};
	} else {
		if (!mlx5pp_mr_of_mbuf(txq->port, m, &mr))
			return 0;
		i = MLX5PP_MRU - 1;
	}
	memmove(&txq->mru[1], &txq->mru[0], i * sizeof(txq->mru[0]));
	txq->mru[0].start = mr.start;
	txq->mru[0].end = mr.end;
	txq->mru[0].lkey_be = mr.lkey_be;
	return mr.lkey_be;
}

/* 0: the card cannot reach it. */
static __rte_always_inline uint32_t
lkey_of(struct mlx5pp_txq *txq, const struct rte_mbuf *m)
{
	const uintptr_t addr = rte_pktmbuf_mtod(m, uintptr_t);

	if (likely(addr >= txq->mru[0].start && addr + m->data_len <= txq->mru[0].end))
		return txq->mru[0].lkey_be;
	return lkey_slow(txq, m, addr);
}

/* ---- WQEs ---- */

static __rte_always_inline void *
seg_at(const struct mlx5pp_txq *txq, uint32_t pi, uint32_t seg)
{
	const uint32_t block = (pi + seg / SEGS_PER_BB) & txq->bb_mask;

	return &txq->wqes[(size_t)block * MLX5_SEND_WQE_BB + seg % SEGS_PER_BB * 16];
}

static __rte_always_inline void
put_ctrl(struct mlx5pp_txq *txq, uint8_t opcode, uint32_t segs, bool signal)
{
	mlx5dv_set_ctrl_seg(seg_at(txq, txq->pi, 0), (uint16_t)txq->pi, opcode, 0, txq->sqn,
		signal ? MLX5_WQE_CTRL_CQ_UPDATE : 0, (uint8_t)segs, 0, 0);
}

static __rte_always_inline void
put_data(void *seg, const struct rte_mbuf *m, uint32_t skip, uint32_t lkey_be)
{
	struct mlx5_wqe_data_seg *data = seg;

	data->byte_count = htobe32(m->data_len - skip);
	data->lkey = lkey_be;
	data->addr = htobe64(rte_pktmbuf_mtod(m, uintptr_t) + skip);
}

/*
 * The Ethernet segment, and a frame's first bytes where the card wants them, out of however many
 * buffers: units of 16 bytes.
 */
static __rte_always_inline uint32_t
put_eth(struct mlx5pp_txq *txq, const struct rte_mbuf *m)
{
	struct mlx5_wqe_eth_seg *eth = seg_at(txq, txq->pi, 1);
	const uint64_t ol_flags = m->ol_flags;

	memset(eth, 0, 16);
	if (ol_flags & RTE_MBUF_F_TX_IP_CKSUM)
		eth->cs_flags |= MLX5_ETH_WQE_L3_CSUM;
	if (ol_flags & RTE_MBUF_F_TX_L4_MASK)
		eth->cs_flags |= MLX5_ETH_WQE_L4_CSUM;
	if (likely(txq->inline_len == 0))
		return 1;
	eth->inline_hdr_sz = htobe16(INLINE_LEN);
	uint8_t gathered[INLINE_LEN];

	memcpy(eth->inline_hdr_start, rte_pktmbuf_read(m, 0, INLINE_LEN, gathered), INLINE_LEN);
	return 2;
}

static __rte_always_inline bool
is_bad(const struct mlx5pp_txq *txq, const struct rte_mbuf *m)
{
	return m->pkt_len - MLX5PP_FRAME_MIN > MLX5PP_FRAME_MAX - MLX5PP_FRAME_MIN ||
	       m->pkt_len <= txq->inline_len;
}

/* The frame cannot be sent, now or ever: gone, and counted. */
static __rte_noinline void
drop(struct mlx5pp_txq *txq, struct rte_mbuf *m, uint64_t *cause)
{
	(*cause)++;
	txq->stats.errors++;
	rte_pktmbuf_free(m);
}

/* Behind the inline bytes. Segments without data are none: a count of zero would mean 2 GiB. */
static uint32_t
count_segs(const struct rte_mbuf *m, uint32_t skip)
{
	uint32_t n = 0;

	for (; m != NULL; m = m->next) {
		n += m->data_len > skip;
		skip -= RTE_MIN(skip, m->data_len);
	}
	return n;
}

/*
 * A frame's pointers. Returns the cause to drop it, or NULL. That there is no next one, where there
 * are not many, stands in a cache line that is not needed else.
 */
static __rte_always_inline uint64_t *
put_segs(struct mlx5pp_txq *txq, const struct rte_mbuf *m, uint32_t seg, const bool many)
{
	uint32_t skip = txq->inline_len;

	for (; m != NULL; m = many ? m->next : NULL) {
		if (m->data_len <= skip) {
			skip -= m->data_len;
			continue;
		}
		const uint32_t lkey_be = lkey_of(txq, m);

		if (unlikely(lkey_be == 0))
			return &txq->stats.no_mr;
		put_data(seg_at(txq, txq->pi, seg++), m, skip, lkey_be);
		skip = 0;
	}
	return NULL;
}

/* The card looks at the record; the register wakes it up. Its write may linger in a buffer. */
static __rte_always_inline void
ring(struct mlx5pp_txq *txq, uint32_t last)
{
	const uint64_t *ctrl = seg_at(txq, last, 0);

	mlx5pp_doorbell(&txq->sq_db[MLX5_SND_DBR], txq->pi & 0xffff);
	rte_wmb();
	__atomic_store_n(txq->bf, *ctrl, __ATOMIC_RELAXED);
	rte_wmb();
}

/*
 * Nothing to send, and frames without a completion in sight: a WQE that does nothing asks for one,
 * so that the buffers of a queue at rest come back.
 */
static __rte_noinline void
flush(struct mlx5pp_txq *txq)
{
	if (txq->pi == txq->signaled || txq->pi - txq->ci > txq->bb_mask)
		return;
	const uint32_t last = txq->pi;

	put_ctrl(txq, MLX5_OPCODE_NOP, 1, true);
	txq->bufs[txq->pi++ & txq->bb_mask] = NULL;
	txq->holes++;
	txq->signaled = txq->pi;
	ring(txq, last);
}

/* ---- the bursts ---- */

static __rte_always_inline uint16_t
burst(struct mlx5pp_txq *txq, struct rte_mbuf **pkts, const uint16_t n, const bool many)
{
	const uint32_t generation = __atomic_load_n(&txq->port->mrs.generation, __ATOMIC_ACQUIRE);
	uint32_t last;
	uint64_t bytes = 0;
	uint16_t i, sent = 0;

	if (unlikely(generation != txq->mr_generation)) {
		memset(txq->mru, 0, sizeof(txq->mru));
		txq->mr_generation = generation;
	}
	if (unlikely(!txq->running))
		mlx5pp_txq_retry(txq);
	else
		reclaim(txq);
	if (unlikely(!txq->running))
		return 0;
	last = txq->pi;
	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];
		const uint32_t n_segs = many ? count_segs(m, txq->inline_len) : 1;
		const uint32_t segs = 2 + (txq->inline_len > 0) + n_segs;
		const uint32_t blocks = many ? (segs + SEGS_PER_BB - 1) / SEGS_PER_BB : 1;

		if (i + 2 < n)
			rte_prefetch0(pkts[i + 2]);
		if (unlikely(is_bad(txq, m) ||
			     (many ? n_segs > MLX5PP_TX_SEGS_MAX : m->nb_segs > 1))) {
			drop(txq, m, &txq->stats.bad_frame);
			continue;
		}
		if (unlikely(txq->pi - txq->ci + blocks > txq->bb_mask + 1))
			break;
		uint64_t *cause = put_segs(txq, m, 1 + put_eth(txq, m), many);

		if (unlikely(cause != NULL)) {
			drop(txq, m, cause);
			continue;
		}
		const bool signal = txq->pi + blocks - txq->signaled >= txq->signal_at;

		put_ctrl(txq, MLX5_OPCODE_SEND, segs, signal);
		last = txq->pi;
		txq->bufs[last & txq->bb_mask] = m;
		for (uint32_t b = 1; b < blocks; b++)
			txq->bufs[(last + b) & txq->bb_mask] = NULL;
		txq->pi += blocks;
		if (signal)
			txq->signaled = txq->pi;
		bytes += m->pkt_len;
		sent++;
	}
	txq->stats.packets += sent;
	txq->stats.bytes += bytes;
	if (likely(sent > 0))
		ring(txq, last);
	else if (n == 0)
		flush(txq);
	return i;
}

/* Frames of one segment. */
uint16_t
mlx5pp_tx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	return burst(queue, pkts, n, false);
}

uint16_t
mlx5pp_tx_burst_segs(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	return burst(queue, pkts, n, true);
}

static uint32_t
count_pending(const struct mlx5pp_txq *txq)
{
	uint32_t n = 0;

	for (uint32_t i = txq->ci; i != txq->pi; i++)
		n += txq->bufs[i & txq->bb_mask] != NULL;
	return n;
}

/* Packets that were freed: all that have been sent by now, as completions stand for several. */
int
mlx5pp_tx_done_cleanup(void *queue, uint32_t n __rte_unused)
{
	struct mlx5pp_txq *txq = queue;

	if (!txq->running)
		return 0;
	const uint32_t before = count_pending(txq);

	flush(txq);
	reclaim(txq);
	return (int)(before - count_pending(txq));
}
