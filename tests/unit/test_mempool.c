/* SPDX-License-Identifier: BSD-3-Clause */
/* The mempool ops' contract, in one memory mode (the argument: nohuge, va or pa). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "mempool_unit.h"
#include "worker.h"

static struct unit_resources before;

static int
remember_resources(void **state)
{
	(void)state;
	unit_resources_get(&before);
	return 0;
}

static int
nothing_is_left(void **state)
{
	(void)state;
	assert_nothing_left(&before);
	return 0;
}

static struct rte_mempool *
mempool(unsigned int n, size_t element, unsigned int cache_size, unsigned int flags)
{
	struct rte_mempool *mp = mempool_empty(n, element, cache_size, flags);

	assert_int_equal(rte_mempool_populate_default(mp), n);
	assert_at_home(mp, n);
	return mp;
}

static void
sizes_and_flags(void **state)
{
	static const unsigned int flags[] = {
		0,
		RTE_MEMPOOL_F_NO_SPREAD,
		RTE_MEMPOOL_F_NO_CACHE_ALIGN,
		RTE_MEMPOOL_F_NO_IOVA_CONTIG,
		RTE_MEMPOOL_F_NO_SPREAD | RTE_MEMPOOL_F_NO_CACHE_ALIGN |
			RTE_MEMPOOL_F_NO_IOVA_CONTIG,
	};
	static const size_t elements[] = {1, 8, 64, 100, 1000, 1400, 2048, 2176, 4000, 5000, 9000};
	static const unsigned int counts[] = {1, 2, 3, 1000};

	(void)state;
	for (size_t f = 0; f < RTE_DIM(flags); f++) {
		for (size_t e = 0; e < RTE_DIM(elements); e++) {
			for (size_t i = 0; i < RTE_DIM(counts); i++) {
				struct rte_mempool *mp =
					mempool(counts[i], elements[e], 0, flags[f]);

				exercise(mp, counts[i]);
				rte_mempool_free(mp);
			}
		}
	}
}

/* The library's cache above keeps objects, too; with it the ops use the depot alone. */
static void
under_a_mempool_cache(void **state)
{
	(void)state;
	struct rte_mempool *mp = mempool(2000, 2176, 512, 0);
	struct pcp_stats stats;

	exercise(mp, 2000);
	exercise(mp, 2000);
	pcp_cache_get_stats(pp_mempool_cache(mp), &stats);
	assert_int_equal(stats.cached_pages, 0);
	assert_int_equal(stats.allocs, stats.depot_allocs);
	rte_mempool_free(mp);
}

static void
many_objects(void **state)
{
	(void)state;
	struct rte_mempool *mp = mempool(1 << 16, 64, 0, 0);

	exercise(mp, 1 << 16);
	rte_mempool_free(mp);
}

/* ---- memory of the caller's ---- */

#define ROOM (8 * UNIT_MIB)

/* Chunks of different lengths at odd offsets, so that pages begin and end with any object. */
static void
populate_in_chunks(size_t element, unsigned int flags)
{
	char *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rte_mempool *mp = mempool_empty(100000, element, 0, flags);
	size_t offset = 0;
	unsigned int chunks = 0;

	assert_true(room != MAP_FAILED);
	for (;;) {
		offset += (size_t)(rand() % 4096) / 64 * 64;
		const size_t length = (element + 300) * (size_t)(1 + rand() % 50) + 8192;

		if (offset + length > ROOM)
			break;
		const unsigned int populated = mp->populated_size;
		const int rc =
			rte_mempool_populate_virt(mp, room + offset, length, 4096, NULL, NULL);

		assert_true(rc > 0);
		assert_int_equal(mp->populated_size, populated + (unsigned int)rc);
		assert_at_home(mp, mp->populated_size);
		offset += length;
		chunks++;
	}
	assert_true(chunks > 2);
	exercise(mp, mp->populated_size);
	rte_mempool_free(mp);
	munmap(room, ROOM);
}

static void
chunks_of_any_length(void **state)
{
	static const unsigned int flags[] = {0, RTE_MEMPOOL_F_NO_IOVA_CONTIG};

	(void)state;
	if (rte_eal_iova_mode() == RTE_IOVA_PA)
		unit_skip("plain memory is not contiguous in physical addresses");
	for (size_t f = 0; f < RTE_DIM(flags); f++)
		for (size_t element = 40; element < 9000; element += element / 8)
			populate_in_chunks(element, flags[f]);
}

