/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Subjects: who is measured. A subject is a line in the table of subjects.c; its calls are the ways
 * to ask it for objects, and each call comes with loops.h's measured loops around it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mempool.h>

#include <pcp.h>

/* Objects that a cache holds on each side: 512 in a mempool's, two magazines of 256 in a pcp. */
#define CACHE_SIZE 512

/* Tests as bits, for the table. */
enum test_bit {
	TEST_TIME = 1u << 0,
	TEST_PAGES = 1u << 1,
	TEST_KMALLOC = 1u << 2,
	TEST_PIPELINE = 1u << 3,
	TEST_CONTEND = 1u << 4,
	TEST_LATENCY = 1u << 5,
	TEST_TOUCH = 1u << 6,
};

/* What the loops hold in registers; filled on the lcore that runs them. */
struct handles {
	struct pcp *pcp;
	struct pcp_cache *cache;
	struct pp_zone *zone;
	struct rte_mempool *mempool;
	struct rte_mempool_cache *mempool_cache;
	struct array *array;
	size_t size;
	uint32_t order;
	uint32_t delay;
};

/* What a run wants of each subject. */
struct need {
	uint32_t lcores;  /* at most, at once */
	uint32_t objects; /* live at once, on each of them */
	uint32_t pages;   /* the same in pages, and on all of them */
	uint32_t size;    /* bytes that the test touches; 0: only addresses move */
	uint32_t colours; /* where pages are staggered */
	uint32_t delay;   /* core cycles, of subject "delay" */
};

/* Pages, or objects, at the end. */
struct tally {
	uint64_t given, free;
	bool valid; /* lists and counts agree */
};

struct subject;

/* Life of a subject's state, in the process that measures it. */
struct backend {
	void *(*open)(const struct subject *subject, const struct need *need); /* NULL: rte_errno */
	void (*lend)(void *state, struct handles *handles);
	void (*close)(void *state, struct tally *tally);
	bool counts; /* close() fills the zeroed tally */
};

struct loops;

struct call {
	const char *api;                 /* single, nested, bulk */
	const char *call;                /* public, handle; NULL: no such difference */
	const struct loops *loops;       /* at order 0 */
	const struct loops *loops_order; /* at other orders; NULL: none */
};

struct subject {
	const char *name;  /* family, and what sets it apart in the family, with '/' */
	const char *title; /* column heading */
	int mode;          /* enum pcp_mode; -1 */
	enum pcp_checks checks;
	uint32_t tests;
	uint32_t max_order;
	uint32_t min_size, max_size; /* of kmalloc; max_size 0: any */
	const struct backend *backend;
	const struct call *calls;
	uint32_t n_calls;
	const char
		*library; /* to be preloaded into a process of its own; "": that process's malloc */
	const char *package; /* where it comes from */
	const char *ops;     /* of a mempool */
	uint32_t cache_size; /* of a mempool */
	bool coloured;       /* staggers its pages */
	bool on_demand;      /* only when it is named */
	bool one_lcore;      /* unsafe, or pointless, with more */
};

extern const struct subject subjects[];
extern const uint32_t n_subjects;

extern const struct backend pagepool_backend, zone_backend, mempool_backend, array_backend,
	heap_backend;
extern const struct call pagepool_calls[], pagepool_irq_calls[], pagepool_cpu_calls[], zone_calls[],
	mempool_calls[], floor_calls[], empty_calls[], delay_calls[], rte_malloc_calls[],
	malloc_calls[];
extern const struct call operation_calls[], mempool_stv_calls[];

/* The operations of test `time`, which are subjects of one call each. */
enum operation {
	OPERATION_LOOP,
	OPERATION_SPINLOCK,
	OPERATION_SPINLOCK_IRQ,
	OPERATION_PP_LOCK,
	OPERATION_BH,
	OPERATION_IRQ,
	OPERATION_SIGMASK,
	OPERATION_RSEQ,
	OPERATION_CALL,
	OPERATION_POINTER,
	N_OPERATIONS,
};

#define PAGEPOOL_CALLS     5
#define PAGEPOOL_CPU_CALLS 4
#define ZONE_CALLS         2
#define MEMPOOL_CALLS      4
#define FLOOR_CALLS        2
#define EMPTY_CALLS        2

/* "pagepool/bh", "pagepool/bh/deferred". */
const char *subject_name(const struct subject *subject, char name[64]);

/* Whether `word` is its name, or the name's part before a '/'. */
bool subject_matches(const struct subject *subject, const char *word);

/* The index of the subject of that name. */
uint32_t subject_find(const char *name);
