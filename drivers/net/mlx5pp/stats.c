/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of a port: sums over its queues, and what the card says. Names are the kernel's. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mlx5pp.h"

/* Frames for which the card had no buffer, since its kernel driver was loaded. */
static uint64_t
read_missed(const struct mlx5pp_port *port)
{
	char path[IBV_SYSFS_PATH_MAX + 48];
	uint64_t value = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/ports/1/hw_counters/out_of_buffer", port->sysfs);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%" SCNu64, &value) != 1)
		value = 0;
	fclose(f);
	return value;
}

int
mlx5pp_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	const struct mlx5pp_port *port = mlx5pp_port(dev);

	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++) {
		const struct mlx5pp_rxq *rxq = dev->data->rx_queues[i];

		if (rxq == NULL)
			continue;
		if (i < RTE_ETHDEV_QUEUE_STAT_CNTRS) {
			stats->q_ipackets[i] = rxq->stats.packets;
			stats->q_ibytes[i] = rxq->stats.bytes;
			stats->q_errors[i] = rxq->stats.errors;
		}
		stats->ipackets += rxq->stats.packets;
		stats->ibytes += rxq->stats.bytes;
		stats->ierrors += rxq->stats.errors;
		stats->rx_nombuf += rxq->stats.nombuf;
	}
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++) {
		const struct mlx5pp_txq *txq = dev->data->tx_queues[i];

		if (txq == NULL)
			continue;
		if (i < RTE_ETHDEV_QUEUE_STAT_CNTRS) {
			stats->q_opackets[i] = txq->stats.packets;
			stats->q_obytes[i] = txq->stats.bytes;
		}
		stats->opackets += txq->stats.packets;
		stats->obytes += txq->stats.bytes;
		stats->oerrors += txq->stats.errors;
	}
	stats->imissed = read_missed(port) - port->missed_base;
	return 0;
}

/* Only the basic ones: each queue's are the first fields of its counters. */
int
mlx5pp_stats_reset(struct rte_eth_dev *dev)
{
	struct mlx5pp_port *port = mlx5pp_port(dev);

	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++) {
		struct mlx5pp_rxq *rxq = dev->data->rx_queues[i];

		if (rxq != NULL)
			memset(&rxq->stats, 0, offsetof(struct mlx5pp_rxq_stats, recoveries));
	}
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++) {
		struct mlx5pp_txq *txq = dev->data->tx_queues[i];

		if (txq != NULL)
			memset(&txq->stats, 0, offsetof(struct mlx5pp_txq_stats, no_mr));
	}
	port->missed_base = read_missed(port);
	return 0;
}

/* ---- extended ones ---- */

/* Where a counter is: in each queue, in each queue's pages, or elsewhere. */
enum place {
	RXQ,
	TXQ,
	PAGES,
	RING,          /* returns through rings: those taken out, and those still in */
	INFLIGHT,      /* not a counter: what is away now */
	OUT_OF_BUFFER, /* the card's */
	MR_REGISTERED,
	NEVER, /* of the kernel's, what cannot happen: pages are of order 0, and of one node */
};

static const struct {
	const char *name;
	enum place place;
	size_t offset;
} counters[] = {
#define RX(name, field)                                                                            \
	{                                                                                          \
		name, RXQ, offsetof(struct mlx5pp_rxq, stats.field)                                \
	}
#define TX(name, field)                                                                            \
	{                                                                                          \
		name, TXQ, offsetof(struct mlx5pp_txq, stats.field)                                \
	}
#define PAGE(name, field)                                                                          \
	{                                                                                          \
		name, PAGES, offsetof(struct pp_recycle_queue, field)                              \
	}
	RX("rx_cache_reuse", cache_reuse),
	RX("rx_cache_full", cache_full),
	RX("rx_cache_empty", cache_empty),
	RX("rx_cache_busy", cache_busy),
	{"rx_cache_waive", NEVER, 0},
	RX("rx_cache_behind_head", cache_behind_head),
	PAGE("rx_pp_alloc_fast", fast),
	PAGE("rx_pp_alloc_slow", slow),
	{"rx_pp_alloc_slow_high_order", NEVER, 0},
	PAGE("rx_pp_alloc_empty", empty),
	PAGE("rx_pp_alloc_refill", refill),
	{"rx_pp_alloc_waive", NEVER, 0},
	PAGE("rx_pp_recycle_cached", cached),
	PAGE("rx_pp_recycle_cache_full", cache_full),
	{"rx_pp_recycle_ring", RING, 0},
	PAGE("rx_pp_recycle_ring_full", ring_full),
	PAGE("rx_pp_recycle_released_ref", closed),
	{"rx_out_of_buffer", OUT_OF_BUFFER, 0},
	{"inflight", INFLIGHT, 0},
	{"tx_mr_registered", MR_REGISTERED, 0},
#if MLX5PP_HAS_RECYCLE_MBUFS
	RX("rx_recycled_mbufs", recycled_mbufs),
#endif
	RX("rx_recoveries", recoveries),
	TX("tx_recoveries", recoveries),
	TX("tx_no_mr", no_mr),
	TX("tx_bad_frame", bad_frame),
#undef RX
#undef TX
#undef PAGE
};

