/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "survey.h"

#define SURVEY_NS    20000000
#define BUSY_PERCENT 50

/* A thread of the application, as seen last; its place is its own as long as it lives. */
struct thread {
	pid_t tid; /* 0: a free place */
	uint64_t used_ns, at_ns;
	bool busy, present;
};

struct cx_survey {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ends;
	bool end;
	const struct softcx_card *card;
	pid_t tid; /* its own thread's */
	struct thread places[CX_MAX_THREADS];
	pid_t busy[CX_MAX_THREADS]; /* by place; atomic; 0: not */
	unsigned int n_busy;        /* places to be looked at; atomic */
	uint32_t count;             /* of surveys; atomic */
};

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) != 0)
		return 0;
	return (uint64_t)ts.tv_sec * CX_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t
cx_thread_ns(pid_t tid)
{
	if (tid == 0)
		return clock_ns(CLOCK_THREAD_CPUTIME_ID);
	/* as pthread_getcpuclockid() has it, for a thread of which only the number is known */
	return clock_ns((clockid_t)(~(unsigned int)tid << 3 | 6));
}

/* A file of /proc about the thread, as a string; false: there is none. */
static bool
read_proc(pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);

	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	const ssize_t n = read(fd, text, size - 1);

	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool
cx_thread_is_runnable(pid_t tid, int *cpu)
{
	char stat[512];

	if (!read_proc(tid, "stat", stat, sizeof(stat)))
		return false;
	const char *at = strrchr(stat, ')');

	if (at == NULL || at[1] != ' ' || at[2] != 'R')
		return false;
	/* the name is the second field, the processor the 39th */
	for (int field = 2; field < 39 && at != NULL; field++)
		at = strchr(at + 1, ' ');
	*cpu = at != NULL ? (int)strtol(at, NULL, 10) : -1;
	return true;
}

/* ---- which threads ---- */

static struct thread *
place_of(struct cx_survey *survey, pid_t tid)
{
	struct thread *free_place = NULL;

	for (unsigned int i = 0; i < CX_MAX_THREADS; i++) {
		if (survey->places[i].tid == tid)
			return &survey->places[i];
		if (survey->places[i].tid == 0 && free_place == NULL)
			free_place = &survey->places[i];
	}
	if (free_place != NULL)
		*free_place = (struct thread){.tid = tid};
	return free_place;
}

static bool
is_ours(const struct cx_survey *survey, pid_t tid)
{
	for (unsigned int i = 0; i < survey->card->config.ports; i++)
		if (__atomic_load_n(&survey->card->port[i]->tid, __ATOMIC_RELAXED) == tid)
			return true;
	return tid == survey->tid;
}

/* Processor time that it had or waited for; the wait that still goes on is not in it. */
static uint64_t
used_ns(pid_t tid)
{
	char schedstat[64];
	const char *delay = NULL;

	if (read_proc(tid, "schedstat", schedstat, sizeof(schedstat)))
		delay = strchr(schedstat, ' ');
	return cx_thread_ns(tid) + (delay != NULL ? strtoull(delay, NULL, 10) : 0);
}

static void
survey_thread(struct cx_survey *survey, pid_t tid)
{
	struct thread *thread = is_ours(survey, tid) ? NULL : place_of(survey, tid);
	int cpu;

	if (thread == NULL)
		return;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), used = used_ns(tid);

	thread->present = true;
	if (thread->at_ns != 0)
		thread->busy =
			(used - thread->used_ns) * 100 > (now - thread->at_ns) * BUSY_PERCENT ||
			(thread->busy && cx_thread_is_runnable(tid, &cpu));
	thread->used_ns = used;
	thread->at_ns = now;
}

static void
look_around(struct cx_survey *survey)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int n = 0;

	if (dir == NULL)
		return;
	for (unsigned int i = 0; i < CX_MAX_THREADS; i++)
		survey->places[i].present = false;
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			survey_thread(survey, tid);
	}
	closedir(dir);
	for (unsigned int i = 0; i < CX_MAX_THREADS; i++) {
		struct thread *thread = &survey->places[i];

		if (!thread->present)
			thread->tid = 0;
		const bool busy = thread->tid != 0 && thread->busy;

		__atomic_store_n(&survey->busy[i], busy ? thread->tid : 0, __ATOMIC_RELAXED);
		if (busy)
			n = i + 1;
	}
	__atomic_store_n(&survey->n_busy, n, __ATOMIC_RELAXED);
	__atomic_store_n(&survey->count, survey->count + 1, __ATOMIC_RELAXED);
}

static void *
run(void *arg)
{
	struct cx_survey *survey = arg;

	survey->tid = gettid();
	pthread_mutex_lock(&survey->lock);
	while (!survey->end) {
		struct timespec until;

		pthread_mutex_unlock(&survey->lock);
		look_around(survey);
		pthread_mutex_lock(&survey->lock);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += SURVEY_NS;
		if (until.tv_nsec >= (long)CX_NS_PER_S) {
			until.tv_nsec -= (long)CX_NS_PER_S;
			until.tv_sec++;
		}
		if (!survey->end)
			pthread_cond_timedwait(&survey->ends, &survey->lock, &until);
	}
	pthread_mutex_unlock(&survey->lock);
	return NULL;
}

pid_t
cx_survey_busy(const struct cx_survey *survey, unsigned int place)
{
	return place < __atomic_load_n(&survey->n_busy, __ATOMIC_RELAXED)
		       ? __atomic_load_n(&survey->busy[place], __ATOMIC_RELAXED)
		       : 0;
}

uint32_t
cx_survey_count(const struct cx_survey *survey)
{
	return __atomic_load_n(&survey->count, __ATOMIC_RELAXED);
}

/* ---- birth and death ---- */

struct cx_survey *
cx_survey_create(const struct softcx_card *card)
{
	struct cx_survey *survey = cx_zalloc(sizeof(*survey));
	pthread_condattr_t monotonic;
	sigset_t all, before;
	int err;

	if (survey == NULL)
		return NULL;
	survey->card = card;
	pthread_mutex_init(&survey->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&survey->ends, &monotonic);
	pthread_condattr_destroy(&monotonic);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(&survey->thread, NULL, run, survey);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err != 0) {
		free(survey);
		return NULL;
	}
	pthread_setname_np(survey->thread, "softcx-watch");
	return survey;
}

void
cx_survey_destroy(struct cx_survey *survey)
{
	pthread_mutex_lock(&survey->lock);
	survey->end = true;
	pthread_cond_signal(&survey->ends);
	pthread_mutex_unlock(&survey->lock);
	pthread_join(survey->thread, NULL);
	pthread_mutex_destroy(&survey->lock);
	pthread_cond_destroy(&survey->ends);
	free(survey);
}
