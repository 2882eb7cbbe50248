/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <pp_atomic.h>

#include "stats.h"

/* Software drivers add up the queues that rte_eth_stats has room for. */
#define DEVICE_QUEUES_MAX RTE_ETHDEV_QUEUE_STAT_CNTRS

static uint64_t
difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* A stream's packets count where they came in; what its TX queue did counts at that port. */
static void
add_stream(const struct ports *ports, const struct stream *stream, struct result *results)
{
	const struct stream_stats *stats = &stream->stats;
	struct result *rx = &results[stream->rx_index], *tx = &results[stream->tx_index];
	const uint64_t rx_packets = pp_load_relaxed(&stats->rx_packets);
	const uint64_t tx_packets = pp_load_relaxed(&stats->tx_packets);
	const uint64_t ring_full = pp_load_relaxed(&stats->ring_full);
	const uint64_t app = pp_load_relaxed(&stats->app);
	const uint64_t rxonly = pp_load_relaxed(&stats->rxonly);
	const uint64_t generated = pp_load_relaxed(&stats->generated);

	rx->rx_packets += rx_packets;
	rx->rx_bytes += pp_load_relaxed(&stats->rx_bytes);
	rx->rxonly += rxonly;
	rx->app += app;
	rx->bursts += pp_load_relaxed(&stats->bursts);
	rx->busy_packets += rx_packets + generated;
	rx->busy_cycles += pp_load_relaxed(&stats->busy_cycles);
	if (ports->port[stream->rx_index].driver->empty_poll_is_no_buffer && rx_packets > 0)
		rx->no_buffer += pp_load_relaxed(&stats->idle_polls) * stream->burst;
	tx->tx_packets += tx_packets;
	tx->tx_bytes += pp_load_relaxed(&stats->tx_bytes);
	tx->ring_full += ring_full;
	tx->generated += generated;
	tx->no_buffer += pp_load_relaxed(&stats->no_buffer);
	rx->unaccounted +=
		difference(rx_packets + generated, tx_packets + ring_full + app + rxonly);
}

/* What the driver counted, against what we saw of it. */
static void
add_device(struct port *port, uint16_t queues, struct result *result)
{
	const struct driver *driver = port->driver;
	const struct kernel_sockets *sockets = &port->sockets;
	struct rte_eth_stats *device = &result->device;
	uint64_t lost;

	ports_get_stats(port, device);
	if (driver->sockets)
		kernel_sockets_add(port->if_index, &port->sockets);
	lost = driver->oerrors == OERRORS_LOST ? device->oerrors : 0;
	result->device_checked = driver->exact && queues <= DEVICE_QUEUES_MAX;
	if (result->device_checked)
		result->unaccounted +=
			difference(device->ipackets, result->rx_packets + port->drained) +
			difference(device->opackets + lost, result->tx_packets);

	result->in_flight = port->drained;
	if (sockets->received > device->ipackets)
		result->in_flight += sockets->received - device->ipackets;
	lost = RTE_MIN(lost + sockets->tx_drops, result->tx_packets);
	if (lost > 0) {
		result->tx_bytes -= (double)result->tx_bytes * lost / result->tx_packets;
		result->tx_packets -= lost;
	}
	result->no_buffer += device->rx_nombuf;
	result->driver = device->imissed + device->ierrors + sockets->rx_drops + lost;
}

static void
add_up(const struct result *result, struct result *total)
{
	total->rx_packets += result->rx_packets;
	total->rx_bytes += result->rx_bytes;
	total->tx_packets += result->tx_packets;
	total->tx_bytes += result->tx_bytes;
	total->generated += result->generated;
	total->rxonly += result->rxonly;
	total->no_buffer += result->no_buffer;
	total->ring_full += result->ring_full;
	total->driver += result->driver;
	total->app += result->app;
	total->in_flight += result->in_flight;
	total->unaccounted += result->unaccounted;
	total->bursts += result->bursts;
	total->busy_packets += result->busy_packets;
	total->busy_cycles += result->busy_cycles;
	total->device_checked &= result->device_checked;
}

void
stats_collect(struct ports *ports, const struct streams *streams, struct result *results)
{
	struct result *total = &results[ports->n];
	uint16_t i;

	memset(results, 0, (ports->n + 1) * sizeof(*results));
	total->device_checked = true;
	for (i = 0; i < streams->n; i++)
		add_stream(ports, &streams->stream[i], results);
	for (i = 0; i < ports->n; i++) {
		add_device(&ports->port[i], ports->queues, &results[i]);
		add_up(&results[i], total);
	}
}
