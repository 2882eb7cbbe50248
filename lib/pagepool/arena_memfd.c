/* SPDX-License-Identifier: BSD-3-Clause */
/* Hugepages of this process alone, without a mounted hugetlbfs. */

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

#include "arena_internal.h"
#include "pp_internal.h"

static bool
memfd_page_size_ok(size_t page_size)
{
	return page_size == PP_SIZE_2M || page_size == PP_SIZE_1G;
}

static void
memfd_unmap(struct pp_arena *arena)
{
	munmap(arena->addr, arena->len);
}

/* Kernels before 5.14 cannot populate a mapping, but allocate a file's pages: then touch is safe.
 */
static int
memfd_populate(const struct pp_arena *arena, int fd)
{
	const int ret = arena_populate(arena);

	if (ret != -EINVAL)
		return ret;
	if (fallocate(fd, 0, 0, (off_t)arena->len) != 0)
		return errno == ENOSPC ? -ENOMEM : -errno;
	arena_touch(arena);
	return 0;
}

static int
memfd_map_fd(struct pp_arena *arena, int fd)
{
	int ret;

	if (ftruncate(fd, (off_t)arena->len) != 0)
		return -errno;
	arena->addr = mmap(NULL, arena->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (arena->addr == MAP_FAILED)
		return -errno;
	ret = arena_bind(arena);
	if (ret == 0)
		ret = memfd_populate(arena, fd);
	if (ret != 0)
		memfd_unmap(arena);
	return ret;
}

static int
memfd_map(struct pp_arena *arena)
{
	const unsigned int size_flag = arena->page_size == PP_SIZE_1G ? MFD_HUGE_1GB : MFD_HUGE_2MB;
	const int fd = memfd_create(arena->name, MFD_CLOEXEC | MFD_HUGETLB | size_flag);
	int ret;

	if (fd < 0) {
		ret = -errno;
		PP_LOG(ERR, "%s: the kernel has no hugepages of %zu kB: %s", arena->name,
			arena->page_size >> 10, strerror(-ret));
		return ret;
	}
	ret = memfd_map_fd(arena, fd);
	close(fd); /* the mapping keeps the pages */
	if (ret == -ENOMEM)
		arena_log_shortage(arena, arena->len / arena->page_size);
	else if (ret != 0)
		PP_LOG(ERR, "%s: cannot map %zu bytes of hugepages: %s", arena->name, arena->len,
			strerror(-ret));
	return ret;
}

const struct arena_ops arena_memfd_ops = {
	.name = "memfd",
	.page_size_ok = memfd_page_size_ok,
	.map = memfd_map,
	.unmap = memfd_unmap,
};
