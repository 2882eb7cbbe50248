/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtual clock, and the survey that tells it who is busy: time stands still for those who want
 * a processor and have none, and for nobody else.
 */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"
#include "wire/survey.h"

#define RING 256

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
		n += rig_take(&rig, &rx);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descheduled),
		cmocka_unit_test(worked),
		cmocka_unit_test(one_processor),
		cmocka_unit_test(lets_the_processor_go),
		cmocka_unit_test(starved),
		cmocka_unit_test(time_of_day),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
