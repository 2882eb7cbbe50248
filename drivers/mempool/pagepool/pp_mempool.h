/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * mempools on the page allocator.
 *
 * The drop-in: ops "pagepool" for any application, chosen with --mbuf-pool-ops-name=pagepool or
 * rte_mempool_set_ops_byname(mp, "pagepool", NULL or a struct pp_mempool_config), which is read
 * when the pool is first populated. A zone over the memory that DPDK gives the pool. In a pool
 * with cache_size 0 the page caches are the lcores' caches; below a mempool cache the ops use the
 * depot alone, so that nothing is hoarded twice.
 *
 * Page pools: pp_pktmbuf_pool_create(), a mempool over an arena of ours, one mbuf per 4-KiB page.
 */

#include <rte_mempool.h>

#include <pcp.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PP_MEMPOOL_OPS_NAME "pagepool"

struct pp_mempool_config {
	struct pcp_config pcp; /* `pages` and `max_order` are filled in */
	/* One object per 4-KiB page of the memory given, headers staggered, or DPDK's own layout.
	 */
	bool page_per_object;
};

/*
 * What a page has left for an mbuf's private area and data, headroom included, after the object's
 * header and the mbuf's 128 bytes.
 */
#define PP_PKTMBUF_ROOM_MAX (PP_PAGE_SIZE - RTE_MEMPOOL_ALIGN - 128)

struct pp_pktmbuf_config {
	enum pp_backend backend;
	size_t page_size;      /* of the arena; 0: 2 MiB, or 4 KiB with PP_BACKEND_ANON */
	struct pcp_config pcp; /* `pages` and `max_order` are filled in */
};

/*
 * A pktmbuf pool of n mbufs on pages of an arena of its own, mbuf headers staggered by what
 * data_room_size leaves of the page. priv_size and data_room_size as in rte_pktmbuf_pool_create(),
 * their sum at most PP_PKTMBUF_ROOM_MAX (EINVAL). PP_BACKEND_ANON only with IOVA mode VA (ENOTSUP).
 * Other errors are those of rte_mempool_create_empty() and pp_arena_create(), in rte_errno.
 * Its caches are the pool's only ones: the mempool has cache_size 0. `config` NULL: EAL's memory,
 * mode bh. Not for secondary processes. Release it with pp_pktmbuf_pool_free().
 */
struct rte_mempool *pp_pktmbuf_pool_create(const char *name, unsigned int n, uint16_t priv_size,
	uint16_t data_room_size, int socket_id, const struct pp_pktmbuf_config *config);

/* -EBUSY, and nothing done, while mbufs are in use, but for bad ones. NULL is ignored. */
int pp_pktmbuf_pool_free(struct rte_mempool *mp);

/* The caches below a pool with ops "pagepool"; NULL for other pools. */
struct pcp_cache *pp_mempool_cache(const struct rte_mempool *mp);

/*
 * Objects that checks have set aside: neither in the pool nor in use, though DPDK, which knows of
 * no third, counts them as in use. 0 for other pools.
 */
unsigned int pp_mempool_bad_count(const struct rte_mempool *mp);

/* Pool, zone and caches, for a person to read. */
void pp_mempool_dump(const struct rte_mempool *mp, FILE *f);

#ifdef __cplusplus
}
#endif
