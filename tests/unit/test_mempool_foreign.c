/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools that another driver made, or another build of ours: every operation on them is refused. */

#include <errno.h>
#include <string.h>

#include "../../drivers/mempool/pagepool/mempool_internal.h"
#include "mempool_unit.h"

#define N 64u

static void
refused_in_every_operation(void **state __rte_unused)
{
	struct rte_mempool *mp = mempool_empty(N, 128, 0, 0);
	struct pp_mempool *pool;
	void *object, *other = NULL;

	assert_int_equal(rte_mempool_populate_default(mp), N);
	assert_int_equal(rte_mempool_get(mp, &object), 0);
	pool = mp->pool_data;
	pool->layout ^= 1;
	unit_log_clear();
	assert_int_equal(rte_mempool_get(mp, &other), -EINVAL);
	assert_null(other);
	unit_assert_logged("mp was made by another driver or build");
	assert_int_equal(rte_mempool_ops_enqueue_bulk(mp, &object, 1), -EINVAL);
	assert_int_equal(rte_mempool_avail_count(mp), 0);
	assert_null(pp_mempool_cache(mp));

	/* What may not be ours is not given up, either. */
	rte_mempool_get_ops(mp->ops_index)->free(mp);
	pool->layout ^= 1;
	assert_int_equal(rte_mempool_avail_count(mp), N - 1);
	rte_mempool_put(mp, object);
	assert_at_home(mp, N);
	rte_mempool_free(mp);
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_in_every_operation),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
