/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <rdma/mlx5-abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libc.h"
#include "uar.h"

#define CMD_SHIFT 8
#define CMD_PAGES (1 << CMD_SHIFT)
#define COMMANDS  9 /* offsets up to here exist in the file */

int
uar_open(unsigned int index)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "softcx-uverbs%u", index);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)COMMANDS * CMD_PAGES * UAR_PAGE_SIZE) < 0) {
		int error = -errno;

		libc_calls()->close(fd);
		return error;
	}
	return fd;
}

int
uar_start(struct uar *uar, int fd, unsigned int bfregs, unsigned int low_latency)
{
	unsigned int n_pages = bfregs / UAR_BFREGS_USABLE;
	void *pages;

	if (n_pages > UAR_PAGES_MAX)
		return -ENOMEM;
	pages = libc_calls()->mmap(NULL, (size_t)n_pages * UAR_PAGE_SIZE, PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, MLX5_IB_MMAP_REGULAR_PAGE * CMD_PAGES * UAR_PAGE_SIZE);
	if (pages == MAP_FAILED)
		return -ENOMEM;
	uar->pages = pages;
	uar->n_pages = n_pages;
	uar->low_latency = low_latency;
	uar->users = calloc(bfregs, sizeof(*uar->users));
	if (uar->users == NULL) {
		uar_stop(uar);
		return -ENOMEM;
	}
	return 0;
}

void
uar_stop(struct uar *uar)
{
	if (uar->pages != NULL)
		munmap(uar->pages, (size_t)uar->n_pages * UAR_PAGE_SIZE);
	free(uar->users);
	*uar = (struct uar){.pages = NULL};
}

int
uar_check_mmap(const struct uar *uar, size_t length, int flags, off_t offset)
{
	unsigned long page = (unsigned long)offset / UAR_PAGE_SIZE;
	unsigned int index = page & (CMD_PAGES - 1);

	/* Private copies of registers would be doorbells that nobody hears. */
	if (length != UAR_PAGE_SIZE || (flags & MAP_TYPE) == MAP_PRIVATE)
		return -EINVAL;
	switch (page >> CMD_SHIFT) {
	case MLX5_IB_MMAP_REGULAR_PAGE:
		return index < uar->n_pages ? 0 : -EINVAL;
	case MLX5_IB_MMAP_GET_CONTIGUOUS_PAGES:
		return -ENOSYS;
	case MLX5_IB_MMAP_CORE_CLOCK:
	case MLX5_IB_MMAP_CLOCK_INFO:
		return -EOPNOTSUPP;
	default: /* no registers without combined writes, none on demand */
		return -EINVAL;
	}
}

/*
 * As the kernel's driver: first the low-latency registers, each for one QP, then the one of the
 * others with the fewest. Register 0 is for who wants no write combining, and nobody's here.
 */
int
uar_take(struct uar *uar)
{
	unsigned int n = uar->n_pages * UAR_BFREGS_USABLE, i, best = 0;

	for (i = n - uar->low_latency; i < n; i++) {
		if (uar->users[i] == 0) {
			best = i;
			break;
		}
	}
	if (best == 0) {
		for (i = 1; i < n - uar->low_latency; i++) {
			if (best == 0 || uar->users[i] < uar->users[best])
				best = i;
		}
	}
	uar->users[best]++;
	return best / UAR_BFREGS_USABLE * UAR_BFREGS + best % UAR_BFREGS_USABLE;
}

void
uar_give(struct uar *uar, int bfreg)
{
	uar->users[bfreg / UAR_BFREGS * UAR_BFREGS_USABLE + bfreg % UAR_BFREGS]--;
}

void *
uar_page(const struct uar *uar, unsigned int bfreg)
{
	if (bfreg / UAR_BFREGS >= uar->n_pages)
		return NULL;
	return uar->pages + (size_t)(bfreg / UAR_BFREGS) * UAR_PAGE_SIZE;
}
