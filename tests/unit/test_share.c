/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that several packets share, in one memory mode. */

#include <string.h>

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include <pp_share.h>

#include "mempool_unit.h"
#include "worker.h"

#define PAGES 64u
#define ROOM  (RTE_PKTMBUF_HEADROOM + 1522)

static struct rte_mempool *
make_pool(uint16_t priv_size, uint32_t room)
{
	struct pp_recycler *recycler;
	struct rte_mempool *mp = rte_pktmbuf_pool_create_by_ops(
		"mp", PAGES, 0, priv_size, (uint16_t)room, SOCKET_ID_ANY, PP_MEMPOOL_OPS_NAME);

	assert_non_null(mp);
	assert_int_equal(pp_recycle_attach(mp, &recycler), 0);
	return mp;
}

static void
close_pool(struct rte_mempool *mp)
{
	assert_at_home(mp, PAGES);
	rte_mempool_free(mp);
}

/* A page cut for n packets, all of them away, with a reference of the driver's. */
static struct rte_mbuf *
cut(const struct pp_share *share)
{
	void *page;

	assert_int_equal(rte_mempool_get(share->mp, &page), 0);
	pp_page_cut(share, page);
	pp_page_set_refs(page, share->n + 1);
	return page;
}

/* As it was before it was cut. */
static void
assert_is_whole(struct rte_mbuf *page)
{
	assert_null(pp_page_of(page));
	assert_int_equal(pp_page_mark(page)->owner, 0);
	assert_int_equal(page->buf_len, rte_pktmbuf_data_room_size(page->pool));
	assert_ptr_equal(page->buf_addr, RTE_PTR_ADD(page, sizeof(*page) + page->priv_size));
}

static void
assert_all_are_whole(struct rte_mempool *mp)
{
	struct rte_mbuf *all[PAGES];

	assert_int_equal(rte_pktmbuf_alloc_bulk(mp, all, PAGES), 0);
	for (unsigned int i = 0; i < PAGES; i++)
		assert_is_whole(all[i]);
	rte_pktmbuf_free_bulk(all, PAGES);
}

/* ---- how they are cut ---- */

static void
rooms_are_exact(void **state __rte_unused)
{
	static const uint16_t priv_sizes[] = {0, 8, 64, 128};

	for (size_t p = 0; p < RTE_DIM(priv_sizes); p++)
		for (uint32_t n = 2; n <= PP_SHARE_MAX; n++) {
			const uint32_t room = pp_share_room(n, priv_sizes[p], ROOM);
			struct rte_mempool *mp = make_pool(priv_sizes[p], room);
			struct pp_share share;

			pp_share_init(&share, mp, ROOM);
			assert_int_equal(share.n, n);
			assert_in_range(share.buf_len, ROOM, ROOM + RTE_CACHE_LINE_SIZE);
			close_pool(mp);
			mp = make_pool(priv_sizes[p], room - 1);
			pp_share_init(&share, mp, ROOM);
			assert_int_equal(share.n, n - 1);
			close_pool(mp);
		}
}

/* No two fit: the page's own mbuf, with all that it has. */
static void
one_packet_has_it_all(void **state __rte_unused)
{
	struct rte_mempool *mp = make_pool(16, RTE_MBUF_DEFAULT_BUF_SIZE);
	struct pp_share share;
	struct rte_mbuf *page;

	pp_share_init(&share, mp, ROOM);
	assert_int_equal(share.n, 1);
	assert_int_equal(share.buf_len, RTE_MBUF_DEFAULT_BUF_SIZE);
	pp_share_init(&share, mp, UINT16_MAX + 1);
	assert_int_equal(share.n, 1);
	page = cut(&share);
	rte_pktmbuf_free(page);
	assert_int_equal(pp_page_refs(page), 1);
	pp_page_put(page, 1);
	close_pool(mp);
}

static void
assert_is_an_mbuf(const struct pp_share *share, struct rte_mbuf *m)
{
	const char *reason;
	const size_t overhead = sizeof(*m) + m->priv_size;

	assert_int_equal(rte_mbuf_check(m, 1, &reason), 0);
	assert_ptr_equal(m->pool, share->mp);
	assert_ptr_equal(rte_mempool_from_obj(m), share->mp);
	assert_true(RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1 && m->next == NULL);
	assert_int_equal(m->nb_segs, 1);
	assert_int_equal(m->buf_len, share->buf_len);
	assert_int_equal(m->priv_size, rte_pktmbuf_priv_size(share->mp));
	assert_int_equal((uintptr_t)m % RTE_CACHE_LINE_SIZE, 0);
	assert_ptr_equal(m->buf_addr, RTE_PTR_ADD(m, overhead));
	assert_true(rte_mbuf_iova_get(m) == rte_mempool_virt2iova(m) + overhead);
	if (rte_eal_iova_mode() == RTE_IOVA_VA)
		assert_true(rte_mbuf_iova_get(m) == (uintptr_t)m->buf_addr);
	rte_pktmbuf_reset(m);
	assert_int_equal(rte_pktmbuf_tailroom(m), share->buf_len - RTE_PKTMBUF_HEADROOM);
}

