/* SPDX-License-Identifier: BSD-3-Clause */
/* Detection on invented machines, validation, and the order of fallback. */

#include <errno.h>
#include <string.h>

#include <pagepool.h>

#include "unit.h"

/* The machine that libnuma sees; -1 nodes: it has no NUMA. */
static int machine_nodes;
static int machine_distance[64][64];

int __wrap_numa_available(void);
int __wrap_numa_max_node(void);
int __wrap_numa_distance(int i, int j);

int
__wrap_numa_available(void)
{
	return machine_nodes < 0 ? -1 : 0;
}

int
__wrap_numa_max_node(void)
{
	return machine_nodes - 1;
}

int
__wrap_numa_distance(int i, int j)
{
	return machine_distance[i][j];
}

static void
machine(int n_nodes)
{
	machine_nodes = n_nodes;
	for (int i = 0; i < 64; i++)
		for (int j = 0; j < 64; j++)
			machine_distance[i][j] = i == j ? 10 : 20;
}

static void
detects_one_node_without_numa(void **state)
{
	struct pp_topology topology;

	(void)state;
	machine(-1);
	pp_topology_detect(&topology);
	assert_int_equal(topology.n_nodes, 1);
	assert_false(topology.bind);
	assert_int_equal(topology.distance[0][0], 10);
	assert_int_equal(pp_topology_check(&topology), 0);
}

static void
detects_nodes_and_distances(void **state)
{
	struct pp_topology topology;

	(void)state;
	machine(4);
	machine_distance[1][3] = 31;
	machine_distance[3][1] = 32;
	pp_topology_detect(&topology);
	assert_int_equal(topology.n_nodes, 4);
	assert_true(topology.bind);
	assert_int_equal(topology.distance[0][1], 20);
	assert_int_equal(topology.distance[1][3], 31);
	assert_int_equal(topology.distance[3][1], 32);
	assert_int_equal(topology.distance[2][2], 10);
	assert_int_equal(pp_topology_check(&topology), 0);
}

static void
detects_holes_as_far_away(void **state)
{
	struct pp_topology topology;
	uint8_t order[PP_MAX_NODES];

	(void)state;
	machine(3);
	for (int i = 0; i < 3; i++)
		machine_distance[1][i] = machine_distance[i][1] = 0;
	pp_topology_detect(&topology);
	assert_int_equal(pp_topology_check(&topology), 0);
	pp_topology_fallback(&topology, 0, order);
	assert_memory_equal(order, ((uint8_t[]){0, 2, 1}), 3);
}

static void
detects_no_more_than_it_can_hold(void **state)
{
	struct pp_topology topology;

	(void)state;
	machine(PP_MAX_NODES + 1);
	pp_topology_detect(&topology);
	assert_int_equal(topology.n_nodes, PP_MAX_NODES);
	assert_int_equal(pp_topology_check(&topology), 0);
}

static void
check_refuses_what_makes_no_sense(void **state)
{
	struct pp_topology topology;

	(void)state;
	machine(2);
	pp_topology_detect(&topology);
	assert_int_equal(pp_topology_check(&topology), 0);

	topology.n_nodes = 0;
	assert_int_equal(pp_topology_check(&topology), -EINVAL);
	topology.n_nodes = PP_MAX_NODES + 1;
	assert_int_equal(pp_topology_check(&topology), -EINVAL);
	topology.n_nodes = 2;

	topology.distance[1][0] = 9; /* nearer than itself */
	assert_int_equal(pp_topology_check(&topology), -EINVAL);
	topology.distance[1][0] = 10; /* as near as itself */
	assert_int_equal(pp_topology_check(&topology), -EINVAL);
	topology.distance[1][0] = 11;
	assert_int_equal(pp_topology_check(&topology), 0);
	topology.distance[0][1] = 0;
	assert_int_equal(pp_topology_check(&topology), -EINVAL);
	topology.n_nodes = 1; /* what lies beyond does not matter */
	assert_int_equal(pp_topology_check(&topology), 0);
}

static void
falls_back_by_distance_then_number(void **state)
{
	static const struct pp_topology topology = {
		.n_nodes = 4,
		.distance = {{10, 21, 16, 32}, {21, 10, 32, 16}, {16, 32, 10, 21},
			{20, 20, 20, 10}},
	};
	static const uint8_t expected[4][4] = {
		{0, 2, 1, 3}, {1, 3, 0, 2}, {2, 0, 3, 1}, {3, 0, 1, 2}};
	uint8_t order[PP_MAX_NODES];

	(void)state;
	for (uint32_t node = 0; node < 4; node++) {
		memset(order, 0xee, sizeof(order));
		pp_topology_fallback(&topology, node, order);
		assert_memory_equal(order, expected[node], 4);
		assert_int_equal(order[4], 0xee);
	}
}

static void
falls_back_to_every_node_once(void **state)
{
	struct pp_topology topology;
	uint8_t order[PP_MAX_NODES];

	(void)state;
	machine(PP_MAX_NODES);
	for (int i = 0; i < PP_MAX_NODES; i++)
		for (int j = 0; j < PP_MAX_NODES; j++)
			machine_distance[i][j] = i == j ? 10 : 11 + (i * 7 + j * 13) % 50;
	pp_topology_detect(&topology);
	for (uint32_t node = 0; node < PP_MAX_NODES; node++) {
		const uint8_t *distance = topology.distance[node];
		uint32_t seen = 0;

		pp_topology_fallback(&topology, node, order);
		assert_int_equal(order[0], node);
		for (int i = 0; i < PP_MAX_NODES; i++) {
			seen |= 1u << order[i];
			if (i > 0)
				assert_true(distance[order[i - 1]] < distance[order[i]] ||
					    (distance[order[i - 1]] == distance[order[i]] &&
						    order[i - 1] < order[i]));
		}
		assert_int_equal(seen, UINT32_MAX);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(detects_one_node_without_numa),
		cmocka_unit_test(detects_nodes_and_distances),
		cmocka_unit_test(detects_holes_as_far_away),
		cmocka_unit_test(detects_no_more_than_it_can_hold),
		cmocka_unit_test(check_refuses_what_makes_no_sense),
		cmocka_unit_test(falls_back_by_distance_then_number),
		cmocka_unit_test(falls_back_to_every_node_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
