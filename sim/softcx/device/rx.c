/* SPDX-License-Identifier: BSD-3-Clause */

#include "rx.h"

#define MAX_COPIES 8

/* ---- WQEs ---- */

static void
check_doorbell(struct softcx_port *port, const struct cx_wq *wq, uint16_t posted)
{
	const uint16_t ahead = (uint16_t)(posted - (uint16_t)wq->cons);

	if ((uint16_t)(posted - wq->posted) > wq->count)
		cx_strict(port, "wq %#x: the doorbell went from %u back to %u", wq->object.number,
			wq->posted, posted);
	else if (ahead > wq->count)
		cx_strict(port, "wq %#x: %u WQEs are posted to a ring of %u", wq->object.number,
			ahead, wq->count);
}

bool
cx_rx_fetch(struct softcx_port *port, struct cx_wq *wq)
{
	const size_t stride = (size_t)1 << wq->log_stride;
	const uint32_t held = wq->fetched - wq->cons;

	cx_at(port, wq, CX_AT_RQ);
	if ((uint16_t)(wq->posted - (uint16_t)wq->fetched) < CX_FETCH) {
		const uint16_t posted = (uint16_t)cx_load_be32(wq->dbrec);

		if (unlikely(cx_is_strict(port)) && posted != wq->posted)
			check_doorbell(port, wq, posted);
		wq->posted = posted;
	}
	uint32_t avail = (uint16_t)(wq->posted - (uint16_t)wq->fetched);
	uint32_t n = CX_FETCH - held;

	if (n > avail)
		n = avail;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t index = wq->fetched + i;
		uint8_t *to = wq->raw + index % CX_FETCH * stride;
		const uint8_t *from = wq->buf + (index & (wq->count - 1)) * stride;

		if (likely(stride == sizeof(struct mlx5_wqe_data_seg)))
			memcpy(to, from, sizeof(struct mlx5_wqe_data_seg));
		else
			memcpy(to, from, stride);
	}
	/* the ring's lines that come next are still in software's cache */
	avail -= n;
	if (avail > CX_FETCH)
		avail = CX_FETCH;
	for (size_t at = 0; at < avail * stride; at += CX_LINE)
		cx_prefetch(
			wq->buf + (((wq->fetched + n) * stride + at) & (wq->count * stride - 1)));
	/* those near the head were too late for cx_rx_begin() */
	for (uint32_t i = held; i < held + n && i <= CX_RX_AHEAD; i++)
		cx_prefetch_write(
			(const void *)(uintptr_t)be64toh(cx_rx_wqe(wq, wq->cons + i)->addr));
	wq->fetched += n;
	return wq->fetched != wq->cons;
}

/* ---- errors ---- */

void
cx_rx_fail(
	struct softcx_port *port, struct cx_wq *wq, uint8_t syndrome, enum cx_why why, bool fatal)
{
	const uint16_t counter = (uint16_t)wq->cons++;

	if (fatal) {
		wq->state = IBV_WQS_ERR;
		port->relist = true;
	}
	if (!cx_cq_push_error(port, wq->cq, MLX5_CQE_RESP_ERR, wq->user_index_be, wq->object.number,
		    counter, syndrome, why))
		cx_wq_fatal(port, wq);
}

bool
cx_rx_flush(struct softcx_port *port, struct cx_wq *wq)
{
	const uint32_t from = wq->cons;

	while (!wq->dead && (wq->cons != wq->fetched || cx_rx_fetch(port, wq))) {
		port->counters.flushed++;
		cx_rx_fail(port, wq, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, CX_WHY_NONE, false);
	}
	return wq->cons != from;
}

/* ---- delivery ---- */

static void
fail_packet(struct softcx_port *port, struct cx_wq *wq, uint8_t syndrome, enum cx_why why,
	bool fatal, bool copy)
{
	if (!copy)
		port->counters.rx_errors++;
	cx_rx_fail(port, wq, syndrome, why, fatal);
}

