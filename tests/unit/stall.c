/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a library built with PP_STALLS does before every access to a shared word: mostly nothing,
 * sometimes it waits a little, or lets others run.
 */

#include <sched.h>
#include <stdint.h>
#include <time.h>

#include <pp_atomic.h>

static __thread uint32_t state;

/* xorshift32: each thread its own sequence, as it starts from where its variable lies. */
static uint32_t
next(void)
{
	uint32_t x = state != 0 ? state : (uint32_t)((uintptr_t)&state >> 4) | 1;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return state = x;
}

void
pp_stall(void)
{
	const uint32_t dice = next();

	if (dice % 256 != 0)
		return;
	if (dice % 16384 == 0) {
		const struct timespec moment = {.tv_nsec = 20000};

		nanosleep(&moment, NULL);
	} else if (dice % 2048 == 0) {
		sched_yield();
	} else {
		for (uint32_t spins = dice >> 20 & 255; spins > 0; spins--)
			rte_pause();
	}
}
