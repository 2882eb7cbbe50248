/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues: phases, wraps, scatter lists, errors, reset. Frames come round by a loop. */

#include <endian.h>

#include "rig.h"

#define PORT_ARGS 0x0a000001, 0x0a000002, 1000, 2000

struct fixture {
	struct rig rig;
	struct rig_rx rx;
	struct rig_cq tx_cq;
	struct rig_sq sq;
	uint8_t *frame; /* the last buffer: what is sent */
};

static void
start_sized(struct fixture *f, uint32_t n_wqes, unsigned int max_sge, uint32_t n_cqes)
{
	rig_init(&f->rig);
	f->rig.config.wire = SOFTCX_WIRE_LOOP;
	f->rig.config.payload = SOFTCX_PAYLOAD_FULL;
	rig_start(&f->rig);
	rig_rx_create(&f->rig, &f->rx, n_wqes, max_sge, n_cqes);
	rig_cq_create(&f->rig, &f->tx_cq, 64);
	rig_sq_create(&f->rig, &f->sq, &f->tx_cq, 64);
	rig_sq_ready(&f->rig, &f->sq);
	f->frame = rig_buf(&f->rig, RIG_BUFS - 1);
}

static void
end(struct fixture *f)
{
	rig_sq_destroy(&f->rig, &f->sq);
	rig_cq_destroy(&f->rig, &f->tx_cq);
	rig_rx_destroy(&f->rig, &f->rx);
	rig_end(&f->rig);
}

/* A frame of `len` bytes goes out and comes back. */
static void
send_one(struct fixture *f, uint32_t len)
{
	rig_sq_send(&f->sq, f->frame, rig_udp(f->frame, PORT_ARGS, len), f->rig.lkey, 0);
	rig_run(&f->rig);
}

static void
invalid_at_first(void **state)
{
	struct fixture f;

	(void)state;
	start_sized(&f, 4, 1, 4);
	rig_expect_none(&f.rx.cq);
	rig_rq_post(&f.rig, &f.rx.rq, 4);
	rig_run(&f.rig);
	rig_expect_none(&f.rx.cq);
	send_one(&f, 60);
	assert_int_equal(f.rx.cq.buf[63], MLX5_CQE_RESP_SEND << 4); /* owner 0: the first pass */
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0);
	rig_expect_none(&f.rx.cq);
	end(&f);
}

/* All 16-bit counters go round, the rings thousands of times, and every byte is right. */
static void
wraps(void **state)
{
	struct fixture f;

	(void)state;
	start_sized(&f, 4, 1, 8);
	rig_rq_post(&f.rig, &f.rx.rq, 4);
	for (uint32_t i = 0; i < 70000; i++) {
		send_one(&f, 60 + i % 8);
		const struct mlx5_cqe64 *cqe =
			rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, (uint16_t)i);

		assert_int_equal(be32toh(cqe->byte_cnt), 60 + i % 8);
		assert_int_equal(be32toh(cqe->srqn_uidx), 0x123456);
		assert_memory_equal(rig_buf(&f.rig, i), f.frame, 60 + i % 8);
		rig_cq_ack(&f.rx.cq);
		rig_rq_post(&f.rig, &f.rx.rq, 1);
	}
	assert_true(f.rx.rq.pi > 65536 && f.sq.pi > 65536);
	end(&f);
}

static void
flags_of_a_good_frame(void **state)
{
	struct fixture f;

	(void)state;
	start_sized(&f, 4, 1, 4);
	rig_rq_post(&f.rig, &f.rx.rq, 4);
	send_one(&f, 100);
	const struct mlx5_cqe64 *cqe = rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0);

	assert_int_equal(cqe->hds_ip_ext, MLX5_CQE_L2_OK | MLX5_CQE_L3_OK | MLX5_CQE_L4_OK);
	assert_int_equal(cqe->l4_hdr_type_etc >> 2 & 3, MLX5_CQE_L3_HDR_TYPE_IPV4);
	assert_int_equal(cqe->l4_hdr_type_etc >> 4 & 7, 2); /* UDP */
	assert_true(be64toh(cqe->timestamp) != 0);
	end(&f);
}

