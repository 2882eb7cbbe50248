/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the card reads in a frame. */

#include <stdbool.h>
#include <stdint.h>

#define CX_ETH_LEN  14
#define CX_VLAN_LEN 4
#define CX_IPV4_LEN 20
#define CX_IPV6_LEN 40
#define CX_UDP_LEN  8
#define CX_TCP_LEN  20

#define CX_ETHERTYPE_IPV4 0x0800
#define CX_ETHERTYPE_VLAN 0x8100
#define CX_ETHERTYPE_IPV6 0x86dd

#define CX_IPPROTO_TCP 6
#define CX_IPPROTO_UDP 17

struct cx_packet {
	uint32_t len;        /* of the frame, without FCS */
	uint32_t have;       /* bytes of it that are known */
	uint16_t ether_type; /* behind a VLAN tag */
	uint16_t vlan_tci;
	bool has_vlan;
	bool is_ipv4, is_ipv6, is_tcp, is_udp;
	bool fragment;
	bool tcp_ack, tcp_empty;
	bool l3_ok, l4_ok; /* checksums that were verified, or that there are none of */
	uint8_t proto, tos, ttl;
	uint32_t flow_label;
	uint32_t l3, l4;  /* offsets; 0: none */
	uint32_t payload; /* offset behind the L4 header */
	const uint8_t *data;
};

/*
 * Read the headers. L4 checksums are verified where all bytes are there; where they are not, and
 * the checksum is not zero (none, in UDP over IPv4), l4_ok is false.
 */
void cx_packet_parse(struct cx_packet *packet, const uint8_t *data, uint32_t have, uint32_t len);

/* Ones' complement sum, not yet folded, of bytes at an even offset, on top of `sum`. */
uint64_t cx_csum_add(uint64_t sum, const void *data, uint32_t len);
uint16_t cx_csum_fold(uint64_t sum);

/* Sum of the pseudo-header of an L4 segment of `len` bytes. */
uint64_t cx_csum_pseudo(const struct cx_packet *packet, uint32_t len);

/* Fill in checksums as of MLX5_ETH_WQE_L3_CSUM and _L4_CSUM; the frame is complete. */
void cx_packet_offload(uint8_t *data, uint32_t have, uint32_t len, uint8_t cs_flags);