static_assert(RTE_DIM(counters) <= MLX5PP_XSTATS_MAX, "bases of all of them");

static uint64_t
field(const void *structure, size_t offset)
{
	return pp_load_relaxed((const uint64_t *)RTE_PTR_ADD(structure, offset));
}

static uint64_t
of_rxq(const struct mlx5pp_rxq *rxq, enum place place, size_t offset)
{
	if (place == RXQ)
		return field(rxq, offset);
	if (rxq->pool == NULL)
		return 0;
	switch (place) {
	case PAGES:
		return field(rxq->pool, offset);
	case RING:
		return rxq->pool->consumed + rte_ring_count(rxq->pool->ring);
	case INFLIGHT:
		return pp_recycle_inflight(rxq->pool);
	default:
		return 0;
	}
}

static uint64_t
value_of(struct rte_eth_dev *dev, unsigned int i)
{
	const struct mlx5pp_port *port = mlx5pp_port(dev);
	const enum place place = counters[i].place;
	uint64_t sum = 0;

	if (place == OUT_OF_BUFFER)
		return read_missed(port);
	if (place == MR_REGISTERED)
		return port->mrs.registered;
	for (uint16_t q = 0; place == TXQ && q < dev->data->nb_tx_queues; q++)
		if (dev->data->tx_queues[q] != NULL)
			sum += field(dev->data->tx_queues[q], counters[i].offset);
	for (uint16_t q = 0; place != TXQ && q < dev->data->nb_rx_queues; q++)
		if (dev->data->rx_queues[q] != NULL)
			sum += of_rxq(dev->data->rx_queues[q], place, counters[i].offset);
	return sum;
}

/*
 * A queue joins the sums, or leaves them. Neither changes them: what has been counted stays, and
 * pages of a pool may have been counted for others before.
 */
void
mlx5pp_xstats_rxq(struct mlx5pp_port *port, const struct mlx5pp_rxq *rxq, bool joins)
{
	for (unsigned int i = 0; i < RTE_DIM(counters); i++) {
		const enum place place = counters[i].place;

		if (place != RXQ && place != PAGES && place != RING)
			continue;
		const uint64_t value = of_rxq(rxq, place, counters[i].offset);

		port->xstats_base[i] += joins ? value : -value;
	}
}

void
mlx5pp_xstats_txq_leaves(struct mlx5pp_port *port, const struct mlx5pp_txq *txq)
{
	for (unsigned int i = 0; i < RTE_DIM(counters); i++)
		if (counters[i].place == TXQ)
			port->xstats_base[i] -= field(txq, counters[i].offset);
}

/* What the card has counted for others before does not count. */
void
mlx5pp_stats_init(struct mlx5pp_port *port)
{
	port->missed_base = read_missed(port);
	for (unsigned int i = 0; i < RTE_DIM(counters); i++)
		if (counters[i].place == OUT_OF_BUFFER)
			port->xstats_base[i] = port->missed_base;
}

int
mlx5pp_xstats_get_names(
	struct rte_eth_dev *dev __rte_unused, struct rte_eth_xstat_name *names, unsigned int n)
{
	if (names != NULL && n >= RTE_DIM(counters))
		for (unsigned int i = 0; i < RTE_DIM(counters); i++)
			strlcpy(names[i].name, counters[i].name, sizeof(names[i].name));
	return RTE_DIM(counters);
}

int
mlx5pp_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned int n)
{
	const struct mlx5pp_port *port = mlx5pp_port(dev);

	if (xstats != NULL && n >= RTE_DIM(counters))
		for (unsigned int i = 0; i < RTE_DIM(counters); i++) {
			xstats[i].id = i;
			xstats[i].value = value_of(dev, i) - port->xstats_base[i];
		}
	return RTE_DIM(counters);
}

/* What is away stays away; all else counts from now on. */
int
mlx5pp_xstats_reset(struct rte_eth_dev *dev)
{
	struct mlx5pp_port *port = mlx5pp_port(dev);

	for (unsigned int i = 0; i < RTE_DIM(counters); i++)
		if (counters[i].place != INFLIGHT)
			port->xstats_base[i] = value_of(dev, i);
	return 0;
}
