/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain memory, for where there are no hugepages. */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "arena_internal.h"
#include "pp_internal.h"

static bool
anon_page_size_ok(size_t page_size)
{
	return page_size == PP_SIZE_4K;
}

static void
anon_unmap(struct pp_arena *arena)
{
	munmap(arena->addr, arena->len);
}

/* Aligned to 2 MiB, for transparent huge pages: map more, and return what sticks out. */
static void *
map_aligned(size_t len)
{
	const size_t room = len + PP_SIZE_2M;
	char *start = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED)
		return MAP_FAILED;

	char *addr = RTE_PTR_ALIGN_CEIL(start, PP_SIZE_2M);
	const size_t before = (size_t)(addr - start);

	if (before > 0)
		munmap(start, before);
	munmap(addr + len, PP_SIZE_2M - before);
	return addr;
}

static int
anon_map(struct pp_arena *arena)
{
	int ret;

	arena->addr = map_aligned(arena->len);
	if (arena->addr == MAP_FAILED) {
		ret = -errno;
		goto fail;
	}
	ret = arena_bind(arena);
	if (ret != 0) {
		anon_unmap(arena);
		return ret;
	}
	madvise(arena->addr, arena->len, MADV_HUGEPAGE); /* speed only: may fail */
	ret = arena_populate(arena);
	if (ret == -EINVAL) {
		arena_touch(arena);
		ret = 0;
	}
	if (ret != 0) {
		anon_unmap(arena);
		goto fail;
	}
	if (rte_eal_iova_mode() == RTE_IOVA_PA)
		PP_LOG(WARNING,
			"%s: the kernel may move plain memory, so its physical addresses are not "
			"for devices: use hugepages or --iova-mode=va",
			arena->name);
	return 0;

fail:
	PP_LOG(ERR,
		"%s: cannot get %zu bytes of memory: %s (see free -m and the memory limit of this "
		"process's cgroup)",
		arena->name, arena->len, strerror(-ret));
	return ret;
}

const struct arena_ops arena_anon_ops = {
	.name = "anon",
	.page_size_ok = anon_page_size_ok,
	.map = anon_map,
	.unmap = anon_unmap,
};
