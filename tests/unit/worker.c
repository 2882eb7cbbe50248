/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rte_lcore.h>

#include "unit.h"
#include "worker.h"

struct worker {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	void (*f)(void *arg); /* to be called, or being so */
	void *arg;
	unsigned int lcore;
	bool registered, ready, end, unregister;
};

static void *
run(void *arg)
{
	struct worker *worker = arg;
	cpu_set_t cpus;

	/* EAL has put its main thread, and so its children, on one. */
	memset(&cpus, 0xff, sizeof(cpus));
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	if (worker->registered && rte_thread_register() != 0)
		abort();
	pthread_mutex_lock(&worker->mutex);
	worker->lcore = rte_lcore_id();
	worker->ready = true;
	pthread_cond_broadcast(&worker->changed);
	for (;;) {
		while (worker->f == NULL && !worker->end)
			pthread_cond_wait(&worker->changed, &worker->mutex);
		if (worker->f == NULL)
			break;
		pthread_mutex_unlock(&worker->mutex);
		worker->f(worker->arg);
		pthread_mutex_lock(&worker->mutex);
		worker->f = NULL;
		pthread_cond_broadcast(&worker->changed);
	}
	pthread_mutex_unlock(&worker->mutex);
	if (worker->unregister)
		rte_thread_unregister();
	return NULL;
}

struct worker *
worker_start(bool registered)
{
	struct worker *worker = calloc(1, sizeof(*worker));

	assert_non_null(worker);
	worker->registered = registered;
	pthread_mutex_init(&worker->mutex, NULL);
	pthread_cond_init(&worker->changed, NULL);
	assert_int_equal(pthread_create(&worker->thread, NULL, run, worker), 0);
	pthread_mutex_lock(&worker->mutex);
	while (!worker->ready)
		pthread_cond_wait(&worker->changed, &worker->mutex);
	pthread_mutex_unlock(&worker->mutex);
	return worker;
}

void
worker_begin(struct worker *worker, void (*f)(void *arg), void *arg)
{
	pthread_mutex_lock(&worker->mutex);
	worker->f = f;
	worker->arg = arg;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->mutex);
}

void
worker_wait(struct worker *worker)
{
	pthread_mutex_lock(&worker->mutex);
	while (worker->f != NULL)
		pthread_cond_wait(&worker->changed, &worker->mutex);
	pthread_mutex_unlock(&worker->mutex);
}

void
worker_do(struct worker *worker, void (*f)(void *arg), void *arg)
{
	worker_begin(worker, f, arg);
	worker_wait(worker);
}

void
worker_end(struct worker *worker, bool unregister)
{
	pthread_mutex_lock(&worker->mutex);
	worker->end = true;
	worker->unregister = unregister;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->mutex);
	pthread_join(worker->thread, NULL);
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->mutex);
	free(worker);
}

unsigned int
worker_lcore(const struct worker *worker)
{
	return worker->lcore;
}
