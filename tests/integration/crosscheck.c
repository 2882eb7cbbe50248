/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a driver makes of the frames of softcx' generator, in lines to be compared with another
 * driver's:
 *	crosscheck EAL-ARGUMENT... -- QUEUES FRAMES ROOM LONGEST MEMPOOL-OPS [cut]
 * Port 0 receives FRAMES frames of up to LONGEST bytes (with FCS) on QUEUES queues into buffers of
 * ROOM bytes, several where frames are longer, and sends them back, both in bursts of every length
 * from 1 to 64. Of some frames the card must compute the checksums again; with `cut` some are sent
 * in pieces. For each stream of the generator a line says where its packets came to, how many, and
 * a digest of all their bytes and of what the driver said of them, in their order; the last lines
 * are the port's counters.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "../../sim/softcx/wire/stamp.h"
#include "../require.h"

#define STREAMS     16 /* softcx' default */
#define QUEUES_MAX  8
#define BURST_MAX   64
#define HEADERS     (RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr))
#define STAMPED     (HEADERS + sizeof(struct cx_stamp))
#define EARLY       2    /* probes of the generator, which find only some of the driver's rules */
#define GATHER_US   2000 /* for bursts to be long */
#define PIECE_MAX   (size_t) RTE_MBUF_DEFAULT_DATAROOM
#define PATIENCE_MS 8000

#define SAID                                                                                       \
	(RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK |      \
		RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED)

/* What came of a stream. */
struct seen {
	uint32_t packets;
	uint32_t queue, hash;
	uint32_t digest;
};

static struct seen seen[STREAMS];
static struct rte_mempool *pool, *pieces;
static bool cut;
static unsigned int want = 1; /* length of the next burst */

static uint64_t
ms_since(uint64_t then)
{
	return (rte_get_timer_cycles() - then) * 1000 / rte_get_timer_hz();
}

/* ---- receiving ---- */

static uint32_t
digest_of(const struct rte_mbuf *m, uint32_t digest)
{
	require(m->pkt_len > 0);
	for (; m != NULL; m = m->next)
		digest = rte_hash_crc(rte_pktmbuf_mtod(m, const void *), m->data_len, digest);
	return digest;
}

/* Its number in its stream. */
static uint32_t
note(const struct rte_mbuf *m, uint32_t queue)
{
	const struct cx_stamp *stamp = rte_pktmbuf_mtod_offset(m, const void *, HEADERS);
	const uint32_t index = rte_be_to_cpu_16(stamp->stream);

	require(m->data_len >= STAMPED && stamp->magic == CX_STAMP_MAGIC && index < STREAMS);
	struct seen *stream = &seen[index];

	const uint32_t number = stream->packets++;

	require(rte_be_to_cpu_32(stamp->seq) == number);
	stream->digest = digest_of(m, stream->digest);
	stream->digest = rte_hash_crc_4byte(m->pkt_len, stream->digest);
	stream->digest = rte_hash_crc_4byte(m->nb_segs, stream->digest);
	if (number < EARLY)
		return number;
	stream->digest = rte_hash_crc_4byte(m->packet_type, stream->digest);
	stream->digest = rte_hash_crc_8byte(m->ol_flags & SAID, stream->digest);
	if (number == EARLY) {
		stream->queue = queue;
		stream->hash = m->hash.rss;
	}
	require(queue == stream->queue);
	if (m->ol_flags & RTE_MBUF_F_RX_RSS_HASH)
		require(m->hash.rss == stream->hash);
	else
		stream->hash = 0;
	return number;
}

/* ---- sending ---- */

/* As an application that leaves checksums to the card. */
static void
ask_for_checksums(struct rte_mbuf *m)
{
	struct rte_ipv4_hdr *ip =
		rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, RTE_ETHER_HDR_LEN);
	struct rte_udp_hdr *udp = (void *)(ip + 1);

	m->l2_len = RTE_ETHER_HDR_LEN;
	m->l3_len = sizeof(*ip);
	m->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM;
	ip->hdr_checksum = 0;
	udp->dgram_cksum = rte_ipv4_phdr_cksum(ip, m->ol_flags);
}

/* The end of the first segment becomes one of its own. */
static void
cut_off(struct rte_mbuf *m, uint16_t len)
{
	struct rte_mbuf *piece = rte_pktmbuf_alloc(pieces);
	char *to = piece != NULL ? rte_pktmbuf_append(piece, len) : NULL;

	require(to != NULL);
	m->data_len -= len;
	memcpy(to, rte_pktmbuf_mtod_offset(m, void *, m->data_len), len);
	piece->next = m->next;
	m->next = piece;
	m->nb_segs++;
}

static void
prepare(struct rte_mbuf *m, uint32_t number)
{
	m->ol_flags = 0;
	if (number % 3 == 0)
		ask_for_checksums(m);
	/* down to an Ethernet header of its own */
	for (uint32_t n = cut ? number % 5 : 0; n > 0 && m->data_len > RTE_ETHER_HDR_LEN; n--)
		cut_off(m, 1 + (number * 37 + n) % RTE_MIN((size_t)m->data_len - RTE_ETHER_HDR_LEN,
							   PIECE_MAX));
}

