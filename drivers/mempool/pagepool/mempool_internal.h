/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the files of the mempool driver share. */

#include <rte_log.h>

#include "pp_mempool.h"

extern int pp_mempool_logtype;

#define MEMPOOL_LOG(level, fmt, ...)                                                               \
	rte_log(RTE_LOG_##level, pp_mempool_logtype, "mempool pagepool: " fmt "\n", ##__VA_ARGS__)

/* One more whenever anything changes that processes share: of pools, zones, caches or depots. */
#define PP_MEMPOOL_GENERATION UINT64_C(3)

/*
 * What a process must agree about before it touches a pool: a secondary process of another binary
 * may take another driver's pool for ours, or have been built from other sources or with other
 * limits.
 */
#define PP_MEMPOOL_LAYOUT                                                                          \
	(UINT64_C(0x7061670000000000) | PP_MEMPOOL_GENERATION << 32 | RTE_MAX_LCORE << 12 |        \
		sizeof(struct pcp))

/* In place of the layout while objects become known to the zone by runs, not by enqueue. */
#define PP_MEMPOOL_POPULATING UINT64_C(1)

/* In place of the layout while drivers recycle pages: enqueue looks at marks. */
#define PP_MEMPOOL_RECYCLING (PP_MEMPOOL_LAYOUT | UINT64_C(1) << 63)

struct pp_recycler;

/* mp->pool_data: in shared memory, and valid in every process at the same address. */
struct pp_mempool {
	uint64_t layout;
	struct pp_zone *zone;
	struct pcp_cache *cache;
	struct pp_arena *arena;       /* of page pools; NULL for memory that is not ours */
	bool depot_only;              /* the mempool has a cache of its own */
	bool page_per_object;         /* one object per 4-KiB page, staggered */
	struct pp_recycler *recycler; /* NULL while nobody has recycled */
};

/* ops.c: start anew with an empty zone, for a pool that has no objects. */
int pp_mempool_reset(struct rte_mempool *mp);

/* populate.c: two of the ops. */
int pp_mempool_populate(struct rte_mempool *mp, unsigned int max_objs, void *vaddr, rte_iova_t iova,
	size_t len, rte_mempool_populate_obj_cb_t *obj_cb, void *obj_cb_arg);
ssize_t pp_mempool_calc_mem_size(const struct rte_mempool *mp, uint32_t obj_num, uint32_t pg_shift,
	size_t *min_chunk_size, size_t *align);

/*
 * recycle.c: what enqueue does first with pages that drivers recycle. Returns how many are for the
 * pool, and which in `rest`.
 */
unsigned int pp_recycle_put(
	struct pp_recycler *recycler, void *const *objs, unsigned int n, void **rest);
void pp_recycle_free(struct pp_recycler *recycler);
