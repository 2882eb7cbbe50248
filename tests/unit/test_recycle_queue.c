/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages of a driver's queue on their way round: from the pool to the queue, to whoever frees them,
 * and back to the queue's cache, its ring, or the pool.
 */

#include <errno.h>
#include <sched.h>
#include <string.h>

#include <pp_recycle.h>

#include "mempool_unit.h"
#include "worker.h"

#define OBJECTS 2048u
#define RING    (PP_RECYCLE_RING - 1u) /* pages that it has room for */
#define ALIEN   1u                     /* a process that is not this one, and lives */

static struct rte_mempool *mp;
static struct pp_recycler *recycler;
static struct pp_recycle_queue *queue;
static void *page[OBJECTS];

static int
setup(void **state __rte_unused)
{
	mp = mempool_empty(OBJECTS, 128, 0, 0);
	assert_int_equal(rte_mempool_populate_default(mp), OBJECTS);
	assert_int_equal(pp_recycle_attach(mp, &recycler), 0);
	queue = pp_recycle_queue_get(recycler, SOCKET_ID_ANY);
	assert_non_null(queue);
	pp_recycle_queue_open(queue);
	return 0;
}

/* The queue closed, every page is in the pool, once, and without mark. */
static int
teardown(void **state __rte_unused)
{
	pp_recycle_queue_put(recycler, queue);
	assert_int_equal(pp_recycle_inflight(queue), 0);
	assert_int_equal(queue->taken, queue->released);
	rte_mempool_obj_iter(mp, assert_unmarked, NULL);
	exercise(mp, OBJECTS);
	assert_int_equal(pp_recycle_died(recycler), 0);
	rte_mempool_free(mp);
	return 0;
}

static void
put(uint32_t from, uint32_t n)
{
	if (n > 0)
		rte_mempool_put_bulk(mp, &page[from], n);
}

/* From page[from] on: what is taken belongs to the queue. */
static void
take(uint32_t from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += PP_RECYCLE_REFILL) {
		const uint32_t part = RTE_MIN(n - i, (uint32_t)PP_RECYCLE_REFILL);

		assert_int_equal(pp_recycle_take(recycler, queue, &page[from + i], part), part);
	}
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(pp_page_mark(page[from + i])->owner, queue->index);
}

static void
assert_in_pool(unsigned int n)
{
	assert_int_equal(rte_mempool_avail_count(mp), n);
	assert_int_equal(pp_recycle_inflight(queue), OBJECTS - n);
}

struct portion {
	uint32_t from, n;
	bool is_taken; /* else put */
};

static void
do_portion(void *arg)
{
	const struct portion *portion = arg;

	(portion->is_taken ? take : put)(portion->from, portion->n);
}

/* By a thread with or without an lcore id. */
static void
do_elsewhere(bool registered, struct portion portion)
{
	struct worker *worker = worker_start(registered);

	worker_do(worker, do_portion, &portion);
	worker_end(worker, registered);
}

/* ---- taken ---- */

static void
from_the_pool_some_more_than_asked_for(void **state __rte_unused)
{
	take(0, 10);
	assert_int_equal(queue->lcore, rte_lcore_id());
	assert_int_equal(queue->empty, 1);
	assert_int_equal(queue->slow, 1);
	assert_int_equal(queue->fast, 9);
	assert_in_pool(OBJECTS - PP_RECYCLE_REFILL);
	/* and from those that are at hand, as long as there are any */
	take(10, PP_RECYCLE_REFILL - 10);
	assert_int_equal(queue->count, 0);
	assert_int_equal(queue->slow, 1);
	assert_int_equal(queue->fast, PP_RECYCLE_REFILL - 1);
	assert_int_equal(queue->empty, 1);
	take(PP_RECYCLE_REFILL, 1);
	assert_int_equal(queue->empty, 2);
	assert_int_equal(queue->taken, 2 * PP_RECYCLE_REFILL);
	put(0, PP_RECYCLE_REFILL + 1);
}

