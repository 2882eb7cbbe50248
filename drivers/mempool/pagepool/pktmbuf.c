/* SPDX-License-Identifier: BSD-3-Clause */
/* Page pools: mbufs on pages of an arena of ours. */

#include <errno.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "mempool_internal.h"

/* Cache lines of some processors are 128 bytes long. */
static_assert(PP_COLOUR_STEP % RTE_CACHE_LINE_SIZE == 0, "staggered mbufs must stay aligned");
static_assert(RTE_MEMPOOL_ALIGN + sizeof(struct rte_mbuf) + PP_PKTMBUF_ROOM_MAX <= PP_PAGE_SIZE,
	"the largest mbuf must fit into a page");

/* The arena becomes the mempool's, and goes with it. */
static int
populate(struct rte_mempool *mp, const struct pp_pktmbuf_config *config)
{
	const struct pp_arena_config arena_config = {
		.name = mp->name,
		.backend = config->backend,
		.len = (size_t)mp->size * PP_PAGE_SIZE,
		.page_size = config->page_size,
		.node = mp->socket_id,
	};
	struct pp_arena *arena = pp_arena_create(&arena_config);

	if (arena == NULL)
		return -rte_errno;
	const int rc = rte_mempool_populate_virt(mp, pp_arena_addr(arena), pp_arena_len(arena),
		pp_arena_page_size(arena), NULL, NULL);
	struct pp_mempool *pool = mp->pool_data;

	if (pool != NULL)
		pool->arena = arena;
	else
		pp_arena_destroy(arena);
	if (rc < 0)
		return rc;
	return (unsigned int)rc == mp->size ? 0 : -ENOMEM;
}

static size_t
default_page_size(const struct pp_pktmbuf_config *config)
{
	const bool small = config->backend == PP_BACKEND_ANON ||
			   (config->backend == PP_BACKEND_MEMZONE && !rte_eal_has_hugepages());

	return small ? PP_PAGE_SIZE : RTE_PGSIZE_2M;
}

/* The kernel moves plain pages as it likes, under a device that was told where they are. */
static bool
can_be_told_to_devices(const char *name, enum pp_backend backend)
{
	if (backend != PP_BACKEND_ANON || rte_eal_iova_mode() != RTE_IOVA_PA)
		return true;
	MEMPOOL_LOG(ERR,
		"%s: plain pages have no lasting physical address; use backend memzone or memfd, "
		"or EAL's --iova-mode=va",
		name);
	return false;
}

struct rte_mempool *
pp_pktmbuf_pool_create(const char *name, unsigned int n, uint16_t priv_size,
	uint16_t data_room_size, int socket_id, const struct pp_pktmbuf_config *asked)
{
	struct pp_pktmbuf_config config = asked != NULL ? *asked : (struct pp_pktmbuf_config){0};
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = data_room_size,
		.mbuf_priv_size = priv_size,
	};
	struct pp_mempool_config pool_config = {.pcp = config.pcp, .page_per_object = true};
	int rc;

	if (RTE_ALIGN(priv_size, RTE_MBUF_PRIV_ALIGN) != priv_size ||
		(size_t)priv_size + data_room_size > PP_PKTMBUF_ROOM_MAX || n == 0) {
		rte_errno = EINVAL;
		return NULL;
	}
	if (!can_be_told_to_devices(name, config.backend)) {
		rte_errno = ENOTSUP;
		return NULL;
	}
	/* The mbuf keeps what it was initialised with while it is free; its data need not. */
	if (config.pcp.checks == PCP_CHECKS_FULL && config.pcp.poison_len == 0) {
		pool_config.pcp.poison_offset = (uint32_t)sizeof(struct rte_mbuf) + priv_size;
		pool_config.pcp.poison_len = data_room_size;
	}
	if (config.page_size == 0)
		config.page_size = default_page_size(&config);
	struct rte_mempool *mp = rte_mempool_create_empty(name, n,
		(unsigned int)sizeof(struct rte_mbuf) + priv_size + data_room_size, 0,
		sizeof(private), socket_id, RTE_MEMPOOL_F_NO_SPREAD);

	if (mp == NULL)
		return NULL;
	rc = rte_mempool_set_ops_byname(mp, PP_MEMPOOL_OPS_NAME, &pool_config);
	if (rc == 0) {
		rte_pktmbuf_pool_init(mp, &private);
		rc = populate(mp, &config);
	}
	mp->pool_config = NULL; /* was this function's */
	if (rc != 0) {
		rte_mempool_free(mp);
		rte_errno = -rc;
		return NULL;
	}
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	return mp;
}

int
pp_pktmbuf_pool_free(struct rte_mempool *mp)
{
	unsigned int in_use = mp != NULL ? rte_mempool_in_use_count(mp) : 0;

	if (in_use > 0)
		in_use -= (unsigned int)pp_mempool_bad_count(mp);
	if (in_use > 0) {
		MEMPOOL_LOG(ERR, "%s: not freed, %u mbufs are in use", mp->name, in_use);
		return -EBUSY;
	}
	rte_mempool_free(mp);
	return 0;
}
