/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "watch.h"

#define MAX_THREADS    64 /* looked at */
#define MAX_BUSY       16 /* watched by the device */
#define SURVEY_NS      20000000
#define BUSY_PERCENT   50
#define LOOK_NS        15000 /* between two looks of a device's thread */
#define TOLERANCE_NS   1000  /* between two kinds of clocks */
#define ABSENT_PERCENT 75    /* of that time: it is not running now either, most likely */

struct thread {
	pid_t tid; /* 0: a free slot */
	uint64_t cpu_ns, at_ns;
	bool busy, present;
};

/* What a device's thread saw last. */
struct look {
	uint64_t at; /* cycles */
	pid_t tid[MAX_BUSY];
	uint64_t cpu_ns[MAX_BUSY];
	uint64_t stood; /* cycles since that the device's time stood still already */
	uint64_t debt;  /* cycles that passed for the device and not for the application */
	bool stalled;   /* until the next look time stands still */
} __attribute__((aligned(CX_LINE)));

struct cx_watch {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ends;
	bool end;
	uint64_t hz, look_cycles, tolerance;
	struct thread threads[MAX_THREADS];
	pid_t busy[MAX_BUSY]; /* atomic; 0: none */
	struct look look[SOFTCX_MAX_PORTS];
};

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) != 0)
		return 0;
	return (uint64_t)ts.tv_sec * CX_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* As pthread_getcpuclockid() has it, for a thread of which only the number is known. */
static clockid_t
cpu_clock(pid_t tid)
{
	return (clockid_t)(~(unsigned int)tid << 3 | 6);
}

/* ---- which threads ---- */

static struct thread *
slot_of(struct cx_watch *watch, pid_t tid)
{
	struct thread *free_slot = NULL;

	for (unsigned int i = 0; i < MAX_THREADS; i++) {
		if (watch->threads[i].tid == tid)
			return &watch->threads[i];
		if (watch->threads[i].tid == 0 && free_slot == NULL)
			free_slot = &watch->threads[i];
	}
	if (free_slot != NULL)
		*free_slot = (struct thread){.tid = tid};
	return free_slot;
}

static bool
is_ours(pid_t tid)
{
	char path[64], name[16] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);

	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return true; /* gone */
	const ssize_t n = read(fd, name, sizeof(name) - 1);

	close(fd);
	return n >= 6 && memcmp(name, "softcx", 6) == 0;
}

static void
survey_thread(struct cx_watch *watch, pid_t tid)
{
	struct thread *thread = is_ours(tid) ? NULL : slot_of(watch, tid);

	if (thread == NULL)
		return;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(cpu_clock(tid));

	thread->present = true;
	if (thread->at_ns != 0)
		thread->busy =
			(cpu - thread->cpu_ns) * 100 > (now - thread->at_ns) * BUSY_PERCENT ||
			/* as one that was kept from running cannot show that it wants to */
			(thread->busy && (cpu - thread->cpu_ns) * 100 > (now - thread->at_ns) * 5);
	thread->cpu_ns = cpu;
	thread->at_ns = now;
}

static void
survey(struct cx_watch *watch)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int n = 0;

	if (dir == NULL)
		return;
	for (unsigned int i = 0; i < MAX_THREADS; i++)
		watch->threads[i].present = false;
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			survey_thread(watch, tid);
	}
	closedir(dir);
	for (unsigned int i = 0; i < MAX_THREADS; i++) {
		struct thread *thread = &watch->threads[i];

		if (!thread->present)
			thread->tid = 0;
		if (thread->tid != 0 && thread->busy && n < MAX_BUSY)
			__atomic_store_n(&watch->busy[n++], thread->tid, __ATOMIC_RELAXED);
	}
	for (; n < MAX_BUSY; n++)
		__atomic_store_n(&watch->busy[n], 0, __ATOMIC_RELAXED);
}

