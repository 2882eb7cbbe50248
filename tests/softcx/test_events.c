/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and asynchronous events, as libibverbs waits for and acknowledges them. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "verbs_unit.h"

#define N           64
#define FRAME       60
#define PATIENCE_MS 20000 /* for what must come */
#define QUIET_MS    50    /* for what must not */

/* A send queue with a channel. */
struct sender {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t frame[FRAME];
};

static struct sender tx;

static void
create(int cqe)
{
	memset(&tx, 0, sizeof(tx));
	memset(tx.frame, 0xff, 6);
	tx.context = verbs_open(0);
	tx.channel = ibv_create_comp_channel(tx.context);
	assert_non_null(tx.channel);
	tx.pd = ibv_alloc_pd(tx.context);
	assert_non_null(tx.pd);
	tx.cq = ibv_create_cq(tx.context, cqe, &tx, tx.channel, 0);
	assert_non_null(tx.cq);
	tx.qp = verbs_raw_qp(tx.pd, tx.cq, N, 0);
	assert_non_null(tx.qp);
	verbs_ready(tx.qp);
	tx.mr = ibv_reg_mr(tx.pd, tx.frame, sizeof(tx.frame), 0);
	assert_non_null(tx.mr);
}

static void
destroy(void)
{
	assert_int_equal(ibv_dereg_mr(tx.mr), 0);
	assert_int_equal(ibv_destroy_qp(tx.qp), 0);
	assert_int_equal(ibv_destroy_cq(tx.cq), 0);
	assert_int_equal(ibv_dealloc_pd(tx.pd), 0);
	assert_int_equal(ibv_destroy_comp_channel(tx.channel), 0);
	verbs_close(tx.context);
}

static void
send_frames(unsigned int n, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)tx.frame, sizeof(tx.frame), lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	while (n-- > 0)
		assert_int_equal(ibv_post_send(tx.qp, &wr, &bad), 0);
}

static bool
readable(int fd, int milliseconds)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, milliseconds) == 1;
}

/* Poll until n completions came; their status is the same. */
static void
collect(unsigned int n, enum ibv_wc_status status)
{
	struct ibv_wc wc;
	int got;

	while (n > 0) {
		got = ibv_poll_cq(tx.cq, 1, &wc);
		assert_true(got >= 0);
		if (got == 1) {
			assert_int_equal(wc.status, status);
			n--;
		}
	}
}

static void
take_event(void)
{
	struct ibv_cq *cq;
	void *cookie;

	assert_true(readable(tx.channel->fd, PATIENCE_MS));
	assert_int_equal(ibv_get_cq_event(tx.channel, &cq, &cookie), 0);
	assert_ptr_equal(cq, tx.cq);
	assert_ptr_equal(cookie, &tx);
}

static void
tells_once_per_arming(void **state)
{
	(void)state;
	create(N - 1);
	send_frames(1, tx.mr->lkey); /* not armed */
	collect(1, IBV_WC_SUCCESS);
	assert_false(readable(tx.channel->fd, QUIET_MS));

	assert_int_equal(ibv_req_notify_cq(tx.cq, 0), 0);
	assert_false(readable(tx.channel->fd, QUIET_MS));
	send_frames(3, tx.mr->lkey);
	take_event();
	collect(3, IBV_WC_SUCCESS);
	assert_false(readable(tx.channel->fd, QUIET_MS));
	send_frames(1, tx.mr->lkey);
	collect(1, IBV_WC_SUCCESS);
	assert_false(readable(tx.channel->fd, QUIET_MS));

	/* Armed when there is a completion already. */
	send_frames(1, tx.mr->lkey);
	usleep(QUIET_MS * 1000);
	assert_int_equal(ibv_req_notify_cq(tx.cq, 0), 0);
	take_event();
	collect(1, IBV_WC_SUCCESS);
	ibv_ack_cq_events(tx.cq, 2);
	destroy();
}

static void
waits_or_not_as_told(void **state)
{
	struct ibv_cq *cq;
	void *cookie;
	int flags;

	(void)state;
	create(N - 1);
	flags = fcntl(tx.channel->fd, F_GETFL);
	assert_int_equal(fcntl(tx.channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_int_equal(ibv_get_cq_event(tx.channel, &cq, &cookie), -1);
	assert_int_equal(errno, EAGAIN);
	destroy();
}

static void *
wait_for_event(void *arg)
{
	struct ibv_cq *cq;
	void *cookie;

	(void)arg;
	return (void *)(intptr_t)ibv_get_cq_event(tx.channel, &cq, &cookie);
}

static void
wakes_a_thread(void **state)
{
	pthread_t thread;
	void *result = tx.channel;

	(void)state;
	create(N - 1);
	assert_int_equal(ibv_req_notify_cq(tx.cq, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, NULL), 0);
	usleep(QUIET_MS * 1000);
	send_frames(1, tx.mr->lkey);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	ibv_ack_cq_events(tx.cq, 1);
	destroy();
}

static void
ignore(int number)
{
	(void)number;
}

/* A signal ends the wait as one of the kernel's: not where its handler wants the call started
 * again. */
static void
waits_on_after_signals(void **state)
{
	struct sigaction action = {.sa_handler = ignore, .sa_flags = SA_RESTART}, before;
	pthread_t thread;
	void *result;
	int i;

	(void)state;
	create(N - 1);
	assert_int_equal(ibv_req_notify_cq(tx.cq, 0), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, NULL), 0);
	for (i = 0; i < 3; i++) {
		usleep(QUIET_MS * 1000);
		assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
	}
	send_frames(1, tx.mr->lkey);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);

	action.sa_flags = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, NULL), 0);
	while (pthread_tryjoin_np(thread, &result) == EBUSY) { /* at first it may not wait yet */
		assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
		usleep(1000);
	}
	assert_int_equal((intptr_t)result, -1);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	ibv_ack_cq_events(tx.cq, 1);
	destroy();
}

