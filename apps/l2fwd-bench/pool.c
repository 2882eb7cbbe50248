/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <capture.h>
#include <eal.h>
#include <machine.h>
#include <pp_mempool.h>
#include <pp_recycle.h>
#include <pp_share.h>

#include "pool.h"
#include "release.h"

#define NAME "packets"

/* A library cache gives back when it holds 1.5 times its size. */
#define MBCACHE_FLUSH(size) ((size)*3 / 2)

/* Pages that a queue of mlx5pp's keeps for itself beside its ring, in the mode that keeps most. */
#define RECYCLE_KEPT(rxd) RTE_MAX((uint32_t)PP_RECYCLE_CACHE + PP_RECYCLE_RING, rxd)

/*
 * Every descriptor of every ring can hold a buffer, every lcore a cache and the burst in its hands
 * beside the one that its driver is allocating.
 */
static void
compute_need(struct pool *pool, const struct options *options, const struct ports *ports)
{
	const uint32_t burst = RTE_MAX(options->burst, options->contend);
	uint32_t rx, tx, cached = MBCACHE_FLUSH(options->mbcache);
	uint64_t need = 0;
	size_t len = 0;
	uint16_t i;

	if (pool_kind_is_paged(pool->kind))
		cached += 2 * (options->batch != 0 ? options->batch : PCP_BATCH_MAX);
	for (i = 0; i < ports->n; i++) {
		const struct port *port = &ports->port[i];

		rx = port->driver->rx_buffers != 0 ? port->driver->rx_buffers : port->rxd;
		tx = port->driver->tx_buffers != 0 ? port->driver->tx_buffers : port->txd;
		rx += options->recycle > RECYCLE_OFF ? RECYCLE_KEPT(rx) : 0;
		tx += options->hold + (options->free_on == FREE_ON_OTHER ? RELEASE_RING : 0);
		need += (uint64_t)ports->queues * (rx + tx);
		if (len < sizeof(pool->formula))
			len += snprintf(pool->formula + len, sizeof(pool->formula) - len,
				"%u x (%u + %u) + ", ports->queues, rx, tx);
	}
	need += (uint64_t)rte_lcore_count() * (cached + 2 * burst);
	if (len < sizeof(pool->formula))
		snprintf(pool->formula + len, sizeof(pool->formula) - len,
			"%u x (%u + 2 x %u) = %" PRIu64, rte_lcore_count(), cached, burst, need);
	pool->needed = need;
}

/*
 * Without gaps between objects, a page's object fills the page; where packets share pages, two of
 * the usual size do.
 */
static uint16_t
choose_room(const struct pool *pool, const struct options *options, const struct ports *ports)
{
	uint16_t i;

	if (options->recycle == RECYCLE_REUSE)
		return (uint16_t)pp_share_room(
			2, 0, RTE_PKTMBUF_HEADROOM + RTE_ETHER_MAX_VLAN_FRAME_LEN);
	for (i = 0; pool->kind == POOL_PAGES && i < ports->n; i++)
		if (ports->port[i].driver->maps_pool)
			return PP_PKTMBUF_ROOM_MAX;
	return RTE_MBUF_DEFAULT_BUF_SIZE;
}

static int
create_pages(struct pool *pool, uint32_t n, int node)
{
	const struct pp_pktmbuf_config config = {
		.backend = PP_BACKEND_MEMZONE,
		.page_size = machine_page_size(),
		.pcp = pool->pcp,
	};

	pool->mp = pp_pktmbuf_pool_create(NAME, n, 0, pool->room, node, &config);
	return pool->mp == NULL ? -rte_errno : 0;
}

static int
create_ops(struct pool *pool, uint32_t n, uint32_t mbcache, int node)
{
	struct rte_pktmbuf_pool_private room = {.mbuf_data_room_size = pool->room};
	struct pp_mempool_config config = {.pcp = pool->pcp}; /* read by populate, no later */
	int err;

	pool->mp = rte_mempool_create_empty(NAME, n, sizeof(struct rte_mbuf) + pool->room, mbcache,
		sizeof(struct rte_pktmbuf_pool_private), node, 0);
	if (pool->mp == NULL)
		return -rte_errno;
	err = rte_mempool_set_ops_byname(pool->mp, pool_kind_name(pool->kind),
		pool_kind_is_paged(pool->kind) ? &config : NULL);
	if (err == 0) {
		rte_pktmbuf_pool_init(pool->mp, &room);
		err = rte_mempool_populate_default(pool->mp);
	}
	if (err < 0) {
		rte_mempool_free(pool->mp);
		pool->mp = NULL;
		return err;
	}
	rte_mempool_obj_iter(pool->mp, rte_pktmbuf_init, NULL);
	return 0;
}