/* A pool that has less than a refill gives what it has, in halves, and then nothing. */
static void
from_a_pool_that_ends(void **state __rte_unused)
{
	void **rest = &page[45];

	assert_int_equal(rte_mempool_get_bulk(mp, rest, OBJECTS - 45), 0);
	assert_int_equal(pp_recycle_take(recycler, queue, page, 40), 40);
	assert_int_equal(queue->empty, 2); /* 32, and 8 of 13 */
	assert_int_equal(pp_recycle_take(recycler, queue, &page[40], 24), 5);
	assert_int_equal(pp_recycle_take(recycler, queue, &page[45], 1), 0);
	assert_int_equal(queue->slow, 4);
	assert_int_equal(queue->fast, 41);
	assert_int_equal(queue->count, 0);
	assert_int_equal(rte_mempool_avail_count(mp), 0);
	assert_int_equal(pp_recycle_inflight(queue), 45);
	/* what comes back is to be had at once */
	put(0, 2);
	assert_int_equal(pp_recycle_take(recycler, queue, page, 24), 2);
	put(0, 45);
	rte_mempool_put_bulk(mp, rest, OBJECTS - 45);
}

static void
get_past(void *arg)
{
	struct pcp_cache *cache = arg;

	assert_int_equal(pp_recycle_pool_get(mp, cache, page, 3), 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(pp_page_mark(page[i])->owner, 0);
	assert_int_equal(rte_mempool_avail_count(mp), OBJECTS - 3);
	put(0, 3);
	/* all or none */
	assert_int_equal(pp_recycle_pool_get(mp, cache, page, OBJECTS), OBJECTS);
	put(0, 1);
	assert_int_equal(pp_recycle_pool_get(mp, cache, page, 2), -ENOBUFS);
	assert_int_equal(rte_mempool_avail_count(mp), 1);
	put(1, OBJECTS - 1);
}

/* In a section of the lcore's page cache, if there is one. */
static void
past_all_that_recycles(void **state __rte_unused)
{
	struct pcp_cache *caches[] = {pp_mempool_cache(mp), NULL};
	struct worker *worker = worker_start(false);

	for (size_t i = 0; i < RTE_DIM(caches); i++) {
		get_past(caches[i]);
		worker_do(worker, get_past, caches[i]);
	}
	worker_end(worker, false);
	assert_int_equal(queue->taken, 0);
}

/* ---- freed by the owner ---- */

static void
the_owner_s_go_to_its_cache(void **state __rte_unused)
{
	void *same[8];

	take(0, PP_RECYCLE_REFILL);
	put(0, 8);
	assert_int_equal(queue->cached, 8);
	assert_int_equal(queue->count, 8);
	assert_in_pool(OBJECTS - PP_RECYCLE_REFILL);
	/* the last ones first */
	assert_int_equal(pp_recycle_take(recycler, queue, same, 3), 3);
	assert_memory_equal(same, &page[5], sizeof(same[0]) * 3);
	assert_int_equal(pp_recycle_take(recycler, queue, same, 5), 5);
	assert_memory_equal(same, &page[0], sizeof(same[0]) * 5);
	assert_int_equal(queue->taken, PP_RECYCLE_REFILL);
	put(0, PP_RECYCLE_REFILL);
}

static void
then_to_the_ring_then_to_the_pool(void **state __rte_unused)
{
	const uint32_t all = PP_RECYCLE_CACHE + RING + 10, refills = RTE_ALIGN(all, 64);

	take(0, refills);
	assert_int_equal(queue->count, 0);
	put(0, PP_RECYCLE_CACHE);
	assert_int_equal(queue->cache_full, 0);
	put(PP_RECYCLE_CACHE, RING);
	assert_int_equal(queue->cached, PP_RECYCLE_CACHE);
	assert_int_equal(queue->cache_full, RING);
	assert_int_equal(rte_ring_count(queue->ring), RING);
	assert_int_equal(queue->ring_full, 0);
	assert_in_pool(OBJECTS - refills);
	put(PP_RECYCLE_CACHE + RING, 10);
	assert_int_equal(queue->ring_full, 10);
	assert_int_equal(queue->released, 10);
	assert_in_pool(OBJECTS - refills + 10);
	put(all, refills - all);
	assert_int_equal(queue->ring_full, 10 + refills - all);
}

/* ---- freed by others ---- */

static void
others_go_to_the_ring(void **state __rte_unused)
{
	take(0, 256);
	do_elsewhere(false, (struct portion){.from = 0, .n = 100});
	do_elsewhere(true, (struct portion){.from = 100, .n = 100});
	assert_int_equal(rte_ring_count(queue->ring), 200);
	assert_int_equal(queue->cached, 0);
	assert_in_pool(OBJECTS - 256);
	/* from there to the cache, the first ones first */
	take(256, PP_RECYCLE_REFILL);
	assert_memory_equal(&page[256], &page[0], PP_RECYCLE_REFILL * sizeof(page[0]));
	assert_int_equal(queue->refill, 1);
	assert_int_equal(queue->consumed, PP_RECYCLE_REFILL);
	assert_int_equal(queue->slow, 4);
	assert_int_equal(queue->fast, 256 + PP_RECYCLE_REFILL - 4 - 1);
	assert_int_equal(queue->taken, 256);
	/* all that are there, and then the pool's */
	take(256 + PP_RECYCLE_REFILL, 200 - PP_RECYCLE_REFILL);
	assert_int_equal(queue->refill, 4);
	assert_int_equal(queue->fast + queue->slow + queue->refill, 256 + 200);
	assert_int_equal(queue->consumed, 200);
	assert_int_equal(queue->empty, 4);
	assert_int_equal(queue->taken, 256);
	take(456, 1);
	assert_int_equal(queue->empty, 5);
	assert_int_equal(queue->taken, 256 + PP_RECYCLE_REFILL);
	put(200, 257);
}

/* Their return is told, and they stay the driver's. */
static void
given_ones_are_marked_returned(void **state __rte_unused)
{
	take(0, PP_RECYCLE_REFILL);
	for (uint32_t i = 0; i < 3; i++)
		pp_page_mark(page[2 * i])->given = PP_MARK_GIVEN;
	put(0, 6);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(pp_page_mark(page[i])->returned, i % 2 == 0);
		assert_int_equal(pp_page_mark(page[i])->owner, queue->index);
	}
	assert_int_equal(queue->cached, 3);
	assert_in_pool(OBJECTS - PP_RECYCLE_REFILL);
	for (uint32_t i = 0; i < 3; i++) {
		struct pp_page_mark *mark = pp_page_mark(page[2 * i]);

		mark->given = mark->returned = 0;
		put(2 * i, 1);
	}
	assert_int_equal(queue->cached, 6);
	put(6, PP_RECYCLE_REFILL - 6);
}

