/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device on a thread of its own: objects go while it runs, memory vanishes under it, and faults
 * of the application stay the application's.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"
#include "wire/survey.h"

#define RING 256

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

static void
start(struct rig *rig, enum softcx_wire wire)
{
	rig_init(rig);
	rig->config.stepped = false;
	rig->config.wire = wire;
	rig->config.rate = 1000000000;
	rig->config.streams = 8;
	rig_start(rig);
}

/* Software: takes what came, gives the buffers back. How many there were. */
static unsigned int
take(struct rig *rig, struct rig_rx *rx)
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

static void
take_many(struct rig *rig, struct rig_rx *rx, unsigned int n)
{
	while (n > 0) {
		const unsigned int got = take(rig, rx);

		if (got == 0)
			sched_yield();
		n -= got < n ? got : n;
	}
}

static void
forwards(void **state)
{
	struct softcx_port_counters c;
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	start(&rig, SOFTCX_WIRE_GEN);
	rig_rx_create(&rig, &rx, RING, 1, RING);
	rig_rq_post(&rig, &rx.rq, RING);
	take_many(&rig, &rx, 100000);
	rig_rx_destroy(&rig, &rx);
	rig_counters(&rig, &c);
	assert_true(c.rx_packets >= 100000);
	assert_true(c.run_ns > 0);
	rig_end(&rig);
}

/* Everything goes and comes again while frames come in: what was freed is not touched any more. */
static void
destroyed_while_running(void **state)
{
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	start(&rig, SOFTCX_WIRE_GEN);
	for (int i = 0; i < 50; i++) {
		rig_rx_create(&rig, &rx, RING, 1, RING);
		rig_rq_post(&rig, &rx.rq, RING);
		take_many(&rig, &rx, 100);
		rig_rx_destroy(&rig, &rx);
	}
	rig_end(&rig);
}

static void
reset_while_running(void **state)
{
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	start(&rig, SOFTCX_WIRE_GEN);
	rig_rx_create(&rig, &rx, RING, 1, RING);
	rig_rq_post(&rig, &rx.rq, RING);
	for (int i = 0; i < 50; i++) {
		take_many(&rig, &rx, 100);
		assert_int_equal(softcx_wq_modify(rig.port, rx.rq.wqn, IBV_WQS_RESET), 0);
		/* at rest: nothing comes from here on */
		while (rig_poll(&rx.cq) != NULL)
			;
		rig_cq_ack(&rx.cq);
		rig_rq_ready(&rig, &rx.rq);
		rig_rq_post(&rig, &rx.rq, RING);
	}
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* Queries are consistent at any moment. */
static void *
ask(void *arg)
{
	struct rig *rig = arg;
	struct softcx_port_counters c;

	for (int i = 0; i < 2000; i++) {
		rig_counters(rig, &c);
		rig_assert_conserved(&c);
	}
	return NULL;
}

static void
queried_while_running(void **state)
{
	struct rig rig;
	struct rig_rx rx;
	pthread_t thread[2];

	(void)state;
	start(&rig, SOFTCX_WIRE_GEN);
	rig.config.clock = SOFTCX_CLOCK_VIRTUAL;
	rig_rx_create(&rig, &rx, RING, 1, RING);
	rig_rq_post(&rig, &rx.rq, RING);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, &rig), 0);
	take_many(&rig, &rx, 2000);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* The device comes late now and then; nothing is lost that is not counted. */
