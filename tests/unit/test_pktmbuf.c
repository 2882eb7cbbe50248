/* SPDX-License-Identifier: BSD-3-Clause */
/* Page pools of mbufs over each backend, in one memory mode (the argument: nohuge, va or pa). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mbuf.h>

#include "mempool_unit.h"

#define MBUFS 1100u /* a little more than two hugepages */

static const enum pp_backend backends[] = {PP_BACKEND_MEMZONE, PP_BACKEND_MEMFD, PP_BACKEND_ANON};

/* What costs no hugepages, where it can be had: plain pages have no lasting physical address. */
static enum pp_backend
cheapest(void)
{
	return rte_eal_iova_mode() == RTE_IOVA_PA ? PP_BACKEND_MEMZONE : PP_BACKEND_ANON;
}

/* NULL, with a line, where the machine has no memory of that kind. */
static struct rte_mempool *
pool(enum pp_backend backend, unsigned int n, uint16_t priv_size, uint16_t room)
{
	const struct pp_pktmbuf_config config = {.backend = backend};

	if (backend == PP_BACKEND_MEMFD &&
		unit_hugepages_available(2048) < n * PP_PAGE_SIZE / (2 * UNIT_MIB) + 1) {
		unit_skip_line("no hugepages for backend memfd");
		return NULL;
	}
	struct rte_mempool *mp =
		pp_pktmbuf_pool_create("mp", n, priv_size, room, SOCKET_ID_ANY, &config);

	if (mp == NULL && backend == PP_BACKEND_MEMFD && !rte_eal_has_hugepages()) {
		unit_skip_line("EAL without hugepages does not take backend memfd");
		return NULL;
	}
	assert_non_null(mp);
	return mp;
}

static void
for_each_backend(void (*test)(enum pp_backend backend))
{
	struct unit_resources before;

	test(cheapest()); /* what the first one leaves for good */
	for (size_t i = 0; i < RTE_DIM(backends); i++) {
		if (backends[i] == PP_BACKEND_ANON && cheapest() != PP_BACKEND_ANON)
			continue;
		unit_resources_get(&before);
		test(backends[i]);
		assert_nothing_left(&before);
	}
}

static void
close_pool(struct rte_mempool *mp)
{
	assert_int_equal(rte_mempool_in_use_count(mp), 0);
	assert_true(pp_zone_is_valid(pcp_cache_zone(pp_mempool_cache(mp))));
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
}

/* ---- every mbuf is an mbuf, and all of its room is there ---- */

static void
assert_is_usable(struct rte_mbuf *mbuf, unsigned int i)
{
	const uint16_t room = rte_pktmbuf_data_room_size(mbuf->pool);
	const char *reason;

	assert_int_equal(rte_mbuf_check(mbuf, 1, &reason), 0);
	assert_int_equal(mbuf->buf_len, room);
	assert_int_equal(mbuf->priv_size, rte_pktmbuf_priv_size(mbuf->pool));
	/* header, mbuf, private area and data lie in one page */
	assert_int_equal((uintptr_t)rte_mempool_get_header(mbuf) / PP_PAGE_SIZE,
		((uintptr_t)mbuf->buf_addr + room - 1) / PP_PAGE_SIZE);
	const char *const data = rte_pktmbuf_mtod(mbuf, char *);

	/* A virtual machine may be made to move even hugepages: physical addresses are as of the
	 * object's making. */
	assert_true(rte_pktmbuf_iova(mbuf) ==
		    rte_mempool_virt2iova(mbuf) + (rte_iova_t)(data - (char *)mbuf));
	if (rte_eal_iova_mode() == RTE_IOVA_VA)
		assert_true(rte_pktmbuf_iova(mbuf) == rte_mem_virt2iova(data));
	memset(rte_mbuf_to_priv(mbuf), (int)(i % 127), mbuf->priv_size);
	memset(mbuf->buf_addr, (int)(i % 251), room);
}

static void
assert_is_untouched(struct rte_mbuf *mbuf, unsigned int i)
{
	const uint8_t *byte = mbuf->buf_addr, *private = rte_mbuf_to_priv(mbuf);
	const char *reason;

	for (unsigned int k = 0; k < mbuf->buf_len; k++)
		assert_int_equal(byte[k], i % 251);
	for (unsigned int k = 0; k < mbuf->priv_size; k++)
		assert_int_equal(private[k], i % 127);
	assert_int_equal(rte_mbuf_check(mbuf, 1, &reason), 0);
}