static void
flags_are_computed(void **state)
{
	struct fixture f;

	(void)state;
	start_sized(&f, 4, 1, 4);
	rig_rq_post(&f.rig, &f.rx.rq, 4);
	rig_udp(f.frame, PORT_ARGS, 100);
	f.frame[99] ^= 1; /* payload */
	rig_sq_send(&f.sq, f.frame, 100, f.rig.lkey, 0);
	rig_run(&f.rig);
	assert_int_equal(rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0)->hds_ip_ext,
		MLX5_CQE_L2_OK | MLX5_CQE_L3_OK);
	rig_udp(f.frame, PORT_ARGS, 100);
	f.frame[22] ^= 1; /* time to live */
	rig_sq_send(&f.sq, f.frame, 100, f.rig.lkey, 0);
	rig_run(&f.rig);
	assert_int_equal(rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 1)->hds_ip_ext,
		MLX5_CQE_L2_OK | MLX5_CQE_L4_OK);
	end(&f);
}

/* Three segments of which the frame ends in the second; the rest of the memory stays. */
static void
scatter(void **state)
{
	struct fixture f;

	(void)state;
	start_sized(&f, 4, 4, 4);
	const struct ibv_sge sge[3] = {
		{(uintptr_t)rig_buf(&f.rig, 0), 10, f.rig.lkey},
		{(uintptr_t)rig_buf(&f.rig, 1), 90, f.rig.lkey},
		{(uintptr_t)rig_buf(&f.rig, 2), 90, f.rig.lkey},
	};

	memset(rig_buf(&f.rig, 0), 0xee, 3 * RIG_BUF_SIZE);
	rig_rq_write(&f.rx.rq, sge, 3);
	rig_rq_ring(&f.rx.rq);
	send_one(&f, 80);
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0);
	assert_memory_equal(rig_buf(&f.rig, 0), f.frame, 10);
	assert_int_equal(rig_buf(&f.rig, 0)[10], 0xee);
	assert_memory_equal(rig_buf(&f.rig, 1), f.frame + 10, 70);
	assert_int_equal(rig_buf(&f.rig, 1)[70], 0xee);
	assert_int_equal(rig_buf(&f.rig, 2)[0], 0xee);
	end(&f);
}

/* Too little room costs a packet, not the queue. */
static void
short_buffers(void **state)
{
	struct softcx_port_counters c;
	struct fixture f;

	(void)state;
	start_sized(&f, 4, 4, 4);
	const struct ibv_sge sge[2] = {
		{(uintptr_t)rig_buf(&f.rig, 0), 10, f.rig.lkey},
		{(uintptr_t)rig_buf(&f.rig, 1), 49, f.rig.lkey},
	};

	rig_rq_write(&f.rx.rq, sge, 2);
	rig_rq_post(&f.rig, &f.rx.rq, 1);
	send_one(&f, 60);
	send_one(&f, 60);
	rig_expect_error(&f.rx.cq, MLX5_CQE_RESP_ERR, 0, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 1);
	rig_counters(&f.rig, &c);
	assert_int_equal(c.rx_errors, 1);
	end(&f);
}

/* Every third packet's WQE fails, with a syndrome of our choice. */
static void
injected(void **state)
{
	static const struct {
		const char *what;
		uint8_t syndrome;
		bool fatal;
	} kinds[] = {
		{"rq-length:3", MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, false},
		{"rq-op:3", MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, true},
		{"rq-prot:3", MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, true},
	};
	struct softcx_port_counters c;
	const char *why;
	struct rig_rx rx;
	struct rig rig;

	(void)state;
	for (unsigned int i = 0; i < RIG_DIM(kinds); i++) {
		rig_init(&rig);
		rig.config.wire = SOFTCX_WIRE_GEN;
		rig.config.packets = 5;
		assert_int_equal(softcx_config_set(&rig.config, "inject", kinds[i].what, &why), 0);
		rig_start(&rig);
		rig_rx_create(&rig, &rx, 8, 1, 8);
		rig_rq_post(&rig, &rx.rq, 8);
		rig_run(&rig);
		rig_expect(&rx.cq, MLX5_CQE_RESP_SEND, 0);
		rig_expect(&rx.cq, MLX5_CQE_RESP_SEND, 1);
		rig_expect_error(&rx.cq, MLX5_CQE_RESP_ERR, 2, kinds[i].syndrome);
		for (uint16_t n = 3; n < (kinds[i].fatal ? 8 : 5); n++) {
			if (kinds[i].fatal)
				rig_expect_error(&rx.cq, MLX5_CQE_RESP_ERR, n,
					MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
			else
				rig_expect(&rx.cq, MLX5_CQE_RESP_SEND, n);
		}
		rig_expect_none(&rx.cq);
		rig_counters(&rig, &c);
		assert_int_equal(c.injected, 1);
		assert_int_equal(c.rx_errors, 1);
		assert_int_equal(c.offered, kinds[i].fatal ? 3 + c.queue_not_ready : 5);
		rig_rx_destroy(&rig, &rx);
		rig_end(&rig);
	}
}

static void
out_of_buffer(void **state)
{
	struct softcx_port_counters c;
	struct fixture f;

	(void)state;
	start_sized(&f, 4, 1, 4);
	rig_rq_post(&f.rig, &f.rx.rq, 2);
	for (int i = 0; i < 5; i++)
		send_one(&f, 60);
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0);
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 1);
	rig_expect_none(&f.rx.cq);
	rig_counters(&f.rig, &c);
	assert_int_equal(c.out_of_buffer, 3);
	assert_int_equal(c.rx_packets, 2);
	end(&f);
}

