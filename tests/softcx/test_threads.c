/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that share a port, and threads that share a context, make and destroy while others send,
 * wait for events, let memory go that is registered, and read counters.
 */

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_unit.h"

#define THREADS 4
#define ROUNDS  60
#define READS   100 /* of a counter, in each */
#define FRAME   60
#define N       64

static struct ibv_context *shared;
static atomic_uint sent;

/* cmocka's asserts are the main thread's. */
static void
must(bool holds)
{
	if (!holds)
		abort();
}

/* A queue's life: armed, one frame sent, its completion waited for. */
static void
live(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, N - 1, NULL, channel, 0), *of;
	struct ibv_qp *qp = verbs_raw_qp(pd, cq, N, 0);
	uint8_t frame[FRAME] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct ibv_mr *mr = ibv_reg_mr(pd, frame, sizeof(frame), 0);
	struct ibv_sge sge = {(uintptr_t)frame, sizeof(frame), mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;
	void *cookie;

	must(qp != NULL);
	verbs_ready(qp);
	must(ibv_req_notify_cq(cq, 0) == 0);
	must(ibv_post_send(qp, &wr, &bad) == 0);
	must(ibv_get_cq_event(channel, &of, &cookie) == 0 && of == cq);
	must(ibv_poll_cq(cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	ibv_ack_cq_events(cq, 1);
	must(ibv_dereg_mr(mr) == 0);
	must(ibv_destroy_qp(qp) == 0);
	must(ibv_destroy_cq(cq) == 0);
	must(ibv_dealloc_pd(pd) == 0);
	must(ibv_destroy_comp_channel(channel) == 0);
	sent++;
}

/* Registered memory goes before its registration does. */
static void
let_memory_go(struct ibv_context *context)
{
	const size_t length = 1 << 16;
	struct ibv_pd *pd = ibv_alloc_pd(context);
	void *memory =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	must(pd != NULL && memory != MAP_FAILED);
	mr = ibv_reg_mr(pd, memory, length, IBV_ACCESS_LOCAL_WRITE);
	must(mr != NULL);
	must(munmap(memory, length) == 0);
	must(ibv_dereg_mr(mr) == 0);
	must(ibv_dealloc_pd(pd) == 0);
}

/* A counter in sysfs is a number whoever else reads it; openat() does not bring it up to date. */
static void
read_counter(bool refresh)
{
	char path[512], text[32];

	snprintf(path, sizeof(path), "%s/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_buffer",
		getenv("SYSFS_PATH"));
	for (unsigned int i = 0; i < READS; i++) {
		const int fd = refresh ? open(path, O_RDONLY) : openat(AT_FDCWD, path, O_RDONLY);

		must(fd >= 0);
		must(read(fd, text, sizeof(text)) == 2 && memcmp(text, "0\n", 2) == 0);
		must(close(fd) == 0);
	}
}

static void *
work(void *arg)
{
	const bool own = (uintptr_t)arg % 2 == 0;
	struct ibv_context *context = own ? verbs_open((uintptr_t)arg / 2 % 2) : shared;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		live(context);
		let_memory_go(context);
		read_counter(own);
	}
	if (own)
		verbs_close(context);
	return NULL;
}

static void
live_side_by_side(void **state)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	(void)state;
	shared = verbs_open(0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	verbs_close(shared);
	assert_int_equal(sent, THREADS * ROUNDS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(live_side_by_side)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
