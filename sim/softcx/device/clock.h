/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Time in cycles of the processor's invariant counter. */

#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define CX_NS_PER_S UINT64_C(1000000000)

static inline uint64_t
cx_cycles(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
#error "no cycle counter known here"
#endif
}

/* Measured once, against the kernel's raw clock. */
uint64_t cx_clock_hz(void);

static inline uint64_t
cx_cycles_to_ns(uint64_t cycles, uint64_t hz)
{
	return (uint64_t)((unsigned __int128)cycles * CX_NS_PER_S / hz);
}

static inline uint64_t
cx_ns_to_cycles(uint64_t ns, uint64_t hz)
{
	return (uint64_t)((unsigned __int128)ns * hz / CX_NS_PER_S);
}
