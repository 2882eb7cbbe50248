/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>

#include "forward.h"
#include "ports.h"
#include "recycle.h"

#define LINK_WAIT_MS 3000
#define TX_WAIT_MS   20

static int
choose(struct ports *ports, const struct options *options)
{
	uint16_t id, i;

	RTE_ETH_FOREACH_DEV (id) {
		if (options->n_ports == 0)
			ports->port[ports->n++].id = id;
	}
	if (rte_eth_dev_count_avail() == 0) {
		cli_error("no Ethernet ports; bind a NIC to vfio-pci as root, or give EAL "
			  "--vdev net_null0");
		return -ENODEV;
	}
	for (i = 0; i < options->n_ports; i++) {
		id = options->ports[i];
		if (!rte_eth_dev_is_valid_port(id)) {
			cli_error("port %u does not exist; EAL found %u, see --vdev and --allow",
				id, rte_eth_dev_count_avail());
			return -ENODEV;
		}
		ports->port[ports->n++].id = id;
	}
	for (i = 0; i < ports->n; i++) /* 0 <-> 1, 2 <-> 3, and the last one, if odd, alone */
		ports->port[i].peer = (i ^ 1) < ports->n ? i ^ 1 : i;
	return 0;
}

static int
configure(struct port *port, const struct options *options)
{
	struct rte_eth_conf conf = {.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE};
	struct rte_eth_dev_info info;
	uint32_t max_queues;
	int err;

	err = rte_eth_dev_info_get(port->id, &info);
	if (err < 0) {
		cli_error("port %u says nothing about itself: %s; leave it out with --ports",
			port->id, rte_strerror(-err));
		return err;
	}
	port->driver_name = info.driver_name;
	port->driver = driver_find(info.driver_name);
	if (options->recycle >= 0 && strcmp(port->driver_name, RECYCLE_DRIVER) != 0) {
		cli_error("--recycle is for ports of " RECYCLE_DRIVER ", and port %u is one of %s; "
			  "leave it out",
			port->id, port->driver_name);
		return -EINVAL;
	}
	port->if_index = info.if_index;
	port->wire = driver_has_wire(info.driver_name, info.device);
	port->node = rte_eth_dev_socket_id(port->id);
	rte_eth_dev_get_name_by_port(port->id, port->device);
	rte_eth_macaddr_get(port->id, &port->mac);
	max_queues = RTE_MIN(info.max_rx_queues, info.max_tx_queues);
	if (options->rxq > max_queues) {
		cli_error("port %u (%s) has no more than %u queues; give --rxq %u or less",
			port->id, port->driver_name, max_queues, max_queues);
		return -EINVAL;
	}
	if (options->rxq > 1) {
		conf.rx_adv_conf.rss_conf.rss_hf =
			info.flow_type_rss_offloads &
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);
		port->rss = conf.rx_adv_conf.rss_conf.rss_hf != 0;
		if (port->rss)
			conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	}
	/* Buffers come from one pool and have one reference, whatever the mode. */
	conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	err = rte_eth_dev_configure(port->id, options->rxq, options->rxq, &conf);
	if (err < 0) {
		cli_error("port %u (%s) cannot have %u queues: %s; try --rxq 1", port->id,
			port->driver_name, options->rxq, rte_strerror(-err));
		return err;
	}
	port->configured = true;
	port->rxd = options->rxd;
	port->txd = options->txd;
	err = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &port->rxd, &port->txd);
	if (err < 0) {
		cli_error("port %u (%s) cannot have %u and %u descriptors: %s; change --rxd, "
			  "--txd",
			port->id, port->driver_name, options->rxd, options->txd,
			rte_strerror(-err));
		return err;
	}
	return 0;
}

/* A frame that txonly would make must fit the port. */
static int
check_frame(const struct port *port, const struct options *options)
{
	const uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
	uint16_t mtu;

	if (options->mode != FORWARD_TXONLY || rte_eth_dev_get_mtu(port->id, &mtu) < 0 ||
		options->frame_size <= mtu + overhead)
		return 0;
	cli_error("--frame-size %u does not fit port %u, whose MTU is %u; give %u or less",
		options->frame_size, port->id, mtu, mtu + overhead);
	return -EINVAL;
}

int
ports_configure(struct ports *ports, const struct options *options)
{
	uint16_t i;
	int err;

	memset(ports, 0, sizeof(*ports));
	ports->queues = options->rxq;
	err = choose(ports, options);
	for (i = 0; err == 0 && i < ports->n; i++) {
		err = configure(&ports->port[i], options);
		if (err == 0)
			err = check_frame(&ports->port[i], options);
	}
	return err;
}

