/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving. The receive ring holds addresses of empty buffers; the card takes the next one for
 * each frame, and says so in a completion. WQEs complete in order, so that a completion needs no
 * look at its number: the n-th is that of the n-th WQE.
 */

#include <rte_ethdev.h>

#include "mlx5pp.h"

#define AHEAD 4 /* packets whose mbuf is on its way into the cache while one is filled in */

/* Fields that struct mlx5_cqe64 leaves unnamed. */
#define CQE_RX_HASH    12 /* be32 */
#define CQE_RX_HASH_ON 16 /* u8: what was hashed, 0: nothing */

/* l4_hdr_type_etc */
#define CQE_VLAN_STRIPPED 0x01u

/* By l4_hdr_type_etc >> 2: the L3 type (2 bits), the L4 type (3 bits), and a fragment (1 bit). */
#define L3_L4(l3, l4) ((l3) | (l4) << 2)
#define FRAGMENT      0x20
#define L4_TYPES(l3, ptype)                                                                        \
	[L3_L4(l3, 0)] = RTE_PTYPE_L2_ETHER | (ptype) | RTE_PTYPE_L4_NONFRAG,                      \
		   [L3_L4(l3, 0) | FRAGMENT] = RTE_PTYPE_L2_ETHER | (ptype) | RTE_PTYPE_L4_FRAG,   \
		   [L3_L4(l3, 1)] = RTE_PTYPE_L2_ETHER | (ptype) | RTE_PTYPE_L4_TCP,               \
		   [L3_L4(l3, 2)] = RTE_PTYPE_L2_ETHER | (ptype) | RTE_PTYPE_L4_UDP,               \
		   [L3_L4(l3, 3)] =                                                                \
			   RTE_PTYPE_L2_ETHER | (ptype) | RTE_PTYPE_L4_TCP,      /* empty ACK */   \
		[L3_L4(l3, 4)] = RTE_PTYPE_L2_ETHER | (ptype) | RTE_PTYPE_L4_TCP /* ACK */

static const uint32_t ptypes[64] = {
	[0] = RTE_PTYPE_L2_ETHER,
	L4_TYPES(MLX5_CQE_L3_HDR_TYPE_IPV6, RTE_PTYPE_L3_IPV6_EXT_UNKNOWN),
	L4_TYPES(MLX5_CQE_L3_HDR_TYPE_IPV4, RTE_PTYPE_L3_IPV4_EXT_UNKNOWN),
};

#if MLX5PP_COUNTS_PTYPES
const uint32_t *
mlx5pp_rx_ptypes(struct rte_eth_dev *dev __rte_unused, size_t *n)
#else
const uint32_t *
mlx5pp_rx_ptypes(struct rte_eth_dev *dev __rte_unused)
#endif
{
	static const uint32_t all[] = {
		RTE_PTYPE_L2_ETHER, RTE_PTYPE_L3_IPV4_EXT_UNKNOWN, RTE_PTYPE_L3_IPV6_EXT_UNKNOWN,
		RTE_PTYPE_L4_TCP, RTE_PTYPE_L4_UDP, RTE_PTYPE_L4_FRAG, RTE_PTYPE_L4_NONFRAG,
		RTE_PTYPE_UNKNOWN, /* the end, before DPDK counted */
	};

#if MLX5PP_COUNTS_PTYPES
	*n = RTE_DIM(all) - 1;
#endif
	return all;
}

/* ---- giving the card buffers ---- */

static __rte_always_inline uint32_t
lkey_of(struct mlx5pp_rxq *rxq, uintptr_t addr)
{
	struct mlx5pp_mr mr;

	if (likely(rxq->lkey_be != 0))
		return rxq->lkey_be;
	/* all of the pool was registered with the queue */
	return mlx5pp_mr_find(rxq->port, addr, addr + rxq->room, &mr) ? mr.lkey_be
								      : htobe32(MLX5_INVALID_LKEY);
}

/* Only a frame's first buffer has headroom. */
static __rte_always_inline void
post(struct mlx5pp_rxq *rxq, uint32_t seg, struct rte_mbuf *m, uint16_t headroom)
{
	struct mlx5_wqe_data_seg *data = &rxq->wqes[seg];
	const uintptr_t addr = (uintptr_t)m + rxq->buf_offset + headroom;

	rxq->bufs[seg] = m;
	data->addr = htobe64(addr);
	data->lkey = lkey_of(rxq, addr);
}

