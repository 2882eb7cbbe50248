/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* How queues fail, and completions. */

#include "port.h"

/* ---- completion queues ---- */

/* The CQ takes no more: overrun, or its memory is gone. */
void cx_cq_fail(struct softcx_port *port, struct cx_cq *cq);

/* Read the consumer index; whether there is room for one more. */
bool cx_cq_has_room(struct softcx_port *port, struct cx_cq *cq);

/* The CQEs that are held become software's: of one CQ, of all. */
void cx_cq_publish(struct softcx_port *port, struct cx_cq *cq);
void cx_publish(struct softcx_port *port);

/* Tell of completions that were armed for. */
void cx_cq_answer(struct softcx_port *port, struct cx_cq *cq);

/* Room for the next CQE, or NULL: there is none, and the CQ failed; the queue must. */
static inline uint64_t *
cx_cq_next(struct softcx_port *port, struct cx_cq *cq)
{
	if (unlikely((uint16_t)(cq->pi - cq->ci) >= cq->count) && !cx_cq_has_room(port, cq)) {
		if (!cq->error)
			port->counters.cq_overruns++;
		cx_cq_fail(port, cq);
	}
	if (unlikely(cq->error))
		return NULL;
	return cq->held[cq->n_held];
}

/*
 * The CQE is complete, but for its last word, which makes it software's. All of a burst go to the
 * ring at its end: line by line among other work each store would wait for its line, which software
 * has, and software that polls would take them away one by one, and get small bursts for it.
 */
static inline void
cx_cq_push(
	struct softcx_port *port, struct cx_cq *cq, uint64_t last, uint8_t opcode, bool solicited)
{
	const uint8_t op_own =
		(uint8_t)(opcode << 4 | solicited << 1 | (cq->pi >> cq->log & MLX5_CQE_OWNER_MASK));

	cq->pi++;
	if (unlikely(solicited))
		cq->solicited_pi = cq->pi;
	cq->held[cq->n_held++][CX_LINE / 8 - 1] = last | (uint64_t)op_own << 56;
	if (unlikely(!cq->listed)) {
		cq->listed = true;
		port->held[port->n_held++] = cq;
	}
	if (unlikely(cq->n_held == CX_HELD))
		cx_cq_publish(port, cq);
}

/* An error CQE, flushes too; false: no room, as with cx_cq_next(). */
bool cx_cq_push_error(struct softcx_port *port, struct cx_cq *cq, uint8_t opcode,
	uint32_t user_index_be, uint32_t opcode_qpn, uint16_t wqe_counter, uint8_t syndrome,
	enum cx_why why);

/* ---- queues ---- */

/* Without a CQE: those could not be written, or the ring is gone. */
void cx_wq_fatal(struct softcx_port *port, struct cx_wq *wq);
void cx_qp_fatal(struct softcx_port *port, struct cx_qp *qp);

int cx_wq_init(struct softcx_port *port, struct cx_wq *wq, const struct softcx_wq_attr *attr);
void cx_wq_fini(struct cx_wq *wq);
int cx_wq_set_state(struct softcx_port *port, struct cx_wq *wq, enum ibv_wq_state state);

/* Strict: whether the doorbell register has the control words of the last WQE. */
void cx_strict_register(struct softcx_port *port, const struct cx_qp *qp);
