/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL's own memory: secondary processes see it, and it has IOVAs already. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "arena_internal.h"
#include "pp_internal.h"

static bool
memzone_page_size_ok(size_t page_size)
{
	return rte_eal_has_hugepages() ? page_size == PP_SIZE_2M || page_size == PP_SIZE_1G
				       : page_size == PP_SIZE_4K;
}

static unsigned int
size_flag(size_t page_size)
{
	return page_size == PP_SIZE_1G   ? RTE_MEMZONE_1GB
	       : page_size == PP_SIZE_2M ? RTE_MEMZONE_2MB
					 : 0;
}

static void
memzone_unmap(struct pp_arena *arena)
{
	rte_memzone_free(arena->memzone);
}

static int
memzone_map(struct pp_arena *arena)
{
	const int socket = arena->node == PP_NODE_ANY ? SOCKET_ID_ANY : arena->node;
	/* hugepages, and blocks made of them, are contiguous in IOVA space */
	const size_t align = arena->page_size == PP_SIZE_4K ? PP_SIZE_2M : arena->page_size;
	const struct rte_memzone *memzone = rte_memzone_reserve_aligned(
		arena->name, arena->len, socket, size_flag(arena->page_size), (unsigned int)align);

	if (memzone == NULL) {
		const int err = rte_errno;

		if (err == ENOMEM && rte_eal_has_hugepages())
			/* EAL puts a header in front, in a page of its own */
			arena_log_shortage(arena, arena->len / arena->page_size + 1);
		else
			PP_LOG(ERR, "%s: cannot reserve a memzone of %zu bytes: %s%s", arena->name,
				arena->len, rte_strerror(err),
				err == ENOMEM ? " (start EAL with a larger -m)" : "");
		return -err;
	}
	if (memzone->hugepage_sz != arena->page_size ||
		(arena->node != PP_NODE_ANY && memzone->socket_id != arena->node)) {
		PP_LOG(ERR, "%s: EAL has pages of %" PRIu64 " bytes on node %d only", arena->name,
			memzone->hugepage_sz, memzone->socket_id);
		rte_memzone_free(memzone);
		return -ENOMEM;
	}
	arena->memzone = memzone;
	arena->addr = memzone->addr;
	return 0;
}

const struct arena_ops arena_memzone_ops = {
	.name = "memzone",
	.page_size_ok = memzone_page_size_ok,
	.map = memzone_map,
	.unmap = memzone_unmap,
	.eal_knows = true,
};