/* Whole WQEs out of the buffers that could be had; buffers without a WQE go back. */
static uint32_t
refill_once(struct mlx5pp_rxq *rxq, uint32_t wqes)
{
	struct rte_mbuf *bufs[MLX5PP_REFILL];
	const uint32_t want = wqes << rxq->log_segs;
	const uint32_t got = mlx5pp_recycle_take(rxq, bufs, want);
	const uint32_t segs = 1u << rxq->log_segs, done = got >> rxq->log_segs;

	for (uint32_t i = 0; i < done << rxq->log_segs; i++) {
		const uint32_t seg = i & (segs - 1);
		const uint32_t slot = (rxq->posted + (i >> rxq->log_segs)) & rxq->wqe_mask;

		post(rxq, (slot << rxq->log_segs) + seg, bufs[i], seg == 0 ? rxq->headroom : 0);
	}
	rxq->posted += done;
	if (unlikely(got < want)) {
		rxq->stats.nombuf += want - got;
		if (got > done << rxq->log_segs)
			mlx5pp_recycle_give_back(
				rxq, &bufs[done << rxq->log_segs], got - (done << rxq->log_segs));
	}
	return done;
}

/* One doorbell for all. Returns the WQEs posted. */
uint32_t
mlx5pp_rx_refill(struct mlx5pp_rxq *rxq)
{
	const uint32_t at_once = MLX5PP_REFILL >> rxq->log_segs, before = rxq->posted;
	uint32_t missing;

	while ((missing = rxq->n_wqes - (rxq->posted - rxq->consumed)) > 0) {
		const uint32_t want = RTE_MIN(missing, at_once);

		if (refill_once(rxq, want) < want)
			break;
	}
	if (rxq->posted != before)
		mlx5pp_doorbell(&rxq->rq_db[MLX5_RCV_DBR], rxq->posted & 0xffff);
	return rxq->posted - before;
}

#if MLX5PP_HAS_RECYCLE_MBUFS
/* Buffers lie in the ring from the head on: the card gets them. */
void
mlx5pp_recycle_rx_refill(void *queue, uint16_t n)
{
	struct mlx5pp_rxq *rxq = queue;

	for (uint16_t i = 0; i < n; i++) {
		const uint32_t slot = (rxq->posted + i) & rxq->wqe_mask;

		post(rxq, slot, rxq->bufs[slot], rxq->headroom);
	}
	rxq->posted += n;
	rxq->stats.recycled_mbufs += n;
	mlx5pp_doorbell(&rxq->rq_db[MLX5_RCV_DBR], rxq->posted & 0xffff);
	mlx5pp_rx_tell_room(rxq);
}
#endif

/* ---- what the card says ---- */

static __rte_always_inline void
fill_in(const struct mlx5pp_rxq *rxq, struct rte_mbuf *m, const struct mlx5_cqe64 *cqe,
	uint32_t len)
{
	const uint8_t *raw = (const uint8_t *)cqe;
	const uint8_t hds = cqe->hds_ip_ext, types = cqe->l4_hdr_type_etc;
	uint64_t ol_flags = 0;

	memcpy(&m->data_off, &rxq->rearm, sizeof(rxq->rearm));
	m->packet_type = ptypes[types >> 2];
	m->pkt_len = len;
	if (raw[CQE_RX_HASH_ON] != 0) {
		m->hash.rss = be32toh(*(const __be32 *)(const void *)(raw + CQE_RX_HASH));
		ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
	}
	/* good, or unknown: the card does not say whether there was a checksum to be wrong */
	if (hds & MLX5_CQE_L3_OK)
		ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	if (hds & MLX5_CQE_L4_OK)
		ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	if (unlikely(types & CQE_VLAN_STRIPPED)) {
		m->vlan_tci = be16toh(cqe->vlan_info);
		ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	}
	if (unlikely(rxq->timestamp_offset >= 0)) {
		*RTE_MBUF_DYNFIELD(m, rxq->timestamp_offset, rte_mbuf_timestamp_t *) =
			be64toh(cqe->timestamp);
		ol_flags |= rxq->timestamp_flag;
	}
	m->ol_flags = ol_flags;
}

/*
 * A completion with an error. Most cost the queue, which starts anew; a frame that did not fit
 * costs only itself. Returns false when the burst must end.
 */
static __rte_noinline bool
handle_error(struct mlx5pp_rxq *rxq, const struct mlx5_cqe64 *cqe)
{
	const uint8_t syndrome = ((const struct mlx5_err_cqe *)(const void *)cqe)->syndrome;

	if (rxq->failed) {
		/* of before: the queue was not reset */
		mlx5pp_rxq_retry(rxq);
		return false;
	}
	rxq->stats.errors++;
	if (syndrome == MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR) {
		const uint32_t slot = (rxq->consumed++ & rxq->wqe_mask) << rxq->log_segs;

		mlx5pp_recycle_give_back(rxq, &rxq->bufs[slot], 1u << rxq->log_segs);
		rxq->cq_ci++;
		return true;
	}
	MLX5PP_LOG(NOTICE, "port %u: RX queue %u failed with syndrome %#x, and starts anew",
		rxq->port->data->port_id, rxq->index, syndrome);
	rxq->stats.recoveries++;
	if (mlx5pp_rxq_recover(rxq) < 0)
		MLX5PP_LOG(ERR, "port %u: RX queue %u does not start again; it will be tried",
			rxq->port->data->port_id, rxq->index);
	return false;
}