static void
explain(const struct pool *pool, uint32_t n, int err)
{
	const uint64_t object =
		pool->kind == POOL_PAGES
			? PP_PAGE_SIZE
			: rte_mempool_calc_obj_size(sizeof(struct rte_mbuf) + pool->room, 0, NULL);
	const uint64_t mib = (n * object >> 20) + 1;
	const char *kind = pool_kind_name(pool->kind);

	if (err != -ENOMEM)
		cli_error("cannot create a pool of %u buffers with --pool %s: %s; try another "
			  "--pool",
			n, kind, rte_strerror(-err));
	else if (!rte_eal_has_hugepages())
		cli_error("no memory for %u buffers of --pool %s, %" PRIu64
			  " MiB; give EAL a larger -m",
			n, kind, mib);
	else
		cli_error("no memory for %u buffers of --pool %s, %" PRIu64 " MiB, with %" PRIu64
			  " MiB of hugepages free; reserve more (sysctl vm.nr_hugepages), or give "
			  "less --pool-size, --rxd or --txd",
			n, kind, mib, eal_free_hugepages() >> 20);
}

/* What DPDK logs about a failure, explain() says in one line. */
static int
create(struct pool *pool, uint32_t n, uint32_t mbcache, int node)
{
	char *output;
	int err;

	if (capture_begin() < 0)
		return -ENOMEM;
	err = pool->kind == POOL_PAGES ? create_pages(pool, n, node)
				       : create_ops(pool, n, mbcache, node);
	output = capture_end();
	if (err == 0 && output != NULL)
		fputs(output, stderr);
	free(output);
	return err;
}

/*
 * Whether drivers that map the pool will find all of it: they expect the n objects in the first
 * chunk, n times an object's size long. On small pages each object of DPDK's layout is followed by
 * a gap up to the next page.
 */
static int
check_mapping(const struct pool *pool, const struct ports *ports)
{
	const struct port *port;
	uint16_t i;

	for (i = 0; i < ports->n; i++) {
		port = &ports->port[i];
		if (!port->driver->maps_pool)
			continue;
		if (pool->mp->nb_mem_chunks > 1) {
			cli_error("port %u (%s) wants all buffers in one piece of memory, and "
				  "there are %u; give EAL --iova-mode=va",
				port->id, port->driver_name, pool->mp->nb_mem_chunks);
			return -EINVAL;
		}
		if (!rte_eal_has_hugepages() && pool->kind != POOL_PAGES) {
			cli_error("port %u (%s) cannot map --pool %s without hugepages; use --pool "
				  "pages",
				port->id, port->driver_name, pool_kind_name(pool->kind));
			return -EINVAL;
		}
	}
	return 0;
}

int
pool_create(struct pool *pool, const struct options *options, const struct ports *ports)
{
	const int node = ports->port[0].node >= 0 ? ports->port[0].node : (int)rte_socket_id();
	uint32_t n = options->pool_size;
	int err;

	memset(pool, 0, sizeof(*pool));
	pool->kind = options->pool;
	pool->pcp = (struct pcp_config){
		.mode = options->pcp,
		.checks = options->checks,
		.batch = options->batch,
		.high = options->high,
	};
	pool->room = choose_room(pool, options, ports);
	compute_need(pool, options, ports);
	if (n == 0)
		n = pool->needed;
	if (n < pool->needed) {
		cli_error("--pool-size %u is too small: queues x (RX + TX ring) of each port + "
			  "lcores x "
			  "(cache + bursts) are %s; give %u or more",
			n, pool->formula, pool->needed);
		return -EINVAL;
	}
	err = create(pool, n, options->mbcache, node);
	if (err < 0) {
		explain(pool, n, err);
		return err;
	}
	err = check_mapping(pool, ports);
	if (err < 0)
		return err;
	pool->cache = pp_mempool_cache(pool->mp);
	if (pool->cache != NULL)
		pcp_cache_get_config(pool->cache, &pool->pcp);
	return 0;
}

void
pool_settle(struct pool *pool, const struct ports *ports)
{
	const uint32_t away = rte_mempool_in_use_count(pool->mp);
	uint32_t kept = 0;
	uint16_t i;

	for (i = 0; i < ports->n; i++)
		kept += ports->queues * ports->port[i].driver->lost_at_close;
	if (pool->cache != NULL)
		pcp_cache_get_stats(pool->cache, &pool->stats);
	const uint32_t in_use = away - (uint32_t)pool->stats.bad_pages;

	pool->kept = RTE_MIN(in_use, kept);
	pool->missing = in_use - pool->kept;
}

void
pool_destroy(struct pool *pool)
{
	if (pool->mp == NULL || rte_mempool_in_use_count(pool->mp) != 0)
		return;
	if (pool->kind == POOL_PAGES)
		pp_pktmbuf_pool_free(pool->mp);
	else
		rte_mempool_free(pool->mp);
	pool->mp = NULL;
}
