/* SPDX-License-Identifier: BSD-3-Clause */
/* The mempool ops "pagepool". */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "mempool_internal.h"
#include "pp_recycle.h"

#define PUT_AT_ONCE 64 /* objects that may have marks */

RTE_LOG_REGISTER(pp_mempool_logtype, mempool.pagepool, NOTICE);

/* A zone and its caches in place of what the pool has had; that stays when there is no memory. */
static int
renew_zone(struct rte_mempool *mp, struct pp_mempool *pool, struct pcp_config config)
{
	struct pp_zone *zone = pp_zone_create(mp->name, mp->socket_id, PP_MAX_ORDER);

	if (zone == NULL)
		return -rte_errno;
	char owner[PP_OWNER_LEN];

	snprintf(owner, sizeof(owner), "mempool %s", mp->name);
	pp_zone_set_owner(zone, owner);
	config.pages = mp->size;
	config.max_order = 0;
	struct pcp_cache *cache = pcp_cache_create(zone, &config);

	if (cache == NULL) {
		pp_zone_abandon(zone);
		return -rte_errno;
	}
	if (pool->zone != NULL) {
		pcp_cache_destroy(pool->cache);
		pp_zone_abandon(pool->zone);
	}
	pool->zone = zone;
	pool->cache = cache;
	return 0;
}

int
pp_mempool_reset(struct rte_mempool *mp)
{
	struct pp_mempool *pool = mp->pool_data;
	struct pcp_config config;

	pcp_cache_get_config(pool->cache, &config);
	return renew_zone(mp, pool, config);
}

static int
pagepool_alloc(struct rte_mempool *mp)
{
	const struct pp_mempool_config *asked = mp->pool_config;
	struct pp_mempool *pool =
		rte_zmalloc_socket("pp_mempool", sizeof(*pool), RTE_CACHE_LINE_SIZE, mp->socket_id);

	if (pool == NULL) {
		rte_errno = ENOMEM;
		return -ENOMEM;
	}
	pool->layout = PP_MEMPOOL_LAYOUT;
	pool->depot_only = mp->cache_size > 0;
	pool->page_per_object = asked != NULL && asked->page_per_object;
	const int rc = renew_zone(mp, pool, asked != NULL ? asked->pcp : (struct pcp_config){0});

	if (rc != 0) {
		rte_free(pool);
		return rc;
	}
	mp->pool_data = pool;
	return 0;
}

static int
refuse(const struct rte_mempool *mp)
{
	static uint32_t told;

	if (pp_exchange(&told, 1) == 0)
		MEMPOOL_LOG(ERR,
			"%s was made by another driver or build; use the same binary and plugins, "
			"in the same order, in all processes",
			mp->name);
	return -EINVAL;
}

static bool
is_ours(const struct pp_mempool *pool)
{
	return pool->layout == PP_MEMPOOL_LAYOUT || pool->layout == PP_MEMPOOL_POPULATING ||
	       pool->layout == PP_MEMPOOL_RECYCLING;
}

/* rte_mempool_free() has dequeued every object it could get, and their memory is gone. */
static void
pagepool_free(struct rte_mempool *mp)
{
	struct pp_mempool *pool = mp->pool_data;

	if (pool == NULL)
		return;
	if (!is_ours(pool)) {
		refuse(mp);
		return;
	}
	pcp_cache_destroy(pool->cache);
	pp_zone_abandon(pool->zone);
	pp_recycle_free(pool->recycler);
	pp_arena_destroy(pool->arena);
	rte_free(pool);
}

/* The cache to use: NULL for threads without an lcore id, and below a mempool cache. */
static __rte_always_inline struct pcp *
pcp_for(const struct pp_mempool *pool)
{
	return pool->depot_only ? NULL : pcp_this(pool->cache);
}

static __rte_always_inline void
give_back(const struct pp_mempool *pool, void *const *objs, unsigned int n)
{
	struct pcp *pcp = pcp_for(pool);

	if (unlikely(pcp == NULL))
		pcp_depot_free_bulk(pool->cache, 0, objs, n);
	else if (n == 1) /* drivers free transmitted mbufs one by one */
		pcp_free(pcp, objs[0]);
	else
		pcp_free_bulk(pcp, objs, n);
}

/*
 * Drivers recycle pages of this pool; or objects enter the zone by runs, not by enqueue; or the
 * pool is not one of ours.
 */
