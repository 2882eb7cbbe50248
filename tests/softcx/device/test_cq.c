/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: overrun, doorbells of 16 and 24 bits, arming; and what objects refuse. */

#include <endian.h>

#include "rig.h"

static void
start(struct rig *rig, struct rig_rx *rx, uint32_t n_wqes, uint32_t n_cqes, uint64_t packets)
{
	rig_init(rig);
	rig->config.wire = SOFTCX_WIRE_GEN;
	rig->config.packets = packets;
	rig_start(rig);
	rig_rx_create(rig, rx, n_wqes, 1, n_cqes);
}

static void
overrun(void **state)
{
	struct softcx_port_counters c;
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	start(&rig, &rx, 16, 8, 20);
	rig_rq_post(&rig, &rx.rq, 16);
	rig_run(&rig);
	for (uint16_t i = 0; i < 8; i++)
		rig_expect(&rx.cq, MLX5_CQE_RESP_SEND, i);
	rig_expect_none(&rx.cq);
	/* the CQ failed, and the queue that had a CQE for it */
	assert_int_equal(rig.n_events, 2);
	assert_int_equal(rig.last_event, IBV_EVENT_WQ_FATAL);
	assert_ptr_equal(rig.last_cookie, &rx.rq);
	rig_counters(&rig, &c);
	assert_int_equal(c.cq_overruns, 1);
	assert_int_equal(c.rx_packets, 8);
	assert_int_equal(c.rx_errors, 1);
	assert_int_equal(
		c.queue_not_ready, c.offered - 9); /* until the generator saw that it is alone */
	/* acknowledging does not bring it back */
	rig_cq_ack(&rx.cq);
	rig_rq_ready(&rig, &rx.rq);
	rig_rq_post(&rig, &rx.rq, 4);
	rig_run(&rig);
	rig_expect_none(&rx.cq);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* Neither a consumer index of 16 bits nor one of 24 ever looks like an overrun. */
static void
doorbell_widths(void **state)
{
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	for (int narrow = 0; narrow < 2; narrow++) {
		start(&rig, &rx, 16, 16, 600000);
		for (unsigned int free = 16;;) {
			struct softcx_port_counters c;

			rig_rq_post(&rig, &rx.rq, free);
			softcx_port_step(rig.port);
			for (free = 0; rig_poll(&rx.cq) != NULL; free++)
				;
			if (narrow)
				__atomic_store_n(
					rx.cq.dbrec, htobe32(rx.cq.ci & 0xffff), __ATOMIC_RELEASE);
			else
				rig_cq_ack(&rx.cq);
			rig_counters(&rig, &c);
			assert_int_equal(c.cq_overruns, 0);
			if (c.offered == 600000)
				break;
		}
		assert_true(rx.cq.ci > 65536);
		rig_rx_destroy(&rig, &rx);
		rig_end(&rig);
	}
}

static void
arming(void **state)
{
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	start(&rig, &rx, 16, 16, 1);
	rig_rq_post(&rig, &rx.rq, 16);
	rig_run(&rig);
	assert_int_equal(rx.cq.completions, 0); /* nobody asked */
	/* armed for what is there already: at once, and once */
	rig_cq_arm(&rx.cq, 1, MLX5_CQ_DB_REQ_NOT);
	rig_run(&rig);
	assert_int_equal(rx.cq.completions, 1);
	rig_run(&rig);
	assert_int_equal(rx.cq.completions, 1);
	/* armed with all seen: not until there is more */
	rig_expect(&rx.cq, MLX5_CQE_RESP_SEND, 0);
	rig_cq_arm(&rx.cq, 2, MLX5_CQ_DB_REQ_NOT);
	rig_run(&rig);
	assert_int_equal(rx.cq.completions, 1);
	assert_int_equal(softcx_wq_modify(rig.port, rx.rq.wqn, IBV_WQS_ERR), 0);
	rig_run(&rig); /* flushes */
	assert_int_equal(rx.cq.completions, 2);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* Armed for solicited ones: a plain completion does not count, an error does. */
static void
arming_solicited(void **state)
{
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	start(&rig, &rx, 16, 16, 1);
	rig_rq_post(&rig, &rx.rq, 2);
	rig_cq_arm(&rx.cq, 0, MLX5_CQ_DB_REQ_NOT_SOL);
	rig_run(&rig);
	rig_expect(&rx.cq, MLX5_CQE_RESP_SEND, 0);
	assert_int_equal(rx.cq.completions, 0);
	assert_int_equal(softcx_wq_modify(rig.port, rx.rq.wqn, IBV_WQS_ERR), 0);
	rig_run(&rig);
	assert_int_equal(rx.cq.completions, 1);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* The very first arming may leave the record as it was: the register tells. */
static void
arming_with_zero(void **state)
{
	struct rig rig;
	struct rig_rx rx;
	uint64_t *uar = aligned_alloc(4096, 4096);
	struct softcx_cq_attr attr = {.cqe_count = 4, .cqe_size = 64, .uar = uar};
	struct rig_cq cq = {.count = 4};

	(void)state;
	assert_non_null(uar);
	memset(uar, 0, 4096);
	start(&rig, &rx, 16, 16, 0);
	rig_rx_destroy(&rig, &rx);
	rig_cq_create(&rig, &cq, 4); /* for its memory and callback's look */
	assert_int_equal(softcx_cq_destroy(rig.port, cq.cqn), 0);
	attr.buf = cq.buf;
	attr.dbrec = cq.dbrec;
	attr.cookie = &cq;
	attr.completion = rig_count_completion;
	assert_int_equal(softcx_cq_create(rig.port, &attr, &cq.cqn), 0);
	uar[MLX5_CQ_DOORBELL / 8] = htobe64(cq.cqn); /* sequence 0, index 0, any completion */

	struct rig_sq sq;

	rig_sq_create(&rig, &sq, &cq, 4);
	rig_sq_ready(&rig, &sq);
	rig_run(&rig);
	assert_int_equal(cq.completions, 0);
	rig_sq_write(&sq, MLX5_OPCODE_NOP, RIG_CE_ALWAYS, NULL, 0, NULL, 0, 0);
	rig_sq_ring(&sq);
	rig_run(&rig);
	assert_int_equal(cq.completions, 1);
	rig_sq_destroy(&rig, &sq);
	rig_cq_destroy(&rig, &cq);
	rig_end(&rig);
	free(uar);
}

static void
in_use(void **state)
{
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	start(&rig, &rx, 16, 16, 1);
	assert_int_equal(softcx_cq_destroy(rig.port, rx.cq.cqn), -EBUSY);
	assert_int_equal(softcx_wq_destroy(rig.port, rx.rq.wqn), -EBUSY);
	assert_int_equal(softcx_rwq_table_destroy(rig.port, rx.rss.table), -EBUSY);
	assert_int_equal(softcx_qp_destroy(rig.port, rx.rss.qpn), -EBUSY);
	assert_int_equal(softcx_cq_destroy(rig.port, rx.cq.cqn + 1), -EINVAL);
	assert_int_equal(softcx_flow_destroy(rig.port, rx.rss.flow + 1), -EINVAL);
	rig_rx_destroy(&rig, &rx);
	/* and none of them is found again */
	assert_int_equal(softcx_cq_destroy(rig.port, rx.cq.cqn), -EINVAL);
	assert_int_equal(softcx_wq_modify(rig.port, rx.rq.wqn, IBV_WQS_RDY), -EINVAL);
	assert_int_equal(softcx_qp_destroy(rig.port, rx.rss.qpn), -EINVAL);
	rig_end(&rig);
}

static void
refused(void **state)
{
	static uint64_t memory[64] __attribute__((aligned(64)));
	uint32_t number;
	struct rig rig;
	struct rig_rx rx;
	const struct softcx_cq_attr good = {
		.buf = memory, .dbrec = (uint32_t *)memory, .cqe_count = 4, .cqe_size = 64};
	struct softcx_cq_attr cq = good;
	struct softcx_mr_attr mr = {.addr = memory, .length = 0};

	(void)state;
	start(&rig, &rx, 16, 16, 1);
	cq.cqe_size = 128;
	assert_int_equal(softcx_cq_create(rig.port, &cq, &number), -EINVAL);
	cq = good;
	cq.cqe_count = 3;
	assert_int_equal(softcx_cq_create(rig.port, &cq, &number), -EINVAL);
	cq.cqe_count = 2 * SOFTCX_MAX_CQE;
	assert_int_equal(softcx_cq_create(rig.port, &cq, &number), -EINVAL);
	assert_int_equal(softcx_mr_create(rig.port, &mr, &number), -EINVAL);
	mr.length = UINT64_MAX;
	assert_int_equal(softcx_mr_create(rig.port, &mr, &number), -EINVAL);
	const struct softcx_wq_attr wq = {.cqn = rx.cq.cqn + 1,
		.buf = memory,
		.dbrec = (uint32_t *)memory,
		.wqe_count = 4,
		.log_stride = 4};

	assert_int_equal(softcx_wq_create(rig.port, &wq, &number), -EINVAL);
	assert_int_equal(softcx_rwq_table_create(rig.port, &rx.rq.wqn, 3, &number), -EINVAL);
	assert_int_equal(softcx_rwq_table_create(rig.port, &(uint32_t){99}, 1, &number), -EINVAL);
	struct softcx_rss_attr rss = {
		.table = rx.rss.table, .fields = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_IPV6};

	assert_int_equal(softcx_rss_qp_create(rig.port, &rss, &number), -EINVAL);
	rss.fields = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP;
	assert_int_equal(softcx_rss_qp_create(rig.port, &rss, &number), -EINVAL);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overrun),
		cmocka_unit_test(doorbell_widths),
		cmocka_unit_test(arming),
		cmocka_unit_test(arming_solicited),
		cmocka_unit_test(arming_with_zero),
		cmocka_unit_test(in_use),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
