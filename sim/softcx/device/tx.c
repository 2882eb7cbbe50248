/* SPDX-License-Identifier: BSD-3-Clause */

#include "tx.h"
#include "../wire/wire.h"

#define DS      16u /* unit of a WQE's size */
#define DS_MASK 0x3fu
#define MAX_DS  (SOFTCX_MAX_SQ_DESC / DS)

#define FRAMES_AHEAD 16 /* called into the cache before they are sent */

#define REGISTER_S 1 /* from the doorbell record to the register, at most */

/* fm_ce_se: when a CQE is written */
#define CE_SHIFT 2
#define CE_MASK  3u
enum { CE_ON_ERROR, CE_ON_FIRST_ERROR, CE_ALWAYS, CE_ALWAYS_EVENT };

struct cx_wqe {
	const struct mlx5_wqe_ctrl_seg *ctrl;
	uint32_t blocks, ds;
	uint8_t opcode;
	uint8_t when; /* CE_* */
	bool solicited;
	uint16_t index;
	uint32_t qpn;
};

uint32_t
cx_gather_copy(const struct cx_gather *gather, uint8_t *to, uint32_t max)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < gather->n && n < max; i++) {
		const uint32_t part = gather->part[i].len < max - n ? gather->part[i].len : max - n;

		memcpy(to + n, gather->part[i].from, part);
		n += part;
	}
	return n;
}

/* ---- fetching ---- */

/* WQEs end within the ring's end and go on at its start; held ones lie in one piece. */
static const void *
held(const struct cx_sq *sq, uint32_t block)
{
	return sq->raw + (size_t)(block % CX_FETCH) * MLX5_SEND_WQE_BB;
}

static const uint8_t *
block_of(const struct cx_sq *sq, uint32_t block)
{
	return sq->buf + (size_t)(block & (sq->count - 1)) * MLX5_SEND_WQE_BB;
}

static void
check_doorbell(struct softcx_port *port, const struct cx_qp *qp, uint16_t posted)
{
	const struct cx_sq *sq = &qp->sq;
	const uint16_t ahead = (uint16_t)(posted - (uint16_t)sq->cons);

	if ((uint16_t)(posted - sq->posted) > sq->count)
		cx_strict(port, "qp %#x: the doorbell went from %u back to %u", qp->object.number,
			sq->posted, posted);
	else if (ahead > sq->count)
		cx_strict(port, "qp %#x: %u basic blocks are posted to a ring of %u",
			qp->object.number, ahead, sq->count);
}

static void
look_at_doorbell(struct softcx_port *port, struct cx_qp *qp)
{
	struct cx_sq *sq = &qp->sq;

	cx_at(port, qp, CX_AT_SQ);
	const uint16_t posted = (uint16_t)cx_load_be32(sq->dbrec);

	if (posted == sq->posted)
		return;
	if (unlikely(cx_is_strict(port))) {
		check_doorbell(port, qp, posted);
		sq->rung_at = port->now;
		sq->ring_checked = false;
	}
	sq->posted = posted;
	uint32_t n = (uint16_t)(posted - (uint16_t)sq->fetched);

	if (n > CX_FETCH)
		n = CX_FETCH;
	for (uint32_t i = 0; i < n; i++)
		cx_prefetch(block_of(sq, sq->fetched + i));
}

/* The register must have the last WQE a while after the record moved; software is not asked to be
 * quicker than a thread that was kept from running between the two. */
static void
check_register(struct softcx_port *port, struct cx_qp *qp)
{
	struct cx_sq *sq = &qp->sq;
	const bool idle = sq->cons == sq->fetched && (uint16_t)sq->cons == sq->posted;

	if (sq->uar == NULL || sq->ring_checked || !idle ||
		port->now - sq->rung_at < REGISTER_S * port->card->hz)
		return;
	sq->ring_checked = true;
	cx_at(port, qp, CX_AT_UAR);
	cx_strict_register(port, qp);
}

/* In the common WQE the third unit points to the frame; a hint may go wrong. */
static inline void
call_frame(const uint8_t *wqe)
{
	cx_prefetch((const void *)(uintptr_t)cx_load_be64(
		wqe + 2 * DS + offsetof(struct mlx5_wqe_data_seg, addr)));
}

static void
fetch(struct softcx_port *port, struct cx_qp *qp)
{
	struct cx_sq *sq = &qp->sq;
	uint32_t n = (uint16_t)(sq->posted - (uint16_t)sq->fetched);
	const uint32_t room = CX_FETCH - (sq->fetched - sq->cons);

	if (n > room)
		n = room;
	cx_at(port, qp, CX_AT_SQ);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t block = sq->fetched + i;
		uint8_t *to = sq->raw + (size_t)(block % CX_FETCH) * MLX5_SEND_WQE_BB;

		memcpy(to, block_of(sq, block), MLX5_SEND_WQE_BB);
		call_frame(to);
	}
	sq->fetched += n;
}

