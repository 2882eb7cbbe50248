/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools over four invented nodes: fallback, exhaustion, counters, and nothing lost. */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>

#include <pagepool.h>
#include <pp_internal.h>

#include "unit.h"

#define NODES      4
#define NODE_BYTES (2 * UNIT_MIB)
#define NODE_PAGES (NODE_BYTES / PP_PAGE_SIZE)
#define ALL_PAGES  (NODES * NODE_PAGES)
#define NODE_ORDER 9 /* a whole node in one block */

static const struct pp_topology topology = {
	.n_nodes = NODES,
	.distance = {{10, 21, 16, 32}, {21, 10, 32, 16}, {16, 32, 10, 21}, {20, 20, 20, 10}},
};

static const uint8_t fallback[NODES][NODES] = {
	{0, 2, 1, 3}, {1, 3, 0, 2}, {2, 0, 3, 1}, {3, 0, 1, 2}};

static const struct pp_pool_config config = {
	.name = "pool",
	.topology = &topology,
	.backend = PP_BACKEND_ANON,
	.page_size = 4096,
	.bytes_per_node = {NODE_BYTES, NODE_BYTES, NODE_BYTES, NODE_BYTES},
	.colours = 4,
};

static void *
create(void *arg)
{
	return pp_pool_create(arg);
}

static void
destroy(void *pool)
{
	assert_int_equal(pp_pool_destroy(pool), 0);
}

static struct pp_pool *
new_pool(void)
{
	struct pp_pool *pool = pp_pool_create(&config);

	assert_non_null(pool);
	return pool;
}

/* The node that a page is of. */
static uint32_t
home(struct pp_pool *pool, const void *page)
{
	uint32_t node = UINT32_MAX;

	for (uint32_t i = 0; i < NODES; i++) {
		struct pp_zone *zone = pp_pool_zone(pool, i);

		if (zone != NULL && pp_zone_contains(zone, page)) {
			assert_int_equal(node, UINT32_MAX);
			node = i;
		}
	}
	assert_int_not_equal(node, UINT32_MAX);
	return node;
}

static void
assert_node_stats(
	const struct pp_pool *pool, uint32_t node, uint64_t hit, uint64_t miss, uint64_t foreign)
{
	struct pp_pool_node_stats stats;

	pp_pool_get_node_stats(pool, node, &stats);
	assert_int_equal(stats.numa_hit, hit);
	assert_int_equal(stats.numa_miss, miss);
	assert_int_equal(stats.numa_foreign, foreign);
}

/* Every page is free, and all have merged back to one block per node. */
static void
assert_whole(struct pp_pool *pool)
{
	for (uint32_t i = 0; i < NODES; i++) {
		struct pp_zone *zone = pp_pool_zone(pool, i);
		struct pp_zone_stats stats;

		assert_non_null(zone);
		assert_true(pp_zone_is_valid(zone));
		pp_zone_get_stats(zone, &stats);
		assert_int_equal(stats.pages, NODE_PAGES);
		assert_int_equal(stats.free, NODE_PAGES);
		assert_int_equal(stats.free_blocks[NODE_ORDER], 1);
	}
}

static void
serves_the_node_that_is_asked(void **state)
{
	struct pp_pool *pool = new_pool();

	(void)state;
	for (uint32_t node = 0; node < NODES; node++) {
		void *page = pp_pool_alloc(pool, node, 0, 0);

		assert_non_null(page);
		assert_int_equal(home(pool, page), node);
		assert_node_stats(pool, node, 1, 0, 0);
		assert_int_equal(pp_zone_free_pages(pp_pool_zone(pool, node)), NODE_PAGES - 1);
		assert_int_equal(pp_pool_free(pool, page, 0), 0);
	}
	assert_whole(pool);
	assert_null(pp_pool_zone(pool, NODES));
	assert_null(pp_pool_alloc(pool, NODES, 0, 0));
	assert_int_equal(rte_errno, EINVAL);
	destroy(pool);
}

