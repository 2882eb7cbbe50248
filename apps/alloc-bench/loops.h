/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The measured loops. Each is written once, over a table of operations that is known when it is
 * compiled: LOOPS() makes one function per loop and call in which the operations are inlined, and
 * no call is indirect. docs/man/alloc-bench.1 describes the machine code.
 *
 * Between two operations the compiler knows nothing of the object or of memory (USE), and an object
 * goes through the table that a user keeps his objects in.
 */

#include <sched.h>

#include <rte_cycles.h>
#include <rte_pause.h>
#include <rte_ring.h>

#include <histogram.h>

#include "subject.h"

#define USE(object) __asm__ volatile("" : "+r"(object) : : "memory")

/* A failed wait for the other lcore; the two may share a processor. */
#define SPINS_BEFORE_YIELD 1000

struct work {
	struct handles handles;
	void **table;                /* the live objects */
	uint32_t n;                  /* objects to be live at once, or per burst */
	uint32_t burst;              /* objects per bulk call, at most */
	uint32_t failed;             /* passes that did not get n objects */
	struct rte_ring *ring;       /* to the other lcore */
	struct histogram *histogram; /* of alloc, of free */
	uint64_t cycles[2];          /* of alloc, of free */
};

/* `passes` times n objects. */
typedef void loop_fn(struct work *work, uint32_t passes);

struct loops {
	loop_fn *pair, *split, *latency, *produce, *consume, *take, *give;
};

struct ops {
	bool bulk; /* the second two, not the first */
	void *(*get)(const struct handles *h);
	void (*put)(const struct handles *h, void *object);
	int (*get_bulk)(const struct handles *h, void **objects, uint32_t n); /* 0: all n */
	void (*put_bulk)(const struct handles *h, void *const *objects, uint32_t n);
	void (*enter)(const struct handles *h);
	void (*leave)(const struct handles *h);
};

/* Nothing moves across it, neither in the compiler nor in the processor. */
static __rte_always_inline uint64_t
clock_read(void)
{
#ifdef RTE_ARCH_X86
	__builtin_ia32_lfence();
	const uint64_t now = rte_rdtsc();
	__builtin_ia32_lfence();
	return now;
#else
	return rte_rdtsc_precise();
#endif
}

/* n objects into `table`; how many there were. */
static __rte_always_inline uint32_t
take(const struct ops *ops, const struct handles *h, void **table, uint32_t n, uint32_t burst)
{
	uint32_t i;

	if (!ops->bulk) {
		for (i = 0; i < n; i++) {
			void *object = ops->get(h);

			if (unlikely(object == NULL))
				break;
			USE(object);
			table[i] = object;
		}
		return i;
	}
	for (i = 0; i < n; i += burst) {
		if (unlikely(ops->get_bulk(h, &table[i], RTE_MIN(burst, n - i)) != 0))
			return i;
		rte_compiler_barrier();
	}
	return n;
}

static __rte_always_inline void
give(const struct ops *ops, const struct handles *h, void **table, uint32_t n, uint32_t burst)
{
	if (!ops->bulk) {
		for (uint32_t i = 0; i < n; i++) {
			void *object = table[i];

			USE(object);
			ops->put(h, object);
		}
		return;
	}
	for (uint32_t i = 0; i < n; i += burst) {
		ops->put_bulk(h, &table[i], RTE_MIN(burst, n - i));
		rte_compiler_barrier();
	}
}

static __rte_always_inline void
enter(const struct ops *ops, const struct handles *h)
{
	if (ops->enter != NULL)
		ops->enter(h);
}

static __rte_always_inline void
leave(const struct ops *ops, const struct handles *h)
{
	if (ops->leave != NULL)
		ops->leave(h);
}

/* Allocate n, free n; the clock is outside. */
static __rte_always_inline void
loop_pair(const struct ops *ops, struct work *work, uint32_t passes)
{
	const struct handles h = work->handles;
	void **const table = work->table;
	const uint32_t n = work->n, burst = work->burst;
	uint32_t failed = 0;

	while (passes-- > 0) {
		enter(ops, &h);
		const uint32_t got = take(ops, &h, table, n, burst);

		failed += got != n;
		give(ops, &h, table, got, burst);
		leave(ops, &h);
	}
	work->failed += failed;
}