void
cx_tx_fetch(struct softcx_port *port, struct cx_qp *qp)
{
	if (unlikely(qp->sq.dead))
		return;
	fetch(port, qp);
	look_at_doorbell(port, qp);
	if (unlikely(cx_is_strict(port)))
		check_register(port, qp);
}

/* ---- completion ---- */

static bool
complete(struct softcx_port *port, struct cx_qp *qp, const struct cx_wqe *wqe)
{
	struct cx_cq *cq = qp->sq.cq;

	uint64_t *slot = cx_cq_next(port, cq);

	if (slot == NULL)
		return false;
	memset(slot, 0, CX_LINE - sizeof(*slot));
	slot[4] = qp->user_index_be;
	slot[6] = htobe64(port->now);
	cx_cq_push(port, cq,
		htobe32((uint32_t)wqe->opcode << 24 | qp->object.number) |
			(uint64_t)htobe16(wqe->index) << 32,
		MLX5_CQE_REQ, wqe->solicited);
	return true;
}

/* What is held of the WQE at the head; false: its end has not come yet. */
static bool
decode(const struct cx_sq *sq, struct cx_wqe *wqe)
{
	const struct mlx5_wqe_ctrl_seg *ctrl = held(sq, sq->cons);
	const uint32_t first = be32toh(ctrl->opmod_idx_opcode), second = be32toh(ctrl->qpn_ds);

	wqe->ctrl = ctrl;
	wqe->opcode = (uint8_t)first;
	wqe->index = (uint16_t)(first >> 8);
	wqe->qpn = second >> 8;
	wqe->ds = second & DS_MASK;
	wqe->when = ctrl->fm_ce_se >> CE_SHIFT & CE_MASK;
	wqe->solicited = (ctrl->fm_ce_se & MLX5_WQE_CTRL_SOLICITED) != 0;
	wqe->blocks = (wqe->ds + 3) / 4;
	if (wqe->blocks == 0)
		wqe->blocks = 1;
	return wqe->blocks <= sq->fetched - sq->cons;
}

void
cx_tx_fail(struct softcx_port *port, struct cx_qp *qp, uint8_t syndrome, enum cx_why why)
{
	struct cx_wqe wqe;

	if (!decode(&qp->sq, &wqe))
		wqe.blocks = qp->sq.fetched - qp->sq.cons;
	qp->state = IBV_QPS_ERR;
	port->relist = true;
	port->counters.tx_errors++;
	const uint16_t counter = (uint16_t)qp->sq.cons;

	qp->sq.cons += wqe.blocks;
	if (!cx_cq_push_error(port, qp->sq.cq, MLX5_CQE_REQ_ERR, qp->user_index_be,
		    (uint32_t)wqe.opcode << 24 | qp->object.number, counter, syndrome, why))
		cx_qp_fatal(port, qp);
}

/* A WQE of a queue in error: given back, but where only the first error was asked for. */
static void
flush(struct softcx_port *port, struct cx_qp *qp, const struct cx_wqe *wqe)
{
	const uint16_t counter = (uint16_t)qp->sq.cons;

	port->counters.flushed++;
	qp->sq.cons += wqe->blocks;
	if (wqe->when == CE_ON_FIRST_ERROR)
		return;
	if (!cx_cq_push_error(port, qp->sq.cq, MLX5_CQE_REQ_ERR, qp->user_index_be,
		    (uint32_t)wqe->opcode << 24 | qp->object.number, counter,
		    MLX5_CQE_SYNDROME_WR_FLUSH_ERR, CX_WHY_NONE))
		cx_qp_fatal(port, qp);
}

/* ---- execution ---- */

struct cursor {
	const struct cx_sq *sq;
	uint32_t unit, end; /* of 16 bytes, from the WQE's start */
};

/* Held WQEs wrap at a multiple of the unit. */
static const uint8_t *
unit(const struct cursor *at, uint32_t n)
{
	return (const uint8_t *)held(at->sq, at->sq->cons + n / 4) + n % 4 * (size_t)DS;
}

/* Bytes of the WQE itself, from `offset` into the cursor's unit on; may wrap once. */
static void
add_inline(struct cx_gather *gather, const struct cursor *at, uint32_t offset, uint32_t len)
{
	while (len > 0) {
		const uint32_t n = at->unit + offset / DS;
		const uint32_t to_end =
			(CX_FETCH - (at->sq->cons + n / 4) % CX_FETCH) * MLX5_SEND_WQE_BB -
			n % 4 * DS - offset % DS;
		const uint32_t part = len < to_end ? len : to_end;

		gather->part[gather->n].from = unit(at, n) + offset % DS;
		gather->part[gather->n++].len = part;
		gather->len += part;
		offset += part;
		len -= part;
	}
}

