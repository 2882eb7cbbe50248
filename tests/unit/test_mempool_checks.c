/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks below mempools: mbufs stay mbufs, and bad ones are no longer of the pool. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mbuf.h>

#include "mempool_unit.h"

#define MBUFS 600u
#define PRIV  64u

static enum pcp_checks checks; /* of the test that runs */

static struct rte_mempool *
pages_pool(const char *name)
{
	const struct pp_pktmbuf_config config = {.pcp.checks = checks};
	struct rte_mempool *mp =
		pp_pktmbuf_pool_create(name, MBUFS, PRIV, 2048, SOCKET_ID_ANY, &config);

	assert_non_null(mp);
	unit_log_clear();
	return mp;
}

/* By the ops, in DPDK's layout. */
static struct rte_mempool *
ops_pool(unsigned int cache_size)
{
	struct pp_mempool_config config = {.pcp.checks = checks};
	struct rte_mempool *mp = mempool_empty(MBUFS, 500, cache_size, 0);

	assert_int_equal(rte_mempool_set_ops_byname(mp, PP_MEMPOOL_OPS_NAME, &config), 0);
	assert_int_equal(rte_mempool_populate_default(mp), (int)MBUFS);
	unit_log_clear();
	return mp;
}

static struct pcp_stats
stats_of_pool(const struct rte_mempool *mp)
{
	struct pcp_stats stats;

	pcp_cache_drain(pp_mempool_cache(mp));
	pcp_cache_get_stats(pp_mempool_cache(mp), &stats);
	return stats;
}

/* `bad` objects have gone for good, DPDK's count says so, and all others are there. */
static void
assert_conserved(struct rte_mempool *mp, unsigned int bad)
{
	const struct pcp_stats stats = stats_of_pool(mp);
	void *object[MBUFS];

	assert_int_equal(stats.bad_pages, bad);
	assert_int_equal(stats.in_use_pages, 0);
	assert_int_equal(stats.missing_pages, 0);
	assert_int_equal(pp_mempool_bad_count(mp), bad);
	assert_int_equal(rte_mempool_in_use_count(mp), bad);
	assert_int_equal(rte_mempool_get_bulk(mp, object, MBUFS - bad), 0);
	assert_int_equal(rte_mempool_get_bulk(mp, object, 1), -ENOBUFS);
	rte_mempool_put_bulk(mp, object, MBUFS - bad);
	assert_int_equal(rte_mempool_avail_count(mp), MBUFS - bad);
}

static void
mbufs_stay_mbufs(void **state __rte_unused)
{
	struct rte_mempool *mp = pages_pool("mp");
	struct rte_mbuf *mbuf[MBUFS];
	const char *reason;

	for (unsigned int round = 0; round < 3; round++) {
		assert_int_equal(rte_pktmbuf_alloc_bulk(mp, mbuf, MBUFS), 0);
		for (unsigned int i = 0; i < MBUFS; i++) {
			struct rte_mbuf **mine = rte_mbuf_to_priv(mbuf[i]);

			assert_int_equal(rte_mbuf_check(mbuf[i], 1, &reason), 0);
			assert_int_equal(mbuf[i]->buf_len, 2048);
			if (round > 0) /* what is private to the application is not touched */
				assert_ptr_equal(*mine, mbuf[i]);
			*mine = mbuf[i];
			memset(mbuf[i]->buf_addr, 1, mbuf[i]->buf_len);
		}
		rte_pktmbuf_free_bulk(mbuf, MBUFS);
		for (unsigned int i = 0; i < MBUFS; i++)
			assert_int_equal(((uint8_t *)mbuf[i]->buf_addr)[2047],
				checks == PCP_CHECKS_FULL ? PP_PAGE_POISON : 1);
	}
	assert_conserved(mp, 0);
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
}

static void
a_write_after_free(void **state __rte_unused)
{
	struct rte_mempool *mp = pages_pool("mp");
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(mp), *next;
	const bool found = checks == PCP_CHECKS_FULL;

	rte_pktmbuf_free(mbuf);
	rte_pktmbuf_mtod(mbuf, char *)[10] = 'x';
	next = rte_pktmbuf_alloc(mp);
	assert_true((next != mbuf) == found);
	rte_pktmbuf_free(next);
	assert_int_equal(stats_of_pool(mp).bad[PP_BAD_POISON], found);
	if (found)
		unit_assert_logged("poison: written to while it was free");
	assert_conserved(mp, found);
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
}

