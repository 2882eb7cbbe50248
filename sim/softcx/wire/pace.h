/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Frames in time: on the wire each takes its bytes and 20 more. */

#include <stdint.h>

#define CX_FCS_LEN       4
#define CX_WIRE_OVERHEAD 20 /* preamble 7, delimiter 1, gap 12 */

/* Cycles, with 32 bits of fraction, so that rates stay exact over days. */
struct cx_pace {
	uint64_t cycles;
	uint32_t fraction;
};

/* What a frame of `size` bytes (with FCS) takes at `rate` bit/s; zero: no time. */
static inline struct cx_pace
cx_pace_of(uint32_t size, uint64_t rate, uint64_t hz)
{
	struct cx_pace pace = {0, 0};

	if (rate != 0) {
		const unsigned __int128 bits = (unsigned __int128)(size + CX_WIRE_OVERHEAD) * 8;
		const unsigned __int128 fixed = (bits * hz << 32) / rate;

		pace.cycles = (uint64_t)(fixed >> 32);
		pace.fraction = (uint32_t)fixed;
	}
	return pace;
}

static inline void
cx_pace_add(struct cx_pace *at, const struct cx_pace *step)
{
	const uint64_t fraction = (uint64_t)at->fraction + step->fraction;

	at->cycles += step->cycles + (fraction >> 32);
	at->fraction = (uint32_t)fraction;
}