/* A bulk as long as it likes, of pages of two queues, given ones, and some of nobody's. */
static void
mixed_bulks_are_sorted(void **state __rte_unused)
{
	struct pp_recycle_queue *other = pp_recycle_queue_get(recycler, SOCKET_ID_ANY);
	void *kind[4][50], *bulk[200];

	assert_non_null(other);
	assert_int_equal(other->index, queue->index + 1);
	pp_recycle_queue_open(other);
	assert_int_equal(pp_recycle_take(recycler, queue, kind[0], 50), 50);
	assert_int_equal(pp_recycle_take(recycler, other, kind[1], 50), 50);
	assert_int_equal(rte_mempool_get_bulk(mp, kind[2], 50), 0);
	assert_int_equal(rte_mempool_get_bulk(mp, kind[3], 50), 0);
	for (uint32_t i = 0; i < 50; i++) {
		pp_page_mark(kind[3][i])->given = PP_MARK_GIVEN;
		for (uint32_t k = 0; k < 4; k++)
			bulk[4 * i + k] = kind[k][i];
	}
	rte_mempool_put_bulk(mp, bulk, 200);
	assert_int_equal(queue->cached, 50);
	assert_int_equal(other->cached, 50);
	assert_int_equal(rte_mempool_in_use_count(mp), 2 * PP_RECYCLE_REFILL + 50);
	for (uint32_t i = 0; i < 50; i++) {
		struct pp_page_mark *mark = pp_page_mark(kind[3][i]);

		assert_int_equal(mark->returned, 1);
		mark->given = mark->returned = 0;
	}
	rte_mempool_put_bulk(mp, kind[3], 50);
	pp_recycle_queue_put(recycler, other);
	assert_int_equal(pp_recycle_inflight(other), 0);
}

