/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The device's loop. */

#include "port.h"

int cx_port_init(struct softcx_port *port, struct softcx_card *card, unsigned int index);
int cx_port_start(struct softcx_port *port);
void cx_port_stop(struct softcx_port *port);

/* Objects that are left are freed; how many there were. */
unsigned int cx_port_fini(struct softcx_port *port);

/* Read the counter and move the device's time. */
void cx_turn_time(struct softcx_port *port);

/* Everything once; whether there was anything to do. */
bool cx_turn(struct softcx_port *port);

/* Whether the loop has anything to look at. */
static inline bool
cx_turn_needed(const struct softcx_port *port)
{
	return port->n_tx + port->n_flush + port->n_armable + port->n_ready > 0 || port->relist;
}
