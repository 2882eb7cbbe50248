/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a driver says of the packets that it receives, on a port that receives what it sends, or
 * on the second of two ports with a cable between them:
 *	rx_fields EAL-ARGUMENT... -- STRIP HASH
 * Frames of each kind below go out as they are. What comes in must be what the wire had, with
 * packet type, checksum flags, hash, queue, VLAN tag (taken off with STRIP 1) and timestamp as the
 * frame's bytes demand; a line for each is to be compared with another driver's. HASH 0: how the
 * card hashes is not known.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_tcp.h>
#include <rte_thash.h>
#include <rte_udp.h>

#include "../require.h"

#define QUEUES  2
#define DESC    256
#define POOL    4096
#define PAYLOAD 21 /* odd: the last byte is half a word of the checksum */
#define TURNS   3

#define CKSUM_GOOD (RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD)
#define SAID                                                                                       \
	(RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK |      \
		RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED)

enum wrong {
	NOTHING,
	L3_SUM,
	L4_SUM,
	NO_L4_SUM, /* of UDP over IPv4: allowed */
	FRAGMENT,
};

static const struct kind {
	const char *name;
	uint16_t ether_type, tci; /* 0: no tag */
	uint8_t proto;
	enum wrong wrong;
	uint64_t flags; /* but for the tag */
	uint32_t ptype;
} kinds[] = {
#define IPV4         RTE_ETHER_TYPE_IPV4
#define IPV6         RTE_ETHER_TYPE_IPV6
#define TYPE(l3, l4) (RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_##l3##_EXT_UNKNOWN | RTE_PTYPE_L4_##l4)
#define IP_GOOD      (RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_IP_CKSUM_GOOD)
#define L4_GOOD      (RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_L4_CKSUM_GOOD)
#define GOOD         (IP_GOOD | L4_GOOD)
	{"UDP over IPv4", IPV4, 0, IPPROTO_UDP, NOTHING, GOOD, TYPE(IPV4, UDP)},
	{"TCP over IPv4", IPV4, 0, IPPROTO_TCP, NOTHING, GOOD, TYPE(IPV4, TCP)},
	{"UDP over IPv6", IPV6, 0, IPPROTO_UDP, NOTHING, GOOD, TYPE(IPV6, UDP)},
	{"TCP over IPv6", IPV6, 0, IPPROTO_TCP, NOTHING, GOOD, TYPE(IPV6, TCP)},
	{"GRE over IPv4", IPV4, 0, IPPROTO_GRE, NOTHING, IP_GOOD, TYPE(IPV4, NONFRAG)},
	{"GRE over IPv6", IPV6, 0, IPPROTO_GRE, NOTHING, IP_GOOD, TYPE(IPV6, NONFRAG)},
	{"a fragment", IPV4, 0, IPPROTO_UDP, FRAGMENT, IP_GOOD, TYPE(IPV4, FRAG)},
	{"a wrong IP checksum", IPV4, 0, IPPROTO_UDP, L3_SUM, L4_GOOD, TYPE(IPV4, UDP)},
	{"a wrong UDP checksum", IPV4, 0, IPPROTO_UDP, L4_SUM, IP_GOOD, TYPE(IPV4, UDP)},
	{"a wrong TCP checksum", IPV6, 0, IPPROTO_TCP, L4_SUM, IP_GOOD, TYPE(IPV6, TCP)},
	{"no UDP checksum", IPV4, 0, IPPROTO_UDP, NO_L4_SUM, GOOD, TYPE(IPV4, UDP)},
	{"no IP", RTE_ETHER_TYPE_ARP, 0, 0, NOTHING, 0, RTE_PTYPE_L2_ETHER},
	{"a tag, UDP over IPv4", IPV4, 0x6123, IPPROTO_UDP, NOTHING, GOOD, TYPE(IPV4, UDP)},
	{"a tag, TCP over IPv6", IPV6, 0x0fff, IPPROTO_TCP, NOTHING, GOOD, TYPE(IPV6, TCP)},
	{"a tag, no IP", RTE_ETHER_TYPE_ARP, 0x2001, 0, NOTHING, 0, RTE_PTYPE_L2_ETHER},
};