/* All of the buffers, written to, leave each other and the mbufs alone. */
static void
mbufs_are_whole_and_apart(void **state __rte_unused)
{
	static const uint16_t priv_sizes[] = {0, 64};

	for (size_t p = 0; p < RTE_DIM(priv_sizes); p++)
		for (uint32_t n = 1; n <= PP_SHARE_MAX; n++) {
			struct rte_mempool *mp = make_pool(
				priv_sizes[p], pp_share_room(n, priv_sizes[p], ROOM) + 100);
			struct rte_mbuf *all[PAGES];
			struct pp_share share;

			/* what others wrote there is no private area, nor mbuf */
			assert_int_equal(rte_pktmbuf_alloc_bulk(mp, all, PAGES), 0);
			for (unsigned int i = 0; i < PAGES; i++)
				memset(all[i]->buf_addr, 0xff, all[i]->buf_len);
			rte_pktmbuf_free_bulk(all, PAGES);

			pp_share_init(&share, mp, ROOM);
			assert_int_equal(share.n, n);
			struct rte_mbuf *page = cut(&share);

			for (uint32_t i = 0; i < n; i++) {
				struct rte_mbuf *m = pp_page_mbuf(&share, page, i);

				for (uint32_t k = 0; k < m->priv_size; k++)
					assert_int_equal(((uint8_t *)rte_mbuf_to_priv(m))[k], 0);
				memset(m->buf_addr, (int)i + 1, m->buf_len);
			}
			for (uint32_t i = 0; i < n; i++) {
				struct rte_mbuf *m = pp_page_mbuf(&share, page, i);

				for (uint32_t k = 0; k < m->buf_len; k++)
					assert_int_equal(((uint8_t *)m->buf_addr)[k], i + 1);
				assert_is_an_mbuf(&share, m);
				assert_ptr_equal(pp_page_of(m), page);
			}
			for (uint32_t i = 0; i < n; i++)
				rte_pktmbuf_free(pp_page_mbuf(&share, page, i));
			pp_page_put(page, 1);
			assert_is_whole(page);
			close_pool(mp);
		}
}

/* Of memory without addresses for devices. */
static void
mbufs_have_no_address_where_pages_have_none(void **state __rte_unused)
{
	const struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = (uint16_t)pp_share_room(2, 0, ROOM)};
	struct rte_mempool *mp = rte_mempool_create_empty("mp", PAGES,
		(unsigned int)sizeof(struct rte_mbuf) + private.mbuf_data_room_size, 0,
		sizeof(private), SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	struct pp_recycler *recycler;
	struct pp_share share;

	assert_non_null(mp);
	assert_int_equal(rte_mempool_set_ops_byname(mp, PP_MEMPOOL_OPS_NAME, NULL), 0);
	rte_pktmbuf_pool_init(mp, (void *)(uintptr_t) & private);
	assert_int_equal(rte_mempool_populate_default(mp), PAGES);
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	assert_int_equal(pp_recycle_attach(mp, &recycler), 0);
	pp_share_init(&share, mp, ROOM);
	assert_int_equal(share.n, 2);
	struct rte_mbuf *page = cut(&share);

	assert_true(rte_mempool_virt2iova(page) == RTE_BAD_IOVA);
	for (uint32_t i = 0; i < share.n; i++) {
		struct rte_mbuf *m = pp_page_mbuf(&share, page, i);

		assert_true(rte_mempool_virt2iova(m) == RTE_BAD_IOVA);
		rte_pktmbuf_free(m);
	}
	pp_page_put(page, 1);
	close_pool(mp);
}

/* ---- how they come back ---- */

static void
free_as_bulk(struct rte_mbuf *m)
{
	rte_pktmbuf_free_bulk(&m, 1);
}

static void
put(struct rte_mbuf *m)
{
	rte_mempool_put(m->pool, m);
}