/* Another process may be killed in the middle of the ring, or have the owner's lcore id. */
static void
other_processes_free_to_the_pool(void **state __rte_unused)
{
	const unsigned int lcore = rte_lcore_id(), lcores[] = {lcore, LCORE_ID_ANY};
	const uint32_t self = pp_self;

	take(0, PP_RECYCLE_REFILL);
	for (uint32_t i = 0; i < RTE_DIM(lcores); i++) {
		pp_page_mark(page[3 * i])->given = PP_MARK_GIVEN;
		RTE_PER_LCORE(_lcore_id) = lcores[i];
		pp_self = ALIEN;
		put(3 * i, 3);
		pp_self = self;
		RTE_PER_LCORE(_lcore_id) = lcore;
		assert_int_equal(pp_page_mark(page[3 * i])->returned, 1);
		assert_int_equal(pp_page_mark(page[3 * i + 1])->owner, 0);
		assert_int_equal(queue->released, 2 * (i + 1));
		assert_in_pool(OBJECTS - PP_RECYCLE_REFILL + 2 * (i + 1));
	}
	assert_int_equal(queue->cached, 0);
	assert_int_equal(rte_ring_count(queue->ring), 0);
	/* given back, the driver's are the queue's again */
	for (uint32_t i = 0; i < RTE_DIM(lcores); i++) {
		*pp_page_mark(page[3 * i]) = (struct pp_page_mark){.owner = queue->index};
		put(3 * i, 1);
	}
	assert_int_equal(queue->cached, 2);
	put(6, PP_RECYCLE_REFILL - 6);
}

/* ---- owners ---- */

/* Who takes is the owner from then on, and the last one is like any other. */
static void
another_lcore_takes_over(void **state __rte_unused)
{
	struct worker *worker = worker_start(true);
	const unsigned int lcore = worker_lcore(worker);

	take(0, PP_RECYCLE_REFILL + 1);
	put(0, 5);
	assert_int_equal(queue->cached, 5);
	worker_do(worker, do_portion,
		&(struct portion){.from = PP_RECYCLE_REFILL + 1, .n = 1, .is_taken = true});
	assert_int_equal(queue->lcore, lcore);
	assert_int_equal(queue->taken, 2 * PP_RECYCLE_REFILL); /* it was in the cache */
	put(5, 5);
	assert_int_equal(queue->cached, 5);
	assert_int_equal(rte_ring_count(queue->ring), 5);
	worker_do(worker, do_portion, &(struct portion){.from = 10, .n = 5});
	assert_int_equal(queue->cached, 10);
	worker_end(worker, true);
	put(15, PP_RECYCLE_REFILL + 2 - 15);
	assert_int_equal(queue->cached, 10);
	/* and back */
	take(0, 1);
	assert_int_equal(queue->lcore, rte_lcore_id());
	put(0, 1);
	assert_int_equal(queue->cached, 11);
}

/* A thread without an lcore id may take, too; but it owns nothing: its like are many. */
static void
threads_without_an_lcore_take(void **state __rte_unused)
{
	struct worker *worker = worker_start(false);

	take(0, PP_RECYCLE_REFILL);
	for (unsigned int i = 0; i < 2; i++) {
		worker_do(worker, do_portion,
			&(struct portion){
				.n = 10, .is_taken = true, .from = PP_RECYCLE_REFILL + i * 10});
		assert_int_equal(queue->lcore, LCORE_ID_ANY);
	}
	worker_do(worker, do_portion, &(struct portion){.from = PP_RECYCLE_REFILL, .n = 20});
	put(0, PP_RECYCLE_REFILL);
	assert_int_equal(queue->cached, 0);
	assert_int_equal(rte_ring_count(queue->ring), PP_RECYCLE_REFILL + 20);
	worker_end(worker, false);
	take(0, 1);
	put(0, 1);
	assert_int_equal(queue->cached, 1);
}

/* ---- what a queue is done with ---- */

static void
released_ones_go_to_the_pool(void **state __rte_unused)
{
	take(0, PP_RECYCLE_REFILL);
	pp_recycle_release(recycler, queue, page, 10);
	assert_in_pool(OBJECTS - PP_RECYCLE_REFILL + 10);
	assert_int_equal(queue->released, 10);
	for (uint32_t i = 0; i < PP_RECYCLE_REFILL; i++)
		assert_int_equal(pp_page_mark(page[i])->owner, i < 10 ? 0 : queue->index);
	put(10, PP_RECYCLE_REFILL - 10);
}

