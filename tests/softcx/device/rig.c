/* SPDX-License-Identifier: BSD-3-Clause */

#include <endian.h>
#include <sched.h>

#include "device/packet.h"
#include "rig.h"

#define CHECK(call) assert_int_equal((call), 0)

static void
note_event(void *arg, enum ibv_event_type type, void *cookie)
{
	struct rig *rig = arg;

	rig->n_events++;
	rig->last_event = type;
	rig->last_cookie = cookie;
}

void
rig_init(struct rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	softcx_config_init(&rig->config);
	rig->config.stepped = true;
	rig->config.wire = SOFTCX_WIRE_SINK;
	rig->config.rate = 0;
	rig->config.frame[0] = 64;
}

static void *
zeroed(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

	assert_non_null(p);
	memset(p, 0, (size + 4095) / 4096 * 4096);
	return p;
}

uint32_t
rig_mr_create(struct softcx_port *port, void *addr, uint64_t length, uint64_t iova)
{
	const struct softcx_mr_attr attr = {
		.pd = RIG_PD,
		.addr = addr,
		.length = length,
		.iova = iova,
		.access = IBV_ACCESS_LOCAL_WRITE,
	};
	uint32_t lkey;

	CHECK(softcx_mr_create(port, &attr, &lkey));
	return lkey;
}

void
rig_start(struct rig *rig)
{
	CHECK(softcx_device_create(&rig->config, &rig->card));
	rig->port = softcx_device_port(rig->card, 0);
	CHECK(softcx_port_set_events(rig->port, note_event, rig));
	rig->memory = zeroed(RIG_BUFS * RIG_BUF_SIZE);
	rig->lkey = rig_mr_create(
		rig->port, rig->memory, RIG_BUFS * RIG_BUF_SIZE, (uintptr_t)rig->memory);
}

void
rig_assert_conserved(const struct softcx_port_counters *c)
{
	assert_int_equal(c->offered, c->rx_packets + c->out_of_buffer + c->rx_errors + c->no_flow +
					     c->flow_drops + c->queue_not_ready);
}

void
rig_end(struct rig *rig)
{
	struct softcx_port_counters c;

	for (unsigned int i = 0; i < rig->config.ports; i++) {
		CHECK(softcx_port_query(softcx_device_port(rig->card, i), &c));
		rig_assert_conserved(&c);
	}
	CHECK(softcx_mr_destroy(rig->port, rig->lkey));
	CHECK(softcx_device_destroy(rig->card));
	free(rig->memory);
}

uint8_t *
rig_buf(const struct rig *rig, unsigned int i)
{
	return rig->memory + (size_t)(i % RIG_BUFS) * RIG_BUF_SIZE;
}

void
rig_counters(const struct rig *rig, struct softcx_port_counters *counters)
{
	CHECK(softcx_port_query(rig->port, counters));
}

void
rig_run(const struct rig *rig)
{
	/* a turn sees doorbells that the next fetches and the one after that executes */
	for (unsigned int idle = 0; idle < 3;) {
		bool any = false;

		for (unsigned int i = 0; i < rig->config.ports; i++)
			any |= softcx_port_step(softcx_device_port(rig->card, i));
		idle = any ? 0 : idle + 1;
	}
}

/* ---- completion queues ---- */

void
rig_count_completion(void *cookie)
{
	((struct rig_cq *)cookie)->completions++;
}

void
rig_cq_create_flags(struct rig *rig, struct rig_cq *cq, uint32_t count, unsigned int flags)
{
	*cq = (struct rig_cq){
		.buf = zeroed((size_t)count * 64),
		.dbrec = zeroed(64),
		.count = count,
	};
	for (uint32_t i = 0; i < count; i++)
		cq->buf[i * 64 + 63] = 0xf0;
	const struct softcx_cq_attr attr = {
		.buf = cq->buf,
		.dbrec = cq->dbrec,
		.cqe_count = count,
		.cqe_size = 64,
		.flags = flags,
		.completion = rig_count_completion,
		.cookie = cq,
	};

	CHECK(softcx_cq_create(rig->port, &attr, &cq->cqn));
}

void
rig_cq_create(struct rig *rig, struct rig_cq *cq, uint32_t count)
{
	rig_cq_create_flags(rig, cq, count, 0);
}

