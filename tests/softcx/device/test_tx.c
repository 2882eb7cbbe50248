/* SPDX-License-Identifier: BSD-3-Clause */
/* Send queues: completion modes, all shapes of WQEs, errors, recovery. */

#include <endian.h>

#include "rig.h"

#define PORT_ARGS 0x0a000001, 0x0a000002, 1000, 2000

struct fixture {
	struct rig rig;
	struct rig_rx rx;
	struct rig_cq cq;
	struct rig_sq sq;
	uint8_t *frame;
};

static void
start(struct fixture *f, uint32_t n_cqes)
{
	rig_init(&f->rig);
	f->rig.config.wire = SOFTCX_WIRE_LOOP;
	f->rig.config.payload = SOFTCX_PAYLOAD_FULL;
	rig_start(&f->rig);
	rig_rx_create(&f->rig, &f->rx, 32, 1, 32);
	rig_rq_post(&f->rig, &f->rx.rq, 32);
	rig_cq_create(&f->rig, &f->cq, n_cqes);
	rig_sq_create(&f->rig, &f->sq, &f->cq, 16);
	rig_sq_ready(&f->rig, &f->sq);
	f->frame = rig_buf(&f->rig, RIG_BUFS - 1);
}

static void
end(struct fixture *f)
{
	rig_sq_destroy(&f->rig, &f->sq);
	rig_cq_destroy(&f->rig, &f->cq);
	rig_rx_destroy(&f->rig, &f->rx);
	rig_end(&f->rig);
}

static void
assert_arrived(struct fixture *f, uint16_t n, const uint8_t *frame, uint32_t len)
{
	const struct mlx5_cqe64 *cqe = rig_expect(&f->rx.cq, MLX5_CQE_RESP_SEND, n);

	assert_int_equal(be32toh(cqe->byte_cnt), len);
	assert_memory_equal(rig_buf(&f->rig, n), frame, len);
}

static void
completion_modes(void **state)
{
	struct fixture f;
	uint32_t len;

	(void)state;
	start(&f, 16);
	len = rig_udp(f.frame, PORT_ARGS, 60);
	rig_sq_send(&f.sq, f.frame, len, f.rig.lkey, RIG_CE_ERROR);
	rig_sq_send(&f.sq, f.frame, len, f.rig.lkey, RIG_CE_FIRST_ERROR);
	rig_sq_send(&f.sq, f.frame, len, f.rig.lkey, RIG_CE_ALWAYS);
	rig_sq_send(&f.sq, f.frame, len, f.rig.lkey, RIG_CE_ALWAYS | MLX5_WQE_CTRL_SOLICITED);
	rig_run(&f.rig);
	const struct mlx5_cqe64 *cqe = rig_expect(&f.cq, MLX5_CQE_REQ, 2);

	assert_int_equal(cqe->op_own & 2, 0);
	assert_int_equal(be32toh(cqe->sop_drop_qpn), MLX5_OPCODE_SEND << 24 | f.sq.qpn);
	assert_int_equal(be32toh(cqe->srqn_uidx), 0x654321);
	assert_int_equal(rig_expect(&f.cq, MLX5_CQE_REQ, 3)->op_own & 2, 2);
	rig_expect_none(&f.cq);
	for (uint16_t i = 0; i < 4; i++)
		assert_arrived(&f, i, f.frame, len);
	end(&f);
}