/* Ask one node for everything: its own pages first, then the others' by distance, to the last. */
static void
exhausts_nodes_by_distance(void **state)
{
	static void *page[ALL_PAGES];

	(void)state;
	for (uint32_t node = 0; node < NODES; node++) {
		struct pp_pool *pool = new_pool();

		for (uint32_t i = 0; i < ALL_PAGES; i++) {
			page[i] = pp_pool_alloc(pool, node, 0, 0);
			assert_non_null(page[i]);
			assert_int_equal(home(pool, page[i]), fallback[node][i / NODE_PAGES]);
			memset(page[i], (int)i, PP_PAGE_SIZE - 3 * PP_COLOUR_STEP);
		}
		assert_null(pp_pool_alloc(pool, node, 0, 0));
		assert_int_equal(rte_errno, ENOMEM);
		for (uint32_t other = 0; other < NODES; other++) {
			assert_null(pp_pool_alloc(pool, other, 0, 0));
			assert_int_equal(pp_zone_free_pages(pp_pool_zone(pool, other)), 0);
			if (other == node)
				assert_node_stats(pool, other, NODE_PAGES, 0, 3 * NODE_PAGES);
			else
				assert_node_stats(pool, other, 0, NODE_PAGES, 0);
		}
		for (uint32_t i = 0; i < ALL_PAGES; i++)
			assert_int_equal(*(unsigned char *)page[i], i & 0xff);
		for (uint32_t i = 0; i < ALL_PAGES; i++)
			assert_int_equal(pp_pool_free(pool, page[i], 0), 0);
		assert_whole(pool);
		destroy(pool);
	}
}

/* Each node in turn has nothing left, all others have. */
static void
one_exhausted_node_falls_back(void **state)
{
	(void)state;
	for (uint32_t node = 0; node < NODES; node++) {
		struct pp_pool *pool = new_pool();
		void *all = pp_pool_alloc(pool, node, NODE_ORDER, 0);

		assert_non_null(all);
		assert_int_equal(home(pool, all), node);
		for (uint32_t asked = 0; asked < NODES; asked++) {
			const uint32_t served = asked == node ? fallback[node][1] : asked;
			void *page = pp_pool_alloc(pool, asked, 3, 0);

			assert_non_null(page);
			assert_int_equal(home(pool, page), served);
			assert_int_equal(pp_pool_free(pool, page, 3), 0);
		}
		assert_node_stats(pool, node, 1, 0, 1);
		assert_node_stats(pool, fallback[node][1], 1, 1, 0);
		assert_int_equal(pp_pool_free(pool, all, NODE_ORDER), 0);
		assert_whole(pool);
		destroy(pool);
	}
}

/* What is too large for what is left of a node comes from the next one. */
static void
large_blocks_fall_back_too(void **state)
{
	struct pp_pool *pool = new_pool();
	void *small = pp_pool_alloc(pool, 2, 0, 0);
	void *large = pp_pool_alloc(pool, 2, NODE_ORDER, 0);

	(void)state;
	assert_int_equal(home(pool, small), 2);
	assert_int_equal(home(pool, large), 0);
	assert_null(pp_pool_alloc(pool, 2, NODE_ORDER + 1, 0));
	assert_int_equal(rte_errno, EINVAL);
	assert_int_equal(pp_pool_free(pool, small, 0), 0);
	assert_int_equal(pp_pool_free(pool, large, NODE_ORDER), 0);
	assert_whole(pool);
	destroy(pool);
}

static void
nodes_without_memory_have_no_zone(void **state)
{
	struct pp_pool_config sparse = config;

	(void)state;
	sparse.bytes_per_node[0] = 0;
	sparse.bytes_per_node[2] = 0;
	struct pp_pool *pool = pp_pool_create(&sparse);

	assert_non_null(pool);
	assert_null(pp_pool_zone(pool, 0));
	assert_non_null(pp_pool_zone(pool, 1));
	assert_null(pp_pool_zone(pool, 2));
	void *page = pp_pool_alloc(pool, 0, 0, 0);

	assert_int_equal(home(pool, page), 1);
	assert_node_stats(pool, 0, 0, 0, 1);
	assert_node_stats(pool, 1, 0, 1, 0);
	assert_int_equal(pp_pool_free(pool, page, 0), 0);
	destroy(pool);
}

