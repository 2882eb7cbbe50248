/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The uverbs nodes: names and device numbers that exist nowhere but here. */

#include <sys/stat.h>
#include <sys/sysmacros.h>

#define NODE_PATH  "/dev/infiniband/uverbs%u"
#define NODE_MAJOR 231 /* the kernel's for uverbs */
#define NODE_MINOR 192 /* of the first */

/* The port whose node a path names, or -1. */
int node_index(const char *path);

/* For struct stat and struct stat64, which have the same fields. */
#define NODE_STAT(st, index)                                                                       \
	do {                                                                                       \
		memset((st), 0, sizeof(*(st)));                                                    \
		(st)->st_mode = S_IFCHR | 0666;                                                    \
		(st)->st_nlink = 1;                                                                \
		(st)->st_rdev = makedev(NODE_MAJOR, NODE_MINOR + (index));                         \
	} while (0)
