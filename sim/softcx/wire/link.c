/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>

#include "link.h"

#define BURST 64
#define KNOWN 128 /* bytes that travel of a frame in payloads `none` and `header`: all headers */

struct cx_link *
cx_link_create(const struct softcx_config *config, uint64_t hz)
{
	struct cx_link *link = cx_zalloc(sizeof(*link));

	if (link == NULL)
		return NULL;
	link->rate = config->rate;
	link->hz = hz;
	link->most =
		config->payload == SOFTCX_PAYLOAD_FULL ? (SOFTCX_MAX_FRAME + 63) / 64 * 64 : KNOWN;
	link->room = malloc((size_t)CX_LINK_SLOTS * link->most);
	if (link->room == NULL) {
		free(link);
		return NULL;
	}
	for (unsigned int i = 0; i < CX_LINK_SLOTS; i++)
		link->slot[i].data = link->room + (size_t)i * link->most;
	return link;
}

void
cx_link_destroy(struct cx_link *link)
{
	if (link != NULL)
		free(link->room);
	free(link);
}

void
cx_link_send(struct cx_link *link, const struct cx_gather *gather)
{
	struct cx_link_slot *slot = &link->slot[link->tail % CX_LINK_SLOTS];

	slot->len = gather->len;
	slot->have = cx_gather_copy(gather, slot->data, link->most);
	if (gather->cs_flags != 0)
		cx_packet_offload(slot->data, slot->have, slot->len, gather->cs_flags);
	__atomic_store_n(&link->tail, link->tail + 1, __ATOMIC_RELEASE);
}

/* At the line's rate: a frame that has not come in whole waits. */
static bool
has_arrived(const struct softcx_port *port, const struct cx_link *link)
{
	return link->rate == 0 || (int64_t)(port->now - link->due.cycles) >= 0;
}

unsigned int
cx_link_receive(struct softcx_port *port, struct cx_link *link)
{
	const uint32_t tail = __atomic_load_n(&link->tail, __ATOMIC_ACQUIRE);
	unsigned int n = 0;

	for (; n < BURST && link->head != tail && has_arrived(port, link); n++) {
		const struct cx_link_slot *slot = &link->slot[link->head % CX_LINK_SLOTS];
		const struct cx_frame frame = {slot->data, slot->have, slot->len, port->now};
		const struct cx_pace pace =
			cx_pace_of(slot->len + CX_FCS_LEN, link->rate, link->hz);

		/* an idle line owes nothing */
		if (n == 0 &&
			(int64_t)(port->now - link->due.cycles) > (int64_t)(link->hz / 100000))
			link->due.cycles = port->now;
		cx_pace_add(&link->due, &pace);
		/* before it is delivered: should that fault, the frame is not sent again */
		__atomic_store_n(&link->head, link->head + 1, __ATOMIC_RELEASE);
		cx_rx_frame(port, &frame);
	}
	return n;
}
