/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What send queues put on the wire. */

#include "mr.h"
#include "queue.h"

/* Segments of a frame; more than a WQE has room for. */
#define CX_MAX_GATHER (SOFTCX_MAX_SQ_DESC / 16)

struct cx_gather {
	uint32_t len;
	unsigned int n;
	uint8_t cs_flags;
	struct {
		const uint8_t *from;
		uint32_t len;
	} part[CX_MAX_GATHER];
};

/* Copy the first bytes of a frame, at most `max`; how many. */
uint32_t cx_gather_copy(const struct cx_gather *gather, uint8_t *to, uint32_t max);

/* Hold WQEs that have been seen, and call their frames into the cache; then look for new ones. */
void cx_tx_fetch(struct softcx_port *port, struct cx_qp *qp);

/* Execute those that are held; how many. */
unsigned int cx_tx_execute(struct softcx_port *port, struct cx_qp *qp);

/* The WQE at the head failed. */
void cx_tx_fail(struct softcx_port *port, struct cx_qp *qp, uint8_t syndrome, enum cx_why why);
