/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The pages of a context's doorbell registers. They are pages of the memfd whose descriptor the
 * program holds, at the offsets that libmlx5 asks for, so its own mmap() maps them, and the device
 * has a mapping of its own that outlives the program's.
 */

#include <stdint.h>
#include <sys/types.h>

#define UAR_PAGE_SIZE     4096
#define UAR_PAGES_MAX     256
#define UAR_BFREGS        4 /* registers of a page; libmlx5's numbering */
#define UAR_BFREGS_USABLE 2 /* of them, by the processor */
#define UAR_BFREG_SIZE    512

struct uar {
	uint8_t *pages; /* the device's mapping of all of them */
	unsigned int n_pages;
	unsigned int low_latency; /* registers for one QP each, the last ones */
	uint32_t *users;          /* QPs of each usable register */
};

/* A memfd for the pages; -errno. */
int uar_open(unsigned int index);

/* As many registers as GET_CONTEXT asks for. 0 or -errno. */
int uar_start(struct uar *uar, int fd, unsigned int bfregs, unsigned int low_latency);
void uar_stop(struct uar *uar);

/* The kernel's answer to mmap(): 0 or -errno. */
int uar_check_mmap(const struct uar *uar, size_t length, int flags, off_t offset);

/* A register for a QP, as libmlx5 numbers them. */
int uar_take(struct uar *uar);
void uar_give(struct uar *uar, int bfreg);

/* The page of such a register; NULL: there is none of that number. */
void *uar_page(const struct uar *uar, unsigned int bfreg);
