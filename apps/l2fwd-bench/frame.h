/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the modes write into frames. */

#include <assert.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

/* UDP from 198.18.0.1 to 198.18.0.2, the addresses that RFC 2544 sets aside for benchmarks. */
struct frame_header {
	struct rte_ether_hdr ether;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
};

static_assert(sizeof(struct frame_header) == 42, "headers follow each other without gaps");

/* The header of all frames with `len` bytes, FCS not counted. */
static inline struct frame_header
frame_header_make(
	uint16_t len, const struct rte_ether_addr *source, const struct rte_ether_addr *destination)
{
	const uint16_t ip_len = len - sizeof(struct rte_ether_hdr);
	struct frame_header header = {
		.ether.src_addr = *source,
		.ether.dst_addr = *destination,
		.ether.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4),
		.ip.version_ihl = RTE_IPV4_VHL_DEF,
		.ip.total_length = rte_cpu_to_be_16(ip_len),
		.ip.time_to_live = 64,
		.ip.next_proto_id = IPPROTO_UDP,
		.ip.src_addr = RTE_BE32(0xc6120001),
		.ip.dst_addr = RTE_BE32(0xc6120002),
		.udp.src_port = RTE_BE16(9), /* discard */
		.udp.dst_port = RTE_BE16(9),
		.udp.dgram_len = rte_cpu_to_be_16(ip_len - sizeof(struct rte_ipv4_hdr)),
	};

	header.ip.hdr_checksum = rte_ipv4_cksum(&header.ip);
	return header;
}

/* The payload is whatever the buffer held before. */
static inline void
frame_write(struct rte_mbuf *m, const struct frame_header *header, uint16_t len)
{
	m->data_len = len;
	m->pkt_len = len;
	memcpy(rte_pktmbuf_mtod(m, void *), header, sizeof(*header));
}

/* As testpmd's mac: from the port that sends, to the peer that it assumes there. */
static inline void
frame_set_addresses(struct rte_mbuf *m, const struct rte_ether_addr *source,
	const struct rte_ether_addr *destination)
{
	struct rte_ether_hdr *ether = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);

	ether->dst_addr = *destination;
	ether->src_addr = *source;
}

static inline void
frame_swap_addresses(struct rte_mbuf *m)
{
	struct rte_ether_hdr *ether = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	const struct rte_ether_addr source = ether->src_addr;

	ether->src_addr = ether->dst_addr;
	ether->dst_addr = source;
}
