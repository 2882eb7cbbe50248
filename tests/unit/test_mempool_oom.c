/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation that makes a mempool of ours, failing in turn (the argument: nohuge or va). */

#include <errno.h>

#include <rte_errno.h>
#include <rte_mbuf.h>

#include "mempool_unit.h"

/* Elements that no page holds a whole number of make many runs: their table grows. */
static void *
create_by_ops(void *unused)
{
	(void)unused;
	struct rte_mempool *mp = rte_mempool_create_empty("mp", 800, 1400, 0, 0, SOCKET_ID_ANY, 0);

	if (mp == NULL)
		return NULL;
	assert_int_equal(rte_mempool_set_ops_byname(mp, PP_MEMPOOL_OPS_NAME, NULL), 0);
	const int rc = rte_mempool_populate_default(mp);

	if (rc == 800)
		return mp;
	rte_mempool_free(mp);
	rte_errno = -rc;
	return NULL;
}

static void *
create_page_pool(void *config)
{
	return pp_pktmbuf_pool_create("mp", 800, 0, 2048, SOCKET_ID_ANY, config);
}

static void
destroy(void *mp)
{
	exercise(mp, 800);
	rte_mempool_free(mp);
}

/* For bytes see assert_nothing_left(). */
static unsigned int
fail_each(void *(*create)(void *arg), void *arg)
{
	return unit_fail_each_but(create, destroy, arg, assert_nothing_left);
}

static void
ops_fail_cleanly(void **state)
{
	(void)state;
	/* pool, zone and its place in telemetry, 6 for the caches; the table of runs, where there
	 * are any, and 4 for the zone
	 */
	assert_int_equal(fail_each(create_by_ops, NULL), rte_eal_has_hugepages() ? 13 : 16);
}

static void
page_pools_fail_cleanly(void **state)
{
	/* 12 without the arena's own */
	static struct {
		struct pp_pktmbuf_config config;
		unsigned int n_allocations;
	} backends[] = {
		{{.backend = PP_BACKEND_MEMZONE}, 14},
		{{.backend = PP_BACKEND_MEMFD}, 19},
		{{.backend = PP_BACKEND_ANON}, 18},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(backends); i++) {
		if (backends[i].config.backend == PP_BACKEND_MEMFD &&
			(!rte_eal_has_hugepages() || unit_hugepages_available(2048) < 3)) {
			unit_skip_line("no hugepages for backend memfd");
			continue;
		}
		assert_int_equal(fail_each(create_page_pool, &backends[i].config),
			backends[i].n_allocations);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ops_fail_cleanly),
		cmocka_unit_test(page_pools_fail_cleanly),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
