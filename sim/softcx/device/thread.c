/* SPDX-License-Identifier: BSD-3-Clause */
/* The port's thread, its quiescent point, and its manners when there is nothing to do. */

#include <errno.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"
#include "turn.h"

#define IDLE_YIELD_NS 20000 /* on a single processor: whoever we wait for needs it */
#define IDLE_SLEEP_NS 2000000
#define NAP_NS        50000
#define DELAY_ONE_IN  4096 /* turns, with random delays */

void
cx_port_hold(struct softcx_port *port)
{
	struct cx_hold *hold = &port->hold;

	pthread_mutex_lock(&hold->control);
	if (!port->running)
		return;
	pthread_mutex_lock(&hold->lock);
	__atomic_store_n(&hold->asked, 1, __ATOMIC_RELEASE);
	pthread_cond_signal(&hold->go); /* it may be waiting for a queue to look at */
	while (!hold->resting)
		pthread_cond_wait(&hold->rested, &hold->lock);
	pthread_mutex_unlock(&hold->lock);
}

void
cx_port_release(struct softcx_port *port)
{
	struct cx_hold *hold = &port->hold;

	if (port->running) {
		pthread_mutex_lock(&hold->lock);
		__atomic_store_n(&hold->asked, 0, __ATOMIC_RELEASE);
		hold->resting = false;
		pthread_cond_signal(&hold->go);
		pthread_mutex_unlock(&hold->lock);
	}
	pthread_mutex_unlock(&hold->control);
}

/* At rest while somebody asks for it, or there is nothing to look at; false: it is the end. */
static bool
rest(struct softcx_port *port)
{
	struct cx_hold *hold = &port->hold;
	bool end;

	pthread_mutex_lock(&hold->lock);
	for (;;) {
		const bool asked = __atomic_load_n(&hold->asked, __ATOMIC_ACQUIRE) != 0;

		if (hold->end || (!asked && cx_turn_needed(port)))
			break;
		if (asked && !hold->resting) {
			hold->resting = true;
			pthread_cond_signal(&hold->rested);
		}
		pthread_cond_wait(&hold->go, &hold->lock);
	}
	end = hold->end;
	pthread_mutex_unlock(&hold->lock);
	port->rested = true;
	return !end;
}

static void
nap(struct softcx_port *port, uint64_t ns)
{
	const struct timespec ts = {(time_t)(ns / CX_NS_PER_S), (long)(ns % CX_NS_PER_S)};

	nanosleep(&ts, NULL);
	port->asleep += cx_ns_to_cycles(ns, port->card->hz);
}

static void
be_idle(struct softcx_port *port, bool only_cpu)
{
	const uint64_t idle = port->cycles - port->idle_since, hz = port->card->hz;

	cx_pause();
	if (idle > cx_ns_to_cycles(IDLE_SLEEP_NS, hz)) {
		nap(port, NAP_NS);
	} else if (only_cpu && idle > cx_ns_to_cycles(IDLE_YIELD_NS, hz)) {
		sched_yield();
	}
}

/* Others have the processor for as long as they like, and time goes on meanwhile. */
static void
yield_to_others(struct softcx_port *port)
{
	const uint64_t before = cx_cycles();

	sched_yield();
	port->asleep += cx_cycles() - before;
}

static void
maybe_delay(struct softcx_port *port)
{
	const unsigned int max = port->card->config.delay_us;

	if (cx_random(port) % DELAY_ONE_IN == 0)
		nap(port, cx_random(port) % (max * UINT64_C(1000)) + 1);
}

static bool
is_only_cpu(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) == 1;
}

static void *
run(void *arg)
{
	struct softcx_port *port = arg;
	const unsigned int delay = port->card->config.delay_us;
	const bool yield = port->card->config.yield;
	const bool only_cpu = port->card->config.device_cpu < 0 && is_only_cpu();

	__atomic_store_n(&port->tid, gettid(), __ATOMIC_RELAXED);
	cx_fault_guard(port);
	if (sigsetjmp(port->fault_env, 0) != 0)
		cx_fault_recover(port);
	for (;;) {
		if (__atomic_load_n(&port->hold.asked, __ATOMIC_ACQUIRE) != 0 ||
			unlikely(!cx_turn_needed(port))) {
			if (!rest(port))
				break;
		}
		cx_turn_time(port);
		if (cx_turn(port) || port->stalls)
			port->idle_since = port->cycles;
		else
			be_idle(port, only_cpu);
		if (unlikely(delay > 0))
			maybe_delay(port);
		if (unlikely(yield))
			yield_to_others(port);
	}
	cx_fault_unguard();
	return NULL;
}

int
cx_port_start(struct softcx_port *port)
{
	const int cpu = port->card->config.device_cpu;
	pthread_attr_t attr;
	sigset_t all, before;
	int err;

	err = pthread_attr_init(&attr);
	if (err != 0)
		return -err;
	if (cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((size_t)cpu + port->index, &set);
		err = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	}
	/* signals are for the application's threads; a fault that is blocked ends the process */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	port->cycles = cx_cycles();
	port->rested = true;
	port->running = true;
	if (err == 0)
		err = pthread_create(&port->thread, &attr, run, port);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (err != 0)
		port->running = false;
	else
		pthread_setname_np(port->thread, "softcx");
	return -err;
}

void
cx_port_stop(struct softcx_port *port)
{
	if (!port->running)
		return;
	pthread_mutex_lock(&port->hold.control);
	pthread_mutex_lock(&port->hold.lock);
	port->hold.end = true;
	__atomic_store_n(&port->hold.asked, 1, __ATOMIC_RELEASE);
	pthread_cond_signal(&port->hold.go);
	pthread_mutex_unlock(&port->hold.lock);
	pthread_join(port->thread, NULL);
	port->running = false;
	pthread_mutex_unlock(&port->hold.control);
}
