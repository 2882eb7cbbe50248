/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames through the system's own libmlx5, round by a loop, many times around all rings: of one
 * segment and of several, inline and not, scattered over several, most sends without a completion.
 * Every byte, length and work request number is looked at.
 */

#include <string.h>
#include <time.h>

#include "verbs_unit.h"

#define N        64 /* of each queue */
#define BATCH    16
#define ROUNDS   200
#define SLOT     2048
#define INLINE   128
#define PATIENCE 20 /* seconds, for what must come */

/* How a receive buffer is cut up; frames of 1514 bytes fill all three. */
static const uint32_t cuts[] = {100, 37, 1911};

static struct verbs_rx rx;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t memory[2 * N * SLOT];

static uint8_t *
tx_slot(uint32_t i)
{
	return memory + (size_t)(i % N) * SLOT;
}

static uint8_t *
rx_slot(uint32_t i)
{
	return memory + (size_t)(N + i % N) * SLOT;
}

static uint32_t
length_of(uint32_t i)
{
	static const uint32_t lengths[] = {60, 61, INLINE, 128, 137, 590, 1514};

	return lengths[i % 7];
}

static uint8_t
byte_of(uint32_t i, uint32_t at)
{
	return (uint8_t)(i * 31 + at * 7 + (at >> 8));
}

static void
post_receive(uint32_t i)
{
	struct ibv_sge sge[3];
	struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = sge, .num_sge = 3};
	uint8_t *at = rx_slot(i);

	memset(at, 0xee, SLOT);
	for (unsigned int s = 0; s < 3; at += cuts[s++])
		sge[s] = (struct ibv_sge){(uintptr_t)at, cuts[s], mr->lkey};
	assert_int_equal(ibv_post_wq_recv(rx.wq, &wr, &bad), 0);
}

/* In turn whole, inline where it may be, and in four parts that no line ends at. */
static void
post_send(uint32_t i, bool signaled)
{
	const uint32_t length = length_of(i);
	uint8_t *frame = tx_slot(i);
	struct ibv_sge sge[4] = {{(uintptr_t)frame, length, mr->lkey}};
	struct ibv_send_wr *bad, wr = {.wr_id = i,
					 .sg_list = sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = signaled ? IBV_SEND_SIGNALED : 0};

	for (uint32_t at = 0; at < length; at++)
		frame[at] = byte_of(i, at);
	if (i % 3 == 1 && length <= INLINE) {
		wr.send_flags |= IBV_SEND_INLINE;
	} else if (i % 3 == 2) {
		static const uint32_t parts[] = {19, 1, 33};
		uint32_t at = 0;

		for (unsigned int s = 0; s < 4; at += sge[s++].length)
			sge[s] = (struct ibv_sge){
				(uintptr_t)frame + at, s < 3 ? parts[s] : length - at, mr->lkey};
		wr.num_sge = 4;
	}
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static void
expect(struct ibv_cq *of, uint32_t i, struct ibv_wc *wc)
{
	const time_t until = time(NULL) + PATIENCE;
	int n;

	do
		n = ibv_poll_cq(of, 1, wc);
	while (n == 0 && time(NULL) < until);
	assert_int_equal(n, 1);
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	assert_int_equal(wc->wr_id, i);
}

static void
check_received(uint32_t i)
{
	const uint8_t *at = rx_slot(i);
	struct ibv_wc wc;

	expect(rx.cq, i, &wc);
	assert_int_equal(wc.byte_len, length_of(i));
	for (uint32_t k = 0; k < length_of(i); k++)
		if (at[k] != byte_of(i, k))
			fail_msg("frame %u: byte %u is %#x, not %#x", i, k, at[k], byte_of(i, k));
	for (uint32_t k = length_of(i); k < SLOT; k++)
		assert_int_equal(at[k], 0xee);
}

static void
round_and_round(void **state)
{
	struct ibv_wc wc;

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		post_receive(i);
	for (uint32_t first = 0; first < ROUNDS * BATCH; first += BATCH) {
		for (uint32_t i = first; i < first + BATCH; i++)
			post_send(i, i == first + BATCH - 1);
		/* one completion stands for the batch */
		expect(cq, first + BATCH - 1, &wc);
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
		for (uint32_t i = first; i < first + BATCH; i++) {
			check_received(i);
			post_receive(i + N);
		}
		assert_int_equal(ibv_poll_cq(rx.cq, 1, &wc), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(round_and_round)};
	struct ibv_context *context = verbs_open(0);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap =
			{
				.max_send_wr = N,
				.max_send_sge = 4,
				.max_inline_data = INLINE,
			},
	};

	verbs_rx_create(context, &rx, N, 3);
	cq = ibv_create_cq(context, N - 1, NULL, NULL, 0);
	assert_non_null(cq);
	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(rx.pd, &attr);
	assert_non_null(qp);
	verbs_ready(qp);
	mr = ibv_reg_mr(rx.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	verbs_rx_destroy(&rx);
	verbs_close(context);
	return failed;
}
