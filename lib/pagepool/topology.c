/* SPDX-License-Identifier: BSD-3-Clause */
/* Which NUMA nodes there are, and in what order they stand in for each other. */

#include <errno.h>
#include <numa.h>
#include <string.h>

#include <rte_common.h>

#include "pagepool.h"

#define DISTANCE_LOCAL       10
#define DISTANCE_UNREACHABLE 255

void
pp_topology_detect(struct pp_topology *topology)
{
	memset(topology, 0, sizeof(*topology));
	topology->bind = numa_available() >= 0;
	topology->n_nodes = topology->bind ? RTE_MIN(numa_max_node() + 1, PP_MAX_NODES) : 1;
	for (uint32_t i = 0; i < topology->n_nodes; i++) {
		for (uint32_t j = 0; j < topology->n_nodes; j++) {
			/* 0 where the numbers have a hole */
			const int distance = topology->bind ? numa_distance((int)i, (int)j) : 0;

			topology->distance[i][j] =
				distance > 0 ? (uint8_t)RTE_MIN(distance, DISTANCE_UNREACHABLE)
					     : DISTANCE_UNREACHABLE;
		}
		topology->distance[i][i] = DISTANCE_LOCAL;
	}
}

int
pp_topology_check(const struct pp_topology *topology)
{
	if (topology->n_nodes < 1 || topology->n_nodes > PP_MAX_NODES)
		return -EINVAL;
	for (uint32_t i = 0; i < topology->n_nodes; i++)
		for (uint32_t j = 0; j < topology->n_nodes; j++)
			if (i != j && topology->distance[i][j] <= topology->distance[i][i])
				return -EINVAL;
	return 0;
}

void
pp_topology_fallback(const struct pp_topology *topology, uint32_t node, uint8_t order[PP_MAX_NODES])
{
	const uint8_t *distance = topology->distance[node];

	/* insertion keeps nodes of equal distance in the order of their numbers */
	for (uint32_t next = 0; next < topology->n_nodes; next++) {
		uint32_t i = next;

		for (; i > 0 && distance[order[i - 1]] > distance[next]; i--)
			order[i] = order[i - 1];
		order[i] = (uint8_t)next;
	}
}
