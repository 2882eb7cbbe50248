/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of a receive queue: a completion queue, a work queue, and the buffers in it. */

#include <errno.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>

#include "mlx5pp.h"

/* Buffers that a frame of an MTU may need: a power of two. */
uint32_t
mlx5pp_rxq_segs(const struct mlx5pp_rxq *rxq, uint16_t mtu)
{
	const uint32_t frame = mtu + MLX5PP_OVERHEAD + RTE_VLAN_HLEN;
	const uint32_t more = frame > rxq->room ? frame - rxq->room : 0;

	return rte_align32pow2(1 + (more + rxq->buf_len - 1) / rxq->buf_len);
}

/* What a buffer can take, and how many a frame of the port's MTU may need. */
static int
choose_segments(struct mlx5pp_rxq *rxq)
{
	const uint32_t frame = rxq->port->data->mtu + MLX5PP_OVERHEAD + RTE_VLAN_HLEN;

	mlx5pp_recycle_choose_room(rxq, frame);
	const uint32_t segs = mlx5pp_rxq_segs(rxq, rxq->port->data->mtu);

	if (segs > 1 && !(rxq->offloads & RTE_ETH_RX_OFFLOAD_SCATTER)) {
		MLX5PP_LOG(ERR,
			"RX queue %u: frames of %u bytes do not fit buffers of %u; enable the "
			"SCATTER "
			"offload, or use larger buffers",
			rxq->index, frame, rxq->room);
		return -EINVAL;
	}
	if (segs > MLX5PP_RX_SEGS_MAX || segs > rxq->n_desc) {
		MLX5PP_LOG(ERR, "RX queue %u: frames of %u bytes would need %u buffers of %u each",
			rxq->index, frame, segs, rxq->buf_len);
		return -EINVAL;
	}
	rxq->log_segs = rte_log2_u32(segs);
	rxq->n_wqes = rxq->n_desc >> rxq->log_segs;
	rxq->refill_at = UINT32_MAX;
	return 0;
}

static int
learn_timestamps(struct mlx5pp_rxq *rxq)
{
	rxq->timestamp_offset = -1;
	if (!(rxq->offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP))
		return 0;
	if (rte_mbuf_dyn_rx_timestamp_register(&rxq->timestamp_offset, &rxq->timestamp_flag) == 0)
		return 0;
	const int err = -rte_errno;

	MLX5PP_LOG(ERR, "RX queue %u: mbufs have no room for timestamps: %s", rxq->index,
		rte_strerror(-err));
	return err;
}

/* What is the same in all received mbufs, in one word. */
static uint64_t
make_rearm(const struct mlx5pp_rxq *rxq)
{
	struct rte_mbuf m = {
		.data_off = rxq->headroom,
		.refcnt = 1,
		.nb_segs = 1,
		.port = rxq->port->data->port_id,
	};
	uint64_t word;

	static_assert(offsetof(struct rte_mbuf, port) + sizeof(m.port) -
				      offsetof(struct rte_mbuf, data_off) ==
			      sizeof(word),
		"four fields are one word");
	memcpy(&word, &m.data_off, sizeof(word));
	return word;
}

static int
check_buffers(struct mlx5pp_rxq *rxq)
{
	const struct rte_mempool *mp = rxq->mp;
	const uint32_t room = rte_pktmbuf_data_room_size(rxq->mp);
	const uint32_t offset = (uint32_t)sizeof(struct rte_mbuf) + rte_pktmbuf_priv_size(rxq->mp);

	/* the card is given what lies behind the mbuf */
	if (rte_pktmbuf_priv_flags(rxq->mp) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) {
		MLX5PP_LOG(ERR, "pool %s: its buffers are external, pinned ones: not supported",
			mp->name);
		return -ENOTSUP;
	}
	if (mp->elt_size < offset + room) {
		MLX5PP_LOG(ERR, "pool %s: objects of %u bytes cannot hold buffers of %u", mp->name,
			mp->elt_size, room);
		return -EINVAL;
	}
	if (room <= RTE_PKTMBUF_HEADROOM + MLX5PP_FRAME_MIN) {
		MLX5PP_LOG(ERR, "pool %s: buffers of %u bytes have no room for frames", mp->name,
			room);
		return -EINVAL;
	}
	rxq->headroom = RTE_PKTMBUF_HEADROOM;
	rxq->buf_offset = offset;
	return 0;
}

