/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "queue.h"

#define CI_MASK 0xffffffu /* of an arm record, whose sequence number and command come above */

static bool
is_power_of_two(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

int
softcx_cq_create(struct softcx_port *port, const struct softcx_cq_attr *attr, uint32_t *cqn)
{
	if (attr->buf == NULL || attr->dbrec == NULL || attr->cqe_size != CX_LINE ||
		!is_power_of_two(attr->cqe_count) || attr->cqe_count > SOFTCX_MAX_CQE ||
		(uintptr_t)attr->buf % CX_LINE != 0)
		return -EINVAL;

	struct cx_cq *cq = cx_zalloc(sizeof(*cq));
	int err = -ENOMEM;

	if (cq == NULL)
		return -ENOMEM;
	cq->buf = attr->buf;
	cq->dbrec = attr->dbrec;
	cq->count = attr->cqe_count;
	cq->log = (uint32_t)__builtin_ctz(attr->cqe_count);
	cq->arm_fired = cx_load_be32(&cq->dbrec[1]); /* what it was before is no arming */
	cq->ignore_overrun = (attr->flags & SOFTCX_CQ_IGNORE_OVERRUN) != 0;
	cq->completion = attr->completion;
	cq->cookie = attr->cookie;
	if (attr->uar != NULL && attr->completion != NULL)
		cq->uar_arm = (uint64_t *)(void *)((uint8_t *)attr->uar + MLX5_CQ_DOORBELL);
	if (cx_is_strict(port)) {
		cq->shadow = calloc(cq->count, sizeof(*cq->shadow));
		if (cq->shadow == NULL)
			goto fail;
	}
	cx_port_hold(port);
	err = cx_table_add(&port->cqs, &cq->object);
	if (err == 0) {
		*cqn = cq->object.number;
		port->relist = true;
	}
	cx_port_release(port);
	if (err == 0)
		return 0;
fail:
	free(cq->shadow);
	free(cq);
	return err;
}

int
softcx_cq_destroy(struct softcx_port *port, uint32_t cqn)
{
	int err = -EINVAL;

	cx_port_hold(port);
	struct cx_cq *cq = cx_table_find(&port->cqs, cqn);

	if (cq != NULL)
		err = cq->object.refs > 0 ? -EBUSY : 0;
	if (err == 0) {
		cx_table_remove(&port->cqs, &cq->object);
		port->relist = true;
	}
	cx_port_release(port);
	if (err == 0) {
		free(cq->shadow);
		free(cq);
	}
	return err;
}

void
cx_cq_fail(struct softcx_port *port, struct cx_cq *cq)
{
	if (cq->error)
		return;
	cq->error = true;
	cx_port_event(port, IBV_EVENT_CQ_ERR, cq->cookie);
}

bool
cx_cq_has_room(struct softcx_port *port, struct cx_cq *cq)
{
	if (cq->error)
		return false;
	cx_at(port, cq, CX_AT_CQ);
	const uint16_t ci = (uint16_t)cx_load_be32(cq->dbrec);
	const uint16_t used = (uint16_t)(cq->pi - ci);

	/* the index may only approach that of the device */
	if (used > (uint16_t)(cq->pi - cq->ci))
		cx_strict(port, "cq %#x: the consumer index went from %u back to %u, of %u CQEs",
			cq->object.number, cq->ci, ci, cq->pi & 0xffff);
	cq->ci = ci;
	return used < cq->count || cq->ignore_overrun;
}

/* Once they have seen them drivers write notes to error CQEs, and take others back as invalid. */
static bool
may_differ(const uint8_t *is, const uint8_t *was)
{
	const uint32_t last = CX_LINE - 1;
	const uint8_t opcode = was[last] >> 4;

	return opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR ||
	       (is[last] >> 4 == MLX5_CQE_INVALID && memcmp(is, was, last) == 0);
}

/* Strict: before a CQE is overwritten, and what is written. */
static void
check_slot(struct softcx_port *port, struct cx_cq *cq, uint32_t pi, const uint64_t *cqe,
	const uint64_t *slot)
{
	const uint32_t index = pi & (cq->count - 1);
	const uint8_t *is = (const void *)slot;
	uint8_t *was = cq->shadow[index];

	if (pi >= cq->count && memcmp(is, was, CX_LINE) != 0 && !may_differ(is, was))
		cx_strict(port, "cq %#x: CQE %u was written by software", cq->object.number, index);
	memcpy(was, cqe, CX_LINE);
}

void
cx_cq_publish(struct softcx_port *port, struct cx_cq *cq)
{
	cx_at(port, cq, CX_AT_CQ);
	port->counters.cqes += cq->n_held;
	for (uint32_t i = 0; i < cq->n_held; i++) {
		const uint32_t pi = cq->pi - cq->n_held + i;
		const uint64_t *cqe = cq->held[i];
		uint64_t *slot = (void *)(cq->buf + (size_t)(pi & (cq->count - 1)) * CX_LINE);

		if (unlikely(cq->shadow != NULL))
			check_slot(port, cq, pi, cqe, slot);
		memcpy(slot, cqe, CX_LINE - sizeof(*slot));
		__atomic_store_n(&slot[CX_LINE / 8 - 1], cqe[CX_LINE / 8 - 1], __ATOMIC_RELEASE);
	}
	cq->n_held = 0;
}

void
cx_publish(struct softcx_port *port)
{
	for (; port->n_held > 0; port->n_held--) {
		struct cx_cq *cq = port->held[port->n_held - 1];

		cx_cq_publish(port, cq);
		cq->listed = false;
	}
	port->at = CX_AT_NOTHING;
}

bool
cx_cq_push_error(struct softcx_port *port, struct cx_cq *cq, uint8_t opcode, uint32_t user_index_be,
	uint32_t opcode_qpn, uint16_t wqe_counter, uint8_t syndrome, enum cx_why why)
{
	uint64_t *slot = cx_cq_next(port, cq);

	if (slot == NULL)
		return false;
	memset(slot, 0, CX_LINE - sizeof(*slot));
	slot[4] = user_index_be;
	slot[6] = (uint64_t)why << 48 | (uint64_t)syndrome << 56;
	/* an error is always worth an event */
	cq->solicited_pi = cq->pi + 1;
	cx_cq_push(port, cq, htobe32(opcode_qpn) | (uint64_t)htobe16(wqe_counter) << 32, opcode,
		false);
	return true;
}

/*
 * Software arms by the record and then rings the doorbell register. The record alone tells all but
 * a first arming with everything zero, for which the register is looked at; it is shared by CQs.
 */
static void
look_for_arming(struct softcx_port *port, struct cx_cq *cq)
{
	cx_at(port, cq, CX_AT_ARM);
	uint32_t record = cx_load_be32(&cq->dbrec[1]);
	bool asked = record != cq->arm_fired;

	if (cq->uar_arm != NULL) {
		uint64_t rung = __atomic_load_n(cq->uar_arm, __ATOMIC_ACQUIRE);

		if (rung != 0 && (be64toh(rung) & CI_MASK) == cq->object.number &&
			__atomic_compare_exchange_n(
				cq->uar_arm, &rung, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			asked = true;
	}
	if (!asked)
		return;
	cq->armed = true;
	cq->armed_solicited = (record & MLX5_CQ_DB_REQ_NOT_SOL) != 0;
	cq->arm_ci = record & CI_MASK;
	cq->arm_fired = record;
}

void
cx_cq_answer(struct softcx_port *port, struct cx_cq *cq)
{
	look_for_arming(port, cq);
	if (!cq->armed)
		return;
	/* anything beyond what software said it has seen? */
	const uint32_t last = cq->armed_solicited ? cq->solicited_pi : cq->pi;
	const uint32_t beyond = (last - cq->arm_ci) & CI_MASK;

	if (beyond == 0 || beyond > CI_MASK / 2)
		return;
	cq->armed = false;
	port->counters.events++;
	cq->completion(cq->cookie);
}
