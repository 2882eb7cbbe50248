/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The ports of a run, from probed to closed. */

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_ether.h>

#include "drivers.h"
#include "kernel_sockets.h"
#include "options.h"

struct port {
	uint16_t id;
	uint16_t peer; /* index of the port that it forwards to; its own when it is alone */
	const struct driver *driver;
	const char *driver_name;
	char device[RTE_ETH_NAME_MAX_LEN];
	struct rte_ether_addr mac;
	int node; /* -1: any */
	int if_index;
	uint16_t rxd, txd; /* what the driver made of --rxd and --txd */
	bool rss;
	bool wire;                 /* reports the speed of a real link */
	uint32_t link_mbps;        /* of a wire; 0: not known */
	struct rte_eth_stats base; /* when the port had just started */
	uint64_t drained;          /* frames found in the RX ring after the last poll, and freed */
	struct kernel_sockets sockets; /* since the start; of drivers that have some */
	bool configured, started;
};

struct ports {
	struct port port[RTE_MAX_ETHPORTS];
	uint16_t n;
	uint16_t queues; /* per port */
};

/*
 * Choose, check and configure the ports that the options name. 0, or -errno after one line on
 * stderr. In either case ports_close() releases what was begun.
 */
int ports_configure(struct ports *ports, const struct options *options);

/* Set up all queues with buffers from `pool`, and start. Returns as ports_configure(). */
int ports_start(struct ports *ports, struct rte_mempool *pool);

/* After the last poll: take back the buffers that closing would leak. */
void ports_drain(struct ports *ports);

/* The driver's counters since the start. */
void ports_get_stats(const struct port *port, struct rte_eth_stats *stats);

void ports_close(struct ports *ports);
