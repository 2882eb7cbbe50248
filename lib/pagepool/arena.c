/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas: what all backends have in common. */

#include <errno.h>
#include <limits.h>
#include <numa.h>
#include <numaif.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_string_fns.h>

#include "arena_internal.h"
#include "pp_internal.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static const struct arena_ops *const backends[] = {
	[PP_BACKEND_MEMZONE] = &arena_memzone_ops,
	[PP_BACKEND_MEMFD] = &arena_memfd_ops,
	[PP_BACKEND_ANON] = &arena_anon_ops,
};

const char *
pp_backend_name(enum pp_backend backend)
{
	return (size_t)backend < RTE_DIM(backends) ? backends[backend]->name : "unknown";
}

int
arena_bind(const struct pp_arena *arena)
{
	const unsigned long mask = 1ul << (arena->node & 31);

	if (arena->node == PP_NODE_ANY)
		return 0;
	if (numa_available() < 0 && arena->node == 0)
		return 0;
	if (mbind(arena->addr, arena->len, MPOL_BIND, &mask, sizeof(mask) * CHAR_BIT, 0) == 0)
		return 0;

	const int err = errno;

	PP_LOG(ERR, "%s: cannot bind memory to node %d: %s", arena->name, arena->node,
		strerror(err));
	return -err;
}

int
arena_populate(const struct pp_arena *arena)
{
	if (madvise(arena->addr, arena->len, MADV_POPULATE_WRITE) == 0)
		return 0;
	/* EFAULT is what would have been SIGBUS: a cgroup's limit, or the node has no pages left */
	return errno == EFAULT ? -ENOMEM : -errno;
}

void
arena_touch(const struct pp_arena *arena)
{
	for (size_t i = 0; i < arena->len; i += arena->page_size)
		*(volatile char *)RTE_PTR_ADD(arena->addr, i) = 0;
}

/* A number out of sysfs, 0 when there is none. */
static size_t
read_count(const char *dir, const char *file)
{
	char path[PATH_MAX];
	size_t count = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, file);

	FILE *f = fopen(path, "r");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%zu", &count) != 1)
		count = 0;
	fclose(f);
	return count;
}

void
arena_log_shortage(const struct pp_arena *arena, size_t pages)
{
	const size_t kib = arena->page_size >> 10;
	char dir[128] = "/sys/kernel/mm/hugepages";

	if (arena->node != PP_NODE_ANY)
		snprintf(
			dir, sizeof(dir), "/sys/devices/system/node/node%d/hugepages", arena->node);
	snprintf(dir + strlen(dir), sizeof(dir) - strlen(dir), "/hugepages-%zukB", kib);

	const size_t free = read_count(dir, "free_hugepages");
	const size_t reserved = read_count(dir, "resv_hugepages"); /* promised to others */
	const size_t available = free - RTE_MIN(free, reserved);

	if (available < pages)
		PP_LOG(ERR,
			"%s: needs %zu hugepages of %zu kB, %zu are free: write %zu or more to "
			"%s/nr_hugepages",
			arena->name, pages, kib, available,
			read_count(dir, "nr_hugepages") + pages - available, dir);
	else
		PP_LOG(ERR,
			"%s: cannot get %zu hugepages of %zu kB although %zu are free: see the "
			"limits of this process's cgroup (hugetlb.%zu%s.max) and its cpuset",
			arena->name, pages, kib, available, kib >= 1 << 20 ? kib >> 20 : kib >> 10,
			kib >= 1 << 20 ? "GB" : "MB");
}

/*
 * Make the memory known to EAL, so that drivers and rte_mempool find its IOVAs. Mapping it for
 * devices behind an IOMMU stays with their drivers and rte_dev_dma_map().
 */
static int
arena_register(const struct pp_arena *arena)
{
	const size_t n = arena->len / arena->page_size;
	rte_iova_t *iova = calloc(n, sizeof(*iova));
	int ret = 0;

	if (iova == NULL) {
		PP_LOG(ERR, "%s: no memory for a table of %zu addresses", arena->name, n);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n && ret == 0; i++) {
		iova[i] = rte_mem_virt2iova(RTE_PTR_ADD(arena->addr, i * arena->page_size));
		if (iova[i] == RTE_BAD_IOVA)
			ret = -EFAULT;
	}
	if (ret != 0)
		PP_LOG(ERR,
			"%s: physical addresses cannot be read: run as root or with "
			"--iova-mode=va",
			arena->name);
	else if (rte_extmem_register(
			 arena->addr, arena->len, iova, (unsigned int)n, arena->page_size) != 0) {
		ret = -rte_errno;
		PP_LOG(ERR, "%s: cannot register memory with EAL: %s", arena->name,
			rte_strerror(rte_errno));
	}
	free(iova);
	return ret;
}

static int
arena_init(struct pp_arena *arena, const struct pp_arena_config *config)
{
	if (config->name == NULL || config->name[0] == '\0' ||
		(size_t)config->backend >= RTE_DIM(backends) || config->len == 0 ||
		config->len > SIZE_MAX / 2 || config->node < PP_NODE_ANY ||
		config->node >= PP_MAX_NODES)
		return -EINVAL;
	if (!backends[config->backend]->page_size_ok(config->page_size)) {
		PP_LOG(ERR, "%s: no pages of %zu bytes in %s memory%s", config->name,
			config->page_size, pp_backend_name(config->backend),
			config->backend == PP_BACKEND_MEMZONE && !rte_eal_has_hugepages()
				? " (EAL runs without hugepages)"
				: "");
		return -EINVAL;
	}
	if (rte_strscpy(arena->name, config->name, sizeof(arena->name)) < 0)
		return -ENAMETOOLONG;
	arena->len = RTE_ALIGN_CEIL(config->len, config->page_size);
	arena->page_size = config->page_size;
	arena->node = config->node;
	arena->backend = config->backend;
	return arena->len / arena->page_size <= UINT_MAX ? 0 : -EINVAL;
}

struct pp_arena *
pp_arena_create(const struct pp_arena_config *config)
{
	struct pp_arena *arena = pp_meta_alloc(PP_NODE_ANY, sizeof(*arena));
	const struct arena_ops *ops;
	int ret;

	if (arena == NULL)
		return NULL;
	ret = arena_init(arena, config);
	if (ret != 0)
		goto fail;
	ops = backends[arena->backend];
	ret = ops->map(arena);
	if (ret != 0)
		goto fail;
	if (!ops->eal_knows) {
		ret = arena_register(arena);
		if (ret != 0) {
			ops->unmap(arena);
			goto fail;
		}
	}
	return arena;

fail:
	rte_free(arena);
	rte_errno = -ret;
	return NULL;
}

void
pp_arena_destroy(struct pp_arena *arena)
{
	if (arena == NULL)
		return;

	const struct arena_ops *ops = backends[arena->backend];

	if (!ops->eal_knows && rte_extmem_unregister(arena->addr, arena->len) != 0)
		/* a leak harms less than addresses that EAL takes for memory */
		PP_LOG(ERR, "%s: stays mapped, EAL does not let go of it: %s", arena->name,
			rte_strerror(rte_errno));
	else
		ops->unmap(arena);
	rte_free(arena);
}

void *
pp_arena_addr(const struct pp_arena *arena)
{
	return arena->addr;
}

size_t
pp_arena_len(const struct pp_arena *arena)
{
	return arena->len;
}

size_t
pp_arena_page_size(const struct pp_arena *arena)
{
	return arena->page_size;
}

int
pp_arena_node(const struct pp_arena *arena)
{
	return arena->node;
}
