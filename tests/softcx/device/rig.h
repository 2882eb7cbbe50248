/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A card without threads, and the software on it: rings that are filled and polled as libmlx5 does,
 * by the test itself. Each test has one rig; its end asserts that every offered packet has a fate.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device.h"

#define RIG_PD         7
#define RIG_BUF_SIZE   2048
#define RIG_BUFS       64
#define RIG_DIM(array) (sizeof(array) / sizeof((array)[0]))

struct rig {
	struct softcx_config config;
	struct softcx_card *card;
	struct softcx_port *port; /* 0 */
	uint8_t *memory;          /* RIG_BUFS buffers */
	uint32_t lkey;            /* of all of it */
	unsigned int n_events;
	enum ibv_event_type last_event;
	void *last_cookie;
};

/* No card yet: change rig.config before rig_start(). Frames of 64 bytes, unpaced, wire sink. */
void rig_init(struct rig *rig);
void rig_start(struct rig *rig);

/* Both, and the device has a thread of its own: 1 Gbit/s, 8 streams. */
void rig_start_thread(struct rig *rig, enum softcx_wire wire);
void rig_end(struct rig *rig);

/* A region in RIG_PD; its key. */
uint32_t rig_mr_create(struct softcx_port *port, void *addr, uint64_t length, uint64_t iova);

uint8_t *rig_buf(const struct rig *rig, unsigned int i);
void rig_counters(const struct rig *rig, struct softcx_port_counters *counters);
void rig_assert_conserved(const struct softcx_port_counters *counters);

/* Turns until nothing is left to do. */
void rig_run(const struct rig *rig);

struct rig_cq {
	uint8_t *buf;
	uint32_t *dbrec;
	uint32_t count, ci;
	uint32_t cqn;
	unsigned int completions;
};

void rig_count_completion(void *cq);
void rig_cq_create(struct rig *rig, struct rig_cq *cq, uint32_t count);
void rig_cq_create_flags(struct rig *rig, struct rig_cq *cq, uint32_t count, unsigned int flags);
void rig_cq_destroy(struct rig *rig, struct rig_cq *cq);

/* The next CQE if it is software's; it stays valid until the device comes round. */
const struct mlx5_cqe64 *rig_poll(struct rig_cq *cq);
void rig_cq_ack(struct rig_cq *cq); /* the consumer doorbell */
void rig_cq_arm(struct rig_cq *cq, uint32_t sn, uint32_t command);

/* There is one more, of this opcode and WQE. */
const struct mlx5_cqe64 *rig_expect(struct rig_cq *cq, uint8_t opcode, uint16_t wqe_counter);
void rig_expect_error(struct rig_cq *cq, uint8_t opcode, uint16_t wqe_counter, uint8_t syndrome);
void rig_expect_none(struct rig_cq *cq);

struct rig_rq {
	uint8_t *buf;
	uint32_t *dbrec;
	uint32_t count, log_stride, pi;
	uint32_t wqn;
	struct rig_cq *cq;
};

void rig_rq_create(struct rig *rig, struct rig_rq *rq, struct rig_cq *cq, uint32_t count,
	unsigned int max_sge);
void rig_rq_ready(struct rig *rig, struct rig_rq *rq);
void rig_rq_destroy(struct rig *rig, struct rig_rq *rq);
void rig_rq_write(struct rig_rq *rq, const struct ibv_sge *sge, unsigned int n); /* no doorbell */
void rig_rq_ring(struct rig_rq *rq);
void rig_rq_post(struct rig *rig, struct rig_rq *rq, unsigned int n); /* whole buffers in turn */

struct rig_sq {
	uint8_t *buf;
	uint32_t *dbrec;
	uint32_t count, pi;
	uint32_t qpn;
	uint64_t *uar;
	struct rig_cq *cq;
};

#define RIG_CE_ERROR       0x0u
#define RIG_CE_FIRST_ERROR 0x4u
#define RIG_CE_ALWAYS      0x8u

void rig_sq_create(struct rig *rig, struct rig_sq *sq, struct rig_cq *cq, uint32_t count);
void rig_sq_ready(struct rig *rig, struct rig_sq *sq);
void rig_sq_destroy(struct rig *rig, struct rig_sq *sq);
/* No doorbell: the first `inlined` bytes from `frame`, then the segments. */
void rig_sq_write(struct rig_sq *sq, uint8_t opcode, uint8_t fm_ce_se, const void *frame,
	uint16_t inlined, const struct ibv_sge *sge, unsigned int n, uint8_t cs_flags);
void rig_sq_ring(struct rig_sq *sq);
void rig_sq_send(
	struct rig_sq *sq, const void *addr, uint32_t len, uint32_t lkey, uint8_t fm_ce_se);

/* An RSS QP over `n` queues (a power of two), and a flow that leads everything to it. */
struct rig_rss {
	uint32_t table, qpn, flow;
};
void rig_rss_create(struct rig *rig, struct rig_rss *rss, const struct rig_rq *rq, unsigned int n,
	uint64_t fields);
void rig_rss_destroy(struct rig *rig, struct rig_rss *rss);

/* One queue that receives everything, its CQ, and the QP and flow that it takes. */
struct rig_rx {
	struct rig_cq cq;
	struct rig_rq rq;
	struct rig_rss rss;
};
void rig_rx_create(
	struct rig *rig, struct rig_rx *rx, uint32_t n_wqes, unsigned int max_sge, uint32_t n_cqes);
void rig_rx_destroy(struct rig *rig, struct rig_rx *rx);

/* An Ethernet frame with IPv4 and UDP, checksums right; its length. */
uint32_t rig_udp(
	uint8_t *frame, uint32_t src, uint32_t dst, uint16_t sport, uint16_t dport, uint32_t len);

/* As software does: take what came, and give the buffers back. rig_take(): how many there were. */
unsigned int rig_take(struct rig *rig, struct rig_rx *rx);
void rig_take_many(struct rig *rig, struct rig_rx *rx, unsigned int n);
