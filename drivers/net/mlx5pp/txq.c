/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of a send queue: a completion queue and a queue pair that only sends. */

#include <errno.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "mlx5pp.h"

static void
free_queue(struct mlx5pp_txq *txq)
{
	if (txq == NULL)
		return;
	rte_free(txq->bufs);
	rte_free(txq);
}

int
mlx5pp_txq_setup(struct rte_eth_dev *dev, uint16_t index, uint16_t n_desc, unsigned int socket,
	const struct rte_eth_txconf *conf)
{
	struct mlx5pp_txq *txq =
		rte_zmalloc_socket("mlx5pp_txq", sizeof(*txq), RTE_CACHE_LINE_SIZE, (int)socket);

	if (txq == NULL) {
		MLX5PP_LOG(ERR, "TX queue %u: no memory for it", index);
		return -ENOMEM;
	}
	txq->port = mlx5pp_port(dev);
	txq->index = index;
	txq->n_desc = (uint16_t)rte_align32pow2(n_desc);
	txq->deferred = conf->tx_deferred_start;
	txq->offloads = conf->offloads | dev->data->dev_conf.txmode.offloads;
	txq->raw_free = (txq->offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) &&
			!(txq->offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
	txq->inline_len = txq->port->inline_len;
	dev->data->tx_queues[index] = txq;
	return 0;
}

void
mlx5pp_txq_release(struct rte_eth_dev *dev, uint16_t index)
{
	struct mlx5pp_txq *txq = dev->data->tx_queues[index];

	if (txq != NULL)
		mlx5pp_xstats_txq_leaves(txq->port, txq);
	free_queue(txq);
	dev->data->tx_queues[index] = NULL;
}

/* ---- its objects ---- */

/* In error every WQE may complete, so there is a completion for each. */
static int
create_cq(struct mlx5pp_txq *txq)
{
	struct mlx5dv_cq dv = {.comp_mask = 0};
	struct mlx5dv_obj obj = {.cq.out = &dv};

	txq->cq = ibv_create_cq(txq->port->context, txq->n_desc - 1, NULL, NULL, 0);
	if (txq->cq == NULL)
		return -errno;
	obj.cq.in = txq->cq;
	const int err = mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ);

	if (err != 0)
		return -err;
	if (dv.cqe_size != sizeof(struct mlx5_cqe64))
		return -ENOTSUP;
	txq->cqes = dv.buf;
	txq->cq_db = dv.dbrec;
	txq->cq_mask = dv.cqe_cnt - 1;
	txq->log_cqes = rte_log2_u32(dv.cqe_cnt);
	txq->cq_ci = 0;
	return 0;
}

/* The library rounds up to what its own WQEs would need: what came out is looked at. */
static int
create_qp(struct mlx5pp_txq *txq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = txq->cq,
		.recv_cq = txq->cq,
		.cap = {.max_send_wr = txq->n_desc, .max_send_sge = 1},
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = txq->port->pd,
	};
	struct mlx5dv_qp dv = {.comp_mask = 0};
	struct mlx5dv_obj obj = {.qp.out = &dv};

	txq->qp = ibv_create_qp_ex(txq->port->context, &attr);
	if (txq->qp == NULL)
		return -errno;
	obj.qp.in = txq->qp;
	const int err = mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP);

	if (err != 0)
		return -err;
	if (!rte_is_power_of_2(dv.sq.wqe_cnt) || dv.sq.wqe_cnt > MLX5PP_DESC_MAX)
		return -EINVAL;
	txq->wqes = dv.sq.buf;
	txq->sq_db = dv.dbrec;
	txq->bf = dv.bf.reg;
	txq->bb_mask = dv.sq.wqe_cnt - 1;
	txq->sqn = txq->qp->qp_num;
	txq->signal_at = RTE_MIN(MLX5PP_SIGNAL, (int)dv.sq.wqe_cnt / 4);
	return 0;
}

