/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: raw packet ones with queues of their own, and those that hash over a table. */

#include <errno.h>
#include <stdlib.h>

#include "queue.h"
#include "steer.h"

static int
sq_init(struct softcx_port *port, struct cx_sq *sq, const struct softcx_qp_attr *attr)
{
	if (attr->sq.buf == NULL || attr->dbrec == NULL ||
		(attr->sq.wqe_count & (attr->sq.wqe_count - 1)) != 0 ||
		attr->sq.wqe_count > SOFTCX_MAX_WQE)
		return -EINVAL;
	sq->cq = cx_table_find(&port->cqs, attr->sq.cqn);
	if (sq->cq == NULL)
		return -EINVAL;
	sq->raw = cx_zalloc((size_t)CX_FETCH * MLX5_SEND_WQE_BB);
	if (sq->raw == NULL)
		return -ENOMEM;
	sq->buf = attr->sq.buf;
	sq->dbrec = attr->dbrec + MLX5_SND_DBR;
	sq->count = attr->sq.wqe_count;
	sq->uar = attr->uar;
	sq->cq->object.refs++;
	return 0;
}

static void
sq_fini(struct cx_sq *sq)
{
	if (sq->count == 0)
		return;
	sq->cq->object.refs--;
	free(sq->raw);
}

/* The receive queue of a raw packet QP is one like others that nobody else can name. */
static int
rq_init(struct softcx_port *port, struct cx_qp *qp, const struct softcx_qp_attr *attr)
{
	const struct softcx_wq_attr wq_attr = {
		.pd = attr->pd,
		.cqn = attr->rq.cqn,
		.buf = attr->rq.buf,
		.dbrec = attr->dbrec,
		.wqe_count = attr->rq.wqe_count,
		.log_stride = attr->rq.log_stride,
		.user_index = attr->user_index,
		.flags = attr->rq.flags,
		.cookie = attr->cookie,
	};
	int err = cx_wq_init(port, qp->rq, &wq_attr);

	if (err != 0)
		return err;
	qp->rq->of_qp = true;
	err = cx_table_add(&port->wqs, &qp->rq->object);
	if (err != 0)
		cx_wq_fini(qp->rq);
	return err;
}

static void
rq_fini(struct softcx_port *port, struct cx_qp *qp)
{
	if (qp->rq == NULL)
		return;
	cx_table_remove(&port->wqs, &qp->rq->object);
	cx_wq_fini(qp->rq);
}

static int
init(struct softcx_port *port, struct cx_qp *qp, const struct softcx_qp_attr *attr)
{
	int err = 0;

	if (attr->sq.wqe_count > 0)
		err = sq_init(port, &qp->sq, attr);
	if (err != 0)
		return err;
	if (qp->rq != NULL)
		err = rq_init(port, qp, attr);
	if (err != 0)
		goto no_rq;
	err = cx_table_add(&port->qps, &qp->object);
	if (err == 0)
		return 0;
	rq_fini(port, qp);
no_rq:
	sq_fini(&qp->sq);
	return err;
}

int
softcx_qp_create(struct softcx_port *port, const struct softcx_qp_attr *attr, uint32_t *qpn)
{
	const unsigned int max = port->card->config.queues;
	struct cx_qp *qp = cx_zalloc(sizeof(*qp));
	int err = -ENOMEM;

	if (qp == NULL)
		return -ENOMEM;
	qp->state = IBV_QPS_RESET;
	qp->pd = attr->pd;
	qp->user_index_be = htobe32(attr->user_index);
	qp->cookie = attr->cookie;
	if (attr->rq.wqe_count > 0) {
		qp->rq = cx_zalloc(sizeof(*qp->rq));
		if (qp->rq == NULL)
			goto out;
	}
	cx_port_hold(port);
	if (max == 0 || port->n_sqs < max || attr->sq.wqe_count == 0)
		err = init(port, qp, attr);
	if (err == 0) {
		port->n_sqs += qp->sq.count > 0;
		*qpn = qp->object.number;
	}
	cx_port_release(port);
out:
	if (err != 0) {
		free(qp->rq);
		free(qp);
	}
	return err;
}

