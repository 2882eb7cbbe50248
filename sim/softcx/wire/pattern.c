/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>

#include "gen.h"

static uint8_t pattern[CX_PATTERN_LEN + CX_PATTERN_MAX];

/* Numbers that look random, the same in every run. */
static void
fill(void)
{
	uint64_t x = UINT64_C(0x2545f4914f6cdd1d);

	for (size_t i = 0; i < sizeof(pattern); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		pattern[i] = (uint8_t)(x >> 32);
	}
}

const uint8_t *
cx_pattern(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fill);
	return pattern;
}
