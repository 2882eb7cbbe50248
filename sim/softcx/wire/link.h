/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* A cable from one port to another, or to itself: frames in flight. One sender, one receiver. */

#include "../device/rx.h"
#include "../device/tx.h"
#include "pace.h"

#define CX_LINK_SLOTS 1024 /* a power of two */

struct cx_link_slot {
	uint32_t len, have;
	uint8_t *data;
};

struct cx_link {
	uint32_t head __attribute__((aligned(CX_LINE))); /* receiver's; atomic */
	uint32_t tail __attribute__((aligned(CX_LINE))); /* sender's; atomic */
	struct cx_pace due;                              /* the sender's wire is free again */
	uint64_t rate, hz;
	uint32_t most; /* bytes of a frame that travel */
	uint8_t *room;
	struct cx_link_slot slot[CX_LINK_SLOTS];
};

struct cx_link *cx_link_create(const struct softcx_config *config, uint64_t hz);
void cx_link_destroy(struct cx_link *link);

void cx_link_send(struct cx_link *link, const struct cx_gather *gather);
unsigned int cx_link_receive(struct softcx_port *port, struct cx_link *link);

/* One slot stays free: the receiver still reads the one that it has just said it took. */
static inline bool
cx_link_has_room(const struct cx_link *link)
{
	return link->tail - __atomic_load_n(&link->head, __ATOMIC_ACQUIRE) < CX_LINK_SLOTS - 1;
}