/* The same with the clock read between the two. */
static __rte_always_inline void
loop_split(const struct ops *ops, struct work *work, uint32_t passes)
{
	const struct handles h = work->handles;
	void **const table = work->table;
	const uint32_t n = work->n, burst = work->burst;
	uint64_t alloc = 0, free = 0;
	uint32_t failed = 0;

	while (passes-- > 0) {
		const uint64_t start = clock_read();

		enter(ops, &h);
		const uint32_t got = take(ops, &h, table, n, burst);
		const uint64_t middle = clock_read();

		failed += got != n;
		give(ops, &h, table, got, burst);
		leave(ops, &h);
		free += clock_read() - middle;
		alloc += middle - start;
	}
	work->cycles[0] += alloc;
	work->cycles[1] += free;
	work->failed += failed;
}

/* And around each call. */
static __rte_always_inline void
loop_latency(const struct ops *ops, struct work *work, uint32_t passes)
{
	const struct handles h = work->handles;
	void **const table = work->table;
	const uint32_t n = work->n, step = ops->bulk ? work->burst : 1;
	uint32_t i, got;
	uint64_t start;

	while (passes-- > 0) {
		enter(ops, &h);
		for (i = 0; i < n; i += got) {
			start = clock_read();
			got = take(ops, &h, &table[i], RTE_MIN(step, n - i), step);
			histogram_add(&work->histogram[0], clock_read() - start);
			if (unlikely(got == 0)) {
				work->failed++;
				break;
			}
		}
		const uint32_t live = i;

		for (i = 0; i < live; i += step) {
			start = clock_read();
			give(ops, &h, &table[i], RTE_MIN(step, live - i), step);
			histogram_add(&work->histogram[1], clock_read() - start);
		}
		leave(ops, &h);
	}
}

static __rte_always_inline void
wait_a_little(uint32_t *spins)
{
	if (++*spins % SPINS_BEFORE_YIELD == 0)
		sched_yield();
	rte_pause();
}

/* Bursts of n to the other lcore. */
static __rte_always_inline void
loop_produce(const struct ops *ops, struct work *work, uint32_t passes)
{
	const struct handles h = work->handles;
	void **const table = work->table;
	const uint32_t n = work->n, burst = work->burst;
	uint32_t spins = 0;

	while (passes-- > 0) {
		uint32_t got = 0;

		for (;;) {
			enter(ops, &h);
			got += take(ops, &h, &table[got], n - got, burst);
			leave(ops, &h);
			if (likely(got == n))
				break;
			wait_a_little(&spins);
		}
		while (rte_ring_sp_enqueue_bulk(work->ring, table, n, NULL) == 0)
			wait_a_little(&spins);
	}
}

/* What the other lcore sends, until it was `passes` bursts. */
static __rte_always_inline void
loop_consume(const struct ops *ops, struct work *work, uint32_t passes)
{
	const struct handles h = work->handles;
	void **const table = work->table;
	const uint32_t n = work->n, burst = work->burst;
	uint32_t spins = 0;

	while (passes > 0) {
		if (rte_ring_sc_dequeue_bulk(work->ring, table, n, NULL) == 0) {
			wait_a_little(&spins);
			continue;
		}
		enter(ops, &h);
		give(ops, &h, table, n, burst);
		leave(ops, &h);
		passes--;
	}
}

static __rte_always_inline void
loop_take(const struct ops *ops, struct work *work)
{
	const struct handles h = work->handles;
	uint32_t got;

	enter(ops, &h);
	got = take(ops, &h, work->table, work->n, work->burst);
	leave(ops, &h);
	if (got != work->n)
		work->failed++;
	work->n = got;
}

static __rte_always_inline void
loop_give(const struct ops *ops, struct work *work)
{
	const struct handles h = work->handles;

	enter(ops, &h);
	give(ops, &h, work->table, work->n, work->burst);
	leave(ops, &h);
}

#define LOOP(name, loop)                                                                           \
	static __rte_noinline void name##_##loop(struct work *work, uint32_t passes)               \
	{                                                                                          \
		loop_##loop(&name##_ops, work, passes);                                            \
	}

/* `static const struct loops name`, of the operations given as initializers of struct ops. */
#define LOOPS(name, ...)                                                                           \
	static const struct ops name##_ops = {__VA_ARGS__};                                        \
	LOOP(name, pair)                                                                           \
	LOOP(name, split)                                                                          \
	LOOP(name, latency)                                                                        \
	LOOP(name, produce)                                                                        \
	LOOP(name, consume)                                                                        \
	static void name##_take(struct work *work, uint32_t passes __rte_unused)                   \
	{                                                                                          \
		loop_take(&name##_ops, work);                                                      \
	}                                                                                          \
	static void name##_give(struct work *work, uint32_t passes __rte_unused)                   \
	{                                                                                          \
		loop_give(&name##_ops, work);                                                      \
	}                                                                                          \
	static const struct loops name = {name##_pair, name##_split, name##_latency,               \
		name##_produce, name##_consume, name##_take, name##_give}