static uint8_t key[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d,
	0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d,
	0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
static struct rte_mempool *pool;
static struct rte_ether_addr mac;
static uint16_t receiver; /* port; the sender is port 0 */
static bool strip, hash_is_known;

/* ---- frames ---- */

/* What RSS takes in: addresses, then ports, each pair in the order of its numbers. */
struct tuple {
	uint32_t word[9];
	uint32_t n;
};

static void
add_pair(struct tuple *tuple, const void *first, const void *second, uint32_t size)
{
	uint8_t *to = (uint8_t *)&tuple->word[tuple->n];
	const bool swap = memcmp(first, second, size) > 0;

	memcpy(to, swap ? second : first, size);
	memcpy(to + size, swap ? first : second, size);
	tuple->n += 2 * size / (uint32_t)sizeof(tuple->word[0]);
}

/* Behind the IP header; the port pair and the place of the checksum, NULL where there is none. */
static uint16_t
put_l4(uint8_t *l4, uint8_t proto, rte_be16_t **sum)
{
	const rte_be16_t ports[2] = {rte_cpu_to_be_16(5000), rte_cpu_to_be_16(1234)};
	struct rte_udp_hdr *udp = (void *)l4;
	struct rte_tcp_hdr *tcp = (void *)l4;
	uint16_t len = 4;

	memcpy(l4, ports, sizeof(ports));
	if (proto == IPPROTO_UDP) {
		len = sizeof(*udp);
		udp->dgram_len = rte_cpu_to_be_16(len + PAYLOAD);
		*sum = (void *)(l4 + offsetof(struct rte_udp_hdr, dgram_cksum));
	} else if (proto == IPPROTO_TCP) {
		len = sizeof(*tcp);
		tcp->data_off = sizeof(*tcp) / 4 << 4;
		*sum = (void *)(l4 + offsetof(struct rte_tcp_hdr, cksum));
	}
	for (uint16_t i = 0; i < PAYLOAD; i++)
		l4[len + i] = (uint8_t)(i * 7 + 1);
	return len + PAYLOAD;
}

static uint16_t
put_ipv4(const struct kind *kind, uint8_t *l3, struct tuple *tuple)
{
	struct rte_ipv4_hdr *ip = (void *)l3;
	rte_be16_t *sum = NULL;
	const uint16_t l4_len = put_l4(l3 + sizeof(*ip), kind->proto, &sum);

	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->total_length = rte_cpu_to_be_16((uint16_t)sizeof(*ip) + l4_len);
	ip->fragment_offset = rte_cpu_to_be_16(kind->wrong == FRAGMENT ? RTE_IPV4_HDR_MF_FLAG : 0);
	ip->time_to_live = 64;
	ip->next_proto_id = kind->proto;
	ip->src_addr = rte_cpu_to_be_32(RTE_IPV4(198u, 18, 7, 9));
	ip->dst_addr = rte_cpu_to_be_32(RTE_IPV4(198u, 18, 3, 4));
	ip->hdr_checksum = rte_ipv4_cksum(ip) + (kind->wrong == L3_SUM);
	if (sum != NULL)
		*sum = rte_ipv4_udptcp_cksum(ip, ip + 1) + (kind->wrong == L4_SUM);
	if (kind->wrong == NO_L4_SUM)
		*sum = 0;
	add_pair(tuple, &ip->src_addr, &ip->dst_addr, sizeof(ip->src_addr));
	if (sum != NULL && kind->wrong != FRAGMENT)
		add_pair(tuple, l3 + sizeof(*ip), l3 + sizeof(*ip) + 2, 2);
	return (uint16_t)sizeof(*ip) + l4_len;
}

static uint16_t
put_ipv6(const struct kind *kind, uint8_t *l3, struct tuple *tuple)
{
	struct rte_ipv6_hdr *ip = (void *)l3;
	rte_be16_t *sum = NULL;
	const uint16_t l4_len = put_l4(l3 + sizeof(*ip), kind->proto, &sum);

	ip->vtc_flow = rte_cpu_to_be_32(6u << 28);
	ip->payload_len = rte_cpu_to_be_16(l4_len);
	ip->proto = kind->proto;
	ip->hop_limits = 64;
	memset(&ip->src_addr, 0x20, sizeof(ip->src_addr));
	memset(&ip->dst_addr, 0x20, sizeof(ip->dst_addr));
	((uint8_t *)&ip->dst_addr)[15] = 1;
	if (sum != NULL)
		*sum = rte_ipv6_udptcp_cksum(ip, ip + 1) + (kind->wrong == L4_SUM);
	add_pair(tuple, &ip->src_addr, &ip->dst_addr, sizeof(ip->src_addr));
	if (sum != NULL)
		add_pair(tuple, l3 + sizeof(*ip), l3 + sizeof(*ip) + 2, 2);
	return (uint16_t)sizeof(*ip) + l4_len;
}

/* A frame of a kind; its length. */
static uint16_t
make_frame(const struct kind *kind, uint8_t *frame, struct tuple *tuple)
{
	struct rte_ether_hdr *eth = (void *)frame;
	uint16_t len = sizeof(*eth);

	memset(frame, 0, 256);
	tuple->n = 0;
	eth->dst_addr = mac;
	eth->src_addr = (struct rte_ether_addr){{2, 0, 0, 0, 0, 9}};
	eth->ether_type = rte_cpu_to_be_16(kind->ether_type);
	if (kind->tci != 0) {
		struct rte_vlan_hdr *tag = (void *)(eth + 1);

		eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN);
		tag->vlan_tci = rte_cpu_to_be_16(kind->tci);
		tag->eth_proto = rte_cpu_to_be_16(kind->ether_type);
		len += sizeof(*tag);
	}
	if (kind->ether_type == RTE_ETHER_TYPE_IPV4)
		return len + put_ipv4(kind, frame + len, tuple);
	if (kind->ether_type == RTE_ETHER_TYPE_IPV6)
		return len + put_ipv6(kind, frame + len, tuple);
	return len + 46;
}