static int
start(struct port *port, uint16_t queues, struct rte_mempool *pool)
{
	uint16_t q;
	int err = 0;

	for (q = 0; err == 0 && q < queues; q++) {
		err = rte_eth_rx_queue_setup(
			port->id, q, port->rxd, RTE_MAX(port->node, 0), NULL, pool);
		if (err == 0)
			err = rte_eth_tx_queue_setup(
				port->id, q, port->txd, RTE_MAX(port->node, 0), NULL);
	}
	if (err == 0)
		err = rte_eth_dev_start(port->id);
	if (err < 0) {
		cli_error("port %u (%s) does not start with %u RX and %u TX descriptors: %s; try "
			  "other --rxd and --txd, and see that the interface is free",
			port->id, port->driver_name, port->rxd, port->txd, rte_strerror(-err));
		return err;
	}
	port->started = true;
	if (port->driver->sockets)
		kernel_sockets_claim(port->if_index);
	rte_eth_promiscuous_enable(port->id); /* not every driver knows a difference */
	rte_eth_stats_get(port->id, &port->base);
	return 0;
}

/* What is sent into a link that is still coming up would be lost. */
static void
wait_for_link(struct port *port)
{
	struct rte_eth_link link = {0};
	int ms;

	for (ms = 0; ms < LINK_WAIT_MS && !forward_is_quitting(); ms += 10) {
		if (rte_eth_link_get_nowait(port->id, &link) < 0 ||
			link.link_status == RTE_ETH_LINK_UP)
			break;
		rte_delay_ms(10);
	}
	if (link.link_status == RTE_ETH_LINK_DOWN)
		cli_error("warning: the link of port %u (%s) is down", port->id, port->device);
	else if (port->wire && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		port->link_mbps = link.link_speed;
}

int
ports_start(struct ports *ports, struct rte_mempool *pool)
{
	uint16_t i;
	int err;

	for (i = 0; i < ports->n; i++) {
		err = start(&ports->port[i], ports->queues, pool);
		if (err < 0)
			return err;
	}
	for (i = 0; i < ports->n; i++)
		wait_for_link(&ports->port[i]);
	return 0;
}

static void
drain_rx(struct port *port, uint16_t queues)
{
	struct rte_mbuf *pkts[32];
	uint16_t q, n;

	for (q = 0; q < queues; q++) {
		while ((n = rte_eth_rx_burst(port->id, q, pkts, RTE_DIM(pkts))) > 0) {
			rte_pktmbuf_free_bulk(pkts, n);
			port->drained += n;
		}
	}
}

/* Sending nothing makes the driver take back what the kernel has sent. */
static void
drain_tx(struct port *port, uint16_t queues)
{
	uint16_t q;
	int ms;

	for (ms = 0; ms < TX_WAIT_MS; ms++) {
		for (q = 0; q < queues; q++)
			rte_eth_tx_burst(port->id, q, NULL, 0);
		rte_delay_ms(1);
	}
}

void
ports_drain(struct ports *ports)
{
	uint16_t i;

	for (i = 0; i < ports->n; i++) {
		if (ports->port[i].driver->keeps_rx_ring)
			drain_rx(&ports->port[i], ports->queues);
		if (ports->port[i].driver->lost_at_close > 0)
			drain_tx(&ports->port[i], ports->queues);
	}
}

void
ports_get_stats(const struct port *port, struct rte_eth_stats *stats)
{
	const struct rte_eth_stats *base = &port->base;

	if (rte_eth_stats_get(port->id, stats) < 0)
		memset(stats, 0, sizeof(*stats));
	stats->ipackets -= base->ipackets;
	stats->opackets -= base->opackets;
	stats->imissed -= base->imissed;
	stats->ierrors -= base->ierrors;
	stats->oerrors -= base->oerrors;
	stats->rx_nombuf -= base->rx_nombuf;
}

void
ports_close(struct ports *ports)
{
	struct port *port;
	uint16_t i;

	for (i = 0; i < ports->n; i++) {
		port = &ports->port[i];
		if (port->started) {
			rte_eth_promiscuous_disable(port->id);
			rte_eth_dev_stop(port->id);
		}
		if (port->configured)
			rte_eth_dev_close(port->id);
		port->configured = port->started = false;
	}
}
