/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "card.h"
#include "node.h"

int
node_index(const char *path)
{
	static const char folder[] = "/dev/infiniband/";
	unsigned int index;
	int end = 0;

	/* Most paths are others, and a sanitizer's start opens some before it can be configured. */
	if (path == NULL || strncmp(path, folder, sizeof(folder) - 1) != 0 ||
		sscanf(path, NODE_PATH "%n", &index, &end) != 1 || path[end] != '\0')
		return -1;
	return index < card_ports() ? (int)index : -1;
}