void
rig_cq_destroy(struct rig *rig, struct rig_cq *cq)
{
	CHECK(softcx_cq_destroy(rig->port, cq->cqn));
	free(cq->buf);
	free(cq->dbrec);
}

const struct mlx5_cqe64 *
rig_poll(struct rig_cq *cq)
{
	const struct mlx5_cqe64 *cqe =
		(const void *)(cq->buf + (size_t)(cq->ci & (cq->count - 1)) * 64);
	/* the device releases the whole last word */
	const uint64_t last =
		__atomic_load_n((const uint64_t *)(const void *)cqe + 7, __ATOMIC_ACQUIRE);
	const uint8_t op_own = (uint8_t)(last >> 56);

	if (op_own >> 4 == MLX5_CQE_INVALID || (op_own & 1) != !!(cq->ci & cq->count))
		return NULL;
	cq->ci++;
	return cqe;
}

void
rig_cq_ack(struct rig_cq *cq)
{
	__atomic_store_n(cq->dbrec, htobe32(cq->ci & 0xffffff), __ATOMIC_RELEASE);
}

void
rig_cq_arm(struct rig_cq *cq, uint32_t sn, uint32_t command)
{
	__atomic_store_n(
		&cq->dbrec[1], htobe32(sn << 28 | command | (cq->ci & 0xffffff)), __ATOMIC_RELEASE);
}

const struct mlx5_cqe64 *
rig_expect(struct rig_cq *cq, uint8_t opcode, uint16_t wqe_counter)
{
	const struct mlx5_cqe64 *cqe = rig_poll(cq);

	assert_non_null(cqe);
	assert_int_equal(cqe->op_own >> 4, opcode);
	assert_int_equal(be16toh(cqe->wqe_counter), wqe_counter);
	return cqe;
}

void
rig_expect_error(struct rig_cq *cq, uint8_t opcode, uint16_t wqe_counter, uint8_t syndrome)
{
	const struct mlx5_err_cqe *cqe = (const void *)rig_expect(cq, opcode, wqe_counter);

	assert_int_equal(cqe->syndrome, syndrome);
}

void
rig_expect_none(struct rig_cq *cq)
{
	assert_null(rig_poll(cq));
}

/* ---- receive queues ---- */

void
rig_rq_create(
	struct rig *rig, struct rig_rq *rq, struct rig_cq *cq, uint32_t count, unsigned int max_sge)
{
	*rq = (struct rig_rq){.count = count, .log_stride = 4, .cq = cq};
	while (1u << (rq->log_stride - 4) < max_sge)
		rq->log_stride++;
	rq->buf = zeroed((size_t)count << rq->log_stride);
	rq->dbrec = zeroed(64);
	const struct softcx_wq_attr attr = {
		.pd = RIG_PD,
		.cqn = cq->cqn,
		.buf = rq->buf,
		.dbrec = rq->dbrec,
		.wqe_count = count,
		.log_stride = rq->log_stride,
		.user_index = 0x123456,
		.cookie = rq,
	};

	CHECK(softcx_wq_create(rig->port, &attr, &rq->wqn));
}

void
rig_rq_ready(struct rig *rig, struct rig_rq *rq)
{
	CHECK(softcx_wq_modify(rig->port, rq->wqn, IBV_WQS_RESET));
	rq->pi = 0;
	rig_rq_ring(rq);
	CHECK(softcx_wq_modify(rig->port, rq->wqn, IBV_WQS_RDY));
}

void
rig_rq_destroy(struct rig *rig, struct rig_rq *rq)
{
	CHECK(softcx_wq_destroy(rig->port, rq->wqn));
	free(rq->buf);
	free(rq->dbrec);
}

void
rig_rq_write(struct rig_rq *rq, const struct ibv_sge *sge, unsigned int n)
{
	struct mlx5_wqe_data_seg *seg =
		(void *)(rq->buf + ((size_t)(rq->pi & (rq->count - 1)) << rq->log_stride));

	for (unsigned int i = 0; i < n; i++)
		mlx5dv_set_data_seg(&seg[i], sge[i].length, sge[i].lkey, sge[i].addr);
	if (n < 1u << (rq->log_stride - 4))
		mlx5dv_set_data_seg(&seg[n], 0, MLX5_INVALID_LKEY, 0);
	rq->pi++;
}

