/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues and tables of them: their lives. What comes in is rx.c's. */

#include <errno.h>
#include <stdlib.h>

#include "queue.h"

#define MIN_LOG_STRIDE 4
#define MAX_LOG_STRIDE 9 /* SOFTCX_MAX_SGE segments and a terminator */

int
cx_wq_init(struct softcx_port *port, struct cx_wq *wq, const struct softcx_wq_attr *attr)
{
	if (attr->buf == NULL || attr->dbrec == NULL || attr->wqe_count == 0 ||
		(attr->wqe_count & (attr->wqe_count - 1)) != 0 ||
		attr->wqe_count > SOFTCX_MAX_WQE || attr->log_stride < MIN_LOG_STRIDE ||
		attr->log_stride > MAX_LOG_STRIDE)
		return -EINVAL;
	wq->cq = cx_table_find(&port->cqs, attr->cqn);
	if (wq->cq == NULL)
		return -EINVAL;
	wq->raw = cx_zalloc((size_t)CX_FETCH << attr->log_stride);
	if (wq->raw == NULL)
		return -ENOMEM;
	wq->state = IBV_WQS_RESET;
	wq->buf = attr->buf;
	wq->dbrec = attr->dbrec;
	wq->count = attr->wqe_count;
	wq->log_stride = attr->log_stride;
	wq->pd = attr->pd;
	wq->user_index_be = htobe32(attr->user_index);
	wq->vlan_strip = (attr->flags & SOFTCX_WQ_VLAN_STRIP) != 0;
	wq->cookie = attr->cookie;
	wq->cq->object.refs++;
	return 0;
}

void
cx_wq_fini(struct cx_wq *wq)
{
	wq->cq->object.refs--;
	free(wq->raw);
}

static bool
too_many_queues(const struct softcx_port *port)
{
	const unsigned int max = port->card->config.queues;

	return max != 0 && port->wqs.count >= max;
}

int
softcx_wq_create(struct softcx_port *port, const struct softcx_wq_attr *attr, uint32_t *wqn)
{
	struct cx_wq *wq = cx_zalloc(sizeof(*wq));

	if (wq == NULL)
		return -ENOMEM;
	cx_port_hold(port);
	int err = too_many_queues(port) ? -ENOMEM : cx_wq_init(port, wq, attr);

	if (err == 0) {
		err = cx_table_add(&port->wqs, &wq->object);
		if (err != 0)
			cx_wq_fini(wq);
	}
	if (err == 0)
		*wqn = wq->object.number;
	cx_port_release(port);
	if (err != 0)
		free(wq);
	return err;
}

int
softcx_wq_destroy(struct softcx_port *port, uint32_t wqn)
{
	int err = -EINVAL;

	cx_port_hold(port);
	struct cx_wq *wq = cx_table_find(&port->wqs, wqn);

	if (wq != NULL && !wq->of_qp)
		err = wq->object.refs > 0 ? -EBUSY : 0;
	if (err == 0) {
		cx_table_remove(&port->wqs, &wq->object);
		port->relist = true;
		cx_wq_fini(wq);
	}
	cx_port_release(port);
	if (err == 0)
		free(wq);
	return err;
}

int
cx_wq_set_state(struct softcx_port *port, struct cx_wq *wq, enum ibv_wq_state state)
{
	switch (state) {
	case IBV_WQS_RESET:
		wq->cons = wq->fetched = wq->posted = 0;
		wq->dead = false;
		break;
	case IBV_WQS_RDY:
		if (wq->state == IBV_WQS_ERR)
			return -EINVAL;
		break;
	case IBV_WQS_ERR:
		break;
	default:
		return -EINVAL;
	}
	wq->state = state;
	port->relist = true;
	return 0;
}

int
softcx_wq_modify(struct softcx_port *port, uint32_t wqn, enum ibv_wq_state state)
{
	cx_port_hold(port);
	struct cx_wq *wq = cx_table_find(&port->wqs, wqn);
	const int err = wq == NULL || wq->of_qp ? -EINVAL : cx_wq_set_state(port, wq, state);

	cx_port_release(port);
	return err;
}

int
softcx_wq_set_flags(struct softcx_port *port, uint32_t wqn, unsigned int flags)
{
	cx_port_hold(port);
	struct cx_wq *wq = cx_table_find(&port->wqs, wqn);

	if (wq != NULL) {
		wq->vlan_strip = (flags & SOFTCX_WQ_VLAN_STRIP) != 0;
		port->steering++; /* generators keep a CQE's flags per stream */
	}
	cx_port_release(port);
	return wq != NULL ? 0 : -EINVAL;
}

int
softcx_wq_query(struct softcx_port *port, uint32_t wqn, enum ibv_wq_state *state)
{
	cx_port_hold(port);
	const struct cx_wq *wq = cx_table_find(&port->wqs, wqn);

	if (wq != NULL)
		*state = wq->state;
	cx_port_release(port);
	return wq != NULL ? 0 : -EINVAL;
}

void
cx_wq_fatal(struct softcx_port *port, struct cx_wq *wq)
{
	if (wq->dead)
		return;
	wq->dead = true;
	wq->state = IBV_WQS_ERR;
	port->relist = true;
	cx_port_event(port, IBV_EVENT_WQ_FATAL, wq->cookie);
}

/* ---- indirection tables ---- */

int
softcx_rwq_table_create(
	struct softcx_port *port, const uint32_t *wqn, unsigned int count, uint32_t *number)
{
	if (count == 0 || (count & (count - 1)) != 0 || count > SOFTCX_MAX_RSS_SIZE)
		return -EINVAL;

	struct cx_rwq_table *table = calloc(1, sizeof(*table) + count * sizeof(table->wq[0]));
	int err = 0;

	if (table == NULL)
		return -ENOMEM;
	table->count = count;
	cx_port_hold(port);
	for (unsigned int i = 0; i < count && err == 0; i++) {
		table->wq[i] = cx_table_find(&port->wqs, wqn[i]);
		if (table->wq[i] == NULL)
			err = -EINVAL;
	}
	if (err == 0)
		err = cx_table_add(&port->tables, &table->object);
	if (err == 0) {
		for (unsigned int i = 0; i < count; i++)
			table->wq[i]->object.refs++;
		*number = table->object.number;
	}
	cx_port_release(port);
	if (err != 0)
		free(table);
	return err;
}

int
softcx_rwq_table_destroy(struct softcx_port *port, uint32_t number)
{
	int err = -EINVAL;

	cx_port_hold(port);
	struct cx_rwq_table *table = cx_table_find(&port->tables, number);

	if (table != NULL)
		err = table->object.refs > 0 ? -EBUSY : 0;
	if (err == 0) {
		for (unsigned int i = 0; i < table->count; i++)
			table->wq[i]->object.refs--;
		cx_table_remove(&port->tables, &table->object);
	}
	cx_port_release(port);
	if (err == 0)
		free(table);
	return err;
}
