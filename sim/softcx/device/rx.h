/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What comes in from the wire, into receive queues. */

#include "mr.h"
#include "queue.h"
#include "steer.h"

/* WQEs whose buffers are called into the cache before they are used. */
#define CX_RX_AHEAD 12

/* A frame as the wire has it: bytes beyond `have` are not known, and not written. */
struct cx_frame {
	const uint8_t *data;
	uint32_t have, len;
	uint64_t time; /* of arrival */
};

/* Fetch WQEs that have been posted; whether there is one. */
bool cx_rx_fetch(struct softcx_port *port, struct cx_wq *wq);

/* The WQE that is being used cannot be: an error CQE, and the queue fails where that is fatal. */
void cx_rx_fail(
	struct softcx_port *port, struct cx_wq *wq, uint8_t syndrome, enum cx_why why, bool fatal);

/* The packet's WQE fails for no reason of its own: --inject. */
void cx_rx_inject(struct softcx_port *port, struct cx_wq *wq);

/* Deliver by the scatter list; counts what becomes of it. */
void cx_rx_scatter(struct softcx_port *port, const struct cx_steered *to,
	const struct cx_frame *frame, bool copy);

/* Parse, steer, deliver: of a frame that nothing is known about. Counts it as offered. */
void cx_rx_frame(struct softcx_port *port, const struct cx_frame *frame);

/* Give WQEs of a queue in error back; whether there were any. */
bool cx_rx_flush(struct softcx_port *port, struct cx_wq *wq);

static inline const struct mlx5_wqe_data_seg *
cx_rx_wqe(const struct cx_wq *wq, uint32_t index)
{
	return (const void *)(wq->raw + ((size_t)(index % CX_FETCH) << wq->log_stride));
}

/* Whether a WQE is there for a packet; where not, the packet is counted. */
static inline bool
cx_rx_begin(struct softcx_port *port, struct cx_wq *wq)
{
	if (unlikely(wq->state != IBV_WQS_RDY)) {
		port->counters.queue_not_ready++;
		return false;
	}
	if (unlikely(wq->fetched - wq->cons <= CX_RX_AHEAD) && !cx_rx_fetch(port, wq)) {
		port->counters.out_of_buffer++;
		return false;
	}
	if (unlikely(--port->until_rq_error == 0)) {
		cx_rx_inject(port, wq);
		return false;
	}
	if (likely(wq->fetched - wq->cons > CX_RX_AHEAD))
		cx_prefetch_write((const void *)(uintptr_t)be64toh(
			cx_rx_wqe(wq, wq->cons + CX_RX_AHEAD)->addr));
	return true;
}

/* The WQE has been filled: use it up and say so. */
static inline void
cx_rx_complete(struct softcx_port *port, const struct cx_steered *to, uint32_t len, uint64_t time,
	bool copy)
{
	struct cx_wq *wq = to->wq;
	struct cx_cq *cq = wq->cq;

	uint64_t *slot = cx_cq_next(port, cq);

	if (unlikely(slot == NULL)) {
		if (!copy)
			port->counters.rx_errors++;
		cx_wq_fatal(port, wq);
		return;
	}
	const uint16_t counter = (uint16_t)wq->cons++;

	slot[0] = 0;
	slot[1] = to->word[0];
	slot[2] = to->word[1];
	slot[3] = to->word[2];
	slot[4] = wq->user_index_be;
	slot[5] = (uint64_t)htobe32(len) << 32;
	slot[6] = htobe64(time);
	cx_cq_push(
		port, cq, to->tag_be | (uint64_t)htobe16(counter) << 32, MLX5_CQE_RESP_SEND, false);
	if (unlikely(copy)) {
		port->counters.rx_copies++;
		return;
	}
	port->counters.rx_packets++;
	port->counters.rx_bytes += len;
}
