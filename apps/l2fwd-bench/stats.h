/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What became of every packet. */

#include <stdint.h>

#include "forward.h"
#include "ports.h"

struct result {
	uint64_t rx_packets, rx_bytes; /* that the driver gave to us */
	uint64_t tx_packets, tx_bytes; /* that the driver took from us and did not lose */
	uint64_t generated, rxonly;
	uint64_t no_buffer; /* packets that wanted a buffer and got none */
	uint64_t ring_full; /* refused by tx_burst, and freed by us */
	uint64_t driver;    /* lost by the driver, the device or the kernel */
	uint64_t app;       /* dropped by us */
	uint64_t in_flight; /* in the driver's rings at the end */
	uint64_t unaccounted;
	uint64_t bursts, busy_packets, busy_cycles;
	struct rte_eth_stats device; /* the driver's own counters */
	bool device_checked;         /* they entered into unaccounted */
};

struct streams {
	struct stream *stream;
	uint16_t n;
};

/* One result per port, and their sum in results[ports->n]. At any time; exact at rest. */
void stats_collect(struct ports *ports, const struct streams *streams, struct result *results);
