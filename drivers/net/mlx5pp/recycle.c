/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the buffers of a receive queue come from.
 *
 *	off	the pool
 *	cache	as mlx5e's page cache: a FIFO of pages given to the application. Only the head is
 *		looked at, and used again if it has been returned; one slow consumer blocks it
 *	reuse	the same of pages that several packets share: see reuse.c
 *	pool	as the kernel's page_pool: returns on the polling lcore go to a cache, others to a
 *		ring, both the queue's: see pp_recycle.h
 *
 * What these do not give comes from the pool, in bulk.
 */

#include <errno.h>

#include <rte_malloc.h>

#include <pp_mempool.h>

#include "mlx5pp.h"

static uint32_t
take_from_pool(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t n)
{
	/* all or nothing; but few are better than none */
	while (n > 0 && pp_recycle_pool_get(rxq->mp, rxq->cache, (void **)bufs, n) < 0)
		n /= 2;
	return n;
}

/* ---- cache ---- */

static bool
is_returned(struct rte_mbuf *m)
{
	return pp_load_acquire(&pp_page_mark(m)->returned) != 0;
}

/* The page is the driver's again, and like any other. */
static void
unmark(struct rte_mbuf *m)
{
	*pp_page_mark(m) = (struct pp_page_mark){0};
}

static uint32_t
take_from_fifo(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t n)
{
	struct mlx5pp_fifo *fifo = &rxq->fifo;
	uint32_t got = 0;

	while (got < n) {
		if (fifo->head == fifo->tail) {
			rxq->stats.cache_empty++;
			break;
		}
		struct rte_mbuf *m = fifo->page[fifo->head & fifo->mask];

		if (!is_returned(m)) {
			rxq->stats.cache_busy++;
			break;
		}
		rte_prefetch0_write(pp_page_mark(fifo->page[(fifo->head + 4) & fifo->mask]));
		unmark(m);
		fifo->head++;
		bufs[got++] = m;
	}
	rxq->stats.cache_reuse += got;
	return got;
}

/*
 * The pool is empty, or has too few for one WQE. Pages that were returned behind a busy head must
 * not be out of reach then, or the queue would starve beside them.
 */
static uint32_t
take_behind_head(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t n)
{
	struct mlx5pp_fifo *fifo = &rxq->fifo;
	uint32_t got = 0, kept = fifo->head;

	for (uint32_t i = fifo->head; i != fifo->tail; i++) {
		struct rte_mbuf *m = fifo->page[i & fifo->mask];

		if (got < n && is_returned(m)) {
			unmark(m);
			bufs[got++] = m;
		} else {
			fifo->page[kept++ & fifo->mask] = m;
		}
	}
	fifo->tail = kept;
	rxq->stats.cache_behind_head += got;
	return got;
}

/* Returned pages go to the pool at once; the others lose their mark, and will when they come. */
static void
empty_fifo(struct mlx5pp_rxq *rxq)
{
	struct mlx5pp_fifo *fifo = &rxq->fifo;

	for (uint32_t i = fifo->head; i != fifo->tail; i++)
		pp_store_relaxed(&pp_page_mark(fifo->page[i & fifo->mask])->given, 0);
	pp_recycle_quiesce(rxq->recycler);
	for (uint32_t i = fifo->head; i != fifo->tail; i++) {
		struct rte_mbuf *m = fifo->page[i & fifo->mask];

		if (is_returned(m)) {
			unmark(m);
			rte_mempool_put(rxq->mp, m);
		}
	}
	fifo->head = fifo->tail = 0;
}

/*
 * What finds no room goes to the pool, which each refill then has to ask: by default there is room
 * for as many pages as can come before the first is back.
 */
static uint32_t
fifo_slots(const struct mlx5pp_rxq *rxq)
{
	const uint32_t asked = rxq->port->args.cache_size;

	return asked != 0 ? asked : RTE_MAX(rxq->n_desc, MLX5PP_FIFO_MIN);
}

static int
make_fifo(struct mlx5pp_rxq *rxq, uint32_t size, int socket)
{
	const uint32_t slots = rte_align32pow2(size);

	rxq->fifo.page = rte_zmalloc_socket(
		"mlx5pp_fifo", slots * sizeof(*rxq->fifo.page), RTE_CACHE_LINE_SIZE, socket);
	rxq->fifo.mask = slots - 1;
	rxq->fifo.usable = size - 1;
	return rxq->fifo.page != NULL ? 0 : -ENOMEM;
}

/* ---- all modes ---- */

uint32_t
mlx5pp_recycle_take(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t n)
{
	uint32_t got = 0;

	if (rxq->recycle == MLX5PP_RECYCLE_POOL)
		return pp_recycle_take(rxq->recycler, rxq->pool, (void **)bufs, n);
	if (rxq->recycle == MLX5PP_RECYCLE_REUSE)
		return mlx5pp_reuse_take(rxq, bufs, n);
	if (rxq->recycle == MLX5PP_RECYCLE_CACHE)
		got = take_from_fifo(rxq, bufs, n);
	if (got < n)
		got += take_from_pool(rxq, bufs + got, n - got);
	if (unlikely(got < 1u << rxq->log_segs) && rxq->recycle == MLX5PP_RECYCLE_CACHE)
		got += take_behind_head(rxq, bufs + got, n - got);
	return got;
}

