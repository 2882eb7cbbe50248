/* SPDX-License-Identifier: BSD-3-Clause */
/* The mempool driver at the edges of what it is asked, in one memory mode. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mbuf.h>

#include "../../drivers/mempool/pagepool/mempool_internal.h"
#include "mempool_unit.h"

#define N 64u

/* Before it is populated a pool has neither zone nor caches. */
static void
unpopulated_pools(void **state __rte_unused)
{
	struct rte_mempool *mp = mempool_empty(N, 128, 0, 0);
	const struct rte_mempool_ops *ops = rte_mempool_get_ops(mp->ops_index);
	size_t chunk = 0, align = 0;

	assert_null(pp_mempool_cache(mp));
	assert_true(ops->calc_mem_size(mp, N, 12, &chunk, &align) >= (ssize_t)N * 128);
	assert_true(chunk > 0 && align > 0);
	rte_mempool_free(mp);
}

/* Others may ask for its count while it is being populated. */
static void
counts_while_being_populated(void **state __rte_unused)
{
	struct rte_mempool *mp = mempool_empty(N, 128, 0, 0);

	assert_int_equal(rte_mempool_populate_default(mp), N);

	struct pp_mempool *pool = mp->pool_data;
	const uint64_t layout = pool->layout;

	pool->layout = PP_MEMPOOL_POPULATING;
	assert_int_equal(rte_mempool_avail_count(mp), N);
	assert_non_null(pp_mempool_cache(mp));
	pool->layout = layout;
	assert_at_home(mp, N);
	rte_mempool_free(mp);
}

static void
dumps_say_whose_the_caches_are(void **state __rte_unused)
{
	static const unsigned int cache_size[] = {0, 16};
	static const char *const line[] = {
		"mempool mp: 64 objects of 128 bytes, DPDK's layout, caches: per lcore\n",
		"mempool mp: 64 objects of 128 bytes, DPDK's layout, caches: the mempool's over "
		"the depot\n",
	};

	for (size_t i = 0; i < RTE_DIM(line); i++) {
		struct rte_mempool *mp = mempool_empty(N, 128, cache_size[i], 0);
		char *text = NULL;
		size_t len;
		FILE *f = open_memstream(&text, &len);

		assert_int_equal(rte_mempool_populate_default(mp), N);
		pp_mempool_dump(mp, f);
		fclose(f);
		assert_non_null(strstr(text, line[i]));
		free(text);
		rte_mempool_free(mp);
	}
}

/* No config: EAL's memory, in the pages that it has. */
static void
page_pools_by_default(void **state __rte_unused)
{
	struct rte_mempool *mp = pp_pktmbuf_pool_create("mp", N, 0, 2048, SOCKET_ID_ANY, NULL);

	assert_non_null(mp);

	const struct pp_mempool *pool = mp->pool_data;

	assert_int_equal(pp_arena_page_size(pool->arena),
		rte_eal_has_hugepages() ? RTE_PGSIZE_2M : PP_PAGE_SIZE);
	assert_at_home(mp, N);
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
}

static void
page_pools_of_a_given_page_size(void **state __rte_unused)
{
	struct pp_pktmbuf_config config = {
		.backend = PP_BACKEND_ANON,
		.page_size = PP_PAGE_SIZE,
	};
	struct rte_mempool *mp = pp_pktmbuf_pool_create("mp", N, 0, 2048, SOCKET_ID_ANY, &config);

	if (mp == NULL && rte_eal_iova_mode() == RTE_IOVA_PA)
		unit_skip("plain memory has no physical addresses here");
	assert_non_null(mp);
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
	config.page_size = 3 * PP_PAGE_SIZE;
	assert_null(pp_pktmbuf_pool_create("mp", N, 0, 2048, SOCKET_ID_ANY, &config));
	assert_int_equal(rte_errno, EINVAL);
}

/* Pages of memory without addresses for devices, and memory that holds no whole page. */
static void
pages_of_any_memory(void **state __rte_unused)
{
	static char room[(N + 1) * PP_PAGE_SIZE] __rte_aligned(PP_PAGE_SIZE);
	struct pp_mempool_config config = {.page_per_object = true};
	struct rte_mempool *mp = rte_mempool_create_empty(
		"mp", N, 2048, 0, 0, SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	void *object;

	assert_non_null(mp);
	assert_int_equal(rte_mempool_set_ops_byname(mp, PP_MEMPOOL_OPS_NAME, &config), 0);
	assert_true(rte_mempool_populate_iova(mp, room + 64, RTE_BAD_IOVA, 512, NULL, NULL) <= 0);
	assert_true(rte_mempool_populate_iova(mp, room, RTE_BAD_IOVA, 512, NULL, NULL) <= 0);
	assert_int_equal(mp->populated_size, 0);
	assert_int_equal(rte_mempool_populate_iova(
				 mp, room + 64, RTE_BAD_IOVA, sizeof(room) - 64, NULL, NULL),
		N);
	assert_int_equal(rte_mempool_get(mp, &object), 0);
	assert_true(rte_mempool_virt2iova(object) == RTE_BAD_IOVA);
	assert_true((uintptr_t)object >= (uintptr_t)room + PP_PAGE_SIZE);
	rte_mempool_put(mp, object);
	exercise(mp, N);
	rte_mempool_free(mp);
}

/* Each is a run of its own: their objects lie on different lines all the same. */
static void
single_pages_are_staggered(void **state __rte_unused)
{
	static char room[8 * PP_PAGE_SIZE] __rte_aligned(PP_PAGE_SIZE);
	struct pp_mempool_config config = {.page_per_object = true};
	struct rte_mempool *mp = rte_mempool_create_empty("mp", 8, 1024, 0, 0, SOCKET_ID_ANY, 0);
	void *object[8];

	assert_non_null(mp);
	assert_int_equal(rte_mempool_set_ops_byname(mp, PP_MEMPOOL_OPS_NAME, &config), 0);
	for (unsigned int i = 0; i < RTE_DIM(object); i++)
		assert_int_equal(rte_mempool_populate_iova(mp, room + i * PP_PAGE_SIZE,
					 RTE_BAD_IOVA, PP_PAGE_SIZE, NULL, NULL),
			1);
	assert_int_equal(rte_mempool_get_bulk(mp, object, RTE_DIM(object)), 0);
	for (unsigned int i = 0; i < RTE_DIM(object); i++)
		for (unsigned int k = 0; k < i; k++)
			assert_int_not_equal((uintptr_t)object[i] % PP_PAGE_SIZE,
				(uintptr_t)object[k] % PP_PAGE_SIZE);
	rte_mempool_put_bulk(mp, object, RTE_DIM(object));
	rte_mempool_free(mp);
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(unpopulated_pools),
		cmocka_unit_test(counts_while_being_populated),
		cmocka_unit_test(dumps_say_whose_the_caches_are),
		cmocka_unit_test(page_pools_by_default),
		cmocka_unit_test(page_pools_of_a_given_page_size),
		cmocka_unit_test(pages_of_any_memory),
		cmocka_unit_test(single_pages_are_staggered),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