static void
use_all(enum pp_backend backend)
{
	static const struct {
		uint16_t priv_size, room;
	} shapes[] = {
		{0, RTE_MBUF_DEFAULT_BUF_SIZE},
		{64, 2048},
		{0, PP_PKTMBUF_ROOM_MAX},
		{128, PP_PKTMBUF_ROOM_MAX - 128},
		{0, RTE_PKTMBUF_HEADROOM},
		{0, 0},
	};

	for (size_t s = 0; s < RTE_DIM(shapes); s++) {
		struct rte_mempool *mp = pool(backend, MBUFS, shapes[s].priv_size, shapes[s].room);
		struct rte_mbuf *mbuf[MBUFS];

		if (mp == NULL)
			return;
		assert_int_equal(rte_pktmbuf_alloc_bulk(mp, mbuf, MBUFS), 0);
		assert_null(rte_pktmbuf_alloc(mp));
		for (unsigned int i = 0; i < MBUFS; i++)
			assert_is_usable(mbuf[i], i);
		for (unsigned int i = 0; i < MBUFS; i++)
			assert_is_untouched(mbuf[i], i);
		rte_pktmbuf_free_bulk(mbuf, MBUFS);
		assert_at_home(mp, MBUFS);
		close_pool(mp);
	}
}

static void
all_mbufs_are_usable(void **state)
{
	(void)state;
	for_each_backend(use_all);
}

/* ---- colours ---- */

/* Of the 64 sets of a 32-KiB cache with lines of 64 bytes. */
static unsigned int
cache_set(const void *addr)
{
	return (uintptr_t)addr / RTE_CACHE_LINE_SIZE % 64;
}

static void
use_different_lines(enum pp_backend backend)
{
	struct rte_mempool *mp = pool(backend, MBUFS, 0, RTE_MBUF_DEFAULT_BUF_SIZE);
	unsigned int in_set[64] = {0}, sets = 0;
	struct rte_mbuf *mbuf[MBUFS];
	unsigned int neighbours = 0;

	if (mp == NULL)
		return;
	assert_int_equal(rte_pktmbuf_alloc_bulk(mp, mbuf, MBUFS), 0);
	for (unsigned int i = 0; i < MBUFS; i++)
		in_set[cache_set(mbuf[i])]++;
	for (unsigned int i = 1; i < MBUFS; i++) {
		const uintptr_t page = (uintptr_t)mbuf[i] / PP_PAGE_SIZE;

		if (page == (uintptr_t)mbuf[i - 1] / PP_PAGE_SIZE + 1) {
			neighbours++;
			assert_int_not_equal(cache_set(mbuf[i]), cache_set(mbuf[i - 1]));
		}
	}
	assert_true(neighbours > MBUFS / 2);
	/* 2304 bytes and headers leave 28 lines of a page: that many sets, evenly used */
	for (unsigned int i = 0; i < 64; i++) {
		sets += in_set[i] > 0;
		assert_true(in_set[i] <= MBUFS / 25 + 1);
	}
	assert_true(sets >= 25);
	rte_pktmbuf_free_bulk(mbuf, MBUFS);
	close_pool(mp);
}

static void
headers_of_neighbours_use_different_lines(void **state)
{
	(void)state;
	for_each_backend(use_different_lines);
}

/* ---- memory ---- */

static void
is_contiguous(enum pp_backend backend)
{
	struct rte_mempool *mp = pool(backend, MBUFS, 0, RTE_MBUF_DEFAULT_BUF_SIZE);

	if (mp == NULL)
		return;
	if (rte_eal_iova_mode() == RTE_IOVA_VA)
		assert_int_equal(mp->nb_mem_chunks, 1);
	assert_int_equal(mp->cache_size, 0);
	close_pool(mp);
}

static void
virtual_addresses_make_one_chunk(void **state)
{
	(void)state;
	for_each_backend(is_contiguous);
}

/* ---- refusals ---- */

static void
sizes_that_do_not_fit_are_refused(void **state)
{
	static const struct {
		unsigned int n;
		uint16_t priv_size, room;
	} bad[] = {
		{0, 0, 2048}, {100, 0, PP_PKTMBUF_ROOM_MAX + 1}, {100, 8, PP_PKTMBUF_ROOM_MAX},
		{100, UINT16_MAX - 7, UINT16_MAX},
		{100, 1, 2048}, /* as rte_pktmbuf_pool_create() */
	};
	struct unit_resources before;

	(void)state;
	unit_resources_get(&before);
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		const struct pp_pktmbuf_config config = {.backend = cheapest()};

		rte_errno = 0;
		assert_null(pp_pktmbuf_pool_create(
			"mp", bad[i].n, bad[i].priv_size, bad[i].room, SOCKET_ID_ANY, &config));
		assert_int_equal(rte_errno, EINVAL);
	}
	assert_nothing_left(&before);
}