int
softcx_rss_qp_create(struct softcx_port *port, const struct softcx_rss_attr *attr, uint32_t *qpn)
{
	if (!cx_rss_fields_valid(attr->fields))
		return -EINVAL;

	struct cx_qp *qp = cx_zalloc(sizeof(*qp));
	int err = -EINVAL;

	if (qp == NULL)
		return -ENOMEM;
	qp->state = IBV_QPS_RTS;
	qp->is_rss = true;
	qp->pd = attr->pd;
	qp->rss.fields = attr->fields;
	memcpy(qp->rss.key, attr->key, sizeof(qp->rss.key));
	cx_port_hold(port);
	qp->rss.table = cx_table_find(&port->tables, attr->table);
	if (qp->rss.table != NULL)
		err = cx_table_add(&port->qps, &qp->object);
	if (err == 0) {
		qp->rss.table->object.refs++;
		*qpn = qp->object.number;
	}
	cx_port_release(port);
	if (err != 0)
		free(qp);
	return err;
}

int
softcx_qp_destroy(struct softcx_port *port, uint32_t qpn)
{
	int err = -EINVAL;

	cx_port_hold(port);
	struct cx_qp *qp = cx_table_find(&port->qps, qpn);

	if (qp != NULL)
		err = qp->object.refs > 0 ? -EBUSY : 0;
	if (err == 0) {
		cx_table_remove(&port->qps, &qp->object);
		port->relist = true;
		port->n_sqs -= qp->sq.count > 0;
		if (qp->is_rss)
			qp->rss.table->object.refs--;
		rq_fini(port, qp);
		sq_fini(&qp->sq);
	}
	cx_port_release(port);
	if (err == 0) {
		free(qp->rq);
		free(qp);
	}
	return err;
}

/* ---- states ---- */

static void
set_state(struct softcx_port *port, struct cx_qp *qp, enum ibv_qp_state state)
{
	qp->state = state;
	if (state == IBV_QPS_RESET) {
		qp->sq.cons = qp->sq.fetched = qp->sq.posted = 0;
		qp->sq.dead = false;
		qp->sq.ring_checked = true; /* nothing rung yet */
	}
	if (qp->rq != NULL) {
		if (state == IBV_QPS_RESET)
			cx_wq_set_state(port, qp->rq, IBV_WQS_RESET);
		else if (state == IBV_QPS_ERR)
			cx_wq_set_state(port, qp->rq, IBV_WQS_ERR);
		else if (state >= IBV_QPS_RTR)
			cx_wq_set_state(port, qp->rq, IBV_WQS_RDY);
	}
	port->relist = true;
}

int
softcx_qp_modify(struct softcx_port *port, uint32_t qpn, enum ibv_qp_state state)
{
	int err = -EINVAL;

	cx_port_hold(port);
	struct cx_qp *qp = cx_table_find(&port->qps, qpn);

	if (qp == NULL || qp->is_rss)
		goto out;
	switch (state) {
	case IBV_QPS_RESET:
	case IBV_QPS_ERR:
		err = 0;
		break;
	case IBV_QPS_INIT:
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
		if (qp->state == state || qp->state + 1 == state)
			err = 0;
		break;
	default:
		break;
	}
	if (err == 0)
		set_state(port, qp, state);
out:
	cx_port_release(port);
	return err;
}

int
softcx_qp_query(struct softcx_port *port, uint32_t qpn, enum ibv_qp_state *state)
{
	cx_port_hold(port);
	const struct cx_qp *qp = cx_table_find(&port->qps, qpn);

	if (qp != NULL)
		*state = qp->state;
	cx_port_release(port);
	return qp != NULL ? 0 : -EINVAL;
}

void
cx_qp_fatal(struct softcx_port *port, struct cx_qp *qp)
{
	if (qp->sq.dead)
		return;
	qp->sq.dead = true;
	qp->state = IBV_QPS_ERR;
	port->relist = true;
	cx_port_event(port, IBV_EVENT_QP_FATAL, qp->cookie);
}