static bool
gather_data(struct softcx_port *port, struct cx_qp *qp, struct cursor *at, struct cx_gather *gather,
	enum cx_why *why)
{
	while (at->unit < at->end) {
		const struct mlx5_wqe_data_seg *seg = (const void *)unit(at, at->unit);
		const uint32_t count = be32toh(seg->byte_count);

		if ((count & MLX5_INLINE_SEG) != 0) {
			const uint32_t len = count & ~(uint32_t)MLX5_INLINE_SEG;
			const uint32_t head = sizeof(struct mlx5_wqe_inl_data_seg);

			if (len > (at->end - at->unit) * DS - head) {
				*why = CX_WHY_FORMAT;
				return false;
			}
			add_inline(gather, at, head, len);
			at->unit += (head + len + DS - 1) / DS;
			continue;
		}
		at->unit++;
		if (count == 0)
			continue;
		const uint8_t *from = cx_mr_translate(
			port, qp->pd, be32toh(seg->lkey), be64toh(seg->addr), count, false, why);

		if (unlikely(from == NULL))
			return false;
		gather->part[gather->n].from = from;
		gather->part[gather->n++].len = count;
		/* as long as regions are; no sum of a WQE's segments goes round */
		gather->len = count > SOFTCX_MAX_FRAME ? SOFTCX_MAX_FRAME + 1 : gather->len + count;
	}
	return true;
}

/* On the wire; the WQE at the head is done. */
static inline void
put_on_wire(struct softcx_port *port, struct cx_qp *qp, const struct cx_gather *gather,
	const struct cx_wqe *wqe)
{
	cx_at(port, qp, CX_AT_TX_DATA);
	cx_wire_send(port, gather);
	port->counters.tx_packets++;
	port->counters.tx_bytes += gather->len;
	qp->sq.cons += wqe->blocks;
	if (wqe->when >= CE_ALWAYS && !complete(port, qp, wqe))
		cx_qp_fatal(port, qp);
}

/*
 * What most drivers send: control, Ethernet without inline bytes, one pointer. False: the WQE is
 * another, or it is wrong; nothing was done.
 */
static inline bool
send_plain(struct softcx_port *port, struct cx_qp *qp)
{
	const uint32_t cons = qp->sq.cons;
	const uint8_t *at = held(&qp->sq, cons);
	const struct mlx5_wqe_ctrl_seg *ctrl = (const void *)at;
	const struct mlx5_wqe_eth_seg *eth = (const void *)(at + DS);
	const struct mlx5_wqe_data_seg *seg = (const void *)(at + 2 * DS);
	const uint32_t count = be32toh(seg->byte_count);
	enum cx_why why;

	if ((ctrl->opmod_idx_opcode & htobe32(0xffffff)) !=
			htobe32((cons & 0xffff) << 8 | MLX5_OPCODE_SEND) ||
		ctrl->qpn_ds != htobe32(qp->object.number << 8 | 3) || eth->inline_hdr_sz != 0 ||
		count < CX_ETH_LEN || count > SOFTCX_MAX_FRAME - CX_FCS_LEN)
		return false;
	const uint8_t *from = cx_mr_translate(
		port, qp->pd, be32toh(seg->lkey), be64toh(seg->addr), count, false, &why);

	if (unlikely(from == NULL))
		return false;
	const struct cx_wqe wqe = {
		.blocks = 1,
		.opcode = MLX5_OPCODE_SEND,
		.when = ctrl->fm_ce_se >> CE_SHIFT & CE_MASK,
		.solicited = (ctrl->fm_ce_se & MLX5_WQE_CTRL_SOLICITED) != 0,
		.index = (uint16_t)cons,
	};
	struct cx_gather gather;

	gather.len = count;
	gather.n = 1;
	gather.cs_flags = eth->cs_flags;
	gather.part[0].from = from;
	gather.part[0].len = count;
	put_on_wire(port, qp, &gather, &wqe);
	return true;
}

