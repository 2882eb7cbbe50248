/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "gen.h"

#define KNOWN 128 /* bytes of a frame that are looked at for its stamp */

/* Behind Ethernet, a VLAN tag maybe, IPv4 without options and UDP: where we put it. NULL: not ours.
 */
static const struct cx_stamp *
find_stamp(const uint8_t *frame, uint32_t have)
{
	uint32_t at = CX_ETH_LEN + CX_IPV4_LEN + CX_UDP_LEN;
	const uint8_t *ip = frame + CX_ETH_LEN;

	if (frame[12] == CX_ETHERTYPE_VLAN >> 8 && frame[13] == (CX_ETHERTYPE_VLAN & 0xff)) {
		at += CX_VLAN_LEN;
		ip += CX_VLAN_LEN;
	}
	if (have < at + sizeof(struct cx_stamp) || ip[-2] != CX_ETHERTYPE_IPV4 >> 8 ||
		ip[-1] != (CX_ETHERTYPE_IPV4 & 0xff) || ip[0] != 0x45 || ip[9] != CX_IPPROTO_UDP)
		return NULL;
	return (const void *)(frame + at);
}

/* Whether it is as the generator made it for a frame of that length. */
static inline bool
stamp_holds(const struct cx_check *check, const struct cx_stamp *stamp, uint32_t len)
{
	const uint16_t index = be16toh(stamp->stream);

	return stamp->port < check->n_ports && index < check->n_streams &&
	       be32toh(stamp->check) == cx_stamp_check(cx_stamp_key(stamp->port, index, len),
						be32toh(stamp->seq), be32toh(stamp->dropped)) &&
	       be16toh(stamp->tail) == (uint16_t)len;
}

/* The rest of a full payload, part by part. */
static bool
pattern_holds(const struct cx_gather *gather, uint32_t from, const uint8_t *pattern)
{
	uint32_t at = 0;

	for (unsigned int i = 0; i < gather->n; i++) {
		const uint32_t len = gather->part[i].len;
		const uint32_t skip = from > at ? from - at : 0;

		if (skip < len && memcmp(gather->part[i].from + skip, pattern + at + skip - from,
					  len - skip) != 0)
			return false;
		at += len;
	}
	return true;
}

/* IPv4's and UDP's, as they are on the wire: behind offloads. */
static bool
checksums_hold(const struct cx_gather *gather)
{
	static _Thread_local uint8_t frame[SOFTCX_MAX_FRAME];
	const uint32_t len = cx_gather_copy(gather, frame, sizeof(frame));
	struct cx_packet packet;

	if (gather->cs_flags != 0)
		cx_packet_offload(frame, len, len, gather->cs_flags);
	cx_packet_parse(&packet, frame, len, len);
	return packet.l3_ok && packet.l4_ok;
}

/* From byte `from` on the pattern's from `offset` on, and right checksums. */
static bool
payload_holds(const struct cx_check *check, const struct cx_gather *gather, uint32_t from,
	uint32_t offset)
{
	return pattern_holds(gather, from, check->pattern + offset) && checksums_hold(gather);
}

static void
clear_window(struct cx_check_stream *stream, uint32_t from, uint32_t n)
{
	if (n >= CX_CHECK_WINDOW) {
		memset(stream->seen, 0, sizeof(stream->seen));
		return;
	}
	for (uint32_t i = from; i != from + n; i++)
		stream->seen[i % CX_CHECK_WINDOW / 64] &= ~(UINT64_C(1) << i % 64);
}

/* Not the next of its stream. */
CX_COLD static void
note_jump(struct softcx_checker_counters *c, struct cx_check_stream *stream, uint32_t index)
{
	const int32_t ahead = (int32_t)(index - stream->next);
	uint64_t *word = &stream->seen[index % CX_CHECK_WINDOW / 64];
	const uint64_t bit = UINT64_C(1) << index % 64;

	if (ahead > 0) {
		clear_window(stream, stream->next, (uint32_t)ahead + 1);
		stream->next = index + 1;
		c->lost += (uint32_t)ahead;
		*word |= bit;
		return;
	}
	/* so late that nobody remembers whether it was there: taken for one that was not */
	if (-ahead <= CX_CHECK_WINDOW) {
		if ((*word & bit) != 0) {
			c->duplicated++;
			return;
		}
		*word |= bit;
	}
	c->reordered++;
	c->lost -= c->lost > 0;
}

static inline void
note(struct softcx_checker_counters *c, struct cx_check_stream *stream, uint32_t index)
{
	if (unlikely(index != stream->next)) {
		note_jump(c, stream, index);
		return;
	}
	stream->next = index + 1;
	stream->seen[index % CX_CHECK_WINDOW / 64] |= UINT64_C(1) << index % 64;
}

void
cx_check_frame(struct softcx_port *port, const struct cx_gather *gather)
{
	struct softcx_checker_counters *c = &port->counters.checker;
	const struct cx_check *check = port->check;
	const uint8_t *frame = gather->part[0].from;
	uint32_t have = gather->part[0].len;
	uint8_t room[KNOWN];

	if (check == NULL || check->payload == SOFTCX_PAYLOAD_NONE)
		return;
	if (unlikely(have < KNOWN && gather->n > 1)) {
		have = cx_gather_copy(gather, room, sizeof(room));
		frame = room;
	}
	const struct cx_stamp *stamp = find_stamp(frame, have);

	if (unlikely(stamp == NULL || stamp->magic != CX_STAMP_MAGIC)) {
		c->foreign++;
		return;
	}
	const uint16_t index = be16toh(stamp->stream);
	const uint32_t seq = be32toh(stamp->seq), dropped = be32toh(stamp->dropped);
	/* a VLAN tag that came on the way is none of the frame's */
	const uint32_t at = (uint32_t)((const uint8_t *)stamp - frame);
	const uint32_t len = gather->len - (at - (CX_ETH_LEN + CX_IPV4_LEN + CX_UDP_LEN));

	if (unlikely(!stamp_holds(check, stamp, len) ||
		     (check->payload == SOFTCX_PAYLOAD_FULL &&
			     !payload_holds(check, gather, at + (uint32_t)sizeof(*stamp),
				     cx_pattern_offset(seq, index))))) {
		c->packets++;
		c->corrupted++;
		return;
	}
	c->packets++; /* now that all of it was there to be read */
	note(c, &check->stream[stamp->port * check->n_streams + index], seq - dropped);
}

int
cx_check_init(struct softcx_port *port)
{
	const struct softcx_config *config = &port->card->config;
	struct cx_check *check = cx_zalloc(sizeof(*check));

	if (check == NULL)
		return -ENOMEM;
	port->check = check;
	check->n_ports = config->ports;
	check->n_streams = config->streams;
	check->payload = config->payload;
	check->pattern = cx_pattern();
	/* most of it is never touched: an application forwards from few ports to one */
	check->stream = calloc((size_t)check->n_ports * check->n_streams, sizeof(*check->stream));
	return check->stream != NULL ? 0 : -ENOMEM;
}

void
cx_check_fini(struct softcx_port *port)
{
	if (port->check != NULL)
		free(port->check->stream);
	free(port->check);
	port->check = NULL;
}