static void *
run(void *arg)
{
	struct cx_watch *watch = arg;

	pthread_mutex_lock(&watch->lock);
	while (!watch->end) {
		struct timespec until;

		pthread_mutex_unlock(&watch->lock);
		survey(watch);
		pthread_mutex_lock(&watch->lock);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += SURVEY_NS;
		if (until.tv_nsec >= (long)CX_NS_PER_S) {
			until.tv_nsec -= (long)CX_NS_PER_S;
			until.tv_sec++;
		}
		if (!watch->end)
			pthread_cond_timedwait(&watch->ends, &watch->lock, &until);
	}
	pthread_mutex_unlock(&watch->lock);
	return NULL;
}

/* ---- whether they run ---- */

/* Wants a processor: one that sleeps does so of its own will. */
static bool
is_runnable(pid_t tid)
{
	char path[64], stat[128];

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);

	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	const ssize_t n = read(fd, stat, sizeof(stat) - 1);

	close(fd);
	stat[n > 0 ? n : 0] = '\0';
	const char *name_end = strrchr(stat, ')');

	return name_end != NULL && name_end[1] == ' ' && name_end[2] == 'R';
}

/* For how long of the time since the last look a thread that wanted to run did not. */
static uint64_t
look(struct cx_watch *watch, struct look *last, uint64_t cycles)
{
	const uint64_t passed = cycles - last->at;
	uint64_t most = 0;

	for (unsigned int i = 0; i < MAX_BUSY; i++) {
		const pid_t tid = __atomic_load_n(&watch->busy[i], __ATOMIC_RELAXED);

		if (tid == 0) {
			last->tid[i] = 0;
			continue;
		}
		const uint64_t cpu_ns = clock_ns(cpu_clock(tid));
		const uint64_t ran = cx_ns_to_cycles(cpu_ns - last->cpu_ns[i], watch->hz);
		const uint64_t absent = passed > ran + watch->tolerance ? passed - ran : 0;

		if (tid == last->tid[i] && absent > most && is_runnable(tid))
			most = absent;
		last->tid[i] = tid;
		last->cpu_ns[i] = cpu_ns;
	}
	last->stalled = most > passed / 100 * ABSENT_PERCENT;
	last->at = cycles;
	return most;
}

uint64_t
cx_watch_absent(
	struct cx_watch *watch, unsigned int port, uint64_t cycles, uint64_t took, uint64_t stood)
{
	struct look *last = &watch->look[port];
	uint64_t more = 0;

	last->stood += stood;
	if (unlikely(cycles - last->at >= watch->look_cycles)) {
		const uint64_t absent = look(watch, last, cycles);

		if (absent > last->stood)
			last->debt += absent - last->stood;
		last->stood = 0;
	}
	if (last->stalled) {
		more = took - stood;
		last->stood += more;
	} else if (last->debt > 0) {
		more = took - stood < last->debt ? took - stood : last->debt;
		last->debt -= more;
	}
	return more;
}

bool
cx_watch_is_ready(const struct cx_watch *watch)
{
	return __atomic_load_n(&watch->busy[0], __ATOMIC_RELAXED) != 0;
}

/* ---- birth and death ---- */

struct cx_watch *
cx_watch_create(struct softcx_card *card)
{
	struct cx_watch *watch = aligned_alloc(CX_LINE, sizeof(*watch));
	sigset_t all, before;
	int err;

	if (watch == NULL)
		return NULL;
	memset(watch, 0, sizeof(*watch));
	watch->hz = card->hz;
	watch->tolerance = cx_ns_to_cycles(TOLERANCE_NS, card->hz);
	watch->look_cycles = cx_ns_to_cycles(LOOK_NS, card->hz);
	pthread_mutex_init(&watch->lock, NULL);
	pthread_cond_init(&watch->ends, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(&watch->thread, NULL, run, watch);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err != 0) {
		free(watch);
		return NULL;
	}
	pthread_setname_np(watch->thread, "softcx-watch");
	return watch;
}

void
cx_watch_destroy(struct cx_watch *watch)
{
	if (watch == NULL)
		return;
	pthread_mutex_lock(&watch->lock);
	watch->end = true;
	pthread_cond_signal(&watch->ends);
	pthread_mutex_unlock(&watch->lock);
	pthread_join(watch->thread, NULL);
	pthread_mutex_destroy(&watch->lock);
	pthread_cond_destroy(&watch->ends);
	free(watch);
}
