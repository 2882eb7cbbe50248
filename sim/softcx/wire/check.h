/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What comes back: every frame's number, order and content. */

#include "../device/tx.h"

#define CX_CHECK_WINDOW 512 /* frames of a stream that are told apart when they come late */

struct cx_check_stream {
	uint32_t next; /* one past the highest index seen */
	uint64_t seen[CX_CHECK_WINDOW / 64];
};

struct cx_check {
	struct cx_check_stream *stream; /* of all ports' generators */
	unsigned int n_streams, n_ports;
	enum softcx_payload payload;
	const uint8_t *pattern;
};

int cx_check_init(struct softcx_port *port);
void cx_check_fini(struct softcx_port *port);
void cx_check_frame(struct softcx_port *port, const struct cx_gather *gather);
