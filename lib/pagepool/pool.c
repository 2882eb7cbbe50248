/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools: a zone per node, each on an arena of its own. */

#include <errno.h>
#include <inttypes.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_string_fns.h>

#include "arena_internal.h"
#include "pp_internal.h"

struct pool_node {
	struct pp_arena *arena; /* NULL, as the zone, where the node has no memory */
	struct pp_zone *zone;
	uint8_t fallback[PP_MAX_NODES];                      /* itself first */
	struct pp_pool_node_stats stats __rte_cache_aligned; /* relaxed atomics */
} __rte_cache_aligned;

struct pp_pool {
	uint32_t n_nodes;
	char name[RTE_MEMZONE_NAMESIZE];
	struct pool_node node[];
};

/* Nothing in use, or -EBUSY before anything is given up. */
static int
pool_idle(const struct pp_pool *pool)
{
	for (uint32_t i = 0; i < pool->n_nodes; i++) {
		const struct pp_zone *zone = pool->node[i].zone;
		uint64_t in_use;

		if (zone == NULL)
			continue;
		in_use = pp_zone_pages(zone) - pp_zone_free_pages(zone) - pp_zone_bad_pages(zone);
		if (in_use > 0) {
			PP_LOG(ERR, "%s: not destroyed, %" PRIu64 " pages of node %u are in use",
				pool->name, in_use, i);
			return -EBUSY;
		}
	}
	return 0;
}

static void
pool_release(struct pp_pool *pool)
{
	for (uint32_t i = 0; i < pool->n_nodes; i++) {
		if (pool->node[i].zone != NULL)
			pp_zone_destroy(pool->node[i].zone);
		pp_arena_destroy(pool->node[i].arena);
	}
	rte_free(pool);
}

