/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What arena.c and the backends share. */

#include <rte_memzone.h>

#include "pagepool.h"

#define PP_SIZE_4K UINT64_C(0x1000)
#define PP_SIZE_2M UINT64_C(0x200000)
#define PP_SIZE_1G UINT64_C(0x40000000)

/* Lies in shared memory: no pointers to code or to this process's tables. */
struct pp_arena {
	void *addr;
	size_t len; /* a multiple of page_size */
	size_t page_size;
	int node; /* bound to, or PP_NODE_ANY */
	enum pp_backend backend;
	const struct rte_memzone *memzone; /* PP_BACKEND_MEMZONE */
	char name[RTE_MEMZONE_NAMESIZE];
};

/* `map` finds all fields but addr filled in and returns 0 or -errno, having logged why. */
struct arena_ops {
	const char *name;
	bool (*page_size_ok)(size_t page_size);
	int (*map)(struct pp_arena *arena);
	void (*unmap)(struct pp_arena *arena);
	bool eal_knows; /* it is EAL's own memory; other memory must be registered */
};

extern const struct arena_ops arena_memzone_ops;
extern const struct arena_ops arena_memfd_ops;
extern const struct arena_ops arena_anon_ops;

/* Bind fresh, untouched memory to the arena's node. 0 or -errno, logged. */
int arena_bind(const struct pp_arena *arena);

/*
 * Give every page its memory, without SIGBUS where there is none. 0 or -errno, not logged; -EINVAL
 * on kernels that cannot.
 */
int arena_populate(const struct pp_arena *arena);

/* Map every page by a first write to it. */
void arena_touch(const struct pp_arena *arena);

/* Log that hugepages ran short, and what to do about it. */
void arena_log_shortage(const struct pp_arena *arena, size_t pages);
