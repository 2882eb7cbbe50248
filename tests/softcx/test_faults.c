/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs do wrong, through the system's own libmlx5: keys that are none, buffers that are
 * too short, memory that went, queues with nothing in them. Each is told of as hardware would, and
 * the queue that recovers works again. Frames come round by a loop.
 */

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "verbs_unit.h"

#define N        64
#define FRAME    60
#define LENGTH   65536
#define PATIENCE 20 /* seconds, for what must come */

static struct ibv_context *context;
static struct verbs_rx rx;
static struct ibv_cq *tx_cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *memory;

static void *
map(void)
{
	void *at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	memset(at, 0xff, LENGTH);
	return at;
}

static int
start(void **state)
{
	(void)state;
	context = verbs_open(0);
	verbs_rx_create(context, &rx, N, 1);
	tx_cq = ibv_create_cq(context, N - 1, NULL, NULL, 0);
	assert_non_null(tx_cq);
	qp = verbs_raw_qp(rx.pd, tx_cq, N, 0);
	assert_non_null(qp);
	verbs_ready(qp);
	memory = map();
	mr = ibv_reg_mr(rx.pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(tx_cq), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	verbs_rx_destroy(&rx);
	verbs_close(context);
	assert_int_equal(munmap(memory, LENGTH), 0);
	return 0;
}

static void
receive(void *at, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)at, length, lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	assert_int_equal(ibv_post_wq_recv(rx.wq, &wr, &bad), 0);
}

static void
transmit(void *at, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)at, FRAME, lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static void
expect(struct ibv_cq *cq, enum ibv_wc_status status)
{
	const time_t until = time(NULL) + PATIENCE;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
	} while (n == 0 && time(NULL) < until);
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, status);
}

static void
expect_none(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

static void
works(void)
{
	receive(memory, FRAME, mr->lkey);
	transmit(memory + FRAME, mr->lkey);
	expect(tx_cq, IBV_WC_SUCCESS);
	expect(rx.cq, IBV_WC_SUCCESS);
	expect_none(tx_cq);
	expect_none(rx.cq);
}

static void
change_wq(enum ibv_wq_state from, enum ibv_wq_state to)
{
	struct ibv_wq_attr attr = {
		.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
		.wq_state = to,
		.curr_wq_state = from,
	};

	assert_int_equal(ibv_modify_wq(rx.wq, &attr), 0);
}

/* A receive that fails, and one behind it. */
static void
receive_fails(void *at, uint32_t lkey)
{
	receive(at, FRAME, lkey);
	receive(memory, FRAME, mr->lkey);
	transmit(memory + FRAME, mr->lkey);
	expect(tx_cq, IBV_WC_SUCCESS);
	expect(rx.cq, IBV_WC_LOC_PROT_ERR);
	expect(rx.cq, IBV_WC_WR_FLUSH_ERR);
	change_wq(IBV_WQS_ERR, IBV_WQS_RESET);
	change_wq(IBV_WQS_RESET, IBV_WQS_RDY);
	works();
}

static void
transmit_fails(void *at, uint32_t lkey)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	transmit(at, lkey);
	transmit(memory, mr->lkey);
	expect(tx_cq, IBV_WC_LOC_PROT_ERR);
	expect(tx_cq, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	verbs_ready(qp);
	works();
}

static void
bad_keys(void **state)
{
	(void)state;
	works();
	receive_fails(memory, mr->lkey ^ 0xff00);
	transmit_fails(memory, mr->lkey ^ 0xff00);
}

static void
short_buffer(void **state)
{
	(void)state;
	receive(memory, FRAME - 1, mr->lkey);
	transmit(memory + FRAME, mr->lkey);
	expect(tx_cq, IBV_WC_SUCCESS);
	expect(rx.cq, IBV_WC_LOC_LEN_ERR);
	works();
}

static void
nothing_posted(void **state)
{
	const struct timespec moment = {0, 20000000};

	(void)state;
	transmit(memory + FRAME, mr->lkey);
	expect(tx_cq, IBV_WC_SUCCESS);
	nanosleep(&moment, NULL);
	expect_none(rx.cq);
	works();
}

/* Registered memory that is unmapped, then an access to it. */
static void
memory_gone(void **state)
{
	void *going = map();
	struct ibv_mr *region = ibv_reg_mr(rx.pd, going, LENGTH, IBV_ACCESS_LOCAL_WRITE);

	(void)state;
	assert_non_null(region);
	assert_int_equal(munmap(going, LENGTH), 0);
	receive_fails(going, region->lkey);
	transmit_fails(going, region->lkey);
	assert_int_equal(ibv_dereg_mr(region), 0);
}

/* A mapping that changes its size where it is goes on being registered, but for what it loses. */
static void
memory_shrinks(void **state)
{
	uint8_t *kept = map();
	struct ibv_mr *region = ibv_reg_mr(rx.pd, kept, LENGTH, IBV_ACCESS_LOCAL_WRITE);

	(void)state;
	assert_non_null(region);
	/* no room behind it: itself is there */
	assert_ptr_equal(mremap(kept, LENGTH / 2, LENGTH, 0), MAP_FAILED);
	assert_ptr_equal(mremap(kept, LENGTH, LENGTH / 2, MREMAP_MAYMOVE), kept);
	transmit(kept, region->lkey);
	expect(tx_cq, IBV_WC_SUCCESS);
	receive_fails(kept + LENGTH / 2, region->lkey);
	transmit_fails(kept + LENGTH / 2, region->lkey);
	assert_int_equal(ibv_dereg_mr(region), 0);
	assert_int_equal(munmap(kept, LENGTH / 2), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bad_keys, start, end),
		cmocka_unit_test_setup_teardown(short_buffer, start, end),
		cmocka_unit_test_setup_teardown(nothing_posted, start, end),
		cmocka_unit_test_setup_teardown(memory_gone, start, end),
		cmocka_unit_test_setup_teardown(memory_shrinks, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