static int
register_pool(struct mlx5pp_rxq *rxq)
{
	const int err = mlx5pp_mr_add_pool(rxq->port, rxq->mp);

	if (err == 0)
		rxq->lkey_be = mlx5pp_mr_of_pool(rxq->port, rxq->mp);
	return err;
}

static void
free_queue(struct mlx5pp_rxq *rxq)
{
	if (rxq == NULL)
		return;
	mlx5pp_recycle_release(rxq);
	rte_free(rxq->bufs);
	rte_free(rxq);
}

static int
no_memory(uint16_t index)
{
	MLX5PP_LOG(ERR, "RX queue %u: no memory for it", index);
	return -ENOMEM;
}

int
mlx5pp_rxq_setup(struct rte_eth_dev *dev, uint16_t index, uint16_t n_desc, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *mp)
{
	struct mlx5pp_rxq *rxq =
		rte_zmalloc_socket("mlx5pp_rxq", sizeof(*rxq), RTE_CACHE_LINE_SIZE, (int)socket);
	int err;

	if (rxq == NULL)
		return no_memory(index);
	rxq->port = mlx5pp_port(dev);
	rxq->index = index;
	rxq->mp = mp;
	rxq->deferred = conf->rx_deferred_start;
	rxq->offloads = conf->offloads | dev->data->dev_conf.rxmode.offloads;
	rxq->n_desc = (uint16_t)rte_align32pow2(n_desc);
	if (rxq->n_desc != n_desc)
		MLX5PP_LOG(NOTICE, "RX queue %u: %u descriptors instead of %u, a power of two",
			index, rxq->n_desc, n_desc);
	rxq->bufs = rte_zmalloc_socket(
		"mlx5pp_rxq", rxq->n_desc * sizeof(*rxq->bufs), RTE_CACHE_LINE_SIZE, (int)socket);
	err = rxq->bufs != NULL ? check_buffers(rxq) : no_memory(index);
	if (err == 0)
		err = learn_timestamps(rxq);
	if (err == 0)
		err = register_pool(rxq);
	if (err == 0)
		err = mlx5pp_recycle_setup(rxq, (int)socket);
	if (err < 0) {
		free_queue(rxq);
		return err;
	}
	rxq->rearm = make_rearm(rxq);
	mlx5pp_xstats_rxq(rxq->port, rxq, true);
	dev->data->rx_queues[index] = rxq;
	return 0;
}

void
mlx5pp_rxq_release(struct rte_eth_dev *dev, uint16_t index)
{
	struct mlx5pp_rxq *rxq = dev->data->rx_queues[index];

	if (rxq != NULL)
		mlx5pp_xstats_rxq(rxq->port, rxq, false);
	free_queue(rxq);
	dev->data->rx_queues[index] = NULL;
}

/* Stopped queues let go of a pool that is about to be freed. */
void
mlx5pp_rxq_pool_goes(struct mlx5pp_port *port, const struct rte_mempool *mp)
{
	for (uint16_t i = 0; i < port->data->nb_rx_queues; i++) {
		struct mlx5pp_rxq *rxq = port->data->rx_queues[i];

		if (rxq == NULL || rxq->mp != mp || rxq->wq != NULL)
			continue;
		mlx5pp_xstats_rxq(port, rxq, false);
		mlx5pp_recycle_release(rxq);
		mlx5pp_xstats_rxq(port, rxq, true);
		rxq->mp = NULL;
	}
}

/* ---- its objects ---- */