/* The clone is a page of the same pool. */
static void
free_cloned(struct rte_mbuf *m)
{
	struct rte_mbuf *clone = rte_pktmbuf_clone(m, m->pool);
	struct rte_mbuf *page = pp_page_of(m);
	const uint32_t refs = pp_page_refs(page);

	assert_non_null(clone);
	assert_ptr_equal(rte_mbuf_from_indirect(clone), m);
	rte_pktmbuf_free(m);
	assert_int_equal(pp_page_refs(page), refs);
	rte_pktmbuf_free(clone);
}

static void
free_chained(struct rte_mbuf *m)
{
	struct rte_mbuf *head = rte_pktmbuf_alloc(m->pool);

	assert_non_null(head);
	assert_int_equal(rte_pktmbuf_chain(head, m), 0);
	rte_pktmbuf_free(head);
}

static void
nothing(void *addr __rte_unused, void *arg __rte_unused)
{
}

/* Its own buffer comes back with what the pool's mbufs have, by DPDK: see burst() of mlx5pp. */
static void
free_attached(struct rte_mbuf *m)
{
	uint16_t len = 512;
	void *memory = rte_malloc(NULL, len, 0);
	struct rte_mbuf_ext_shared_info *shared =
		rte_pktmbuf_ext_shinfo_init_helper(memory, &len, nothing, NULL);

	rte_pktmbuf_attach_extbuf(m, memory, rte_malloc_virt2iova(memory), len, shared);
	rte_pktmbuf_free(m);
	rte_free(memory);
}

static void (*const ways[])(struct rte_mbuf *m) = {rte_pktmbuf_free, rte_mbuf_raw_free,
	free_as_bulk, put, free_cloned, free_chained, free_attached};

/* Each drops one reference, and the pool gets nothing before the last one goes. */
static void
every_way_to_free(void **state __rte_unused)
{
	struct rte_mempool *mp = make_pool(16, pp_share_room(3, 16, ROOM));
	struct pp_share share;

	pp_share_init(&share, mp, ROOM);
	for (size_t way = 0; way < RTE_DIM(ways); way++)
		for (uint32_t first = 0; first < share.n; first++) {
			struct rte_mbuf *page = cut(&share);

			/* again and again, without the pool */
			for (unsigned int turn = 0; turn < 3; turn++) {
				for (uint32_t i = 0; i < share.n; i++) {
					assert_int_equal(pp_page_refs(page), share.n + 1 - i);
					ways[way](
						pp_page_mbuf(&share, page, (first + i) % share.n));
				}
				assert_int_equal(pp_page_refs(page), 1);
				assert_int_equal(rte_mempool_in_use_count(mp), 1);
				pp_page_set_refs(page, share.n + 1);
			}
			/* the driver's goes at any time */
			for (uint32_t i = 0; i < share.n; i++) {
				if (i == first)
					pp_page_put(page, 1);
				assert_int_equal(rte_mempool_in_use_count(mp), 1);
				ways[way](pp_page_mbuf(&share, page, i));
			}
			assert_is_whole(page);
			assert_at_home(mp, PAGES);
		}
	assert_all_are_whole(mp);
	close_pool(mp);
}

/* Bulks of several pages and none, in any order. */
static void
mixed_bulks(void **state __rte_unused)
{
	struct rte_mempool *mp = make_pool(0, pp_share_room(2, 0, ROOM));
	struct pp_share share;
	uint64_t chance = 1;

	pp_share_init(&share, mp, ROOM);
	for (unsigned int turn = 0; turn < 2000; turn++) {
		struct rte_mbuf *page[8], *m[8 * PAGES];
		const uint32_t n = 1 + unit_random_below(&chance, RTE_DIM(page));
		const uint32_t others = unit_random_below(&chance, 9);
		uint32_t all = 0;

		for (uint32_t i = 0; i < n; i++) {
			page[i] = cut(&share);
			/* of some the driver has let go */
			if (i % 2 == 0)
				pp_page_put(page[i], 1);
			m[all++] = pp_page_mbuf(&share, page[i], 0);
			m[all++] = pp_page_mbuf(&share, page[i], 1);
		}
		for (uint32_t i = 0; i < others; i++)
			assert_non_null(m[all++] = rte_pktmbuf_alloc(mp));
		for (uint32_t i = turn % 2 == 0 ? all : 1; i > 1; i--) {
			const uint32_t k = unit_random_below(&chance, i);
			struct rte_mbuf *swapped = m[k];

			m[k] = m[i - 1];
			m[i - 1] = swapped;
		}
		assert_int_equal(rte_mempool_in_use_count(mp), n + others);
		rte_mempool_put_bulk(mp, (void **)m, all);
		assert_int_equal(rte_mempool_in_use_count(mp), n / 2);
		for (uint32_t i = 1; i < n; i += 2) {
			assert_int_equal(pp_page_refs(page[i]), 1);
			pp_page_put(page[i], 1);
		}
	}
	assert_all_are_whole(mp);
	close_pool(mp);
}