/* Where the caller says what may be poisoned, the rest is left as it is. */
static void
poison_of_the_callers_choice(void **state __rte_unused)
{
	const uint32_t offset = (uint32_t)sizeof(struct rte_mbuf) + PRIV + 1000;
	const struct pp_pktmbuf_config config = {
		.pcp = {.checks = PCP_CHECKS_FULL, .poison_offset = offset, .poison_len = 8}};
	struct rte_mempool *mp =
		pp_pktmbuf_pool_create("mp", MBUFS, PRIV, 2048, SOCKET_ID_ANY, &config);
	struct rte_mbuf *mbuf, *next;

	assert_non_null(mp);
	mbuf = rte_pktmbuf_alloc(mp);
	assert_non_null(mbuf);
	memset(mbuf->buf_addr, 1, mbuf->buf_len);
	rte_pktmbuf_free(mbuf);
	for (uint32_t i = 0; i < mbuf->buf_len; i++)
		assert_int_equal(
			((uint8_t *)mbuf->buf_addr)[i], i / 8 == 1000 / 8 ? PP_PAGE_POISON : 1);
	((uint8_t *)mbuf->buf_addr)[999] = ((uint8_t *)mbuf->buf_addr)[1008] = 2;
	next = rte_pktmbuf_alloc(mp);
	assert_ptr_equal(next, mbuf);
	rte_pktmbuf_free(next);
	((uint8_t *)mbuf->buf_addr)[1007] = 2;
	next = rte_pktmbuf_alloc(mp);
	assert_ptr_not_equal(next, mbuf);
	rte_pktmbuf_free(next);
	assert_conserved(mp, 1);
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
}

static void
a_double_free(void **state __rte_unused)
{
	for (unsigned int kind = 0; kind < 3; kind++) {
		struct rte_mempool *mp =
			kind == 0 ? pages_pool("mp") : ops_pool(kind == 1 ? 0 : 64);
		void *object, *kept;

		assert_int_equal(rte_mempool_get(mp, &object), 0);
		assert_int_equal(rte_mempool_get(mp, &kept), 0);
		rte_mempool_put(mp, object);
		rte_mempool_put(mp, object);
		/* the mempool library's own cache hides them until it is flushed */
		rte_mempool_cache_flush(rte_mempool_default_cache(mp, rte_lcore_id()), mp);
		assert_int_equal(stats_of_pool(mp).bad[PP_BAD_DOUBLE_FREE], 1);
		unit_assert_logged("double free");
		rte_mempool_put(mp, kept);
		rte_mempool_cache_flush(rte_mempool_default_cache(mp, rte_lcore_id()), mp);
		if (kind == 0) {
			assert_conserved(mp, 1);
			assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
		} else {
			assert_int_equal(stats_of_pool(mp).bad_pages, 1);
			rte_mempool_free(mp);
		}
	}
}

static void
an_object_of_another_pool(void **state __rte_unused)
{
	struct rte_mempool *mp = pages_pool("mp"), *other = pages_pool("other");
	void *object;

	assert_int_equal(rte_mempool_get(other, &object), 0);
	rte_mempool_put(mp, object);
	assert_int_equal(stats_of_pool(mp).bad[PP_BAD_FOREIGN], 1);
	unit_assert_logged("foreign pointer");
	assert_conserved(mp, 0);
	rte_mempool_put(other, object);
	assert_conserved(other, 0);
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
	assert_int_equal(pp_pktmbuf_pool_free(other), 0);
}

static void
other_pools_have_no_bad_objects(void **state __rte_unused)
{
	struct rte_mempool *mp = mempool_empty(10, 100, 0, 0);

	assert_int_equal(rte_mempool_set_ops_byname(mp, "ring_mp_mc", NULL), 0);
	assert_int_equal(pp_mempool_bad_count(mp), 0);
	rte_mempool_free(mp);
}

static int
deferred(void **state __rte_unused)
{
	checks = PCP_CHECKS_DEFERRED;
	return 0;
}

static int
full(void **state __rte_unused)
{
	checks = PCP_CHECKS_FULL;
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(mbufs_stay_mbufs, deferred),
		cmocka_unit_test_setup(mbufs_stay_mbufs, full),
		cmocka_unit_test_setup(a_write_after_free, deferred),
		cmocka_unit_test_setup(a_write_after_free, full),
		cmocka_unit_test(poison_of_the_callers_choice),
		cmocka_unit_test_setup(a_double_free, deferred),
		cmocka_unit_test_setup(a_double_free, full),
		cmocka_unit_test_setup(an_object_of_another_pool, deferred),
		cmocka_unit_test_setup(an_object_of_another_pool, full),
		cmocka_unit_test(other_pools_have_no_bad_objects),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