static int
create_cq(struct mlx5pp_rxq *rxq)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = rxq->n_wqes - 1};
	struct mlx5dv_cq_init_attr dv_attr = {.comp_mask = 0};
	struct mlx5dv_cq dv = {.comp_mask = 0};
	struct mlx5dv_obj obj = {.cq.out = &dv};
	struct ibv_cq_ex *cq = mlx5dv_create_cq(rxq->port->context, &attr, &dv_attr);

	if (cq == NULL)
		return -errno;
	rxq->cq = ibv_cq_ex_to_cq(cq);
	obj.cq.in = rxq->cq;
	const int err = mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ);

	if (err != 0)
		return -err;
	if (dv.cqe_size != sizeof(struct mlx5_cqe64)) {
		MLX5PP_LOG(ERR, "completions of %u bytes; unset MLX5_CQE_SIZE", dv.cqe_size);
		return -ENOTSUP;
	}
	rxq->cqes = dv.buf;
	rxq->cq_db = dv.dbrec;
	rxq->cq_mask = dv.cqe_cnt - 1;
	rxq->log_cqes = rte_log2_u32(dv.cqe_cnt);
	rxq->cq_ci = 0;
	return 0;
}

static int
create_wq(struct mlx5pp_rxq *rxq)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = rxq->n_wqes,
		.max_sge = 1u << rxq->log_segs,
		.pd = rxq->port->pd,
		.cq = rxq->cq,
	};
	struct mlx5dv_rwq dv = {.comp_mask = 0};
	struct mlx5dv_obj obj = {.rwq.out = &dv};

	if (rxq->offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) {
		attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
		attr.create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
	}
	rxq->wq = ibv_create_wq(rxq->port->context, &attr);
	if (rxq->wq == NULL)
		return -errno;
	obj.rwq.in = rxq->wq;
	const int err = mlx5dv_init_obj(&obj, MLX5DV_OBJ_RWQ);

	if (err != 0)
		return -err;
	if (dv.wqe_cnt != rxq->n_wqes || dv.stride != sizeof(struct mlx5_wqe_data_seg)
							      << rxq->log_segs) {
		MLX5PP_LOG(ERR, "RX queue %u: a ring of %u x %u bytes instead of %u x %zu",
			rxq->index, dv.wqe_cnt, dv.stride, rxq->n_wqes,
			sizeof(struct mlx5_wqe_data_seg) << rxq->log_segs);
		return -EINVAL;
	}
	rxq->wqes = dv.buf;
	rxq->rq_db = dv.dbrec;
	rxq->wqe_mask = rxq->n_wqes - 1;
	/* lengths do not change; addresses come with the refill */
	for (uint32_t i = 0; i < rxq->n_desc; i++) {
		const bool first = (i & ((1u << rxq->log_segs) - 1)) == 0;

		rxq->wqes[i].byte_count = htobe32(first ? rxq->room : rxq->buf_len);
	}
	return 0;
}

int
mlx5pp_rxq_create(struct mlx5pp_rxq *rxq)
{
	int err = choose_segments(rxq);

	if (err == 0)
		err = create_cq(rxq);
	if (err == 0)
		err = create_wq(rxq);
	if (err < 0) {
		MLX5PP_LOG(ERR, "RX queue %u cannot be made: %s", rxq->index, rte_strerror(-err));
		mlx5pp_rxq_destroy(rxq);
	}
	return err;
}

static int
set_state(struct mlx5pp_rxq *rxq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state};

	return -ibv_modify_wq(rxq->wq, &attr);
}

int
mlx5pp_rxq_set_strip(struct mlx5pp_rxq *rxq, bool on)
{
	struct ibv_wq_attr attr = {
		.attr_mask = IBV_WQ_ATTR_FLAGS,
		.flags = on ? IBV_WQ_FLAGS_CVLAN_STRIPPING : 0,
		.flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING,
	};

	const int err = rxq->wq != NULL ? -ibv_modify_wq(rxq->wq, &attr) : 0;

	if (err < 0) {
		MLX5PP_LOG(ERR, "RX queue %u: VLAN stripping cannot be %s: %s", rxq->index,
			on ? "on" : "off", rte_strerror(-err));
		return err;
	}
	if (on)
		rxq->offloads |= RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
	else
		rxq->offloads &= ~RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
	return 0;
}

/* ---- running ---- */