/* ---- what comes ---- */

static uint32_t
expected_hash(const struct tuple *tuple)
{
	uint32_t words[RTE_DIM(tuple->word)];

	for (uint32_t i = 0; i < tuple->n; i++)
		words[i] = rte_be_to_cpu_32(tuple->word[i]);
	return rte_softrss(words, tuple->n, key);
}

/* The one that there is. Some drivers return no less than a burst of four. */
static struct rte_mbuf *
receive(uint16_t *queue)
{
	const uint64_t start_at = rte_get_timer_cycles();
	struct rte_mbuf *pkts[4];
	uint16_t n = 0;

	for (uint16_t q = 0; n == 0; q = (q + 1) % QUEUES) {
		n = rte_eth_rx_burst(receiver, q, pkts, RTE_DIM(pkts));
		*queue = q;
		require(rte_get_timer_cycles() - start_at < 5 * rte_get_timer_hz());
	}
	require(n == 1);
	return pkts[0];
}

/* Later than the last one, in the card's clock. */
static void
check_timestamp(const struct rte_mbuf *m)
{
	static uint64_t last;
	const int offset = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
	const int bit = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, NULL);

	require(offset >= 0 && bit >= 0 && (m->ol_flags & RTE_BIT64(bit)) != 0);
	const uint64_t now = *RTE_MBUF_DYNFIELD(m, offset, const uint64_t *);

	require(now > last);
	last = now;
}