/* From one block to three, pieces inline or not, wrapping at every place of the ring. */
static void
shapes(void **state)
{
	struct softcx_port_counters c;
	struct fixture f;
	uint32_t sent = 0;

	(void)state;
	start(&f, 16);
	for (uint32_t i = 0; i < 70000; i++) {
		const uint16_t inlined = (uint16_t)(i % 4 * 18);
		const unsigned int n = i % 3 + (inlined == 0);
		const uint32_t len = rig_udp(f.frame, PORT_ARGS, 60 + i % 40);
		struct ibv_sge sge[3];
		uint32_t at = inlined < len ? inlined : len;

		for (unsigned int k = 0; k < n; k++) {
			const uint32_t part = k + 1 == n ? len - at : 7 + k;

			sge[k] = (struct ibv_sge){(uintptr_t)f.frame + at, part, f.rig.lkey};
			at += part;
		}
		rig_sq_write(&f.sq, MLX5_OPCODE_SEND, RIG_CE_ALWAYS, f.frame, inlined, sge, n, 0);
		rig_sq_ring(&f.sq);
		rig_run(&f.rig);
		assert_int_equal(rig_poll(&f.cq)->op_own >> 4, MLX5_CQE_REQ);
		rig_cq_ack(&f.cq);
		const struct mlx5_cqe64 *cqe =
			rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, (uint16_t)i);

		assert_int_equal(be32toh(cqe->byte_cnt), at);
		assert_memory_equal(rig_buf(&f.rig, i), f.frame, at);
		rig_cq_ack(&f.rx.cq);
		rig_rq_post(&f.rig, &f.rx.rq, 1);
		sent++;
	}
	rig_counters(&f.rig, &c);
	assert_int_equal(c.tx_packets, sent);
	assert_int_equal(c.rx_packets, sent);
	end(&f);
}

/* Data segments of the WQE itself, as libmlx5 writes IBV_SEND_INLINE. */
static void
inline_segments(void **state)
{
	struct fixture f;
	uint8_t wqe[128] = {0};
	struct mlx5_wqe_inl_data_seg *seg = (void *)(wqe + 32);
	const uint32_t len = 80;

	(void)state;
	start(&f, 16);
	rig_udp(f.frame, PORT_ARGS, len);
	/* so that it wraps at the ring's end */
	for (int i = 0; i < 15; i++)
		rig_sq_write(&f.sq, MLX5_OPCODE_NOP, 0, NULL, 0, NULL, 0, 0);
	rig_sq_ring(&f.sq);
	rig_run(&f.rig);
	seg->byte_count = htobe32(len | MLX5_INLINE_SEG);
	memcpy(seg + 1, f.frame, len);
	mlx5dv_set_ctrl_seg((void *)wqe, (uint16_t)f.sq.pi, MLX5_OPCODE_SEND, 0, f.sq.qpn,
		RIG_CE_ALWAYS, 2 + (4 + len + 15) / 16, 0, 0);
	memcpy(f.sq.buf + 15 * 64, wqe, 64);
	memcpy(f.sq.buf, wqe + 64, 64);
	f.sq.pi += 2;
	rig_sq_ring(&f.sq);
	rig_run(&f.rig);
	rig_expect(&f.cq, MLX5_CQE_REQ, 15);
	assert_arrived(&f, 0, f.frame, len);
	end(&f);
}

static void
nop(void **state)
{
	struct softcx_port_counters c;
	struct fixture f;

	(void)state;
	start(&f, 16);
	rig_sq_write(&f.sq, MLX5_OPCODE_NOP, RIG_CE_ERROR, NULL, 0, NULL, 0, 0);
	rig_sq_write(&f.sq, MLX5_OPCODE_NOP, RIG_CE_ALWAYS, NULL, 0, NULL, 0, 0);
	rig_sq_ring(&f.sq);
	rig_run(&f.rig);
	rig_expect(&f.cq, MLX5_CQE_REQ, 1);
	rig_expect_none(&f.cq);
	rig_counters(&f.rig, &c);
	assert_int_equal(c.tx_packets, 0);
	end(&f);
}