/* What is on the card already is not looked at again. */
static void
never_read_again(void **state)
{
	struct fixture f;

	(void)state;
	start_sized(&f, 8, 1, 8);
	rig_rq_post(&f.rig, &f.rx.rq, 4);
	send_one(&f, 60); /* fetches all four */
	memset(f.rx.rq.buf, 0xff, (size_t)8 << f.rx.rq.log_stride);
	send_one(&f, 60);
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0);
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 1);
	end(&f);
}

/* ---- protection ---- */

struct bad {
	uint64_t offset; /* from the region's start */
	uint32_t length;
	uint32_t lkey_xor;
	bool read_only, other_pd;
};

/* The queue fails, gives the rest back, drops, and works again after a reset. */
static void
protection(void **state)
{
	const struct bad *bad = *state;
	struct softcx_port_counters c;
	enum ibv_wq_state wq_state;
	uint32_t lkey;
	struct fixture f;

	start_sized(&f, 8, 1, 8);
	const struct softcx_mr_attr attr = {
		.pd = bad->other_pd ? RIG_PD + 1 : RIG_PD,
		.addr = f.rig.memory,
		.length = 4096,
		.iova = 0x10000, /* regions are addressed as software likes */
		.access = bad->read_only ? 0 : IBV_ACCESS_LOCAL_WRITE,
	};

	assert_int_equal(softcx_mr_create(f.rig.port, &attr, &lkey), 0);
	const struct ibv_sge sge = {attr.iova + bad->offset, bad->length, lkey ^ bad->lkey_xor};

	rig_rq_post(&f.rig, &f.rx.rq, 1);
	rig_rq_write(&f.rx.rq, &sge, 1);
	rig_rq_post(&f.rig, &f.rx.rq, 2);
	for (int i = 0; i < 4; i++)
		send_one(&f, 60);
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0);
	rig_expect_error(&f.rx.cq, MLX5_CQE_RESP_ERR, 1, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	rig_expect_error(&f.rx.cq, MLX5_CQE_RESP_ERR, 2, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	rig_expect_error(&f.rx.cq, MLX5_CQE_RESP_ERR, 3, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	rig_expect_none(&f.rx.cq);
	assert_int_equal(softcx_wq_query(f.rig.port, f.rx.rq.wqn, &wq_state), 0);
	assert_int_equal(wq_state, IBV_WQS_ERR);
	assert_int_equal(softcx_wq_modify(f.rig.port, f.rx.rq.wqn, IBV_WQS_RDY), -EINVAL);
	rig_counters(&f.rig, &c);
	assert_int_equal(c.rx_errors, 1);
	assert_int_equal(c.queue_not_ready, 2);
	assert_int_equal(c.flushed, 2);

	/* what is posted to a queue in error comes back, too */
	rig_rq_post(&f.rig, &f.rx.rq, 1);
	rig_run(&f.rig);
	rig_expect_error(&f.rx.cq, MLX5_CQE_RESP_ERR, 4, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	rig_cq_ack(&f.rx.cq);

	rig_rq_ready(&f.rig, &f.rx.rq);
	rig_rq_post(&f.rig, &f.rx.rq, 1);
	send_one(&f, 60);
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0);
	assert_int_equal(softcx_mr_destroy(f.rig.port, lkey), 0);
	end(&f);
}

/* The last byte of a region is within, and another address may be the region's first. */
static void
bounds_are_exact(void **state)
{
	const uint64_t iova = UINT64_C(0xffff000000000000);
	struct fixture f;

	(void)state;
	start_sized(&f, 4, 1, 4);
	const uint32_t lkey = rig_mr_create(f.rig.port, f.rig.memory, 4096, iova);
	const struct ibv_sge sge = {iova + 4096 - 60, 60, lkey};

	rig_rq_write(&f.rx.rq, &sge, 1);
	rig_rq_ring(&f.rx.rq);
	send_one(&f, 60);
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0);
	assert_memory_equal(f.rig.memory + 4096 - 60, f.frame, 60);
	assert_int_equal(softcx_mr_destroy(f.rig.port, lkey), 0);
	end(&f);
}

static void
deregistered(void **state)
{
	struct fixture f;

	(void)state;
	start_sized(&f, 4, 1, 4);
	const uint64_t iova = (uintptr_t)f.rig.memory;
	const uint32_t lkey = rig_mr_create(f.rig.port, f.rig.memory, 4096, iova);
	const struct ibv_sge sge = {iova, 2048, lkey};

	rig_rq_write(&f.rx.rq, &sge, 1);
	rig_rq_write(&f.rx.rq, &sge, 1);
	rig_rq_ring(&f.rx.rq);
	send_one(&f, 60); /* both are on the card by now */
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0);
	assert_int_equal(softcx_mr_destroy(f.rig.port, lkey), 0);
	send_one(&f, 60);
	rig_expect_error(&f.rx.cq, MLX5_CQE_RESP_ERR, 1, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	assert_int_equal(softcx_mr_destroy(f.rig.port, lkey), -EINVAL);
	end(&f);
}

static void
software_stops_it(void **state)
{
	struct fixture f;

	(void)state;
	start_sized(&f, 4, 1, 4);
	rig_rq_post(&f.rig, &f.rx.rq, 3);
	send_one(&f, 60);
	assert_int_equal(softcx_wq_modify(f.rig.port, f.rx.rq.wqn, IBV_WQS_ERR), 0);
	rig_run(&f.rig);
	rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0);
	rig_expect_error(&f.rx.cq, MLX5_CQE_RESP_ERR, 1, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	rig_expect_error(&f.rx.cq, MLX5_CQE_RESP_ERR, 2, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	rig_expect_none(&f.rx.cq);
	end(&f);
}

static void
vlan_is_stripped(void **state)
{
	struct fixture f;
	uint8_t tagged[104];

	(void)state;
	start_sized(&f, 4, 1, 4);
	assert_int_equal(softcx_wq_set_flags(f.rig.port, f.rx.rq.wqn, SOFTCX_WQ_VLAN_STRIP), 0);
	rig_rq_post(&f.rig, &f.rx.rq, 4);
	rig_udp(f.frame, PORT_ARGS, 100);
	memcpy(tagged, f.frame, 12);
	memcpy(tagged + 12, "\x81\x00\x20\x0a", 4);
	memcpy(tagged + 16, f.frame + 12, 88);
	memcpy(f.frame, tagged, 104);
	rig_sq_send(&f.sq, f.frame, 104, f.rig.lkey, 0);
	rig_run(&f.rig);
	const struct mlx5_cqe64 *cqe = rig_expect(&f.rx.cq, MLX5_CQE_RESP_SEND, 0);

	assert_int_equal(be32toh(cqe->byte_cnt), 100);
	assert_int_equal(be16toh(cqe->vlan_info), 0x200a);
	assert_int_equal(cqe->l4_hdr_type_etc & 1, 1);
	assert_int_equal(cqe->hds_ip_ext, MLX5_CQE_L2_OK | MLX5_CQE_L3_OK | MLX5_CQE_L4_OK);
	rig_udp(tagged, PORT_ARGS, 100);
	assert_memory_equal(rig_buf(&f.rig, 0), tagged, 100);
	end(&f);
}

int
main(void)
{
	static struct bad bad[] = {
		{.length = 2048, .lkey_xor = 1},
		{.length = 2048, .lkey_xor = 0x100 << 8},
		{.offset = 4096 - 59, .length = 2048},
		{.offset = UINT64_MAX, .length = 2048},
		{.length = 2048, .read_only = true},
		{.length = 2048, .other_pd = true},
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(invalid_at_first),
		cmocka_unit_test(wraps),
		cmocka_unit_test(flags_of_a_good_frame),
		cmocka_unit_test(flags_are_computed),
		cmocka_unit_test(scatter),
		cmocka_unit_test(short_buffers),
		cmocka_unit_test(injected),
		cmocka_unit_test(out_of_buffer),
		cmocka_unit_test(never_read_again),
		{"protection: variant of the key", protection, NULL, NULL, &bad[0]},
		{"protection: no such key", protection, NULL, NULL, &bad[1]},
		{"protection: beyond the end", protection, NULL, NULL, &bad[2]},
		{"protection: before the start", protection, NULL, NULL, &bad[3]},
		{"protection: not to be written", protection, NULL, NULL, &bad[4]},
		{"protection: another domain", protection, NULL, NULL, &bad[5]},
		cmocka_unit_test(bounds_are_exact),
		cmocka_unit_test(deregistered),
		cmocka_unit_test(software_stops_it),
		cmocka_unit_test(vlan_is_stripped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
