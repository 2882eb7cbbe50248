/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_pause.h>

#include "forward.h"
#include "release.h"

#define FREE_BURST 64

int
release_init(struct release *release, const struct options *options, uint16_t stream)
{
	char name[RTE_RING_NAMESIZE];

	*release = (struct release){.hold = options->hold};
	if (options->hold > 0) {
		release->fifo = rte_calloc("held", options->hold, sizeof(*release->fifo), 0);
		if (release->fifo == NULL) {
			cli_error("no memory to hold %u packets; give less", options->hold);
			return -ENOMEM;
		}
	}
	if (options->free_on == FREE_ON_OTHER) {
		snprintf(name, sizeof(name), "to_other_%u", stream);
		release->to_other = rte_ring_create(
			name, RELEASE_RING, (int)rte_socket_id(), RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (release->to_other == NULL) {
			cli_error("no memory for the way to the other lcore: %s; reserve more "
				  "hugepages",
				rte_strerror(rte_errno));
			return -rte_errno;
		}
	}
	return 0;
}

/* The other lcore is slower than this one? Then this one waits: nothing is freed here. */
static void
free_or_pass(struct release *release, struct rte_mbuf **pkts, uint16_t n)
{
	unsigned int passed = 0;

	if (release->to_other == NULL) {
		rte_pktmbuf_free_bulk(pkts, n);
		return;
	}
	while (passed < n) {
		passed += rte_ring_sp_enqueue_burst(
			release->to_other, (void **)&pkts[passed], n - passed, NULL);
		if (passed < n && forward_is_quitting()) {
			rte_pktmbuf_free_bulk(&pkts[passed], n - passed);
			return;
		}
	}
}

void
release_packets(struct release *release, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i, n_oldest = 0;

	if (release->hold == 0) {
		free_or_pass(release, pkts, n);
		return;
	}
	/* what goes takes the places of those that came before it */
	for (i = 0; i < n; i++) {
		struct rte_mbuf **slot = &release->fifo[release->next], *oldest = *slot;

		*slot = pkts[i];
		if (release->held == release->hold)
			pkts[n_oldest++] = oldest;
		else
			release->held++;
		release->next = release->next + 1 == release->hold ? 0 : release->next + 1;
	}
	free_or_pass(release, pkts, n_oldest);
}

unsigned int
release_free(struct release *release)
{
	struct rte_mbuf *pkts[FREE_BURST] = {NULL};
	unsigned int n;

	if (release->to_other == NULL)
		return 0;
	n = rte_ring_sc_dequeue_burst(release->to_other, (void **)pkts, RTE_DIM(pkts), NULL);
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

void
release_fini(struct release *release)
{
	uint32_t i;

	while (release_free(release) > 0)
		continue;
	/* until the FIFO is full its packets lie from the start on */
	for (i = 0; i < release->held; i++)
		rte_pktmbuf_free(release->fifo[i]);
	rte_free(release->fifo);
	rte_ring_free(release->to_other);
	*release = (struct release){0};
}