static void
lets_a_thread_be_cancelled(void **state)
{
	pthread_t thread;
	void *result;

	(void)state;
	create(N - 1);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, NULL), 0);
	usleep(QUIET_MS * 1000);
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);

	/* The channel serves others as before. */
	assert_int_equal(ibv_req_notify_cq(tx.cq, 0), 0);
	send_frames(1, tx.mr->lkey);
	take_event();
	ibv_ack_cq_events(tx.cq, 1);
	destroy();
}

/* What nobody read goes with its CQ, and its destruction waits for no acknowledgement. */
static void
forgets_what_was_not_read(void **state)
{
	struct ibv_cq *other;

	(void)state;
	create(N - 1);
	other = ibv_create_cq(tx.context, 1, NULL, tx.channel, 0);
	assert_non_null(other);
	assert_int_equal(ibv_req_notify_cq(tx.cq, 0), 0);
	send_frames(1, tx.mr->lkey);
	assert_true(readable(tx.channel->fd, PATIENCE_MS));
	assert_int_equal(ibv_destroy_qp(tx.qp), 0);
	assert_int_equal(ibv_destroy_cq(tx.cq), 0);
	assert_false(readable(tx.channel->fd, 0));
	tx.cq = other;
	tx.qp = verbs_raw_qp(tx.pd, tx.cq, N, 0);
	destroy();
}

static void
keeps_channels_apart(void **state)
{
	struct ibv_context *second = verbs_open(0);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(second);

	(void)state;
	create(N - 1);
	assert_int_equal(ibv_destroy_comp_channel(tx.channel), EBUSY);
	/* As if it were its own: the kernel's half must refuse it. */
	channel->context = tx.context;
	assert_null(ibv_create_cq(tx.context, 1, NULL, channel, 0));
	assert_int_equal(errno, EBADF);
	channel->context = second;
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	verbs_close(second);
	destroy();
}

/* An asynchronous event about an object of ours. */
static void
take_async(enum ibv_event_type type)
{
	struct ibv_async_event event;

	assert_true(readable(tx.context->async_fd, PATIENCE_MS));
	assert_int_equal(ibv_get_async_event(tx.context, &event), 0);
	assert_int_equal(event.event_type, type);
	if (type == IBV_EVENT_CQ_ERR)
		assert_ptr_equal(event.element.cq, tx.cq);
	else
		assert_ptr_equal(event.element.qp, tx.qp);
	ibv_ack_async_event(&event);
}

static void
reports_a_cq_that_ran_over(void **state)
{
	(void)state;
	create(1); /* two entries */
	assert_false(readable(tx.context->async_fd, 0));
	send_frames(8, tx.mr->lkey);
	take_async(IBV_EVENT_CQ_ERR);
	destroy();
}

/* The last life's unread events do not reach the next one. */
static void
forgets_async_events_too(void **state)
{
	(void)state;
	create(1);
	send_frames(8, tx.mr->lkey);
	assert_true(readable(tx.context->async_fd, PATIENCE_MS));
	assert_int_equal(ibv_destroy_qp(tx.qp), 0);
	assert_int_equal(ibv_destroy_cq(tx.cq), 0);
	assert_false(readable(tx.context->async_fd, 0));
	tx.cq = ibv_create_cq(tx.context, 1, NULL, tx.channel, 0);
	tx.qp = verbs_raw_qp(tx.pd, tx.cq, N, 0);
	destroy();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_once_per_arming),
		cmocka_unit_test(waits_or_not_as_told),
		cmocka_unit_test(wakes_a_thread),
		cmocka_unit_test(waits_on_after_signals),
		cmocka_unit_test(lets_a_thread_be_cancelled),
		cmocka_unit_test(forgets_what_was_not_read),
		cmocka_unit_test(keeps_channels_apart),
		cmocka_unit_test(reports_a_cq_that_ran_over),
		cmocka_unit_test(forgets_async_events_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