static void
wrong_frees_are_refused_and_counted(void **state)
{
	struct pp_pool *pool = new_pool();
	void *page = pp_pool_alloc(pool, 1, 1, 0);
	uint64_t bad = 0;
	int local;

	(void)state;
	unit_log_clear();
	assert_int_equal(pp_pool_free(pool, &local, 0), -EINVAL);
	assert_int_equal(pp_pool_free(pool, NULL, 0), -EINVAL);
	assert_int_equal(pp_pool_free(pool, page, 0), -EINVAL);
	assert_int_equal(pp_pool_free(pool, (char *)page + 8, 1), -EINVAL);
	assert_int_equal(pp_pool_free(pool, page, 1), 0);
	assert_int_equal(pp_pool_free(pool, page, 1), -EINVAL);
	unit_assert_logged("double free?");
	for (uint32_t i = 0; i < NODES; i++) {
		struct pp_zone_stats stats;

		pp_zone_get_stats(pp_pool_zone(pool, i), &stats);
		bad += stats.bad_frees;
	}
	assert_int_equal(bad, 5);
	assert_whole(pool);
	destroy(pool);
}

static void
a_held_zone_is_passed_by_with_trylock(void **state)
{
	struct pp_pool *pool = new_pool();
	void *page;

	(void)state;
	assert_true(pp_trylock(&pp_pool_zone(pool, 0)->lock));
	page = pp_pool_alloc(pool, 0, 0, PP_ALLOC_TRYLOCK);
	assert_int_equal(home(pool, page), 2);
	assert_int_equal(pp_pool_free(pool, page, 0), 0);
	for (uint32_t i = 1; i < NODES; i++)
		assert_true(pp_trylock(&pp_pool_zone(pool, i)->lock));
	assert_null(pp_pool_alloc(pool, 0, 0, PP_ALLOC_TRYLOCK));
	assert_int_equal(rte_errno, EBUSY);
	for (uint32_t i = 0; i < NODES; i++)
		pp_unlock(&pp_pool_zone(pool, i)->lock);
	assert_whole(pool);
	destroy(pool);
}

static void
pools_in_use_are_not_destroyed(void **state)
{
	struct pp_pool *pool = new_pool();

	(void)state;
	for (uint32_t node = 0; node < NODES; node++) {
		void *page = pp_pool_alloc(pool, node, 0, 0);

		unit_log_clear();
		assert_int_equal(pp_pool_destroy(pool), -EBUSY);
		unit_assert_logged("1 pages");
		memset(page, 1, PP_PAGE_SIZE / 2); /* still mapped */
		assert_int_equal(pp_pool_free(pool, page, 0), 0);
		assert_whole(pool);
	}
	destroy(pool);
}

static void
assert_refused(const struct pp_pool_config *bad, int err)
{
	struct unit_resources before;

	unit_resources_get(&before);
	rte_errno = 0;
	assert_null(pp_pool_create(bad));
	assert_int_equal(rte_errno, err);
	unit_resources_assert(&before);
}

static void
refuses_what_does_not_fit_together(void **state)
{
	struct pp_topology crooked = topology;
	struct pp_pool_config bad = config;

	(void)state;
	bad.name = NULL;
	assert_refused(&bad, EINVAL);
	bad.name = "";
	assert_refused(&bad, EINVAL);
	bad.name = "thirty-characters-and-no-digit";
	assert_refused(&bad, ENAMETOOLONG);

	bad = config;
	memset(bad.bytes_per_node, 0, sizeof(bad.bytes_per_node));
	assert_refused(&bad, EINVAL);
	bad.bytes_per_node[NODES] = NODE_BYTES; /* no such node */
	assert_refused(&bad, EINVAL);

	bad = config;
	bad.page_size = 12345;
	assert_refused(&bad, EINVAL);
	bad = config;
	bad.colours = 66; /* would reach into the next page */
	assert_refused(&bad, EINVAL);
	bad = config;
	bad.topology = &crooked;
	crooked.distance[2][1] = 3;
	assert_refused(&bad, EINVAL);
}

/* The last node cannot be had: what the others got is given back. */
static void
partial_creation_leaves_nothing(void **state)
{
	struct pp_pool_config greedy = config;

	(void)state;
	unit_limit_address_space();
	greedy.bytes_per_node[3] = (size_t)2 << 40;
	assert_refused(&greedy, ENOMEM);
}