void
cx_rx_inject(struct softcx_port *port, struct cx_wq *wq)
{
	const struct softcx_inject *inject = &port->card->config.inject_rq;

	port->until_rq_error = inject->every;
	port->counters.injected++;
	fail_packet(port, wq, inject->syndrome, CX_WHY_INJECTED,
		inject->syndrome != MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, false);
}

/* What the WQE takes of [at, at + len): the bytes that are known; the rest stays as it was. */
static void
write_part(uint8_t *to, const struct cx_frame *frame, uint32_t at, uint32_t len)
{
	if (at >= frame->have)
		return;
	memcpy(to, frame->data + at, len < frame->have - at ? len : frame->have - at);
}

/* Without its VLAN tag, as the queue wants it. */
static void
strip(const struct cx_frame *frame, struct cx_frame *stripped, uint8_t *room)
{
	memcpy(room, frame->data, 12);
	memcpy(room + 12, frame->data + 12 + CX_VLAN_LEN, frame->have - 12 - CX_VLAN_LEN);
	*stripped = *frame;
	stripped->data = room;
	stripped->have -= CX_VLAN_LEN;
	stripped->len -= CX_VLAN_LEN;
}

void
cx_rx_scatter(struct softcx_port *port, const struct cx_steered *to, const struct cx_frame *frame,
	bool copy)
{
	struct cx_wq *wq = to->wq;
	const uint32_t max = 1u << (wq->log_stride - 4);
	const struct mlx5_wqe_data_seg *seg = cx_rx_wqe(wq, wq->cons);
	uint32_t done = 0;

	cx_at(port, wq, CX_AT_RX_DATA);
	for (uint32_t i = 0; i < max && done < frame->len; i++) {
		const uint32_t size = be32toh(seg[i].byte_count), lkey = be32toh(seg[i].lkey);
		enum cx_why why = CX_WHY_NONE;

		if (size == 0 && lkey == MLX5_INVALID_LKEY)
			break;
		const uint32_t part = size < frame->len - done ? size : frame->len - done;
		uint8_t *host =
			cx_mr_translate(port, wq->pd, lkey, be64toh(seg[i].addr), part, true, &why);

		if (unlikely(host == NULL)) {
			fail_packet(port, wq, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, why, true, copy);
			return;
		}
		write_part(host, frame, done, part);
		done += part;
	}
	if (unlikely(done < frame->len)) {
		fail_packet(
			port, wq, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, CX_WHY_LENGTH, false, copy);
		return;
	}
	cx_rx_complete(port, to, frame->len, frame->time, copy);
}

static void
deliver(struct softcx_port *port, const struct cx_steered *to, const struct cx_packet *packet,
	const struct cx_frame *frame, bool copy)
{
	static _Thread_local uint8_t room[SOFTCX_MAX_FRAME];
	struct cx_frame stripped;

	if (copy ? to->wq->state != IBV_WQS_RDY ||
				(to->wq->cons == to->wq->fetched && !cx_rx_fetch(port, to->wq))
		 : !cx_rx_begin(port, to->wq))
		return;
	if (to->wq->vlan_strip && packet->has_vlan) {
		strip(frame, &stripped, room);
		frame = &stripped;
	}
	cx_rx_scatter(port, to, frame, copy);
}

void
cx_rx_frame(struct softcx_port *port, const struct cx_frame *frame)
{
	struct cx_steered to, copies[MAX_COPIES];
	struct cx_packet packet;
	unsigned int n_copies;

	port->counters.offered++;
	cx_packet_parse(&packet, frame->data, frame->have, frame->len);
	switch (cx_steer(port, &packet, &to, copies, MAX_COPIES, &n_copies)) {
	case CX_FATE_QUEUE:
		deliver(port, &to, &packet, frame, false);
		break;
	case CX_FATE_DROP:
		port->counters.flow_drops++;
		break;
	case CX_FATE_NO_FLOW:
		port->counters.no_flow++;
		break;
	}
	for (unsigned int i = 0; i < n_copies; i++)
		deliver(port, &copies[i], &packet, frame, true);
}
