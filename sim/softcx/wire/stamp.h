/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What generated frames carry behind their L4 header. */

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define CX_STAMP_MAGIC 0x5c

/* 18 bytes: the room of the shortest frame behind IPv4 and UDP. In network byte order. */
struct cx_stamp {
	uint8_t magic;
	uint8_t port; /* that received it */
	uint16_t stream;
	uint32_t seq;     /* of the stream, of frames offered */
	uint32_t dropped; /* frames of the stream that were not delivered before this one */
	uint32_t check;   /* of all that is above, and the frame's length */
	uint16_t tail;    /* the frame's length, without FCS */
} __attribute__((packed));

_Static_assert(sizeof(struct cx_stamp) == 18, "the shortest frame has no room for more");

/* Bytes of the frame's end in full payloads: pattern from an offset that the number gives. */
#define CX_PATTERN_LEN 65536
#define CX_PATTERN_MAX 16384 /* beyond the largest offset */

/* Of what frames of one stream and length have in common. */
static inline uint64_t
cx_stamp_key(uint8_t port, uint16_t stream, uint32_t len)
{
	return ((uint64_t)port << 48 | (uint64_t)stream << 32 | len) * UINT64_C(0xc2b2ae3d27d4eb4f);
}

static inline uint32_t
cx_stamp_check(uint64_t key, uint32_t seq, uint32_t dropped)
{
	uint64_t x = ((uint64_t)seq << 32 | dropped) * UINT64_C(0x9e3779b97f4a7c15) ^ key;

	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(x >> 32);
}

static inline uint32_t
cx_pattern_offset(uint32_t seq, uint16_t stream)
{
	return (seq * 64 + stream * 8u) % CX_PATTERN_LEN;
}