void
rig_rq_ring(struct rig_rq *rq)
{
	__atomic_store_n(rq->dbrec, htobe32(rq->pi & 0xffff), __ATOMIC_RELEASE);
}

void
rig_rq_post(struct rig *rig, struct rig_rq *rq, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct ibv_sge sge = {
			(uintptr_t)rig_buf(rig, rq->pi), RIG_BUF_SIZE, rig->lkey};

		rig_rq_write(rq, &sge, 1);
	}
	rig_rq_ring(rq);
}

/* ---- send queues ---- */

void
rig_sq_create(struct rig *rig, struct rig_sq *sq, struct rig_cq *cq, uint32_t count)
{
	*sq = (struct rig_sq){
		.buf = zeroed((size_t)count * 64),
		.dbrec = zeroed(64),
		.count = count,
		.uar = zeroed(4096),
		.cq = cq,
	};
	const struct softcx_qp_attr attr = {
		.pd = RIG_PD,
		.dbrec = sq->dbrec,
		.user_index = 0x654321,
		.uar = sq->uar,
		.cookie = sq,
		.sq = {.cqn = cq->cqn, .buf = sq->buf, .wqe_count = count},
	};

	CHECK(softcx_qp_create(rig->port, &attr, &sq->qpn));
}

void
rig_sq_ready(struct rig *rig, struct rig_sq *sq)
{
	CHECK(softcx_qp_modify(rig->port, sq->qpn, IBV_QPS_RESET));
	sq->pi = 0;
	__atomic_store_n(&sq->dbrec[MLX5_SND_DBR], 0, __ATOMIC_RELEASE);
	CHECK(softcx_qp_modify(rig->port, sq->qpn, IBV_QPS_INIT));
	CHECK(softcx_qp_modify(rig->port, sq->qpn, IBV_QPS_RTR));
	CHECK(softcx_qp_modify(rig->port, sq->qpn, IBV_QPS_RTS));
}

void
rig_sq_destroy(struct rig *rig, struct rig_sq *sq)
{
	CHECK(softcx_qp_destroy(rig->port, sq->qpn));
	free(sq->buf);
	free(sq->dbrec);
	free(sq->uar);
}

void
rig_sq_write(struct rig_sq *sq, uint8_t opcode, uint8_t fm_ce_se, const void *frame,
	uint16_t inlined, const struct ibv_sge *sge, unsigned int n, uint8_t cs_flags)
{
	uint8_t wqe[1024] = {0};
	struct mlx5_wqe_ctrl_seg *ctrl = (void *)wqe;
	struct mlx5_wqe_eth_seg *eth = (void *)(wqe + 16);
	unsigned int ds = opcode == MLX5_OPCODE_NOP ? 1 : 2;

	eth->cs_flags = cs_flags;
	eth->inline_hdr_sz = htobe16(inlined);
	if (inlined > 0) {
		memcpy(wqe + 16 + 14, frame, inlined);
		ds = (16 + 14 + inlined + 15) / 16;
	}
	for (unsigned int i = 0; i < n; i++, ds++)
		mlx5dv_set_data_seg(
			(void *)(wqe + (size_t)ds * 16), sge[i].length, sge[i].lkey, sge[i].addr);
	mlx5dv_set_ctrl_seg(
		ctrl, (uint16_t)sq->pi, opcode, 0, sq->qpn, fm_ce_se, (uint8_t)ds, 0, 0);
	for (unsigned int block = 0; block < (ds + 3) / 4; block++)
		memcpy(sq->buf + (size_t)((sq->pi + block) & (sq->count - 1)) * 64,
			wqe + block * 64, 64);
	memcpy(&sq->uar[0x800 / 8], wqe, 8);
	sq->pi += (ds + 3) / 4;
}

void
rig_sq_ring(struct rig_sq *sq)
{
	__atomic_store_n(&sq->dbrec[MLX5_SND_DBR], htobe32(sq->pi & 0xffff), __ATOMIC_RELEASE);
}

void
rig_sq_send(struct rig_sq *sq, const void *addr, uint32_t len, uint32_t lkey, uint8_t fm_ce_se)
{
	const struct ibv_sge sge = {(uintptr_t)addr, len, lkey};

	rig_sq_write(sq, MLX5_OPCODE_SEND, fm_ce_se, NULL, 0, &sge, 1, 0);
	rig_sq_ring(sq);
}

