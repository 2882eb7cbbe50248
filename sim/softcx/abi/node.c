/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "card.h"
#include "node.h"

int
node_index(const char *path)
{
	unsigned int index;
	int end = 0;

	if (path == NULL || sscanf(path, NODE_PATH "%n", &index, &end) != 1 || path[end] != '\0')
		return -1;
	return index < card_ports() ? (int)index : -1;
}