/* Who replaces a buffer of a shared page by another one gets all of the page back. */
static __rte_always_inline void
restore_len(const struct mlx5pp_rxq *rxq, struct rte_mbuf *m)
{
	m->buf_len = rxq->buf_len;
}

/* A frame over several buffers; those that it did not need go back. */
static struct rte_mbuf *
chain(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t len)
{
	const uint32_t segs = 1u << rxq->log_segs;
	struct rte_mbuf *first = bufs[0], *last = first;
	uint32_t part = RTE_MIN(len, (uint32_t)rxq->room), n = 1;

	first->data_len = (uint16_t)part;
	for (len -= part; len > 0 && n < segs; len -= part, n++) {
		struct rte_mbuf *m = bufs[n];

		memcpy(&m->data_off, &rxq->rearm, sizeof(rxq->rearm));
		m->data_off = 0;
		m->ol_flags = 0;
		part = RTE_MIN(len, (uint32_t)rxq->buf_len);
		m->data_len = (uint16_t)part;
		m->pkt_len = part;
		last->next = m;
		last = m;
	}
	last->next = NULL;
	first->nb_segs = (uint16_t)n;
	if (rxq->recycle == MLX5PP_RECYCLE_CACHE)
		for (uint32_t i = 0; i < n; i++)
			mlx5pp_recycle_given(rxq, bufs[i]);
	if (rxq->recycle == MLX5PP_RECYCLE_REUSE)
		restore_len(rxq, first);
	if (n < segs)
		mlx5pp_recycle_give_back(rxq, &bufs[n], segs - n);
	return first;
}

/* WQEs are missing; also of an idle queue, whose last refill failed, or its last recovery. */
static __rte_noinline void
catch_up(struct mlx5pp_rxq *rxq)
{
	if (likely(!rxq->failed))
		mlx5pp_rx_refill(rxq);
	else
		mlx5pp_rxq_retry(rxq);
}

/* ---- the bursts ---- */

static __rte_always_inline uint16_t
burst(struct mlx5pp_rxq *rxq, struct rte_mbuf **pkts, const uint16_t n, const bool segs,
	const enum mlx5pp_recycle recycle)
{
	const uint32_t ci_before = rxq->cq_ci;
	uint64_t bytes = 0;
	uint16_t got = 0;

	while (got < n) {
		const struct mlx5_cqe64 *cqe =
			mlx5pp_cqe(rxq->cqes, rxq->cq_mask, rxq->log_cqes, rxq->cq_ci);

		if (cqe == NULL)
			break;
		if (unlikely(cqe->op_own >> 4 == MLX5_CQE_RESP_ERR)) {
			if (handle_error(rxq, cqe))
				continue;
			rxq->stats.packets += got;
			rxq->stats.bytes += bytes;
			return got;
		}
		const uint32_t slot = rxq->consumed & rxq->wqe_mask;
		const uint32_t len = be32toh(cqe->byte_cnt);
		struct rte_mbuf *m = rxq->bufs[segs ? slot << rxq->log_segs : slot];

		rte_prefetch0_write(rxq->bufs[((rxq->consumed + AHEAD) & rxq->wqe_mask)
					      << (segs ? rxq->log_segs : 0)]);
		fill_in(rxq, m, cqe, len);
		if (segs) {
			chain(rxq, &rxq->bufs[slot << rxq->log_segs], len);
		} else {
			m->data_len = (uint16_t)len;
			if (recycle == MLX5PP_RECYCLE_CACHE)
				mlx5pp_recycle_given(rxq, m);
			if (recycle == MLX5PP_RECYCLE_REUSE)
				restore_len(rxq, m);
		}
		rxq->consumed++;
		rxq->cq_ci++;
		bytes += len;
		pkts[got++] = m;
	}
	rxq->stats.packets += got;
	rxq->stats.bytes += bytes;
	if (rxq->cq_ci != ci_before)
		mlx5pp_doorbell(&rxq->cq_db[0], rxq->cq_ci & 0xffffff);
	if (unlikely(rxq->n_wqes - (rxq->posted - rxq->consumed) >= rxq->refill_at))
		catch_up(rxq);
	return got;
}

uint16_t
mlx5pp_rx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct mlx5pp_rxq *rxq = queue;
	const uint16_t got = burst(rxq, pkts, n, false, MLX5PP_RECYCLE_OFF);

	mlx5pp_rx_tell_room(rxq);
	return got;
}

/* With recycle=cache. */
uint16_t
mlx5pp_rx_burst_cache(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	return burst(queue, pkts, n, false, MLX5PP_RECYCLE_CACHE);
}

/* With recycle=reuse. */
uint16_t
mlx5pp_rx_burst_reuse(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	return burst(queue, pkts, n, false, MLX5PP_RECYCLE_REUSE);
}

/* Frames may need several buffers. */
uint16_t
mlx5pp_rx_burst_segs(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	return burst(queue, pkts, n, true, MLX5PP_RECYCLE_OFF);
}