/* The last two objects of a chunk may lie a page apart: that distance ends with the chunk. */
static void
a_chunk_may_lie_right_behind_another(void **state)
{
	(void)state;
	for (size_t element = 1024; element < 2048; element += 64) {
		char *room = mmap(
			NULL, UNIT_MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct rte_mempool *mp = mempool_empty(
			64, element, 0, RTE_MEMPOOL_F_NO_IOVA_CONTIG | RTE_MEMPOOL_F_NO_SPREAD);
		const size_t object = mp->header_size + mp->elt_size + mp->trailer_size;
		char *const first = room + 2048, *const second = room + 4096 + object;

		assert_true(rte_mempool_populate_iova(mp, first, RTE_BAD_IOVA,
				    (size_t)(second - first), NULL, NULL) > 0);
		assert_true(
			rte_mempool_populate_iova(mp, second, RTE_BAD_IOVA, 65536, NULL, NULL) > 0);
		exercise(mp, mp->populated_size);
		rte_mempool_free(mp);
		munmap(room, UNIT_MIB);
	}
}

/* A populate that runs out of memory gives all of it back, and may be tried again. */
static void
populate_again_after_it_failed(void **state)
{
	enum { BLOCKS = 256 };
	static void *block[BLOCKS];
	unsigned int n = 0;

	(void)state;
	if (rte_eal_has_hugepages())
		unit_skip("EAL would take more hugepages rather than run out");
	while (n < BLOCKS && (block[n] = rte_malloc(NULL, UNIT_MIB, 0)) != NULL)
		n++;
	/* Half of the memory, in pieces: enough to begin with. */
	for (unsigned int i = 0; i < n; i += 2)
		rte_free(block[i]);
	struct rte_mempool *mp = mempool_empty(n * 700, 1024, 0, 0);

	assert_true(rte_mempool_populate_default(mp) < 0);
	assert_int_equal(mp->populated_size, 0);
	for (unsigned int i = 1; i < n; i += 2)
		rte_free(block[i]);
	/* that starts over, which takes memory, too */
	unit_fail_calls("rte_zmalloc_socket", ENOMEM);
	assert_int_equal(rte_mempool_populate_default(mp), -ENOMEM);
	unit_fail_calls(NULL, 0);
	assert_int_equal(mp->populated_size, 0);
	assert_int_equal(rte_mempool_populate_default(mp), (int)mp->size);
	exercise(mp, mp->size);
	rte_mempool_free(mp);
}

static void
a_chunk_too_small_for_an_object_is_refused(void **state)
{
	static char chunk[512] __rte_aligned(64);

	(void)state;
	struct rte_mempool *mp = mempool_empty(10, 2048, 0, RTE_MEMPOOL_F_NO_IOVA_CONTIG);

	assert_true(
		rte_mempool_populate_iova(mp, chunk, RTE_BAD_IOVA, sizeof(chunk), NULL, NULL) <= 0);
	assert_int_equal(mp->populated_size, 0);
	assert_int_equal(rte_mempool_populate_default(mp), 10);
	exercise(mp, 10);
	rte_mempool_free(mp);
}

/* ---- objects ---- */

struct visit {
	unsigned int n;
	void *in_use;
	bool seen;
};

static void
visit_object(struct rte_mempool *mp, void *arg, void *object, unsigned int i)
{
	struct visit *visit = arg;

	assert_ptr_equal(rte_mempool_from_obj(object), mp);
	assert_int_equal(i, visit->n++);
	visit->seen |= object == visit->in_use;
}

static void
all_objects_can_be_visited(void **state)
{
	(void)state;
	struct rte_mempool *mp = mempool(1000, 2048, 0, 0);
	struct visit visit = {0};

	assert_int_equal(rte_mempool_get(mp, &visit.in_use), 0);
	assert_int_equal(rte_mempool_obj_iter(mp, visit_object, &visit), 1000);
	assert_int_equal(visit.n, 1000);
	assert_true(visit.seen);
	rte_mempool_put(mp, visit.in_use);
	rte_mempool_free(mp);
}

static void
objects_carry_their_iova(void **state)
{
	(void)state;
	struct rte_mempool *mp = mempool(500, 2048, 0, 0);

	for (unsigned int i = 0; i < 500; i++) {
		void *object;

		assert_int_equal(rte_mempool_get(mp, &object), 0);
		assert_true(rte_mempool_virt2iova(object) != RTE_BAD_IOVA);
		/* Physical ones are as of when it was made: see test_pktmbuf.c. */
		if (rte_eal_iova_mode() == RTE_IOVA_VA)
			assert_true(rte_mempool_virt2iova(object) == rte_mem_virt2iova(object));
	}
	rte_mempool_free(mp);
}

/* ---- lifetimes ---- */

static void
free_with_objects_in_flight(void **state)
{
	static const unsigned int cache_sizes[] = {0, 64};

	(void)state;
	for (size_t c = 0; c < RTE_DIM(cache_sizes); c++) {
		for (unsigned int flight = 0; flight <= 1000; flight += 250) {
			struct rte_mempool *mp = mempool(1000, 2048, cache_sizes[c], 0);
			void *object[1000];

			assert_int_equal(rte_mempool_get_bulk(mp, object, flight), 0);
			assert_int_equal(rte_mempool_avail_count(mp), 1000 - flight);
			rte_mempool_free(mp);
		}
	}
}

static void
created_and_freed_3000_times(void **state)
{
	struct unit_resources first;

	(void)state;
	rte_mempool_free(mempool(64, 256, 0, 0));
	unit_resources_get(&first);
	for (unsigned int i = 0; i < 3000; i++) {
		struct rte_mempool *mp = mempool_empty(64, 256, i % 2 * 16, 0);
		void *object;

		assert_int_equal(rte_mempool_populate_default(mp), 64);
		assert_int_equal(rte_mempool_get(mp, &object), 0);
		rte_mempool_put(mp, object);
		rte_mempool_free(mp);
	}
	assert_nothing_left(&first);
}

static void
an_empty_pool_can_be_freed(void **state)
{
	(void)state;
	rte_mempool_free(mempool_empty(10, 64, 0, 0));
}

/* ---- two lcores ---- */

struct transfer {
	struct rte_mempool *mp;
	void *object[500];
};

static void
take_500(void *arg)
{
	struct transfer *transfer = arg;

	assert_int_equal(rte_mempool_get_bulk(transfer->mp, transfer->object, 500), 0);
}

static void
put_500(void *arg)
{
	struct transfer *transfer = arg;

	for (unsigned int i = 0; i < 500; i++)
		rte_mempool_put(transfer->mp, transfer->object[i]);
}

static void
alloc_here_and_free_there(void **state)
{
	static const unsigned int cache_sizes[] = {0, 128};

	(void)state;
	for (size_t c = 0; c < RTE_DIM(cache_sizes); c++) {
		struct worker *other = worker_start(true);
		struct transfer transfer = {.mp = mempool(1000, 128, cache_sizes[c], 0)};

		/* more than there are, so that what the other freed must come back */
		for (unsigned int round = 0; round < 20; round++) {
			take_500(&transfer);
			worker_do(other, put_500, &transfer);
		}
		for (unsigned int round = 0; round < 20; round++) {
			worker_do(other, take_500, &transfer);
			put_500(&transfer);
		}
		assert_at_home(transfer.mp, 1000);
		worker_end(other, true);
		rte_mempool_free(transfer.mp);
	}
}

/* Idle lcores do not strand objects: not with cache_size 0, where the caches are ours. */
static void
one_lcore_gets_what_another_has_cached(void **state)
{
	struct worker *other = worker_start(true);
	struct transfer transfer = {.mp = mempool(1000, 128, 0, 0)};
	void *object[1000];
	struct pcp_stats stats;

	(void)state;
	worker_do(other, take_500, &transfer);
	worker_do(other, put_500, &transfer);
	pcp_cache_get_stats(pp_mempool_cache(transfer.mp), &stats);
	assert_true(stats.cached_pages > 0);
	assert_int_equal(rte_mempool_get_bulk(transfer.mp, object, 1000), 0);
	rte_mempool_put_bulk(transfer.mp, object, 1000);
	assert_at_home(transfer.mp, 1000);
	worker_end(other, true);
	rte_mempool_free(transfer.mp);
}

/* ---- the rest of the interface ---- */

static void
pools_of_others_have_no_caches(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	struct rte_mempool *mp =
		rte_mempool_create_empty("foreign", 10, 64, 0, 0, SOCKET_ID_ANY, 0);

	assert_int_equal(rte_mempool_set_ops_byname(mp, "ring_mp_mc", NULL), 0);
	assert_true(rte_mempool_populate_default(mp) == 10);
	assert_null(pp_mempool_cache(mp));
	pp_mempool_dump(mp, f);
	fflush(f);
	assert_non_null(strstr(text, "mempool foreign: not on ops pagepool"));
	rte_mempool_free(mp);

	mp = mempool(10, 64, 0, 0);
	assert_non_null(pp_mempool_cache(mp));
	pp_mempool_dump(mp, f);
	fclose(f);
	assert_non_null(strstr(text, "mempool mp: 10 objects of 64 bytes, DPDK's layout"));
	free(text);
	rte_mempool_free(mp);
}

static void
a_pool_config_reaches_the_caches(void **state)
{
	struct pp_mempool_config config = {
		.pcp = {.mode = PCP_MODE_SPIN, .batch = 17, .high = 51, .max_order = 3}};
	struct pcp_config got;

	(void)state;
	struct rte_mempool *mp = rte_mempool_create_empty("mp", 500, 64, 0, 0, SOCKET_ID_ANY, 0);

	assert_int_equal(rte_mempool_set_ops_byname(mp, PP_MEMPOOL_OPS_NAME, &config), 0);
	assert_int_equal(rte_mempool_populate_default(mp), 500);
	pcp_cache_get_config(pp_mempool_cache(mp), &got);
	assert_int_equal(got.mode, PCP_MODE_SPIN);
	assert_int_equal(got.batch, 17);
	assert_int_equal(got.high, 51);
	assert_int_equal(got.max_order, 0);
	assert_int_equal(got.pages, 500);
	exercise(mp, 500);
	rte_mempool_free(mp);

	config.pcp.batch = PCP_BATCH_MAX + 1;
	mp = rte_mempool_create_empty("mp", 500, 64, 0, 0, SOCKET_ID_ANY, 0);
	assert_int_equal(rte_mempool_set_ops_byname(mp, PP_MEMPOOL_OPS_NAME, &config), 0);
	assert_int_equal(rte_mempool_populate_default(mp), -EINVAL);
	rte_mempool_free(mp);
}

/* One object per page, on the memory that DPDK finds. */
static void
page_per_object(void **state)
{
	struct pp_mempool_config config = {.page_per_object = true};

	(void)state;
	struct rte_mempool *mp = rte_mempool_create_empty(
		"mp", 700, 2176, 0, 0, SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_SPREAD);

	assert_int_equal(rte_mempool_set_ops_byname(mp, PP_MEMPOOL_OPS_NAME, &config), 0);
	assert_int_equal(rte_mempool_populate_default(mp), 700);
	exercise(mp, 700);
	rte_mempool_free(mp);

	/* which has no room for this one */
	mp = rte_mempool_create_empty("mp", 700, 4096, 0, 0, SOCKET_ID_ANY, 0);
	assert_int_equal(rte_mempool_set_ops_byname(mp, PP_MEMPOOL_OPS_NAME, &config), 0);
	assert_int_equal(rte_mempool_populate_default(mp), -EINVAL);
	rte_mempool_free(mp);
}

/* As applications do it. */
static void
pktmbuf_pools_use_the_ops_by_name(void **state)
{
	(void)state;
	struct rte_mempool *mp = rte_pktmbuf_pool_create_by_ops(
		"mp", 1000, 128, 0, 2176, SOCKET_ID_ANY, PP_MEMPOOL_OPS_NAME);
	struct rte_mbuf *mbuf[1000];

	assert_non_null(mp);
	assert_int_equal(rte_pktmbuf_alloc_bulk(mp, mbuf, 1000), 0);
	assert_null(rte_pktmbuf_alloc(mp));
	for (unsigned int i = 0; i < 1000; i++)
		rte_mbuf_sanity_check(mbuf[i], 1);
	rte_pktmbuf_free_bulk(mbuf, 1000);
	assert_int_equal(rte_mempool_avail_count(mp), 1000);
	rte_mempool_free(mp);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, remember_resources, nothing_is_left)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(sizes_and_flags),
		TEST(under_a_mempool_cache),
		TEST(many_objects),
		TEST(chunks_of_any_length),
		TEST(a_chunk_may_lie_right_behind_another),
		TEST(populate_again_after_it_failed),
		TEST(a_chunk_too_small_for_an_object_is_refused),
		TEST(all_objects_can_be_visited),
		TEST(objects_carry_their_iova),
		TEST(free_with_objects_in_flight),
		TEST(created_and_freed_3000_times),
		TEST(an_empty_pool_can_be_freed),
		TEST(alloc_here_and_free_there),
		TEST(one_lcore_gets_what_another_has_cached),
		TEST(pools_of_others_have_no_caches),
		TEST(a_pool_config_reaches_the_caches),
		TEST(page_per_object),
		TEST(pktmbuf_pools_use_the_ops_by_name),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	worker_end(worker_start(true), true); /* the C library keeps a stack for the next */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
