/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks in shared memory, whose holder may be killed. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pp_internal.h"

/* A hold lasts a few microseconds. Who spins longer has a descheduled holder, or a dead one. */
#define SPINS_BEFORE_YIELD   1024
#define YIELDS_BEFORE_A_LOOK 16

uint32_t pp_self;

static void
know_self(void)
{
	pp_self = (uint32_t)getpid();
}

static void __attribute__((constructor)) lock_init(void)
{
	know_self();
	pthread_atfork(NULL, NULL, know_self);
}

/*
 * A zombie still has its pid. /proc/PID/stat tells, after the name in parentheses: the state, and
 * 17 fields on the number of threads. A process whose main thread has ended is none while others
 * run.
 */
static bool
is_zombie(uint32_t pid)
{
	char path[32], stat[512], state;
	long threads;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	if (n <= 0)
		return false;
	stat[n] = '\0';
	const char *name_end = strrchr(stat, ')');

	return name_end != NULL &&
	       sscanf(name_end + 1,
		       " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
		       &state, &threads) == 2 &&
	       (state == 'Z' || state == 'X') && threads <= 1;
}

bool
pp_process_is_dead(uint32_t pid)
{
	return (kill((pid_t)pid, 0) != 0 && errno == ESRCH) || is_zombie(pid);
}

bool
pp_lock_inherit(struct pp_lock *lock)
{
	uint32_t holder = pp_load_relaxed(&lock->holder);

	return holder != 0 && holder != pp_self && pp_process_is_dead(holder) &&
	       __atomic_compare_exchange_n(
		       &lock->holder, &holder, pp_self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

bool
pp_lock_wait(struct pp_lock *lock)
{
	bool inherited = false;

	for (uint32_t spins = 1; !pp_trylock(lock); spins++) {
		if (spins % SPINS_BEFORE_YIELD != 0) {
			rte_pause();
			continue;
		}
		sched_yield();
		if (spins % (SPINS_BEFORE_YIELD * YIELDS_BEFORE_A_LOOK) != 0)
			continue;
		inherited = pp_lock_inherit(lock);
		if (inherited)
			break;
	}
	lock->contended++;
	return inherited;
}