/* Cache and ring go at once, and the rest when it comes. */
static void
closed_queues_keep_nothing(void **state __rte_unused)
{
	take(0, 200);
	put(0, 10);
	do_elsewhere(false, (struct portion){.from = 10, .n = 100});
	pp_recycle_queue_close(recycler, queue);
	assert_int_equal(queue->count, 0);
	assert_int_equal(rte_ring_count(queue->ring), 0);
	assert_int_equal(queue->consumed, 100);
	assert_int_equal(queue->lcore, LCORE_ID_ANY);
	assert_in_pool(OBJECTS - 90);
	assert_int_equal(queue->closed, 0);
	put(110, 45);
	do_elsewhere(true, (struct portion){.from = 155, .n = 45});
	assert_int_equal(queue->closed, 90);
	assert_in_pool(OBJECTS);
	/* nothing to close, and again */
	pp_recycle_queue_close(recycler, queue);
	assert_int_equal(queue->released, queue->taken);
}

static void
queues_are_closed_at_first(void **state __rte_unused)
{
	struct pp_recycle_queue *other = pp_recycle_queue_get(recycler, SOCKET_ID_ANY);
	void *pages[3];

	assert_non_null(other);
	assert_int_equal(other->lcore, LCORE_ID_ANY);
	assert_int_equal(pp_recycle_take(recycler, other, pages, 3), 3);
	rte_mempool_put_bulk(mp, pages, 3);
	assert_int_equal(other->closed, 3);
	assert_int_equal(pp_recycle_inflight(other), PP_RECYCLE_REFILL - 3);
	pp_recycle_queue_put(recycler, other);
	assert_int_equal(pp_recycle_inflight(other), 0);
}

/* ---- how many queues ---- */

static void
there_are_so_many(void **state __rte_unused)
{
	static struct pp_recycle_queue *all[PP_RECYCLE_QUEUES];

	all[0] = queue;
	for (unsigned int i = 1; i < PP_RECYCLE_QUEUES; i++) {
		all[i] = pp_recycle_queue_get(recycler, SOCKET_ID_ANY);
		assert_non_null(all[i]);
		assert_int_equal(all[i]->index, i + 1);
	}
	assert_null(pp_recycle_queue_get(recycler, SOCKET_ID_ANY));
	/* the last one's pages find it, and there is room when one goes */
	void *last;

	pp_recycle_queue_open(all[PP_RECYCLE_QUEUES - 1]);
	assert_int_equal(pp_recycle_take(recycler, all[PP_RECYCLE_QUEUES - 1], &last, 1), 1);
	rte_mempool_put(mp, last);
	assert_int_equal(all[PP_RECYCLE_QUEUES - 1]->cached, 1);
	pp_recycle_queue_put(recycler, all[100]);
	assert_ptr_equal(pp_recycle_queue_get(recycler, SOCKET_ID_ANY), all[100]);
	assert_null(pp_recycle_queue_get(recycler, SOCKET_ID_ANY));
	for (unsigned int i = 1; i < PP_RECYCLE_QUEUES; i++)
		pp_recycle_queue_put(recycler, all[i]);
}

/* A queue outlives its user: what is still away comes back to the next one. */
static void
the_next_user_gets_what_was_away(void **state __rte_unused)
{
	take(0, PP_RECYCLE_REFILL);
	pp_recycle_queue_put(recycler, queue);
	assert_int_equal(pp_recycle_inflight(queue), PP_RECYCLE_REFILL);
	assert_ptr_equal(pp_recycle_queue_get(recycler, SOCKET_ID_ANY), queue);
	put(0, 1);
	assert_int_equal(queue->closed, 1);
	pp_recycle_queue_open(queue);
	put(1, PP_RECYCLE_REFILL - 1);
	assert_int_equal(rte_ring_count(queue->ring), PP_RECYCLE_REFILL - 1);
	take(0, PP_RECYCLE_REFILL - 1);
	assert_int_equal(queue->taken, PP_RECYCLE_REFILL);
	put(0, PP_RECYCLE_REFILL - 1);
	assert_int_equal(queue->cached, PP_RECYCLE_REFILL - 1);
}

