/* SPDX-License-Identifier: BSD-3-Clause */

#include <infiniband/mlx5dv.h>
#include <string.h>

#include "packet.h"

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Words as they lie in memory: a sum of such is right in either byte order once folded. */
uint64_t
cx_csum_add(uint64_t sum, const void *data, uint32_t len)
{
	const uint8_t *p = data;
	uint32_t word;
	uint16_t half;

	for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		sum += word;
	}
	if (len >= sizeof(half)) {
		memcpy(&half, p, sizeof(half));
		sum += half;
		p += sizeof(half);
		len -= sizeof(half);
	}
	if (len > 0) {
		const uint8_t last[2] = {*p, 0};

		memcpy(&half, last, sizeof(half));
		sum += half;
	}
	return sum;
}

uint16_t
cx_csum_fold(uint64_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

uint64_t
cx_csum_pseudo(const struct cx_packet *packet, uint32_t len)
{
	const uint8_t tail[8] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
		(uint8_t)len, 0, 0, 0, packet->proto};
	const uint64_t sum = cx_csum_add(0, tail, sizeof(tail));

	return packet->is_ipv4 ? cx_csum_add(sum, packet->data + packet->l3 + 12, 8)
			       : cx_csum_add(sum, packet->data + packet->l3 + 8, 32);
}

/* Bytes of the L4 segment by the IP header; 0: the header lies. */
static uint32_t
l4_length(const struct cx_packet *packet)
{
	const uint8_t *ip = packet->data + packet->l3;
	const uint32_t end = packet->is_ipv4 ? packet->l3 + get16(ip + 2)
					     : packet->l3 + CX_IPV6_LEN + get16(ip + 4);

	return end > packet->len || end < packet->payload ? 0 : end - packet->l4;
}

static void
parse_l4(struct cx_packet *packet)
{
	const uint8_t *l4 = packet->data + packet->l4;
	const uint32_t room = packet->have - packet->l4;

	if (packet->proto == CX_IPPROTO_TCP && room >= CX_TCP_LEN) {
		packet->is_tcp = true;
		packet->tcp_ack = (l4[13] & 0x10) != 0;
		packet->payload = packet->l4 + (l4[12] >> 4) * 4u;
		packet->tcp_empty = l4_length(packet) == (uint32_t)(l4[12] >> 4) * 4;
	} else if (packet->proto == CX_IPPROTO_UDP && room >= CX_UDP_LEN) {
		packet->is_udp = true;
		packet->payload = packet->l4 + CX_UDP_LEN;
		if (packet->is_ipv4 && get16(l4 + 6) == 0) {
			packet->l4_ok = true;
			return;
		}
	} else {
		return;
	}
	const uint32_t len = l4_length(packet);

	if (len != 0 && packet->l4 + len <= packet->have)
		packet->l4_ok =
			cx_csum_fold(cx_csum_add(cx_csum_pseudo(packet, len), l4, len)) == 0xffff;
}

static void
parse_ipv4(struct cx_packet *packet)
{
	const uint8_t *ip = packet->data + packet->l3;
	const uint32_t header = (ip[0] & 0xf) * 4u;

	if (ip[0] >> 4 != 4 || header < CX_IPV4_LEN || packet->l3 + header > packet->have)
		return;
	packet->is_ipv4 = true;
	packet->tos = ip[1];
	packet->ttl = ip[8];
	packet->proto = ip[9];
	packet->fragment = (get16(ip + 6) & 0x3fff) != 0;
	packet->l3_ok = cx_csum_fold(cx_csum_add(0, ip, header)) == 0xffff;
	packet->l4 = packet->l3 + header;
	if (!packet->fragment)
		parse_l4(packet);
}

/* Extension headers are not followed: such packets have no L4. */
static void
parse_ipv6(struct cx_packet *packet)
{
	const uint8_t *ip = packet->data + packet->l3;

	if (ip[0] >> 4 != 6)
		return;
	packet->is_ipv6 = true;
	packet->tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	packet->flow_label = (uint32_t)(ip[1] & 0xf) << 16 | get16(ip + 2);
	packet->proto = ip[6];
	packet->ttl = ip[7];
	packet->l3_ok = true;
	packet->l4 = packet->l3 + CX_IPV6_LEN;
	packet->fragment = packet->proto == 44;
	parse_l4(packet);
}

void
cx_packet_parse(struct cx_packet *packet, const uint8_t *data, uint32_t have, uint32_t len)
{
	uint32_t l3 = CX_ETH_LEN;

	memset(packet, 0, sizeof(*packet));
	packet->data = data;
	packet->have = have;
	packet->len = len;
	if (have < CX_ETH_LEN)
		return;
	packet->ether_type = get16(data + 12);
	if (packet->ether_type == CX_ETHERTYPE_VLAN && have >= CX_ETH_LEN + CX_VLAN_LEN) {
		packet->has_vlan = true;
		packet->vlan_tci = get16(data + 14);
		packet->ether_type = get16(data + 16);
		l3 += CX_VLAN_LEN;
	}
	packet->l3 = l3;
	if (packet->ether_type == CX_ETHERTYPE_IPV4 && have >= l3 + CX_IPV4_LEN)
		parse_ipv4(packet);
	else if (packet->ether_type == CX_ETHERTYPE_IPV6 && have >= l3 + CX_IPV6_LEN)
		parse_ipv6(packet);
}

static void
store_csum(uint8_t *p, uint16_t sum)
{
	memcpy(p, &sum, sizeof(sum));
}

void
cx_packet_offload(uint8_t *data, uint32_t have, uint32_t len, uint8_t cs_flags)
{
	struct cx_packet packet;

	cx_packet_parse(&packet, data, have, len);
	if ((cs_flags & MLX5_ETH_WQE_L3_CSUM) != 0 && packet.is_ipv4) {
		uint8_t *ip = data + packet.l3;

		store_csum(ip + 10, 0);
		store_csum(ip + 10,
			(uint16_t)~cx_csum_fold(cx_csum_add(0, ip, packet.l4 - packet.l3)));
	}
	if ((cs_flags & MLX5_ETH_WQE_L4_CSUM) == 0 || (!packet.is_tcp && !packet.is_udp))
		return;
	uint8_t *l4 = data + packet.l4, *field = l4 + (packet.is_tcp ? 16 : 6);
	const uint32_t l4_len = l4_length(&packet);

	if (l4_len == 0 || packet.l4 + l4_len > have)
		return;
	store_csum(field, 0);

	const uint16_t sum =
		(uint16_t)~cx_csum_fold(cx_csum_add(cx_csum_pseudo(&packet, l4_len), l4, l4_len));

	/* UDP has another way to write zero, which means that there is none */
	store_csum(field, packet.is_udp && sum == 0 ? 0xffff : sum);
}