static int
enqueue_special(const struct rte_mempool *mp, void *const *objs, unsigned int n)
{
	const struct pp_mempool *pool = mp->pool_data;
	void *rest[PUT_AT_ONCE];

	/* After it comes the recycler, which another lcore may just have attached. */
	const uint64_t layout = pp_load_acquire(&pool->layout);

	if (layout == PP_MEMPOOL_POPULATING)
		return 0;
	if (layout != PP_MEMPOOL_RECYCLING)
		return refuse(mp);
	while (n > 0) {
		const unsigned int part = RTE_MIN(n, (unsigned int)PUT_AT_ONCE);
		const unsigned int n_rest = pp_recycle_put(pool->recycler, objs, part, rest);

		if (n_rest > 0)
			give_back(pool, rest, n_rest);
		objs += part;
		n -= part;
	}
	return 0;
}

static int
pagepool_enqueue(struct rte_mempool *mp, void *const *objs, unsigned int n)
{
	const struct pp_mempool *pool = mp->pool_data;

	if (unlikely(pp_load_relaxed(&pool->layout) != PP_MEMPOOL_LAYOUT))
		return enqueue_special(mp, objs, n);
	give_back(pool, objs, n);
	return 0;
}

static int
pagepool_dequeue(struct rte_mempool *mp, void **objs, unsigned int n)
{
	const struct pp_mempool *pool = mp->pool_data;
	/* Another lcore may just make it one that recycles. */
	const uint64_t layout = pp_load_relaxed(&pool->layout);

	if (unlikely(layout != PP_MEMPOOL_LAYOUT) && layout != PP_MEMPOOL_RECYCLING)
		return refuse(mp);
	struct pcp *pcp = pcp_for(pool);
	const int rc = pcp != NULL ? pcp_alloc_bulk(pcp, objs, n)
				   : pcp_depot_alloc_bulk(pool->cache, 0, objs, n);

	return likely(rc == 0) ? 0 : -ENOBUFS;
}

static unsigned int
pagepool_get_count(const struct rte_mempool *mp)
{
	const struct pp_mempool *pool = mp->pool_data;

	if (unlikely(!is_ours(pool))) {
		refuse(mp);
		return 0;
	}
	return (unsigned int)pcp_cache_free_pages(pool->cache);
}

static const struct rte_mempool_ops pagepool_ops = {
	.name = PP_MEMPOOL_OPS_NAME,
	.alloc = pagepool_alloc,
	.free = pagepool_free,
	.enqueue = pagepool_enqueue,
	.dequeue = pagepool_dequeue,
	.get_count = pagepool_get_count,
	.calc_mem_size = pp_mempool_calc_mem_size,
	.populate = pp_mempool_populate,
};

RTE_MEMPOOL_REGISTER_OPS(pagepool_ops);

static const struct pp_mempool *
pool_of(const struct rte_mempool *mp)
{
	const struct pp_mempool *pool = mp->pool_data;

	if (strcmp(rte_mempool_get_ops(mp->ops_index)->name, PP_MEMPOOL_OPS_NAME) != 0 ||
		pool == NULL || !is_ours(pool))
		return NULL;
	return pool;
}

struct pcp_cache *
pp_mempool_cache(const struct rte_mempool *mp)
{
	const struct pp_mempool *pool = pool_of(mp);

	return pool != NULL ? pool->cache : NULL;
}

unsigned int
pp_mempool_bad_count(const struct rte_mempool *mp)
{
	const struct pp_mempool *pool = pool_of(mp);

	return pool != NULL ? (unsigned int)pp_zone_bad_pages(pool->zone) : 0;
}

void
pp_mempool_dump(const struct rte_mempool *mp, FILE *f)
{
	const struct pp_mempool *pool = pool_of(mp);

	if (pool == NULL) {
		fprintf(f, "mempool %s: not on ops " PP_MEMPOOL_OPS_NAME "\n", mp->name);
		return;
	}
	fprintf(f, "mempool %s: %u objects of %u bytes, %s, caches: %s\n", mp->name, mp->size,
		mp->elt_size, pool->page_per_object ? "one per page" : "DPDK's layout",
		pool->depot_only ? "the mempool's over the depot" : "per lcore");
	if (pool->recycler != NULL)
		fprintf(f,
			"  recycled by drivers; %" PRIu64 " threads died in the middle of a free\n",
			pp_recycle_died(pool->recycler));
	pp_zone_dump(pool->zone, f);
	pcp_cache_dump(pool->cache, f);
}