/* ---- all at once ---- */

#define IN_FLIGHT 64

/* Pages on their way to a thread, which frees them. */
struct consumer {
	struct worker *worker;
	void *slot[IN_FLIGHT];
	bool ends;
	uint64_t freed;
};

static void
consume(void *arg)
{
	struct consumer *consumer = arg;

	while (!pp_load_acquire(&consumer->ends)) {
		for (uint32_t i = 0; i < IN_FLIGHT; i++) {
			void *got = pp_load_acquire(&consumer->slot[i]);

			if (got == NULL)
				continue;
			rte_mempool_put(mp, got);
			consumer->freed++;
			pp_store_release(&consumer->slot[i], NULL);
		}
		sched_yield();
	}
}

/* One that has the queue for a while, and closes it under its pages now and then. */
struct driver {
	struct consumer *consumer;
	uint64_t chance;
	unsigned int turns;
};

static void
drive(void *arg)
{
	struct driver *driver = arg;

	for (unsigned int turn = 0; turn < 500; turn++) {
		const uint32_t n = 1 + unit_random_below(&driver->chance, 32);
		void *got[32];

		if (unit_random_below(&driver->chance, 100) == 0) {
			pp_recycle_queue_close(recycler, queue);
			pp_recycle_queue_open(queue);
		}
		if (pp_recycle_take(recycler, queue, got, n) != n)
			return;
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t to = unit_random_below(&driver->chance, 3);
			const uint32_t k = unit_random_below(&driver->chance, IN_FLIGHT);
			void **slot = &driver->consumer[to % 2].slot[k];

			if (to < 2 && pp_load_acquire(slot) == NULL)
				pp_store_release(slot, got[i]);
			else
				rte_mempool_put(mp, got[i]);
		}
		driver->turns++;
	}
}

static void
freed_by_threads_while_it_changes_hands(void **state __rte_unused)
{
	static struct consumer consumer[2];
	struct driver driver = {.consumer = consumer, .chance = 1};

	if (UNIT_TSAN)
		unit_skip("ThreadSanitizer does not see the fences of DPDK's rings");
	struct worker *second = worker_start(true);

	memset(consumer, 0, sizeof(consumer));
	for (unsigned int i = 0; i < RTE_DIM(consumer); i++) {
		consumer[i].worker = worker_start(i == 0);
		worker_begin(consumer[i].worker, consume, &consumer[i]);
	}
	for (unsigned int round = 0; round < 20; round++) {
		if (round % 2 == 0)
			drive(&driver);
		else
			worker_do(second, drive, &driver);
	}
	for (unsigned int i = 0; i < RTE_DIM(consumer); i++) {
		for (uint32_t k = 0; k < IN_FLIGHT; k++)
			while (pp_load_acquire(&consumer[i].slot[k]) != NULL)
				sched_yield();
		pp_store_release(&consumer[i].ends, true);
		worker_wait(consumer[i].worker);
		worker_end(consumer[i].worker, i == 0);
	}
	worker_end(second, true);
	assert_int_equal(driver.turns, 20 * 500);
	assert_true(consumer[0].freed > 0 && consumer[1].freed > 0);
	assert_true(queue->cached > 0 && queue->consumed > 0 && queue->slow > 0);
	assert_int_equal(pp_recycle_inflight(queue), rte_mempool_in_use_count(mp));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(from_the_pool_some_more_than_asked_for),
		TEST(from_a_pool_that_ends),
		TEST(past_all_that_recycles),
		TEST(the_owner_s_go_to_its_cache),
		TEST(then_to_the_ring_then_to_the_pool),
		TEST(others_go_to_the_ring),
		TEST(given_ones_are_marked_returned),
		TEST(mixed_bulks_are_sorted),
		TEST(other_processes_free_to_the_pool),
		TEST(another_lcore_takes_over),
		TEST(threads_without_an_lcore_take),
		TEST(released_ones_go_to_the_pool),
		TEST(closed_queues_keep_nothing),
		TEST(queues_are_closed_at_first),
		TEST(there_are_so_many),
		TEST(the_next_user_gets_what_was_away),
		TEST(freed_by_threads_while_it_changes_hands),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