/* ---- steering ---- */

void
rig_rss_create(struct rig *rig, struct rig_rss *rss, const struct rig_rq *rq, unsigned int n,
	uint64_t fields)
{
	struct softcx_rss_attr attr = {.pd = RIG_PD, .fields = fields};
	struct softcx_flow_attr flow = {.type = IBV_FLOW_ATTR_NORMAL};
	uint32_t wqn[64];

	for (unsigned int i = 0; i < n; i++)
		wqn[i] = rq[i].wqn;
	for (unsigned int i = 0; i < sizeof(attr.key); i++)
		attr.key[i] = (uint8_t)(0x6d + 0x5a * i + i * i);
	CHECK(softcx_rwq_table_create(rig->port, wqn, n, &rss->table));
	attr.table = rss->table;
	CHECK(softcx_rss_qp_create(rig->port, &attr, &rss->qpn));
	flow.qpn = rss->qpn;
	CHECK(softcx_flow_create(rig->port, &flow, &rss->flow));
}

void
rig_rss_destroy(struct rig *rig, struct rig_rss *rss)
{
	CHECK(softcx_flow_destroy(rig->port, rss->flow));
	CHECK(softcx_qp_destroy(rig->port, rss->qpn));
	CHECK(softcx_rwq_table_destroy(rig->port, rss->table));
}

void
rig_rx_create(
	struct rig *rig, struct rig_rx *rx, uint32_t n_wqes, unsigned int max_sge, uint32_t n_cqes)
{
	rig_cq_create(rig, &rx->cq, n_cqes);
	rig_rq_create(rig, &rx->rq, &rx->cq, n_wqes, max_sge);
	rig_rq_ready(rig, &rx->rq);
	rig_rss_create(rig, &rx->rss, &rx->rq, 1, 0);
}

void
rig_rx_destroy(struct rig *rig, struct rig_rx *rx)
{
	rig_rss_destroy(rig, &rx->rss);
	rig_rq_destroy(rig, &rx->rq);
	rig_cq_destroy(rig, &rx->cq);
}

/* ---- frames ---- */

uint32_t
rig_udp(uint8_t *frame, uint32_t src, uint32_t dst, uint16_t sport, uint16_t dport, uint32_t len)
{
	static const uint8_t head[] = {2, 'S', 'C', 'X', 0, 0, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0};
	const uint16_t lengths[2] = {htobe16((uint16_t)(len - CX_ETH_LEN)),
		htobe16((uint16_t)(len - CX_ETH_LEN - CX_IPV4_LEN))};
	const uint32_t addresses[2] = {htobe32(src), htobe32(dst)};
	const uint16_t ports[2] = {htobe16(sport), htobe16(dport)};

	for (uint32_t i = 42; i < len; i++)
		frame[i] = (uint8_t)(i * 7 + sport);
	memset(frame, 0, 42);
	memcpy(frame, head, sizeof(head));
	memcpy(frame + 16, &lengths[0], 2);
	frame[22] = 64;
	frame[23] = CX_IPPROTO_UDP;
	memcpy(frame + 26, addresses, sizeof(addresses));
	memcpy(frame + 34, ports, sizeof(ports));
	memcpy(frame + 38, &lengths[1], 2);
	cx_packet_offload(frame, len, len, MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM);
	return len;
}

/* ---- the device on its thread ---- */

void
rig_start_thread(struct rig *rig, enum softcx_wire wire)
{
	rig_init(rig);
	rig->config.stepped = false;
	rig->config.wire = wire;
	rig->config.rate = 1000000000;
	rig->config.streams = 8;
	rig_start(rig);
}

unsigned int
rig_take(struct rig *rig, struct rig_rx *rx)
{
	unsigned int n = 0;

	while (n < 32 && rig_poll(&rx->cq) != NULL)
		n++;
	if (n > 0) {
		rig_cq_ack(&rx->cq);
		rig_rq_post(rig, &rx->rq, n);
	}
	return n;
}

void
rig_take_many(struct rig *rig, struct rig_rx *rx, unsigned int n)
{
	while (n > 0) {
		const unsigned int got = rig_take(rig, rx);

		if (got == 0)
			sched_yield();
		n -= got < n ? got : n;
	}
}
