/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_prefetch.h>

#include <pp_atomic.h>

#include "forward.h"
#include "frame.h"

#define PREFETCH_AHEAD 4

static bool quitting;

void
forward_quit(void)
{
	pp_store_relaxed(&quitting, true);
}

bool
forward_is_quitting(void)
{
	return pp_load_relaxed(&quitting);
}

/* A counter has one writer, so that its increment needs no atomic instruction. */
static __rte_always_inline void
count(uint64_t *counter, uint64_t n)
{
	pp_store_relaxed(counter, *counter + n);
}

static __rte_always_inline uint64_t
bytes_of(struct rte_mbuf *const *pkts, uint16_t n)
{
	uint64_t bytes = 0;
	uint16_t i;

	for (i = 0; i < n; i++)
		bytes += rte_pktmbuf_pkt_len(pkts[i]);
	return bytes;
}

/* Write the addresses, drop what is too short to have any, and close the gaps. */
static __rte_always_inline uint16_t
rewrite(struct stream *s, int mode, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i, kept = 0;

	for (i = 0; i < n && i < PREFETCH_AHEAD; i++)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + PREFETCH_AHEAD], void *));
		if (unlikely(rte_pktmbuf_data_len(m) < sizeof(struct rte_ether_hdr))) {
			rte_pktmbuf_free(m);
			continue;
		}
		if (mode == FORWARD_MAC)
			frame_set_addresses(m, &s->source, &s->destination);
		else
			frame_swap_addresses(m);
		pkts[kept++] = m;
	}
	if (unlikely(kept < n))
		count(&s->stats.app, n - kept);
	return kept;
}

/* Send all; what the driver refuses is freed and counted, as a switch does with a full queue. */
static __rte_always_inline void
transmit(struct stream *s, struct rte_mbuf **pkts, uint16_t n, uint64_t bytes)
{
	const uint16_t sent = rte_eth_tx_burst(s->tx_port, s->tx_queue, pkts, n);

	if (unlikely(sent < n)) {
		bytes -= bytes_of(&pkts[sent], n - sent);
		rte_pktmbuf_free_bulk(&pkts[sent], n - sent);
		count(&s->stats.ring_full, n - sent);
	}
	count(&s->stats.tx_packets, sent);
	count(&s->stats.tx_bytes, bytes);
}

/* io, mac, macswap and rxonly. Returns the packets received. */
static __rte_always_inline uint16_t
receive(struct stream *s, int mode, struct rte_mbuf **pkts)
{
	const uint16_t n = rte_eth_rx_burst(s->rx_port, s->rx_queue, pkts, s->burst);
	uint64_t bytes;
	uint16_t kept = n;

	if (n == 0)
		return 0;
	bytes = bytes_of(pkts, n);
	count(&s->stats.rx_packets, n);
	count(&s->stats.rx_bytes, bytes);
	if (mode == FORWARD_RXONLY) {
		release_packets(&s->release, pkts, n);
		count(&s->stats.rxonly, n);
		return n;
	}
	if (mode != FORWARD_IO) {
		kept = rewrite(s, mode, pkts, n);
		if (unlikely(kept < n))
			bytes = bytes_of(pkts, kept);
	}
	transmit(s, pkts, kept, bytes);
	return n;
}

/* txonly. Returns the frames generated. */
static __rte_always_inline uint16_t
generate(struct stream *s, const struct frame_header *header, struct rte_mbuf **pkts)
{
	const uint16_t n = s->burst;
	uint16_t i;

	if (unlikely(rte_pktmbuf_alloc_bulk(s->pool, pkts, n) != 0)) {
		count(&s->stats.no_buffer, n);
		return 0;
	}
	for (i = 0; i < n; i++)
		frame_write(pkts[i], header, s->frame_len);
	count(&s->stats.generated, n);
	transmit(s, pkts, n, (uint64_t)n * s->frame_len);
	return n;
}

/*
 * One section of the page cache per burst. `mode` is a constant in every caller, so each mode has
 * a loop of its own without a test per packet. The one clock reading per poll ends the last poll's
 * time and starts the next one's: nothing an lcore does goes unmeasured, but for what others do
 * with a processor that it yields.
 */
static __rte_always_inline int
loop(struct stream *s, int mode)
{
	const struct frame_header header =
		frame_header_make(s->frame_len, &s->source, &s->destination);
	struct pcp *const pcp = s->cache != NULL ? pcp_this(s->cache) : NULL;
	struct rte_mbuf *pkts[BURST_MAX];
	uint64_t then = rte_rdtsc();
	uint64_t next_tick = s->tick != NULL ? s->tick(then) : UINT64_MAX;
	uint64_t now;
	uint16_t n;

	while (!forward_is_quitting()) {
		if (pcp != NULL)
			pcp_bh_disable(pcp);
		n = mode == FORWARD_TXONLY ? generate(s, &header, pkts) : receive(s, mode, pkts);
		if (pcp != NULL)
			pcp_bh_enable(pcp);

		now = rte_rdtsc();
		if (n > 0) {
			count(&s->stats.bursts, 1);
			count(&s->stats.busy_cycles, now - then);
		} else {
			count(&s->stats.idle_polls, 1);
		}
		then = now;
		if (n == 0 && s->yield) {
			sched_yield();
			then = rte_rdtsc();
		}
		if (unlikely(now >= next_tick)) {
			next_tick = s->tick(now);
			then = rte_rdtsc();
		}
	}
	return 0;
}

int
forward_stream(void *arg)
{
	struct stream *s = arg;

	switch (s->mode) {
	case FORWARD_MAC:
		return loop(s, FORWARD_MAC);
	case FORWARD_MACSWAP:
		return loop(s, FORWARD_MACSWAP);
	case FORWARD_RXONLY:
		return loop(s, FORWARD_RXONLY);
	case FORWARD_TXONLY:
		return loop(s, FORWARD_TXONLY);
	default:
		return loop(s, FORWARD_IO);
	}
}