/* ---- on several threads ---- */

#define IN_FLIGHT 32

/* Packets on their way to a thread, which frees them. */
struct consumer {
	struct worker *worker;
	struct rte_mbuf *m[IN_FLIGHT];
	bool ends;
	uint32_t freed;
};

static uint32_t
stamp_of(const struct rte_mbuf *m)
{
	return *rte_pktmbuf_mtod(m, const uint32_t *);
}

static void
consume(void *arg)
{
	struct consumer *consumer = arg;

	while (!pp_load_acquire(&consumer->ends)) {
		for (uint32_t i = 0; i < IN_FLIGHT; i++) {
			struct rte_mbuf *m = pp_load_acquire(&consumer->m[i]);

			if (m == NULL)
				continue;
			if (stamp_of(m) != m->hash.rss)
				return; /* it changed while it was ours */
			ways[m->hash.rss % 4](m);
			consumer->freed++;
			pp_store_release(&consumer->m[i], NULL);
		}
		sched_yield();
	}
}

static void
give(struct consumer *consumer, struct rte_mbuf *m, uint32_t stamp, uint64_t *chance)
{
	uint32_t slot = unit_random_below(chance, IN_FLIGHT);

	rte_pktmbuf_reset(m);
	*rte_pktmbuf_mtod(m, uint32_t *) = stamp;
	m->hash.rss = stamp;
	for (; pp_load_acquire(&consumer->m[slot]) != NULL; slot = (slot + 1) % IN_FLIGHT)
		rte_pause();
	pp_store_release(&consumer->m[slot], m);
}

/* One fills pages as they come back, threads with and without an lcore id free the packets. */
static void
freed_by_threads(void **state __rte_unused)
{
	struct rte_mempool *mp = make_pool(0, pp_share_room(2, 0, ROOM));
	struct consumer consumer[2] = {{.freed = 0}};
	struct rte_mbuf *page[4] = {NULL};
	struct pp_share share;
	uint32_t given = 0, reused = 0, rounds = UNIT_TSAN ? 20000 : 100000;
	uint64_t chance = 1;

	pp_share_init(&share, mp, ROOM);
	for (unsigned int i = 0; i < RTE_DIM(consumer); i++) {
		consumer[i].worker = worker_start(i == 0);
		worker_begin(consumer[i].worker, consume, &consumer[i]);
	}
	for (uint32_t round = 0; round < rounds; round++) {
		struct rte_mbuf **slot = &page[unit_random_below(&chance, RTE_DIM(page))];

		if (*slot == NULL) {
			*slot = cut(&share);
		} else if (pp_page_refs(*slot) == 1) {
			pp_page_set_refs(*slot, share.n + 1);
			reused++;
		} else {
			if (unit_random_below(&chance, 64) == 0) {
				pp_page_put(*slot, 1);
				*slot = NULL;
			}
			sched_yield();
			continue;
		}
		for (uint32_t i = 0; i < share.n; i++, given++)
			give(&consumer[unit_random_below(&chance, 2)],
				pp_page_mbuf(&share, *slot, i), given, &chance);
	}
	for (unsigned int i = 0; i < RTE_DIM(page); i++)
		if (page[i] != NULL)
			pp_page_put(page[i], 1);
	while (rte_mempool_in_use_count(mp) > 0)
		sched_yield();
	for (unsigned int i = 0; i < RTE_DIM(consumer); i++) {
		pp_store_release(&consumer[i].ends, true);
		worker_wait(consumer[i].worker);
		worker_end(consumer[i].worker, i == 0);
	}
	assert_int_equal(consumer[0].freed + consumer[1].freed, given);
	assert_true(reused > 0);
	assert_all_are_whole(mp);
	close_pool(mp);
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rooms_are_exact),
		cmocka_unit_test(one_packet_has_it_all),
		cmocka_unit_test(mbufs_are_whole_and_apart),
		cmocka_unit_test(mbufs_have_no_address_where_pages_have_none),
		cmocka_unit_test(every_way_to_free),
		cmocka_unit_test(mixed_bulks),
		cmocka_unit_test(freed_by_threads),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
