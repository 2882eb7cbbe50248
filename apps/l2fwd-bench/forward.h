/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* One RX queue's way through the program: what one lcore does all the time. */

#include <stdint.h>

#include <rte_common.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <pcp.h>

#include "options.h"
#include "release.h"

/*
 * Counted by the polling lcore alone, with plain stores; the main thread reads at any time. An
 * array of these would share lines through the adjacent-line prefetcher, hence two lines each.
 */
struct stream_stats {
	uint64_t rx_packets, rx_bytes;
	uint64_t tx_packets, tx_bytes; /* accepted by the driver */
	uint64_t rxonly;               /* received in order to be dropped */
	uint64_t generated;            /* by txonly */
	uint64_t no_buffer;            /* by txonly: frames that could not be made */
	uint64_t ring_full;            /* refused by the driver, freed here */
	uint64_t app;                  /* too short to have addresses */
	uint64_t bursts;               /* polls that got packets */
	uint64_t idle_polls;
	uint64_t busy_cycles; /* of the polls that got packets */
} __rte_aligned(2 * RTE_CACHE_LINE_SIZE);

/* Called on a polling lcore between bursts, at `now` cycles; returns when it wants the next call.
 */
typedef uint64_t (*stream_tick)(uint64_t now);

struct stream {
	uint16_t rx_port, rx_queue;
	uint16_t tx_port, tx_queue;
	uint16_t rx_index, tx_index; /* of these ports in struct ports */
	uint16_t burst;
	uint16_t frame_len;                        /* of txonly, without the FCS */
	int mode;                                  /* enum forward_mode */
	bool yield;                                /* the processor, after a poll without packets */
	unsigned int lcore_id;                     /* that polls */
	struct rte_mempool *pool;                  /* that txonly takes from */
	struct pcp_cache *cache;                   /* for sections around bursts; NULL: none */
	struct rte_ether_addr source, destination; /* that mac and txonly write */
	struct release release;                    /* of rxonly */
	stream_tick tick;                          /* NULL: none */
	struct stream_stats stats;
} __rte_aligned(2 * RTE_CACHE_LINE_SIZE);

/* Poll until forward_quit(). An lcore function: `arg` is a struct stream. Returns 0. */
int forward_stream(void *arg);

/* Ask all streams to end; async-signal-safe. */
void forward_quit(void);
bool forward_is_quitting(void);