static int
pool_add_node(struct pp_pool *pool, const struct pp_pool_config *config, uint32_t i, bool bind)
{
	/* blocks merge to whole hugepages; plain memory behaves as if it had them */
	const size_t block = RTE_MAX(config->page_size, PP_SIZE_2M);
	const int home = bind ? (int)i : PP_NODE_ANY;
	struct pool_node *node = &pool->node[i];
	char name[RTE_MEMZONE_NAMESIZE];

	if (snprintf(name, sizeof(name), "%s-%u", config->name, i) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	node->arena = pp_arena_create(&(struct pp_arena_config){
		.name = name,
		.backend = config->backend,
		.len = config->bytes_per_node[i],
		.page_size = config->page_size,
		.node = home,
	});
	if (node->arena == NULL)
		return -rte_errno;
	node->zone =
		pp_zone_create(name, home, (unsigned int)__builtin_ctzl(block) - PP_PAGE_SHIFT);
	if (node->zone == NULL)
		return -rte_errno;
	return pp_zone_add_arena(node->zone, node->arena, config->colours);
}

static int
pool_check(const struct pp_pool_config *config, const struct pp_topology *topology)
{
	size_t bytes = 0;

	if (config->name == NULL || config->name[0] == '\0' || pp_topology_check(topology) != 0)
		return -EINVAL;
	for (uint32_t i = 0; i < PP_MAX_NODES; i++) {
		if (i >= topology->n_nodes && config->bytes_per_node[i] > 0)
			return -EINVAL;
		bytes |= config->bytes_per_node[i];
	}
	return bytes > 0 ? 0 : -EINVAL;
}

struct pp_pool *
pp_pool_create(const struct pp_pool_config *config)
{
	struct pp_topology topology;
	struct pp_pool *pool;
	int ret;

	if (config->topology != NULL)
		topology = *config->topology;
	else
		pp_topology_detect(&topology);
	ret = pool_check(config, &topology);
	if (ret != 0) {
		rte_errno = -ret;
		return NULL;
	}
	pool = pp_meta_alloc(PP_NODE_ANY, sizeof(*pool) + topology.n_nodes * sizeof(pool->node[0]));
	if (pool == NULL)
		return NULL;
	pool->n_nodes = topology.n_nodes;
	rte_strscpy(pool->name, config->name, sizeof(pool->name));
	for (uint32_t i = 0; i < pool->n_nodes && ret == 0; i++) {
		pp_topology_fallback(&topology, i, pool->node[i].fallback);
		if (config->bytes_per_node[i] > 0)
			ret = pool_add_node(pool, config, i, topology.bind);
	}
	if (ret != 0) {
		pool_release(pool);
		rte_errno = -ret;
		return NULL;
	}
	return pool;
}

int
pp_pool_destroy(struct pp_pool *pool)
{
	const int ret = pool_idle(pool);

	if (ret == 0)
		pool_release(pool);
	return ret;
}

struct pp_zone *
pp_pool_zone(struct pp_pool *pool, uint32_t node)
{
	return node < pool->n_nodes ? pool->node[node].zone : NULL;
}

static void
count(struct pp_pool *pool, uint32_t asked, uint32_t served)
{
	if (likely(asked == served)) {
		pp_fetch_add(&pool->node[asked].stats.numa_hit, 1);
		return;
	}
	pp_fetch_add(&pool->node[asked].stats.numa_foreign, 1);
	pp_fetch_add(&pool->node[served].stats.numa_miss, 1);
}

void *
pp_pool_alloc(struct pp_pool *pool, uint32_t node, unsigned int order, unsigned int flags)
{
	int err = ENOMEM;

	if (node >= pool->n_nodes) {
		rte_errno = EINVAL;
		return NULL;
	}
	for (uint32_t i = 0; i < pool->n_nodes; i++) {
		const uint32_t served = pool->node[node].fallback[i];
		struct pp_zone *zone = pool->node[served].zone;
		void *page;

		if (zone == NULL)
			continue;
		page = pp_zone_alloc(zone, order, flags);
		if (likely(page != NULL)) {
			count(pool, node, served);
			return page;
		}
		if (rte_errno != ENOMEM)
			err = rte_errno; /* not short of pages: a held lock, a bad order */
	}
	rte_errno = err;
	return NULL;
}

int
pp_pool_free(struct pp_pool *pool, void *page, unsigned int order)
{
	struct pp_zone *zone = NULL;

	for (uint32_t i = 0; i < pool->n_nodes; i++) {
		const struct pool_node *node = &pool->node[i];

		if (node->zone == NULL)
			continue;
		zone = node->zone;
		if ((uintptr_t)page - (uintptr_t)pp_arena_addr(node->arena) <
			pp_arena_len(node->arena))
			break;
	}
	/* what is nobody's gets counted and logged by the last zone */
	return pp_zone_free(zone, page, order, 0);
}

void
pp_pool_get_node_stats(const struct pp_pool *pool, uint32_t node, struct pp_pool_node_stats *stats)
{
	*stats = (struct pp_pool_node_stats){0};
	if (node >= pool->n_nodes)
		return;

	const struct pp_pool_node_stats *from = &pool->node[node].stats;

	stats->numa_hit = pp_load_relaxed(&from->numa_hit);
	stats->numa_miss = pp_load_relaxed(&from->numa_miss);
	stats->numa_foreign = pp_load_relaxed(&from->numa_foreign);
}

void
pp_pool_dump(struct pp_pool *pool, FILE *f)
{
	for (uint32_t i = 0; i < pool->n_nodes; i++) {
		struct pp_pool_node_stats stats;

		pp_pool_get_node_stats(pool, i, &stats);
		fprintf(f,
			"Pool %s, node %u: numa_hit %" PRIu64 " numa_miss %" PRIu64
			" numa_foreign %" PRIu64 "\n",
			pool->name, i, stats.numa_hit, stats.numa_miss, stats.numa_foreign);
		if (pool->node[i].zone != NULL)
			pp_zone_dump(pool->node[i].zone, f);
	}
}
