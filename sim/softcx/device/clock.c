/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>
#include <time.h>

#include "clock.h"

#define MEASURE_NS UINT64_C(10000000)

static uint64_t hz;

static uint64_t
raw_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * CX_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* A pair of readings of both clocks; of several tries the one that was interrupted least. */
static void
read_both(uint64_t *ns, uint64_t *cycles)
{
	uint64_t best = UINT64_MAX;

	*ns = *cycles = 0;
	for (int i = 0; i < 16; i++) {
		const uint64_t before = cx_cycles(), t = raw_ns(), took = cx_cycles() - before;

		if (took < best) {
			best = took;
			*ns = t;
			*cycles = before + took / 2;
		}
	}
}

static void
measure(void)
{
	uint64_t ns[2], cycles[2];

	read_both(&ns[0], &cycles[0]);
	while (raw_ns() - ns[0] < MEASURE_NS)
		;
	read_both(&ns[1], &cycles[1]);
	hz = (uint64_t)((unsigned __int128)(cycles[1] - cycles[0]) * CX_NS_PER_S / (ns[1] - ns[0]));
}

uint64_t
cx_clock_hz(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, measure);
	return hz;
}