static void
checksum_offload(void **state)
{
	uint8_t right[100];
	struct fixture f;

	(void)state;
	start(&f, 16);
	rig_udp(right, PORT_ARGS, sizeof(right));
	memcpy(f.frame, right, sizeof(right));
	memset(f.frame + 24, 0xaa, 2);
	memset(f.frame + 40, 0x55, 2);
	const struct ibv_sge sge = {(uintptr_t)f.frame, sizeof(right), f.rig.lkey};

	rig_sq_write(&f.sq, MLX5_OPCODE_SEND, 0, NULL, 0, &sge, 1,
		MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM);
	rig_sq_ring(&f.sq);
	rig_run(&f.rig);
	assert_arrived(&f, 0, right, sizeof(right));
	/* software's memory is not touched */
	assert_int_equal(f.frame[24], 0xaa);
	end(&f);
}

/* ---- errors ---- */

struct bad {
	uint8_t opcode, syndrome;
	uint32_t lkey_xor, length;
	uint32_t index_xor, qpn_xor;
	int ds; /* instead of what it is; -1: as it is */
};

/* The first error says what it was, the rest is flushed, and after a reset it works again. */
static void
errors(void **state)
{
	const struct bad *bad = *state;
	struct softcx_port_counters c;
	enum ibv_qp_state qp_state;
	struct fixture f;
	uint32_t len;

	start(&f, 16);
	len = rig_udp(f.frame, PORT_ARGS, 60);
	rig_sq_send(&f.sq, f.frame, len, f.rig.lkey, RIG_CE_ERROR);

	struct mlx5_wqe_ctrl_seg *ctrl = (void *)(f.sq.buf + 64);
	const struct ibv_sge sge = {(uintptr_t)f.frame, bad->length, f.rig.lkey ^ bad->lkey_xor};

	rig_sq_write(&f.sq, bad->opcode, RIG_CE_ERROR, NULL, 0, &sge, 1, 0);
	ctrl->opmod_idx_opcode ^= htobe32(bad->index_xor << 8);
	ctrl->qpn_ds ^= htobe32(bad->qpn_xor << 8);
	if (bad->ds >= 0)
		ctrl->qpn_ds = (ctrl->qpn_ds & htobe32(~0x3fu)) | htobe32((uint32_t)bad->ds);
	rig_sq_send(&f.sq, f.frame, len, f.rig.lkey, RIG_CE_FIRST_ERROR); /* not told of */
	rig_sq_send(&f.sq, f.frame, len, f.rig.lkey, RIG_CE_ERROR);
	rig_sq_send(&f.sq, f.frame, len, f.rig.lkey, RIG_CE_ALWAYS);
	rig_run(&f.rig);
	rig_expect_error(&f.cq, MLX5_CQE_REQ_ERR, 1, bad->syndrome);
	rig_expect_error(&f.cq, MLX5_CQE_REQ_ERR, 3, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	rig_expect_error(&f.cq, MLX5_CQE_REQ_ERR, 4, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	rig_expect_none(&f.cq);
	assert_int_equal(softcx_qp_query(f.rig.port, f.sq.qpn, &qp_state), 0);
	assert_int_equal(qp_state, IBV_QPS_ERR);
	rig_counters(&f.rig, &c);
	assert_int_equal(c.tx_packets, 1);
	assert_int_equal(c.tx_errors, 1);
	assert_int_equal(c.flushed, 3);
	assert_int_equal(f.rig.n_events, 0);

	rig_cq_ack(&f.cq);
	rig_sq_ready(&f.rig, &f.sq);
	rig_sq_send(&f.sq, f.frame, len, f.rig.lkey, RIG_CE_ALWAYS);
	rig_run(&f.rig);
	rig_expect(&f.cq, MLX5_CQE_REQ, 0);
	end(&f);
}

/* The second WQE fails though it is good; after a reset two more, and the second of those fails. */
static void
injected(void **state)
{
	struct softcx_port_counters c;
	struct fixture f;
	const char *why;

	(void)state;
	rig_init(&f.rig);
	f.rig.config.wire = SOFTCX_WIRE_SINK;
	assert_int_equal(softcx_config_set(&f.rig.config, "inject", "sq-prot:2", &why), 0);
	rig_start(&f.rig);
	rig_cq_create(&f.rig, &f.cq, 16);
	rig_sq_create(&f.rig, &f.sq, &f.cq, 16);
	for (int i = 0; i < 2; i++) {
		rig_sq_ready(&f.rig, &f.sq);
		for (int n = 0; n < 3; n++)
			rig_sq_send(&f.sq, rig_buf(&f.rig, 0), 60, f.rig.lkey, RIG_CE_ALWAYS);
		rig_run(&f.rig);
		rig_expect(&f.cq, MLX5_CQE_REQ, 0);
		rig_expect_error(&f.cq, MLX5_CQE_REQ_ERR, 1, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
		rig_expect_error(&f.cq, MLX5_CQE_REQ_ERR, 2, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		rig_expect_none(&f.cq);
		rig_cq_ack(&f.cq);
	}
	rig_counters(&f.rig, &c);
	assert_int_equal(c.injected, 2);
	assert_int_equal(c.tx_errors, 2);
	assert_int_equal(c.tx_packets, 2);
	rig_sq_destroy(&f.rig, &f.sq);
	rig_cq_destroy(&f.rig, &f.cq);
	rig_end(&f.rig);
}

/* States go one by one. */
static void
states(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 16);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_RESET), 0);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_RTR), -EINVAL);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_RTS), -EINVAL);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_INIT), 0);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_RTS), -EINVAL);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_RTR), 0);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_INIT), -EINVAL);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_ERR), 0);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn + 1, IBV_QPS_ERR), -EINVAL);
	end(&f);
}

