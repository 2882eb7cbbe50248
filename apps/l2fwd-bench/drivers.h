/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What a benchmark must know about a driver before it believes its counters. */

#include <stdbool.h>
#include <stdint.h>

#include <rte_dev.h>

/* What oerrors counts. */
enum driver_oerrors {
	OERRORS_LOST,    /* packets that tx_burst took and did not send: a loss */
	OERRORS_REFUSED, /* packets that tx_burst left to the caller, who counts them, too */
};

struct driver {
	const char *name; /* as in rte_eth_dev_info; NULL: any other driver */
	bool exact;       /* ipackets, and opackets + oerrors if LOST, equal the caller's counts */
	enum driver_oerrors oerrors;
	bool empty_poll_is_no_buffer; /* always delivers, unless the pool is empty */
	bool sleeps;                  /* RX or TX may wait in the kernel */
	bool sockets;                 /* the kernel does its work: see kernel_sockets.h */
	bool keeps_rx_ring;           /* close does not free what waits in the RX ring */
	uint32_t rx_buffers;          /* held per queue; 0: as many as descriptors */
	uint32_t tx_buffers;
	uint32_t lost_at_close; /* buffers per queue that close never gives back */
	bool maps_pool;         /* into the kernel: one chunk of objects without gaps */
};

/* By name; never NULL. */
const struct driver *driver_find(const char *name);

/* Whether a link speed that this device reports is that of a wire. */
bool driver_has_wire(const char *driver_name, const struct rte_device *device);
