/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The few atomic operations and the one lock that pagelane uses. All shared words go through here,
 * so that ThreadSanitizer and the compiler see them; on x86 every load and store below is a plain
 * instruction. Included through pagepool.h.
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_pause.h>

#define pp_load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define pp_load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define pp_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define pp_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define pp_exchange(p, v)      __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define pp_fetch_add(p, v)     __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define pp_fetch_or(p, v)      __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define pp_fetch_and(p, v)     __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)

/* Keeps the compiler, not the processor, from moving accesses across it. */
#define pp_compiler_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/*
 * A test-and-test-and-set lock. The word is 32 bits wide and released by a plain store: a byte
 * would defeat store forwarding in an uncontended lock/unlock pair.
 */
struct pp_lock {
	uint32_t held;
};

static inline bool
pp_trylock(struct pp_lock *lock)
{
	return pp_load_relaxed(&lock->held) == 0 &&
	       __atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE) == 0;
}

/* Returns true when the lock had to be waited for, so that contention can be counted. */
static inline bool
pp_lock(struct pp_lock *lock)
{
	if (likely(__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE) == 0))
		return false;
	/* The holder may be descheduled: a control thread on the CPU that this one spins on. */
	for (uint32_t spins = 1; !pp_trylock(lock); spins++) {
		if (spins % 1024 != 0)
			rte_pause();
		else
			sched_yield();
	}
	return true;
}

static inline void
pp_unlock(struct pp_lock *lock)
{
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}
