/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include <rte_lcore.h>
#include <rte_malloc.h>

#include "run.h"

/* As testpmd: the MAC address that it assumes behind a port. */
static struct rte_ether_addr
assumed_peer(uint16_t port)
{
	return (struct rte_ether_addr){{0x02, 0, 0, 0, port >> 8, port & 0xff}};
}

/* The lcore of stream i. The main lcore comes last: it polls only if all others do. */
static unsigned int
stream_lcore(uint16_t stream)
{
	unsigned int lcore_id;

	RTE_LCORE_FOREACH_WORKER (lcore_id) {
		if (stream-- == 0)
			return lcore_id;
	}
	return rte_get_main_lcore();
}

int
streams_check_lcores(const struct options *options, const struct ports *ports)
{
	const unsigned int queues = ports->n * options->rxq, lcores = rte_lcore_count();

	if (lcores < queues) {
		cli_error("%u lcores, too few: every RX queue has one of its own, and %u ports "
			  "x %u "
			  "queues make %u; give EAL %u lcores or, to keep the main one idle, %u",
			lcores, ports->n, options->rxq, queues, queues, queues + 1);
		return -EINVAL;
	}
	if (lcores > queues + 1) {
		cli_error("%u lcores, too many: no RX queue has two, and %u ports x %u queues "
			  "make "
			  "%u; give EAL %u lcores or, to keep the main one idle, %u",
			lcores, ports->n, options->rxq, queues, queues, queues + 1);
		return -EINVAL;
	}
	if ((options->free_on == FREE_ON_OTHER || options->contend > 0) && lcores == queues) {
		cli_error("--%s needs an lcore that does not poll; give EAL %u lcores",
			options->contend > 0 ? "contend" : "free-on other", queues + 1);
		return -EINVAL;
	}
	return 0;
}

static bool
differ(int a, int b)
{
	return a >= 0 && b >= 0 && a != b;
}

/* Once is enough: one remote pair already explains a slow run. */
static void
warn_of_nodes(const struct streams *streams, const struct ports *ports, const struct pool *pool)
{
	const struct port *port;
	int lcore_node;
	uint16_t i;

	for (i = 0; i < streams->n; i++) {
		port = &ports->port[streams->stream[i].rx_index];
		lcore_node = rte_lcore_to_socket_id(streams->stream[i].lcore_id);
		if (!differ(port->node, lcore_node) && !differ(port->node, pool->mp->socket_id) &&
			!differ(lcore_node, pool->mp->socket_id))
			continue;
		cli_error("warning: port %u is on NUMA node %d, lcore %u on %d, the pool on %d; "
			  "choose lcores of the port's node",
			port->id, port->node, streams->stream[i].lcore_id, lcore_node,
			pool->mp->socket_id);
		return;
	}
}

int
streams_create(struct streams *streams, const struct options *options, const struct ports *ports,
	const struct pool *pool)
{
	const struct port *rx, *tx;
	struct stream *stream;
	uint16_t i, q;

	streams->n = 0;
	streams->stream = rte_calloc(
		"streams", ports->n * ports->queues, sizeof(*stream), alignof(struct stream));
	if (streams->stream == NULL) {
		cli_error("no memory for %u streams; reserve more hugepages",
			ports->n * ports->queues);
		return -ENOMEM;
	}
	for (i = 0; i < ports->n; i++) {
		for (q = 0; q < ports->queues; q++) {
			stream = &streams->stream[streams->n];
			stream->rx_index = i;
			stream->tx_index =
				options->mode == FORWARD_TXONLY ? i : ports->port[i].peer;
			rx = &ports->port[stream->rx_index];
			tx = &ports->port[stream->tx_index];
			stream->rx_port = rx->id;
			stream->tx_port = tx->id;
			stream->rx_queue = stream->tx_queue = q;
			stream->burst = options->burst;
			stream->frame_len = options->frame_size - UNITS_FCS_LEN;
			stream->mode = options->mode;
			stream->yield = options->yield;
			stream->lcore_id = stream_lcore(streams->n);
			stream->pool = pool->mp;
			/* Sections must not block. */
			if (!rx->driver->sleeps && !tx->driver->sleeps)
				stream->cache = pool->cache;
			stream->source = tx->mac;
			stream->destination = assumed_peer(tx->id);
			if (release_init(&stream->release, options, streams->n) < 0)
				return -ENOMEM;
			streams->n++;
		}
	}
	warn_of_nodes(streams, ports, pool);
	return 0;
}

void
streams_release(struct streams *streams)
{
	uint16_t i;

	for (i = 0; i < streams->n; i++)
		release_fini(&streams->stream[i].release);
}

void
streams_free(struct streams *streams)
{
	streams_release(streams);
	rte_free(streams->stream);
	streams->stream = NULL;
	streams->n = 0;
}
