/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the device shares with software: words in memory of either, read with acquire and written
 * with release, and hints to the processor. Composed words of CQEs and WQEs are those of a
 * little-endian host, which all that DPDK's mlx5 driver runs on are.
 */

#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER != __LITTLE_ENDIAN
#error "CQEs are composed for little-endian hosts"
#endif

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define CX_COLD     __attribute__((noinline, cold)) /* out of the way of what is done per packet */

#define CX_LINE       64
#define CX_LINE_PAIRS 128 /* processors fetch the neighbour, too */

/*
 * Zeroed memory for free(), in lines of its own: what the application has from the same heap, and
 * writes to, shall not share them with what the device looks at for each packet. NULL: none.
 */
static inline void *
cx_zalloc(size_t size)
{
	size = (size + CX_LINE_PAIRS - 1) / CX_LINE_PAIRS * CX_LINE_PAIRS;

	void *p = aligned_alloc(CX_LINE_PAIRS, size);

	return p != NULL ? memset(p, 0, size) : NULL;
}

static inline uint32_t
cx_load_be32(const uint32_t *p)
{
	return be32toh(__atomic_load_n(p, __ATOMIC_ACQUIRE));
}

static inline uint64_t
cx_load_be64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

static inline void
cx_prefetch(const void *p)
{
	__builtin_prefetch(p, 0, 3);
}

/* Into this processor's cache and out of all others: to be written. */
static inline void
cx_prefetch_write(const void *p)
{
#if defined(__x86_64__)
	/* compilers fall back to a reading prefetch for processors that may lack this one */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1, 3);
#endif
}

static inline void
cx_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}