static void
every_failing_allocation_is_clean(void **state)
{
	struct pp_pool_config two = config;
	unsigned int n;

	(void)state;
	two.bytes_per_node[1] = two.bytes_per_node[2] = 0;
	n = unit_fail_each(create, destroy, &two);
	/* the pool; twice an arena (6), a zone, its place in telemetry, and its three tables */
	assert_int_equal(n, 1 + 2 * (6 + 2 + 3));
}

static void
detects_the_topology_when_none_is_given(void **state)
{
	struct pp_pool_config detect = config;

	(void)state;
	detect.topology = NULL;
	memset(detect.bytes_per_node, 0, sizeof(detect.bytes_per_node));
	detect.bytes_per_node[0] = NODE_BYTES;
	struct pp_pool *pool = pp_pool_create(&detect);

	assert_non_null(pool);
	void *page = pp_pool_alloc(pool, 0, 0, 0);

	assert_non_null(page);
	assert_node_stats(pool, 0, 1, 0, 0);
	assert_int_equal(pp_pool_free(pool, page, 0), 0);
	destroy(pool);
}

static void
dumps_nodes_and_zones(void **state)
{
	struct pp_pool *pool = new_pool();
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	void *page = pp_pool_alloc(pool, 3, 0, 0);

	(void)state;
	pp_pool_dump(pool, f);
	fclose(f);
	assert_non_null(strstr(text, "Pool pool, node 0: numa_hit 0 numa_miss 0 numa_foreign 0\n"));
	assert_non_null(strstr(text, "Pool pool, node 3: numa_hit 1 numa_miss 0 numa_foreign 0\n"));
	assert_non_null(strstr(text, "pool-0"));
	assert_non_null(strstr(text, "pool-3"));
	free(text);
	assert_int_equal(pp_pool_free(pool, page, 0), 0);
	destroy(pool);
}

struct worker {
	struct pp_pool *pool;
	uint32_t node;
	uint64_t allocs;
};

static void *
work(void *arg)
{
	struct worker *worker = arg;
	void *page[64];

	for (int round = 0; round < 2000; round++) {
		unsigned int n = 0;

		for (; n < RTE_DIM(page); n++) {
			page[n] = pp_pool_alloc(worker->pool, worker->node, n % 4, 0);
			if (page[n] == NULL)
				break;
			*(uint32_t *)page[n] = worker->node;
			worker->allocs++;
		}
		while (n-- > 0)
			if (*(uint32_t *)page[n] != worker->node ||
				pp_pool_free(worker->pool, page[n], n % 4) != 0)
				return arg;
	}
	return NULL;
}

static void
threads_lose_nothing(void **state)
{
	struct pp_pool *pool = new_pool();
	struct worker worker[3];
	pthread_t thread[3];
	uint64_t allocs = 0, served = 0, foreign = 0, missed = 0;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		worker[i] = (struct worker){.pool = pool, .node = i};
		assert_int_equal(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
	}
	for (uint32_t i = 0; i < 3; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		assert_null(failed);
		allocs += worker[i].allocs;
	}
	for (uint32_t i = 0; i < NODES; i++) {
		struct pp_pool_node_stats stats;

		pp_pool_get_node_stats(pool, i, &stats);
		served += stats.numa_hit + stats.numa_miss;
		missed += stats.numa_miss;
		foreign += stats.numa_foreign;
	}
	assert_int_equal(served, allocs);
	assert_int_equal(missed, foreign);
	assert_whole(pool);
	destroy(pool);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serves_the_node_that_is_asked),
		cmocka_unit_test(exhausts_nodes_by_distance),
		cmocka_unit_test(one_exhausted_node_falls_back),
		cmocka_unit_test(large_blocks_fall_back_too),
		cmocka_unit_test(nodes_without_memory_have_no_zone),
		cmocka_unit_test(wrong_frees_are_refused_and_counted),
		cmocka_unit_test(a_held_zone_is_passed_by_with_trylock),
		cmocka_unit_test(pools_in_use_are_not_destroyed),
		cmocka_unit_test(refuses_what_does_not_fit_together),
		cmocka_unit_test(partial_creation_leaves_nothing),
		cmocka_unit_test(every_failing_allocation_is_clean),
		cmocka_unit_test(detects_the_topology_when_none_is_given),
		cmocka_unit_test(dumps_nodes_and_zones),
		cmocka_unit_test(threads_lose_nothing),
	};

	unit_eal_init(64);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