static void
check(const struct kind *kind, const uint8_t *frame, uint16_t len, const struct tuple *tuple)
{
	const bool stripped = strip && kind->tci != 0;
	uint16_t queue;
	struct rte_mbuf *m = receive(&queue);
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint32_t hash = m->ol_flags & RTE_MBUF_F_RX_RSS_HASH ? m->hash.rss : 0;

	printf("= %s: %u bytes, type %08x, flags %" PRIx64 ", tag %04x, hash %08x, queue %u\n",
		kind->name, m->pkt_len, m->packet_type, (uint64_t)(m->ol_flags & SAID),
		stripped ? m->vlan_tci : 0, hash, queue);
	require(m->pkt_len == len - (stripped ? sizeof(struct rte_vlan_hdr) : 0));
	require(memcmp(data, frame, 12) == 0);
	require(memcmp(data + 12, frame + 12 + (len - m->pkt_len), m->pkt_len - 12) == 0);
	require((m->ol_flags & SAID) ==
		(kind->flags | (stripped ? RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED : 0)));
	require(!stripped || m->vlan_tci == kind->tci);
	require(m->packet_type == kind->ptype);
	if (hash_is_known)
		require(hash == (tuple->n > 0 ? expected_hash(tuple) : 0) &&
			queue == hash % QUEUES);
	check_timestamp(m);
	rte_pktmbuf_free(m);
}

static void
send_frame(const uint8_t *frame, uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	require(m != NULL);
	memcpy(rte_pktmbuf_append(m, len), frame, len);
	require(rte_eth_tx_burst(0, 0, &m, 1) == 1);
}

/* ---- the port ---- */

static void
start(uint16_t port)
{
	const struct rte_eth_conf conf = {
		.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS,
		.rxmode.offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH |
				   RTE_ETH_RX_OFFLOAD_TIMESTAMP |
				   (strip ? RTE_ETH_RX_OFFLOAD_VLAN_STRIP : 0),
		.rx_adv_conf.rss_conf =
			{
				.rss_key = key,
				.rss_key_len = sizeof(key),
				.rss_hf = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP,
			},
	};

	require(rte_eth_dev_configure(port, QUEUES, 1, &conf) == 0);
	for (uint16_t q = 0; q < QUEUES; q++)
		require(rte_eth_rx_queue_setup(port, q, DESC, 0, NULL, pool) == 0);
	require(rte_eth_tx_queue_setup(port, 0, DESC, 0, NULL) == 0);
	require(rte_eth_dev_start(port) == 0);
}

int
main(int argc, char **argv)
{
	const int skip = rte_eal_init(argc, argv);
	uint8_t frame[256];
	struct tuple tuple;
	uint16_t port;

	require(skip >= 0 && argc - skip == 3);
	setvbuf(stdout, NULL, _IOLBF, 0);
	strip = atoi(argv[skip + 1]) != 0;
	hash_is_known = atoi(argv[skip + 2]) != 0;
	pool = rte_pktmbuf_pool_create("packets", POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	require(pool != NULL);
	RTE_ETH_FOREACH_DEV (port) {
		start(port);
		receiver = port;
	}
	require(rte_eth_macaddr_get(receiver, &mac) == 0);
	for (unsigned int i = 0; i < TURNS * RTE_DIM(kinds); i++) {
		const struct kind *kind = &kinds[i % RTE_DIM(kinds)];
		const uint16_t len = make_frame(kind, frame, &tuple);

		send_frame(frame, len);
		check(kind, frame, len, &tuple);
	}
	RTE_ETH_FOREACH_DEV (port)
		require(rte_eth_dev_stop(port) == 0);
	require(rte_mempool_in_use_count(pool) == 0);
	while ((port = (uint16_t)rte_eth_find_next(0)) < RTE_MAX_ETHPORTS)
		require(rte_eth_dev_close(port) == 0);
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return 0;
}