static void
random_delays(void **state)
{
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	rig_init(&rig);
	rig.config.stepped = false;
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.delay_us = 500;
	rig.config.clock = SOFTCX_CLOCK_VIRTUAL;
	rig_start(&rig);
	rig_rx_create(&rig, &rx, RING, 1, RING);
	rig_rq_post(&rig, &rx.rq, RING);
	take_many(&rig, &rx, 50000);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

static uint64_t
cpu_ns(void)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Time in which the device does not run passes by a real clock, and not by a virtual one. */
static void
descheduled(void **state)
{
	const struct timespec away = {0, 20000000};
	struct softcx_port_counters c;
	struct rig rig;

	(void)state;
	for (enum softcx_clock clock = SOFTCX_CLOCK_REAL; clock <= SOFTCX_CLOCK_VIRTUAL; clock++) {
		rig_init(&rig);
		rig.config.clock = clock;
		rig_start(&rig);
		const uint64_t before = cpu_ns();

		softcx_port_step(rig.port);
		rig_counters(&rig, &c);
		const uint64_t run = c.run_ns;

		nanosleep(&away, NULL);
		softcx_port_step(rig.port);
		rig_counters(&rig, &c);
		if (clock == SOFTCX_CLOCK_VIRTUAL) {
			assert_true(c.stall_ns + (c.run_ns - run) >= 20000000);
			assert_true(c.run_ns - run <= cpu_ns() - before);
		} else {
			assert_int_equal(c.stall_ns, 0);
			assert_true(c.run_ns - run >= 20000000);
		}
		rig_end(&rig);
	}
}

/* Of a completion channel's: on the device's thread, whose turn it makes a long one. */
static void
work(void *cookie)
{
	const uint64_t until = cpu_ns() + 20000000;

	(void)cookie;
	while (cpu_ns() < until)
		;
}

/* A turn may be long because there was much to do: a virtual clock leaves out none of that. */
static void
worked(void **state)
{
	struct softcx_port_counters c;
	struct rig_sq sq;
	struct rig rig;
	struct rig_cq cq;

	(void)state;
	rig_init(&rig);
	rig.config.clock = SOFTCX_CLOCK_VIRTUAL;
	rig_start(&rig);
	rig_cq_create(&rig, &cq, 16);
	assert_int_equal(softcx_cq_destroy(rig.port, cq.cqn), 0);
	const struct softcx_cq_attr attr = {.buf = cq.buf,
		.dbrec = cq.dbrec,
		.cqe_count = 16,
		.cqe_size = 64,
		.completion = work};

	assert_int_equal(softcx_cq_create(rig.port, &attr, &cq.cqn), 0);
	rig_sq_create(&rig, &sq, &cq, 16);
	rig_sq_ready(&rig, &sq);
	rig_cq_arm(&cq, 1, 0);
	rig_run(&rig);
	rig_counters(&rig, &c);
	const uint64_t run = c.run_ns;

	rig_sq_send(&sq, rig_buf(&rig, 0), 60, rig.lkey, RIG_CE_ALWAYS);
	rig_run(&rig);
	rig_counters(&rig, &c);
	assert_int_equal(c.events, 1);
	assert_true(c.run_ns - run >= 20000000);
	rig_sq_destroy(&rig, &sq);
	rig_cq_destroy(&rig, &cq);
	rig_end(&rig);
}

/* This thread, and those that it makes, share a processor from here on. */
static void
stay_here(cpu_set_t *before)
{
	cpu_set_t one;

	assert_int_equal(sched_getaffinity(0, sizeof(*before), before), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

/*
 * The device and busy software on one processor: each waits for the other all the time, and a
 * virtual clock that waited for both would stand still for ever.
 */
static void
one_processor(void **state)
{
	struct softcx_port_counters c;
	cpu_set_t before;
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	stay_here(&before);
	rig_init(&rig);
	rig.config.stepped = false;
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.rate = 100000000;
	rig.config.clock = SOFTCX_CLOCK_VIRTUAL;
	rig_start(&rig); /* its threads inherit the processor */
	rig_rx_create(&rig, &rx, RING, 1, RING);
	rig_rq_post(&rig, &rx.rq, RING);
	for (unsigned int n = 0; n < 40000;) /* never yields, and so is soon known to be busy */
		n += take(&rig, &rx);
	rig_counters(&rig, &c);
	assert_true(c.run_ns >= 250000000); /* what the frames took on the wire */
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* The device lets the processor go, to software that works: that is none of its absences. */
static void
lets_the_processor_go(void **state)
{
	struct softcx_port_counters c;
	cpu_set_t before;
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	stay_here(&before);
	rig_init(&rig);
	rig.config.stepped = false;
	rig.config.clock = SOFTCX_CLOCK_VIRTUAL;
	rig.config.yield = true;
	rig_start(&rig);
	rig_rx_create(&rig, &rx, RING, 1, RING); /* a reason to run */
	rig_counters(&rig, &c);
	const uint64_t run = c.run_ns, stalled = c.stall_ns;

	for (unsigned int turn = 0; turn < 20; turn++) {
		work(NULL);
		sched_yield();
	}
	rig_counters(&rig, &c);
	/* what else ran on the machine, and when it had to stop for it, leaves it most */
	assert_true(c.stall_ns - stalled < 8 * (c.run_ns - run));
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

#define HOGS 7

static void *
spin(void *arg)
{
	while (__atomic_load_n((bool *)arg, __ATOMIC_RELAXED))
		;
	return NULL;
}

static pid_t
hog(void)
{
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(60); /* should the test end before */
		for (;;)
			;
	}
	return pid;
}

/* A thread that seldom gets the processor that it wants is busy nevertheless. */
static void
starved(void **state)
{
	const time_t until = time(NULL) + 20;
	cpu_set_t before;
	struct cx_survey *survey;
	bool spins = true, found = false;
	pid_t hogs[HOGS];
	pthread_t thread;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	rig_start(&rig);
	stay_here(&before);
	for (unsigned int i = 0; i < HOGS; i++)
		hogs[i] = hog();
	assert_int_equal(pthread_create(&thread, NULL, spin, &spins), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	survey = cx_survey_create(rig.card);
	assert_non_null(survey);
	/* this thread sleeps: the one that is found spins */
	while (!found && time(NULL) < until) {
		usleep(10000);
		for (unsigned int i = 0; i < CX_MAX_THREADS; i++)
			found |= cx_survey_busy(survey, i) != 0;
	}
	cx_survey_destroy(survey);
	__atomic_store_n(&spins, false, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < HOGS; i++) {
		kill(hogs[i], SIGKILL);
		assert_int_equal(waitpid(hogs[i], NULL, 0), hogs[i]);
	}
	pthread_join(thread, NULL);
	rig_end(&rig);
	assert_true(found);
}

static bool set_back; /* the machine's time, by an hour, once it was read */

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int
__wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	const int err = __real_clock_gettime(clock, ts);

	if (clock == CLOCK_REALTIME && __atomic_load_n(&set_back, __ATOMIC_RELAXED))
		ts->tv_sec += 3600;
	return err;
}

/* Threads are looked at as often whatever is done to the time of day. */
static void
time_of_day(void **state)
{
	const time_t until = time(NULL) + 20;
	struct cx_survey *survey;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	rig_start(&rig);
	__atomic_store_n(&set_back, true, __ATOMIC_RELAXED);
	survey = cx_survey_create(rig.card);
	assert_non_null(survey);
	while (cx_survey_count(survey) < 3 && time(NULL) < until)
		usleep(10000);
	__atomic_store_n(&set_back, false, __ATOMIC_RELAXED);
	assert_true(cx_survey_count(survey) >= 3);
	cx_survey_destroy(survey);
	rig_end(&rig);
}

/* ---- memory that goes ---- */

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

	start(&rig, SOFTCX_WIRE_GEN);
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
	take_many(&rig, &rx, 1000);
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

	start(&rig, SOFTCX_WIRE_GEN); /* whose checker looks at the frames */
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

	start(&rig, SOFTCX_WIRE_GEN);
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
	start(&rig, SOFTCX_WIRE_GEN);
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
	take_many(&rig, &rx, 1000);
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

	start(&rig, SOFTCX_WIRE_SINK);
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
		cmocka_unit_test(forwards),
		cmocka_unit_test(destroyed_while_running),
		cmocka_unit_test(reset_while_running),
		cmocka_unit_test(queried_while_running),
		cmocka_unit_test(random_delays),
		cmocka_unit_test(descheduled),
		cmocka_unit_test(worked),
		cmocka_unit_test(one_processor),
		cmocka_unit_test(lets_the_processor_go),
		cmocka_unit_test(starved),
		cmocka_unit_test(time_of_day),
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
