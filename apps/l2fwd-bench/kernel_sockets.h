/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Losses that only the kernel's sockets know. The drivers net_af_packet and net_af_xdp own the
 * sockets and ask for some of their counters; here are the others, found through the process's
 * file descriptors.
 */

#include <stdint.h>

struct kernel_sockets {
	uint64_t received; /* packet sockets: put into the RX ring */
	uint64_t rx_drops; /* for want of room in the RX ring */
	uint64_t tx_drops; /* taken for sending, but not valid */
};

/*
 * The XDP sockets that nobody claimed before are those of this interface. They do not name it
 * themselves; whoever starts a port claims them before he starts the next one.
 */
void kernel_sockets_claim(int if_index);

/* Add what the sockets of an interface counted since the last call to `counters`. */
void kernel_sockets_add(int if_index, struct kernel_sockets *counters);