static void
send_all(uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	const uint64_t start = rte_get_timer_cycles();

	for (uint16_t sent = 0; sent < n;) {
		sent += rte_eth_tx_burst(0, queue, pkts + sent, n - sent);
		require(ms_since(start) < PATIENCE_MS);
	}
}

/* ---- forwarding ---- */

/* All that a queue has, in bursts whose lengths take turns. */
static uint32_t
drain(uint16_t queue)
{
	struct rte_mbuf *pkts[BURST_MAX];
	uint32_t total = 0;
	uint16_t n;

	do {
		const unsigned int asked = want;

		n = rte_eth_rx_burst(0, queue, pkts, asked);
		for (uint16_t i = 0; i < n; i++)
			prepare(pkts[i], note(pkts[i], queue));
		send_all(queue, pkts, n);
		total += n;
		if (n < asked)
			break;
		want++;
	} while (want <= BURST_MAX);
	return total;
}

static void
forward(uint16_t queues, uint32_t frames)
{
	uint64_t news = rte_get_timer_cycles();
	unsigned int rounds = 0;
	uint32_t got = 0;

	for (uint16_t queue = 0; got < frames; queue = (queue + 1) % queues) {
		rte_delay_us_block(GATHER_US);
		const uint32_t n = drain(queue);

		if (want > BURST_MAX) {
			rounds++;
			want = 1;
		}
		got += n;
		if (n > 0)
			news = rte_get_timer_cycles();
		if (ms_since(news) > PATIENCE_MS) {
			printf("%" PRIu32 " of %" PRIu32 " frames came\n", got, frames);
			exit(EXIT_FAILURE);
		}
	}
	require(rounds > 0); /* every length was there */
}

/* ---- the port ---- */

static void
start(uint16_t queues, uint16_t room, uint16_t longest, const char *ops)
{
	static uint8_t key[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25,
		0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77,
		0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01,
		0xfa};
	const bool scatter = room < longest;
	const uint16_t desc = scatter ? 4096 : 1024;
	const struct rte_eth_conf conf = {
		.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS,
		.rxmode.mtu = longest - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN,
		.rxmode.offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH |
				   (scatter ? RTE_ETH_RX_OFFLOAD_SCATTER : 0),
		.txmode.offloads = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |
				   (scatter || cut ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS : 0),
		.rx_adv_conf.rss_conf =
			{
				.rss_key = key,
				.rss_key_len = sizeof(key),
				.rss_hf = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP,
			},
	};

	pool = rte_pktmbuf_pool_create_by_ops(
		"packets", queues * 2u * desc + 4096, 0, 0, room + RTE_PKTMBUF_HEADROOM, 0, ops);
	pieces = rte_pktmbuf_pool_create("pieces", 32768, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	require(pool != NULL && pieces != NULL);
	require(rte_eth_dev_configure(0, queues, queues, &conf) == 0);
	for (uint16_t q = 0; q < queues; q++) {
		require(rte_eth_rx_queue_setup(0, q, desc, 0, NULL, pool) == 0);
		require(rte_eth_tx_queue_setup(0, q, 1024, 0, NULL) == 0);
	}
	require(rte_eth_promiscuous_enable(0) == 0);
	require(rte_eth_dev_start(0) == 0);
}

/* What was handed to the card has left it. */
static void
wait_for_tx(uint16_t queues)
{
	const uint64_t start = rte_get_timer_cycles();

	while (ms_since(start) < 50)
		for (uint16_t q = 0; q < queues; q++)
			rte_eth_tx_burst(0, q, NULL, 0);
}

static void
report(void)
{
	struct rte_eth_stats stats;

	for (unsigned int i = 0; i < STREAMS; i++)
		printf("= stream %u: %" PRIu32 " packets, queue %" PRIu32 ", hash %08" PRIx32
		       ", digest %08" PRIx32 "\n",
			i, seen[i].packets, seen[i].queue, seen[i].hash, seen[i].digest);
	require(rte_eth_stats_get(0, &stats) == 0);
#define LINE(name) printf("= " #name " %" PRIu64 "\n", stats.name)
	LINE(ipackets);
	LINE(ibytes);
	LINE(opackets);
	LINE(obytes);
	LINE(imissed);
	LINE(ierrors);
	LINE(oerrors);
	LINE(rx_nombuf);
#undef LINE
}

int
main(int argc, char **argv)
{
	const int skip = rte_eal_init(argc, argv);

	require(skip >= 0 && argc - skip >= 6);
	argv += skip;
	const uint16_t queues = (uint16_t)strtoul(argv[1], NULL, 10);

	cut = argc - skip > 6 && strcmp(argv[6], "cut") == 0;
	start(queues, (uint16_t)strtoul(argv[3], NULL, 10), (uint16_t)strtoul(argv[4], NULL, 10),
		argv[5]);
	forward(queues, (uint32_t)strtoul(argv[2], NULL, 10));
	wait_for_tx(queues);
	report();
	require(rte_eth_dev_stop(0) == 0);
	require(rte_eth_dev_close(0) == 0);
	require(rte_mempool_in_use_count(pool) == 0 && rte_mempool_in_use_count(pieces) == 0);
	rte_mempool_free(pool);
	rte_mempool_free(pieces);
	rte_eal_cleanup();
	return 0;
}
