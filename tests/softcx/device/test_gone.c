/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory vanishes under the device, and faults of the application stay the application's. */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

#define RING 256

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
static uint8_t *
map(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static uint32_t
register_page(struct rig *rig, uint8_t *page)
{
	return rig_mr_create(rig->port, page, 4096, (uintptr_t)page);
}

static void
wait_for(struct rig_cq *cq, uint8_t opcode, uint8_t syndrome)
{
	const struct mlx5_cqe64 *cqe;

	while ((cqe = rig_poll(cq)) == NULL)
		sched_yield();
	assert_int_equal(cqe->op_own >> 4, opcode);
	assert_int_equal(((const struct mlx5_err_cqe *)(const void *)cqe)->syndrome, syndrome);
}

enum how { TOLD, UNTOLD };

/* A receive buffer is unmapped; the device is told of it, or finds out by the fault. */
static void
rx_buffer_gone(void **state)
{
	const enum how how = *(const enum how *)*state;
	struct softcx_port_counters c;
	struct rig rig;
	struct rig_rx rx;
	uint8_t *page = map();

	rig_start_thread(&rig, SOFTCX_WIRE_GEN);
	const uint32_t lkey = register_page(&rig, page);
	const struct ibv_sge sge = {(uintptr_t)page, 2048, lkey};

	rig_rx_create(&rig, &rx, RING, 1, RING);
	if (how == TOLD)
		softcx_memory_gone(rig.card, page, 4096);
	munmap(page, 4096);
	rig_rq_write(&rx.rq, &sge, 1);
	rig_rq_ring(&rx.rq);
	wait_for(&rx.cq, MLX5_CQE_RESP_ERR, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	rig_cq_ack(&rx.cq);
	rig_counters(&rig, &c);
	assert_int_equal(c.faults, how == TOLD ? 0 : 1);
	/* and it goes on */
	rig_rq_ready(&rig, &rx.rq);
	rig_rq_post(&rig, &rx.rq, RING);
	rig_take_many(&rig, &rx, 1000);
	assert_int_equal(softcx_mr_destroy(rig.port, lkey), 0);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

static void
tx_buffer_gone(void **state)
{
	const enum how how = *(const enum how *)*state;
	struct rig rig;
	struct rig_cq cq;
	struct rig_sq sq;
	uint8_t *page = map();

	rig_start_thread(&rig, SOFTCX_WIRE_GEN); /* whose checker looks at the frames */
	const uint32_t lkey = register_page(&rig, page);

	rig_cq_create(&rig, &cq, 16);
	rig_sq_create(&rig, &sq, &cq, 16);
	rig_sq_ready(&rig, &sq);
	if (how == TOLD)
		softcx_memory_gone(rig.card, page, 4096);
	munmap(page, 4096);
	rig_sq_send(&sq, page, 60, lkey, RIG_CE_ALWAYS);
	wait_for(&cq, MLX5_CQE_REQ_ERR, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	assert_int_equal(softcx_mr_destroy(rig.port, lkey), 0);
	rig_sq_destroy(&rig, &sq);
	rig_cq_destroy(&rig, &cq);
	rig_end(&rig);
}

/*
 * Only what has gone is bad: the rest of the region serves on, and the CQEs of what came before in
 * the same burst are seen.
 */
static void
part_of_a_region_gone(void **state)
{
	const enum how how = *(const enum how *)*state;
	struct rig rig;
	struct rig_rx rx;

	rig_init(&rig);
	rig.config.stepped = false;
	rig.config.wire = SOFTCX_WIRE_GEN; /* unpaced: bursts */
	rig.config.streams = 8;
	rig_start(&rig);
	void *page = rig_buf(&rig, 10);

	if (how == TOLD)
		softcx_memory_gone(rig.card, page, RIG_BUF_SIZE);
	else
		assert_int_equal(mprotect(page, 2 * RIG_BUF_SIZE, PROT_NONE), 0);
	rig_rx_create(&rig, &rx, 16, 1, RING);
	rig_rq_post(&rig, &rx.rq, 16);
	for (int i = 0; i < 10; i++)
		while (rig_poll(&rx.cq) == NULL)
			sched_yield();
	wait_for(&rx.cq, MLX5_CQE_RESP_ERR, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	rig_rx_destroy(&rig, &rx);
	assert_int_equal(mprotect(page, 2 * RIG_BUF_SIZE, PROT_READ | PROT_WRITE), 0);
	rig_end(&rig);
}

/* A frame that ends where memory does: it is not sent, and not one that was looked at either. */
static void
part_of_a_frame_gone(void **state)
{
	struct softcx_port_counters c;
	struct rig rig;
	struct rig_rx rx;
	struct rig_cq cq;
	struct rig_sq sq;

	(void)state;
	rig_init(&rig);
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.payload = SOFTCX_PAYLOAD_FULL;
	rig.config.frame[0] = 1518;
	rig.config.packets = 1;
	rig_start(&rig);
	void *page = rig_buf(&rig, 10);
	uint8_t *frame = rig_buf(&rig, 10) - RIG_BUF_SIZE / 4;
	const struct ibv_sge sge = {(uintptr_t)frame, 1514, rig.lkey};

	rig_rx_create(&rig, &rx, 16, 1, RING);
	rig_cq_create(&rig, &cq, 16);
	rig_sq_create(&rig, &sq, &cq, 16);
	rig_sq_ready(&rig, &sq);
	rig_rq_write(&rx.rq, &sge, 1);
	rig_rq_ring(&rx.rq);
	rig_run(&rig);
	rig_expect(&rx.cq, MLX5_CQE_RESP_SEND, 0);
	assert_int_equal(mprotect(page, 2 * RIG_BUF_SIZE, PROT_NONE), 0);
	rig_sq_send(&sq, frame, 1514, rig.lkey, RIG_CE_ALWAYS);
	rig_run(&rig);
	rig_expect_error(&cq, MLX5_CQE_REQ_ERR, 0, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	assert_int_equal(mprotect(page, 2 * RIG_BUF_SIZE, PROT_READ | PROT_WRITE), 0);
	rig_counters(&rig, &c);
	assert_int_equal(c.faults, 1);
	assert_int_equal(c.tx_packets, 0);
	assert_int_equal(c.checker.packets, 0);
	rig_sq_destroy(&rig, &sq);
	rig_cq_destroy(&rig, &cq);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* The rings themselves: no CQE can tell, an event does. */
static void
rings_gone(void **state)
{
	const enum how how = *(const enum how *)*state;
	struct softcx_port_counters c;
	enum ibv_wq_state wq_state;
	struct rig rig;
	struct rig_rx rx;
	uint8_t *ring = map(), *cqes = map();
	uint32_t wqn, cqn;

	rig_start_thread(&rig, SOFTCX_WIRE_GEN);
	rig_rx_create(&rig, &rx, RING, 1, RING);
	const struct softcx_cq_attr cq_attr = {
		.buf = cqes, .dbrec = rx.cq.dbrec, .cqe_count = 64, .cqe_size = 64, .cookie = cqes};

	assert_int_equal(softcx_cq_create(rig.port, &cq_attr, &cqn), 0);
	const struct softcx_wq_attr wq_attr = {.pd = RIG_PD,
		.cqn = cqn,
		.buf = ring,
		.dbrec = rx.rq.dbrec,
		.wqe_count = 256,
		.log_stride = 4,
		.cookie = ring};

	assert_int_equal(softcx_wq_create(rig.port, &wq_attr, &wqn), 0);
	assert_int_equal(softcx_wq_modify(rig.port, wqn, IBV_WQS_RDY), 0);
	if (how == TOLD) {
		softcx_memory_gone(rig.card, ring, 4096);
		assert_int_equal(rig.last_event, IBV_EVENT_WQ_FATAL);
		assert_ptr_equal(rig.last_cookie, ring);
		softcx_memory_gone(rig.card, cqes, 4096);
		assert_int_equal(rig.last_event, IBV_EVENT_CQ_ERR);
		assert_ptr_equal(rig.last_cookie, cqes);
		munmap(ring, 4096);
		munmap(cqes, 4096);
	} else {
		munmap(ring, 4096);
		assert_int_equal(softcx_wq_modify(rig.port, wqn, IBV_WQS_ERR), 0); /* reads it */
		rx.rq.pi = 1;
		rig_rq_ring(&rx.rq);
		do
			rig_counters(&rig, &c);
		while (c.faults == 0);
		munmap(cqes, 4096);
	}
	assert_int_equal(softcx_wq_query(rig.port, wqn, &wq_state), 0);
	assert_int_equal(wq_state, IBV_WQS_ERR);
	assert_int_equal(softcx_wq_destroy(rig.port, wqn), 0);
	assert_int_equal(softcx_cq_destroy(rig.port, cqn), 0);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* ---- the application's own faults ---- */

static volatile sig_atomic_t seen;
static sigjmp_buf resume;

static void
application_handler(int signum)
{
	seen = signum;
	siglongjmp(resume, 1);
}

static void
handler_of_the_application(void **state)
{
	const struct sigaction act = {.sa_handler = application_handler};
	struct sigaction before, old;
	volatile uint8_t *page = map();
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	rig_start_thread(&rig, SOFTCX_WIRE_GEN);
	rig_rx_create(&rig, &rx, RING, 1, RING);
	rig_rq_post(&rig, &rx.rq, RING);
	assert_int_equal(softcx_guard_sigaction(SIGSEGV, &act, &before), 0);
	assert_int_equal(softcx_guard_sigaction(SIGSEGV, NULL, &old), 0);
	assert_ptr_equal(old.sa_handler, application_handler);
	munmap((void *)(uintptr_t)page, 4096);
	if (sigsetjmp(resume, 1) == 0)
		*page = 1;
	assert_int_equal(seen, SIGSEGV);
	assert_int_equal(softcx_guard_sigaction(SIGSEGV, &before, NULL), 0);
	assert_int_equal(softcx_guard_sigaction(SIGINT, &before, NULL), -1);
	/* the device runs on */
	rig_take_many(&rig, &rx, 1000);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

#ifndef SANITIZED /* which has a handler */
/* The signal that ends a child of this process that does so. */
static int
signal_that_ends(void (*child)(void))
{
	struct rig rig;
	int status;

	rig_start_thread(&rig, SOFTCX_WIRE_SINK);
	fflush(NULL);
	const pid_t pid = fork();

	if (pid == 0) {
		alarm(10);
		child();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	rig_end(&rig);
	return WTERMSIG(status);
}

static void
fault_by_default(void)
{
	const struct sigaction none = {.sa_handler = SIG_DFL}; /* cmocka has one */
	volatile uint8_t *page = map();

	softcx_guard_sigaction(SIGSEGV, &none, NULL);
	munmap((void *)(uintptr_t)page, 4096);
	*page = 1;
}

static void
note_once(int signum, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	if (seen == signum)
		_exit(1);
	seen = signum;
}

static void
raise_with_a_handler_for_one(void)
{
	const struct sigaction none = {.sa_handler = SIG_DFL};
	const struct sigaction once = {
		.sa_sigaction = note_once, .sa_flags = SA_SIGINFO | (int)SA_RESETHAND};

	softcx_guard_sigaction(SIGSEGV, &none, NULL);
	softcx_guard_sigaction(SIGBUS, &once, NULL);
	raise(SIGBUS);
	if (seen != SIGBUS)
		_exit(1);
	raise(SIGBUS);
}
#endif

/* Without a handler of its own, a fault ends the application as ever. */
static void
no_handler_of_the_application(void **state)
{
	(void)state;
#ifdef SANITIZED
	skip();
#else
	assert_int_equal(signal_that_ends(fault_by_default), SIGSEGV);
	assert_int_equal(signal_that_ends(raise_with_a_handler_for_one), SIGBUS);
#endif
}

int
main(void)
{
	static enum how told = TOLD, untold = UNTOLD;
	const struct CMUnitTest tests[] = {
		{"rx buffer gone, told", rx_buffer_gone, NULL, NULL, &told},
		{"rx buffer gone, untold", rx_buffer_gone, NULL, NULL, &untold},
		{"tx buffer gone, told", tx_buffer_gone, NULL, NULL, &told},
		{"tx buffer gone, untold", tx_buffer_gone, NULL, NULL, &untold},
		{"part of a region gone, told", part_of_a_region_gone, NULL, NULL, &told},
		{"part of a region gone, untold", part_of_a_region_gone, NULL, NULL, &untold},
		cmocka_unit_test(part_of_a_frame_gone),
		{"rings gone, told", rings_gone, NULL, NULL, &told},
		{"rings gone, untold", rings_gone, NULL, NULL, &untold},
		cmocka_unit_test(handler_of_the_application),
		cmocka_unit_test(no_handler_of_the_application),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