/* Nothing is sent before RTS, all of it then. */
static void
not_before_rts(void **state)
{
	struct softcx_port_counters c;
	struct fixture f;

	(void)state;
	start(&f, 16);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_RESET), 0);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_INIT), 0);
	rig_sq_send(&f.sq, f.frame, rig_udp(f.frame, PORT_ARGS, 60), f.rig.lkey, 0);
	rig_run(&f.rig);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_RTR), 0);
	rig_run(&f.rig);
	rig_counters(&f.rig, &c);
	assert_int_equal(c.tx_packets, 0);
	assert_int_equal(softcx_qp_modify(f.rig.port, f.sq.qpn, IBV_QPS_RTS), 0);
	rig_run(&f.rig);
	rig_counters(&f.rig, &c);
	assert_int_equal(c.tx_packets, 1);
	end(&f);
}

int
main(void)
{
	static struct bad bad[] = {
		{MLX5_OPCODE_SEND, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, 1, 60, 0, 0, -1},
		{MLX5_OPCODE_SEND, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, 0, RIG_BUF_SIZE + 1, 0, 0, -1},
		{MLX5_OPCODE_SEND, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, 0, 13, 0, 0, -1},
		{MLX5_OPCODE_RDMA_WRITE, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0, 60, 0, 0, -1},
		{MLX5_OPCODE_SEND, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0, 60, 0x10, 0, -1},
		{MLX5_OPCODE_SEND, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0, 60, 0, 1, -1},
		{MLX5_OPCODE_SEND, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0, 60, 0, 0, 0},
		{MLX5_OPCODE_SEND, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0, 60, 0, 0, 1},
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completion_modes),
		cmocka_unit_test(shapes),
		cmocka_unit_test(inline_segments),
		cmocka_unit_test(nop),
		cmocka_unit_test(checksum_offload),
		{"error: no such key", errors, NULL, NULL, &bad[0]},
		{"error: beyond the region", errors, NULL, NULL, &bad[1]},
		{"error: no frame so short", errors, NULL, NULL, &bad[2]},
		{"error: opcode", errors, NULL, NULL, &bad[3]},
		{"error: index", errors, NULL, NULL, &bad[4]},
		{"error: queue", errors, NULL, NULL, &bad[5]},
		{"error: no size", errors, NULL, NULL, &bad[6]},
		{"error: no Ethernet segment", errors, NULL, NULL, &bad[7]},
		cmocka_unit_test(injected),
		cmocka_unit_test(states),
		cmocka_unit_test(not_before_rts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
