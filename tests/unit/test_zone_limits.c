/* SPDX-License-Identifier: BSD-3-Clause */
/* Zones and pools at the edges of what they are asked. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/pagepool/arena_internal.h"
#include "zone_unit.h"

/* Refused and counted; but a handler may not log. */
static void
wrong_frees_of_handlers_are_not_logged(void **state __rte_unused)
{
	struct pp_zone *zone = plain_zone(16, 4);

	unit_log_clear();
	assert_int_equal(pp_zone_free(zone, memory, 0, PP_ALLOC_TRYLOCK), -EINVAL);
	assert_int_equal(stats_of(zone).bad_frees, 1);
	assert_string_equal(unit_log(), "");
	assert_int_equal(pp_zone_free(zone, memory, 0, 0), -EINVAL);
	unit_assert_logged("double free?");
	destroy_zone(zone);
}

static void
the_first_colour_is_one_of_the_colours(void **state __rte_unused)
{
	struct pp_zone *zone = pp_zone_create("zone", PP_NODE_ANY, 4);
	struct pp_run run = {
		.addr = memory,
		.stride = PP_PAGE_SIZE,
		.count = 4,
		.colours = 3,
		.first_colour = 3,
	};

	assert_int_equal(pp_zone_add_runs(zone, &run, 1), -EINVAL);
	run.first_colour = 2;
	assert_int_equal(pp_zone_add_runs(zone, &run, 1), 0);
	assert_int_equal(pp_zone_pages(zone), 4);
	destroy_zone(zone);
}

static void
arenas_beyond_16_tib_are_refused(void **state __rte_unused)
{
	const struct pp_arena arena = {.addr = memory, .len = UINT64_C(1) << 44};
	struct pp_zone *zone = pp_zone_create("zone", PP_NODE_ANY, 4);

	assert_int_equal(pp_zone_add_arena(zone, &arena, 1), -EINVAL);
	assert_int_equal(pp_zone_pages(zone), 0);
	destroy_zone(zone);
}

/* Two nodes, memory on one. */
static void
nodes_without_memory(void **state __rte_unused)
{
	const struct pp_topology topology = {.n_nodes = 2, .distance = {{10, 20}, {20, 10}}};
	const struct pp_pool_config config = {
		.name = "pool",
		.backend = PP_BACKEND_ANON,
		.page_size = PP_PAGE_SIZE,
		.bytes_per_node = {[1] = 2 * UNIT_MIB},
		.topology = &topology,
	};
	struct pp_pool *pool = pp_pool_create(&config);
	struct pp_pool_node_stats stats;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(pool);
	assert_null(pp_pool_zone(pool, 0));
	assert_null(pp_pool_zone(pool, 2));

	void *page = pp_pool_alloc(pool, 0, 0, 0);

	assert_non_null(page);
	pp_pool_get_node_stats(pool, 1, &stats);
	assert_int_equal(stats.numa_miss, 1);
	memset(&stats, 0xff, sizeof(stats));
	pp_pool_get_node_stats(pool, 2, &stats);
	assert_int_equal(stats.numa_hit + stats.numa_miss + stats.numa_foreign, 0);
	pp_pool_dump(pool, f);
	fclose(f);
	assert_non_null(strstr(text, "Pool pool, node 0: numa_hit 0 numa_miss 0 numa_foreign 1"));
	assert_non_null(strstr(text, "Pool pool, node 1: numa_hit 0 numa_miss 1 numa_foreign 0"));
	free(text);
	assert_int_equal(pp_pool_free(pool, page, 0), 0);
	assert_int_equal(pp_pool_destroy(pool), 0);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_frees_of_handlers_are_not_logged),
		cmocka_unit_test(the_first_colour_is_one_of_the_colours),
		cmocka_unit_test(arenas_beyond_16_tib_are_refused),
		cmocka_unit_test(nodes_without_memory),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
