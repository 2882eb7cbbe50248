/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What programs share that test softcx through the system's own libibverbs and libmlx5. They run
 * below softcx-run; see tests/softcx/meson.build.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* Must succeed: open mlx5_<index>; close what was opened. */
struct ibv_context *verbs_open(unsigned int index);
void verbs_close(struct ibv_context *context);

/* A receive queue's way, as a driver lays it; whatever is NULL was not made. */
struct verbs_rx {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_wq *wq;
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp;
	struct ibv_flow *flow;
};

/* One queue of n WQEs, RSS over a table of one, all frames. All must succeed. */
void verbs_rx_create(
	struct ibv_context *context, struct verbs_rx *rx, uint32_t n, uint32_t max_sge);
void verbs_rx_destroy(struct verbs_rx *rx);

/* An RSS QP; NULL and errno. */
struct ibv_qp *verbs_rss_qp(struct ibv_pd *pd, struct ibv_rwq_ind_table *table, uint64_t fields,
	uint8_t function, uint8_t key_length);

/* A raw packet QP with queues of n, in state RESET; NULL and errno. */
struct ibv_qp *verbs_raw_qp(struct ibv_pd *pd, struct ibv_cq *cq, uint32_t send, uint32_t receive);

/* INIT, RTR, RTS. */
void verbs_ready(struct ibv_qp *qp);

/* A flow for all frames; NULL and errno. */
struct ibv_flow *verbs_flow_all(struct ibv_qp *qp, uint16_t priority);
