/* SPDX-License-Identifier: BSD-3-Clause */

#include "steer.h"

#define IPV4_FIELDS ((uint64_t)(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4))
#define IPV6_FIELDS ((uint64_t)(IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6))
#define TCP_FIELDS  ((uint64_t)(IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP))
#define UDP_FIELDS  ((uint64_t)(IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP))

/* rx_hash_type of a CQE: what was hashed */
#define TYPE_IPV4 (1u << 2)
#define TYPE_IPV6 (2u << 2)
#define TYPE_TCP  (1u << 6)
#define TYPE_UDP  (2u << 6)

#define RSS_INPUT_MAX (32 + 4)

bool
cx_rss_fields_valid(uint64_t fields)
{
	if ((fields & ~(IPV4_FIELDS | IPV6_FIELDS | TCP_FIELDS | UDP_FIELDS)) != 0)
		return false;
	return ((fields & IPV4_FIELDS) == 0 || (fields & IPV6_FIELDS) == 0) &&
	       ((fields & TCP_FIELDS) == 0 || (fields & UDP_FIELDS) == 0);
}

static uint32_t
toeplitz(const uint8_t key[SOFTCX_RSS_KEY_LEN], const uint8_t *input, unsigned int len)
{
	uint32_t window =
		(uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
	uint32_t hash = 0;

	for (unsigned int i = 0; i < len; i++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			if ((input[i] << bit & 0x80) != 0)
				hash ^= window;
			window = window << 1 | (key[i + 4] << bit >> 7 & 1);
		}
	}
	return hash;
}

/* Append the fields of a pair that are asked for, each `size` bytes from `from` on. */
static unsigned int
add_pair(uint8_t *input, unsigned int n, const uint8_t *from, unsigned int size, bool src, bool dst)
{
	const uint8_t *first = from, *second = from + size;

	if (src && dst && memcmp(first, second, size) > 0) {
		first = from + size;
		second = from;
	}
	if (src) {
		memcpy(input + n, first, size);
		n += size;
	}
	if (dst) {
		memcpy(input + n, second, size);
		n += size;
	}
	return n;
}

bool
cx_rss_hash(const struct cx_packet *packet, uint64_t fields, const uint8_t key[SOFTCX_RSS_KEY_LEN],
	uint32_t *hash, uint8_t *type)
{
	uint8_t input[RSS_INPUT_MAX];
	unsigned int n = 0;

	*type = 0;
	if (packet->is_ipv4 && (fields & IPV4_FIELDS) != 0) {
		n = add_pair(input, n, packet->data + packet->l3 + 12, 4,
			(fields & IBV_RX_HASH_SRC_IPV4) != 0, (fields & IBV_RX_HASH_DST_IPV4) != 0);
		*type |= TYPE_IPV4;
	} else if (packet->is_ipv6 && (fields & IPV6_FIELDS) != 0) {
		n = add_pair(input, n, packet->data + packet->l3 + 8, 16,
			(fields & IBV_RX_HASH_SRC_IPV6) != 0, (fields & IBV_RX_HASH_DST_IPV6) != 0);
		*type |= TYPE_IPV6;
	}
	if (packet->is_tcp && (fields & TCP_FIELDS) != 0) {
		n = add_pair(input, n, packet->data + packet->l4, 2,
			(fields & IBV_RX_HASH_SRC_PORT_TCP) != 0,
			(fields & IBV_RX_HASH_DST_PORT_TCP) != 0);
		*type |= TYPE_TCP;
	} else if (packet->is_udp && (fields & UDP_FIELDS) != 0) {
		n = add_pair(input, n, packet->data + packet->l4, 2,
			(fields & IBV_RX_HASH_SRC_PORT_UDP) != 0,
			(fields & IBV_RX_HASH_DST_PORT_UDP) != 0);
		*type |= TYPE_UDP;
	}
	*hash = n > 0 ? toeplitz(key, input, n) : 0;
	return n > 0;
}