/* The card has them no more. */
static void
give_buffers_back(struct mlx5pp_rxq *rxq)
{
	for (; rxq->consumed != rxq->posted; rxq->consumed++) {
		const uint32_t slot = (rxq->consumed & rxq->wqe_mask) << rxq->log_segs;

		mlx5pp_recycle_give_back(rxq, &rxq->bufs[slot], 1u << rxq->log_segs);
	}
}

/* The completions of a work queue that was reset are of no use to anybody. */
static void
drop_completions(struct mlx5pp_rxq *rxq)
{
	while (mlx5pp_cqe(rxq->cqes, rxq->cq_mask, rxq->log_cqes, rxq->cq_ci) != NULL)
		rxq->cq_ci++;
	mlx5pp_doorbell(&rxq->cq_db[0], rxq->cq_ci & 0xffffff);
}

/*
 * The card lets go of the buffers, or it does not: then it may still write to them, and nothing
 * changes.
 */
static int
reset(struct mlx5pp_rxq *rxq)
{
	const int err = rxq->armed ? set_state(rxq, IBV_WQS_RESET) : 0;

	if (err < 0)
		return err;
	rxq->armed = false;
	drop_completions(rxq);
	give_buffers_back(rxq);
	return 0;
}

/* A ring that cannot be filled now is as good as one whose refill failed: it is tried again. */
int
mlx5pp_rxq_start(struct mlx5pp_rxq *rxq)
{
	rxq->posted = rxq->consumed = 0;
	const int err = set_state(rxq, IBV_WQS_RDY);

	if (err < 0)
		return err;
	rxq->armed = true;
	rxq->failed = false;
	mlx5pp_recycle_start(rxq);
	mlx5pp_rx_refill(rxq);
	rxq->refill_at = RTE_MIN(rxq->n_wqes / 4, (uint32_t)MLX5PP_REFILL >> rxq->log_segs);
	mlx5pp_rx_tell_room(rxq);
	return 0;
}

int
mlx5pp_rxq_stop(struct mlx5pp_rxq *rxq)
{
	const int err = reset(rxq);

	if (err < 0)
		return err;
	rxq->refill_at = UINT32_MAX;
	rxq->failed = false;
	mlx5pp_rx_tell_room(rxq);
	mlx5pp_recycle_stop(rxq);
	return 0;
}

/* A burst sees that all of the ring is missing, or more completions with errors. */
int
mlx5pp_rxq_recover(struct mlx5pp_rxq *rxq)
{
	int err = reset(rxq);

	if (err == 0)
		err = mlx5pp_rxq_start(rxq);
	if (err < 0) {
		rxq->failed = true;
		rxq->refill_at = 0;
		rxq->retry_at = rte_rdtsc() + rte_get_tsc_hz() / MLX5PP_RETRY_HZ;
	}
	return err;
}

void
mlx5pp_rxq_retry(struct mlx5pp_rxq *rxq)
{
	if (rte_rdtsc() >= rxq->retry_at && mlx5pp_rxq_recover(rxq) == 0)
		MLX5PP_LOG(NOTICE, "port %u: RX queue %u has started again",
			rxq->port->data->port_id, rxq->index);
}

/* What the card does not even destroy it may write to for ever. */
static void
abandon_buffers(struct mlx5pp_rxq *rxq)
{
	MLX5PP_LOG(ERR, "port %u: RX queue %u is not destroyed: %u buffers are lost",
		rxq->port->data->port_id, rxq->index,
		(rxq->posted - rxq->consumed) << rxq->log_segs);
	rxq->consumed = rxq->posted;
}

/* A queue that the card does not reset it may still destroy, once no rule leads to it. */
void
mlx5pp_rxq_destroy(struct mlx5pp_rxq *rxq)
{
	const bool stopped = rxq->wq == NULL || mlx5pp_rxq_stop(rxq) == 0;

	if (rxq->wq != NULL && ibv_destroy_wq(rxq->wq) != 0 && !stopped)
		abandon_buffers(rxq);
	rxq->armed = false;
	if (!stopped)
		mlx5pp_rxq_stop(rxq);
	if (rxq->cq != NULL)
		ibv_destroy_cq(rxq->cq);
	rxq->wq = NULL;
	rxq->cq = NULL;
}
