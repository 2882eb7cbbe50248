/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The few atomic operations and the one lock that pagelane uses. All shared words go through here,
 * so that ThreadSanitizer and the compiler see them; on x86 every load and store below is a plain
 * instruction. Included through pagepool.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_pause.h>

/*
 * Built with PP_STALLS, a test's pp_stall() runs before every access to a shared word, and may hold
 * its thread up there: two processors then meet interleavings that would take many.
 */
#ifdef PP_STALLS
void pp_stall(void);
#elif !defined(pp_stall)
#define pp_stall() ((void)0)
#endif

#define pp_load_relaxed(p)         (pp_stall(), __atomic_load_n((p), __ATOMIC_RELAXED))
#define pp_load_acquire(p)         (pp_stall(), __atomic_load_n((p), __ATOMIC_ACQUIRE))
#define pp_store_relaxed(p, v)     (pp_stall(), __atomic_store_n((p), (v), __ATOMIC_RELAXED))
#define pp_store_release(p, v)     (pp_stall(), __atomic_store_n((p), (v), __ATOMIC_RELEASE))
#define pp_exchange(p, v)          (pp_stall(), __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL))
#define pp_fetch_add(p, v)         (pp_stall(), __atomic_fetch_add((p), (v), __ATOMIC_RELAXED))
#define pp_sub_fetch(p, v)         (pp_stall(), __atomic_sub_fetch((p), (v), __ATOMIC_ACQ_REL))
#define pp_fetch_add_release(p, v) (pp_stall(), __atomic_fetch_add((p), (v), __ATOMIC_RELEASE))
#define pp_fetch_or(p, v)          (pp_stall(), __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL))
#define pp_fetch_and(p, v)         (pp_stall(), __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL))

/* Keeps the compiler, not the processor, from moving accesses across it. */
#define pp_compiler_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/*
 * A test-and-test-and-set lock that survives its holder: the word is the holder's process id, so
 * that others can tell when it died with the lock. 32 bits wide and released by a plain store: a
 * byte would defeat store forwarding in an uncontended lock/unlock pair. Zeroed memory is a free
 * lock.
 */
struct pp_lock {
	uint32_t holder;    /* pid; 0 when free */
	uint32_t contended; /* holds that had to be waited for; written by the holder */
};

/* This process, as locks know it. */
extern uint32_t pp_self;

/*
 * Whether `pid` has ended, be it as a zombie that nobody has waited for. All processes that share
 * memory must share one PID namespace.
 */
bool pp_process_is_dead(uint32_t pid);

/* Take a lock from a process that died holding it; false when there is none such. */
bool pp_lock_inherit(struct pp_lock *lock);

/* The waiting half of pp_lock(). */
bool pp_lock_wait(struct pp_lock *lock);

/* Of a lock that is probably free: its line crosses the cores once, not to be read first. */
static inline bool
pp_lock_grab(struct pp_lock *lock)
{
	uint32_t nobody = 0;

	pp_stall();
	return __atomic_compare_exchange_n(
		&lock->holder, &nobody, pp_self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline bool
pp_trylock(struct pp_lock *lock)
{
	return pp_load_relaxed(&lock->holder) == 0 && pp_lock_grab(lock);
}

/*
 * True when the lock was inherited from a process that died holding it: what the lock guards may
 * be half changed, and must be repaired.
 */
static inline bool
pp_lock(struct pp_lock *lock)
{
	return likely(pp_lock_grab(lock)) ? false : pp_lock_wait(lock);
}

static inline void
pp_unlock(struct pp_lock *lock)
{
	pp_store_release(&lock->holder, 0);
}
