/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What is at the other end of a port's cable. */

#include "../device/rx.h"
#include "../device/tx.h"
#include "check.h"
#include "gen.h"
#include "link.h"

int cx_wire_init(struct softcx_card *card);
void cx_wire_fini(struct softcx_card *card);

/* What has arrived by now, into the queues; how many packets. */
static inline unsigned int
cx_wire_receive(struct softcx_port *port)
{
	if (likely(port->gen != NULL))
		return cx_gen_turn(port, port->gen);
	return port->in != NULL ? cx_link_receive(port, port->in) : 0;
}

/* A link holds its sender when it is full: that is no loss. */
static inline bool
cx_wire_can_send(const struct softcx_port *port)
{
	return port->out == NULL || cx_link_has_room(port->out);
}

static inline void
cx_wire_send(struct softcx_port *port, const struct cx_gather *gather)
{
	if (port->out != NULL)
		cx_link_send(port->out, gather);
	else
		cx_check_frame(port, gather);
}