/* The ring of buffers is as long as the ring of blocks turned out to be. */
static int
make_bufs(struct mlx5pp_txq *txq)
{
	rte_free(txq->bufs);
	txq->bufs = rte_zmalloc_socket("mlx5pp_txq", (txq->bb_mask + 1) * sizeof(*txq->bufs),
		RTE_CACHE_LINE_SIZE, txq->port->data->numa_node);
	return txq->bufs != NULL ? 0 : -ENOMEM;
}

int
mlx5pp_txq_create(struct mlx5pp_txq *txq)
{
	int err = create_cq(txq);

	if (err == 0)
		err = create_qp(txq);
	if (err == 0 && txq->cq_mask < txq->bb_mask)
		err = -EINVAL;
	if (err == 0)
		err = make_bufs(txq);
	if (err < 0) {
		MLX5PP_LOG(ERR, "TX queue %u cannot be made: %s", txq->index, rte_strerror(-err));
		mlx5pp_txq_destroy(txq);
	}
	return err;
}

static int
set_state(struct mlx5pp_txq *txq, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

	return -ibv_modify_qp(
		txq->qp, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0));
}

/* ---- running ---- */

/* The card lets go of the packets, or it does not, and may still read them. */
static int
reset(struct mlx5pp_txq *txq)
{
	const int err = txq->armed ? set_state(txq, IBV_QPS_RESET) : 0;

	if (err < 0)
		return err;
	txq->armed = false;
	while (mlx5pp_cqe(txq->cqes, txq->cq_mask, txq->log_cqes, txq->cq_ci) != NULL)
		txq->cq_ci++;
	mlx5pp_doorbell(&txq->cq_db[0], txq->cq_ci & 0xffffff);
	mlx5pp_tx_free(txq, txq->pi);
	txq->pi = txq->ci = txq->signaled = 0;
	return 0;
}

int
mlx5pp_txq_start(struct mlx5pp_txq *txq)
{
	int err = set_state(txq, IBV_QPS_INIT);

	if (err < 0)
		return err;
	txq->armed = true;
	err = set_state(txq, IBV_QPS_RTR);
	if (err == 0)
		err = set_state(txq, IBV_QPS_RTS);
	txq->running = err == 0;
	if (err < 0)
		reset(txq); /* or the next attempt would begin half way */
	return err;
}

int
mlx5pp_txq_stop(struct mlx5pp_txq *txq)
{
	const int err = reset(txq);

	if (err < 0)
		return err;
	txq->running = txq->failed = false;
	return 0;
}

int
mlx5pp_txq_recover(struct mlx5pp_txq *txq)
{
	txq->running = false;
	int err = reset(txq);

	if (err == 0)
		err = mlx5pp_txq_start(txq);
	txq->failed = err < 0;
	txq->retry_at = rte_rdtsc() + rte_get_tsc_hz() / MLX5PP_RETRY_HZ;
	return err;
}

void
mlx5pp_txq_retry(struct mlx5pp_txq *txq)
{
	if (txq->failed && rte_rdtsc() >= txq->retry_at && mlx5pp_txq_recover(txq) == 0)
		MLX5PP_LOG(NOTICE, "port %u: TX queue %u has started again",
			txq->port->data->port_id, txq->index);
}

/* What the card does not even destroy it may read for ever. */
static void
abandon_packets(struct mlx5pp_txq *txq)
{
	MLX5PP_LOG(ERR, "port %u: TX queue %u is not destroyed: its packets are lost",
		txq->port->data->port_id, txq->index);
	txq->ci = txq->pi;
}

/* A queue that the card does not reset it may still destroy. */
void
mlx5pp_txq_destroy(struct mlx5pp_txq *txq)
{
	const bool stopped = txq->qp == NULL || mlx5pp_txq_stop(txq) == 0;

	if (txq->qp != NULL && ibv_destroy_qp(txq->qp) != 0 && !stopped)
		abandon_packets(txq);
	txq->armed = false;
	if (!stopped)
		mlx5pp_txq_stop(txq);
	if (txq->cq != NULL)
		ibv_destroy_cq(txq->cq);
	txq->qp = NULL;
	txq->cq = NULL;
}