static void
send_frame(struct softcx_port *port, struct cx_qp *qp, const struct cx_wqe *wqe)
{
	const struct mlx5_wqe_eth_seg *eth = (const void *)((const uint8_t *)wqe->ctrl + DS);
	struct cursor at = {&qp->sq, 2, wqe->ds};
	struct cx_gather gather;
	enum cx_why why = CX_WHY_NONE;

	if (unlikely(wqe->ds < 2)) {
		cx_tx_fail(port, qp, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, CX_WHY_FORMAT);
		return;
	}
	gather.len = 0;
	gather.n = 0;
	gather.cs_flags = eth->cs_flags;
	const uint32_t inlined = be16toh(eth->inline_hdr_sz);

	if (inlined > 0) {
		const uint32_t offset = offsetof(struct mlx5_wqe_eth_seg, inline_hdr_start);
		const uint32_t units = (offset + inlined + DS - 1) / DS;

		if (1 + units > wqe->ds) {
			cx_tx_fail(port, qp, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, CX_WHY_FORMAT);
			return;
		}
		at.unit = 1;
		add_inline(&gather, &at, offset, inlined);
		at.unit = 1 + units;
	}
	if (unlikely(!gather_data(port, qp, &at, &gather, &why))) {
		cx_tx_fail(port, qp,
			why == CX_WHY_FORMAT ? MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR
					     : MLX5_CQE_SYNDROME_LOCAL_PROT_ERR,
			why);
		return;
	}
	if (unlikely(gather.len < CX_ETH_LEN || gather.len > SOFTCX_MAX_FRAME - CX_FCS_LEN)) {
		cx_tx_fail(port, qp, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, CX_WHY_LENGTH);
		return;
	}
	put_on_wire(port, qp, &gather, wqe);
}

/* Whether hardware would take the WQE at all. */
static bool
acceptable(struct softcx_port *port, struct cx_qp *qp, const struct cx_wqe *wqe)
{
	enum cx_why why;

	if (wqe->index != (uint16_t)qp->sq.cons) {
		cx_strict(port, "qp %#x: a WQE of index %u where %u is due", qp->object.number,
			wqe->index, qp->sq.cons & 0xffff);
		why = CX_WHY_INDEX;
	} else if (wqe->qpn != qp->object.number) {
		cx_strict(port, "qp %#x: a WQE of queue %#x", qp->object.number, wqe->qpn);
		why = CX_WHY_QPN;
	} else if (wqe->ds == 0 || wqe->ds > MAX_DS) {
		why = CX_WHY_FORMAT;
	} else if (wqe->opcode != MLX5_OPCODE_SEND && wqe->opcode != MLX5_OPCODE_NOP) {
		why = CX_WHY_OPCODE;
	} else {
		return true;
	}
	cx_tx_fail(port, qp, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, why);
	return false;
}

/* The WQE fails for no reason of its own: --inject. */
static void
inject(struct softcx_port *port, struct cx_qp *qp)
{
	const struct softcx_inject *error = &port->card->config.inject_sq;

	port->until_sq_error = error->every;
	port->counters.injected++;
	cx_tx_fail(port, qp, error->syndrome, CX_WHY_INJECTED);
}

/* The WQE at the head, whatever it is; false: not all of it is there. */
static bool
execute(struct softcx_port *port, struct cx_qp *qp)
{
	struct cx_sq *sq = &qp->sq;
	struct cx_wqe wqe;

	if (!decode(sq, &wqe)) {
		/* its end is posted with it, or never comes */
		if (wqe.blocks > (uint16_t)(sq->posted - (uint16_t)sq->cons))
			cx_tx_fail(port, qp, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, CX_WHY_FORMAT);
		return false;
	}
	if (qp->state == IBV_QPS_ERR) {
		flush(port, qp, &wqe);
		return true;
	}
	if (!acceptable(port, qp, &wqe))
		return true;
	if (--port->until_sq_error == 0) {
		inject(port, qp);
		return true;
	}
	if (wqe.opcode == MLX5_OPCODE_SEND) {
		send_frame(port, qp, &wqe);
		return true;
	}
	sq->cons += wqe.blocks;
	if (wqe.when >= CE_ALWAYS && !complete(port, qp, &wqe))
		cx_qp_fatal(port, qp);
	return true;
}

unsigned int
cx_tx_execute(struct softcx_port *port, struct cx_qp *qp)
{
	struct cx_sq *sq = &qp->sq;
	unsigned int n = 0;

	for (; sq->cons != sq->fetched && !sq->dead; n++) {
		if (unlikely(!cx_wire_can_send(port)))
			break;
		/* once more: of as many hints at once as fetch() gives some are dropped */
		if (sq->fetched - sq->cons > FRAMES_AHEAD)
			call_frame(held(sq, sq->cons + FRAMES_AHEAD));
		if (unlikely(cx_is_strict(port)))
			memcpy(&sq->last_ctrl, held(sq, sq->cons), sizeof(sq->last_ctrl));
		if (likely(port->until_sq_error > 1 && qp->state == IBV_QPS_RTS &&
			    send_plain(port, qp)))
			port->until_sq_error--;
		else if (!execute(port, qp))
			break;
	}
	return n;
}
