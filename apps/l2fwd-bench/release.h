/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What rxonly does with packets: an application keeps them for a while, and may free them on
 * another lcore than the one that received them. One lcore releases, at most one other frees.
 */

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "options.h"

#define RELEASE_RING 4096 /* packets on their way to the other lcore */

struct release {
	uint32_t hold; /* packets held, the oldest of which goes when another one comes */
	uint32_t next, held;
	struct rte_mbuf **fifo;
	struct rte_ring *to_other; /* NULL: freed here */
};

/* 0, or -errno after one line on stderr. */
int release_init(struct release *release, const struct options *options, uint16_t stream);

/* From the lcore that received them. */
void release_packets(struct release *release, struct rte_mbuf **pkts, uint16_t n);

/* On the other lcore: free what has come. Returns how many. */
unsigned int release_free(struct release *release);

/* When nobody polls any more: free all that is still held. */
void release_fini(struct release *release);