void
mlx5pp_recycle_give_back(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t n)
{
	if (rxq->recycle == MLX5PP_RECYCLE_POOL)
		pp_recycle_release(rxq->recycler, rxq->pool, (void **)bufs, n);
	else
		rte_mempool_put_bulk(rxq->mp, (void **)bufs, n);
}

void
mlx5pp_recycle_choose_room(struct mlx5pp_rxq *rxq, uint32_t len)
{
	rxq->buf_len = rte_pktmbuf_data_room_size(rxq->mp);
	if (rxq->recycle == MLX5PP_RECYCLE_REUSE)
		mlx5pp_reuse_choose_room(rxq, len);
	rxq->room = rxq->buf_len - rxq->headroom;
}

void
mlx5pp_recycle_start(struct mlx5pp_rxq *rxq)
{
	if (rxq->recycle == MLX5PP_RECYCLE_POOL)
		pp_recycle_queue_open(rxq->pool);
	else if (rxq->recycle == MLX5PP_RECYCLE_REUSE)
		mlx5pp_reuse_start(rxq);
}

void
mlx5pp_recycle_stop(struct mlx5pp_rxq *rxq)
{
	if (rxq->recycle == MLX5PP_RECYCLE_POOL)
		pp_recycle_queue_close(rxq->recycler, rxq->pool);
	else if (rxq->recycle == MLX5PP_RECYCLE_CACHE)
		empty_fifo(rxq);
	else if (rxq->recycle == MLX5PP_RECYCLE_REUSE)
		mlx5pp_reuse_stop(rxq);
}

/* Pages that recycling keeps out of the pool must not be missed there. */
static void
check_size(const struct mlx5pp_rxq *rxq)
{
	const uint32_t kept = rxq->recycle == MLX5PP_RECYCLE_POOL
				      ? PP_RECYCLE_CACHE + PP_RECYCLE_RING
				      : fifo_slots(rxq) - 1;
	const uint32_t need = rxq->n_desc + kept;

	if (rxq->mp->size < need)
		MLX5PP_LOG(WARNING,
			"pool %s has %u buffers; RX queue %u alone can keep %u (ring %u, recycling "
			"%u)",
			rxq->mp->name, rxq->mp->size, rxq->index, need, rxq->n_desc, kept);
}

int
mlx5pp_recycle_setup(struct mlx5pp_rxq *rxq, int socket)
{
	struct pcp_cache *cache = pp_mempool_cache(rxq->mp);
	struct pcp_config config;
	int err;

	if (rxq->port->args.pcp >= 0) {
		if (cache == NULL) {
			MLX5PP_LOG(ERR,
				"pool %s has no page caches: pcp= is for pools with "
				"ops " PP_MEMPOOL_OPS_NAME,
				rxq->mp->name);
			return -ENOTSUP;
		}
		pcp_cache_get_config(cache, &config);
		if ((int)config.mode != rxq->port->args.pcp) {
			MLX5PP_LOG(ERR,
				"pool %s has page caches of mode %s, and pcp=%s was asked for",
				rxq->mp->name, pcp_mode_name(config.mode),
				pcp_mode_name(rxq->port->args.pcp));
			return -EINVAL;
		}
	}
	/* a mempool cache in front must see what the driver takes */
	rxq->cache = rxq->mp->cache_size == 0 ? cache : NULL;
	rxq->recycle = rxq->port->args.recycle;
	if (rxq->recycle == MLX5PP_RECYCLE_OFF)
		return 0;
	err = pp_recycle_attach(rxq->mp, &rxq->recycler);
	if (err < 0) {
		MLX5PP_LOG(ERR, "recycle=%s cannot be had with pool %s",
			mlx5pp_recycle_name(rxq->recycle), rxq->mp->name);
		return err;
	}
	if (rxq->recycle == MLX5PP_RECYCLE_CACHE) {
		err = make_fifo(rxq, fifo_slots(rxq), socket);
	} else if (rxq->recycle == MLX5PP_RECYCLE_REUSE) {
		err = mlx5pp_reuse_setup(rxq, fifo_slots(rxq), socket);
	} else {
		rxq->pool = pp_recycle_queue_get(rxq->recycler, socket);
		err = rxq->pool != NULL ? 0 : -ENOMEM;
	}
	if (err == 0)
		check_size(rxq);
	else
		MLX5PP_LOG(ERR, "RX queue %u: no memory for recycle=%s", rxq->index,
			mlx5pp_recycle_name(rxq->recycle));
	return err;
}

void
mlx5pp_recycle_release(struct mlx5pp_rxq *rxq)
{
	if (rxq->pool != NULL)
		pp_recycle_queue_put(rxq->recycler, rxq->pool);
	rte_free(rxq->fifo.page);
	rte_free(rxq->pages.posted.entry);
	rte_free(rxq->pages.given.entry);
	rxq->pool = NULL;
	rxq->recycler = NULL;
	rxq->fifo.page = NULL;
	rxq->pages.posted.entry = rxq->pages.given.entry = NULL;
}