static void
a_name_is_used_once(void **state)
{
	(void)state;
	struct rte_mempool *mp = pool(cheapest(), 10, 0, 2048);
	const struct pp_pktmbuf_config config = {.backend = cheapest()};

	rte_errno = 0;
	assert_null(pp_pktmbuf_pool_create("mp", 10, 0, 2048, SOCKET_ID_ANY, &config));
	assert_int_equal(rte_errno, EEXIST);
	close_pool(mp);
}

static void
cache_settings_that_make_no_sense_are_refused(void **state)
{
	const struct pp_pktmbuf_config config = {
		.backend = cheapest(), .pcp.batch = PCP_BATCH_MAX + 1};
	struct unit_resources before;

	(void)state;
	unit_resources_get(&before);
	rte_errno = 0;
	assert_null(pp_pktmbuf_pool_create("mp", 10, 0, 2048, SOCKET_ID_ANY, &config));
	assert_int_equal(rte_errno, EINVAL);
	assert_nothing_left(&before);
}

static void
plain_pages_are_refused_with_physical_addresses(void **state)
{
	const struct pp_pktmbuf_config config = {.backend = PP_BACKEND_ANON};

	(void)state;
	if (rte_eal_iova_mode() != RTE_IOVA_PA)
		skip();
	unit_log_clear();
	rte_errno = 0;
	assert_null(pp_pktmbuf_pool_create("mp", 10, 0, 2048, SOCKET_ID_ANY, &config));
	assert_int_equal(rte_errno, ENOTSUP);
	unit_assert_logged("plain pages have no lasting physical address; use");
}

static void
not_freed_while_mbufs_are_in_use(void **state)
{
	struct rte_mbuf *mbuf[3];

	(void)state;
	struct rte_mempool *mp = pool(cheapest(), 10, 0, 2048);

	assert_int_equal(rte_pktmbuf_alloc_bulk(mp, mbuf, 3), 0);
	for (unsigned int i = 3; i > 0; i--) {
		char text[32];

		unit_log_clear();
		assert_int_equal(pp_pktmbuf_pool_free(mp), -EBUSY);
		snprintf(text, sizeof(text), "not freed, %u mbufs", i);
		unit_assert_logged(text);
		rte_pktmbuf_free(mbuf[i - 1]);
	}
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
	assert_int_equal(pp_pktmbuf_pool_free(NULL), 0);
}

static void
counts_from_one_up(void **state)
{
	static const unsigned int counts[] = {1, 2, 3, 511, 512, 513};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(counts); i++) {
		struct rte_mempool *mp = pool(cheapest(), counts[i], 0, 2048);
		struct rte_mbuf *mbuf[513];

		assert_int_equal(rte_pktmbuf_alloc_bulk(mp, mbuf, counts[i]), 0);
		assert_null(rte_pktmbuf_alloc(mp));
		rte_pktmbuf_free_bulk(mbuf, counts[i]);
		assert_at_home(mp, counts[i]);
		close_pool(mp);
	}
}

static void
the_dump_says_what_it_is(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	struct rte_mempool *mp = pool(cheapest(), 10, 0, 2048);

	pp_mempool_dump(mp, f);
	fclose(f);
	assert_non_null(strstr(text, "mempool mp: 10 objects of 2176 bytes, one per page"));
	assert_non_null(strstr(text, "pcp_cache mp: mode bh"));
	free(text);
	close_pool(mp);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_mbufs_are_usable),
		cmocka_unit_test(headers_of_neighbours_use_different_lines),
		cmocka_unit_test(virtual_addresses_make_one_chunk),
		cmocka_unit_test(sizes_that_do_not_fit_are_refused),
		cmocka_unit_test(a_name_is_used_once),
		cmocka_unit_test(cache_settings_that_make_no_sense_are_refused),
		cmocka_unit_test(plain_pages_are_refused_with_physical_addresses),
		cmocka_unit_test(not_freed_while_mbufs_are_in_use),
		cmocka_unit_test(counts_from_one_up),
		cmocka_unit_test(the_dump_says_what_it_is),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
