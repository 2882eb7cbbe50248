/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions, and what becomes of objects whose memory is unmapped. */

#include <errno.h>
#include <stdlib.h>

#include "mr.h"
#include "queue.h"

/* The variant byte of a key changes with the number, so that a key is never a small number. */
static uint32_t
key_of(uint32_t number)
{
	return number << 8 | (number * 0x9d & 0xff);
}

int
softcx_mr_create(struct softcx_port *port, const struct softcx_mr_attr *attr, uint32_t *lkey)
{
	if (attr->length == 0 || attr->iova + attr->length < attr->iova ||
		(uintptr_t)attr->addr + attr->length < (uintptr_t)attr->addr)
		return -EINVAL;

	struct cx_mr *mr = cx_zalloc(sizeof(*mr));

	if (mr == NULL)
		return -ENOMEM;
	mr->pd = attr->pd;
	mr->iova = attr->iova;
	mr->length = attr->length;
	mr->host = (uint8_t *)(uintptr_t)attr->addr;
	mr->writable = (attr->access & IBV_ACCESS_LOCAL_WRITE) != 0;
	cx_port_hold(port);
	const int err = cx_table_add(&port->mrs, &mr->object);

	if (err == 0)
		mr->lkey = *lkey = key_of(mr->object.number);
	cx_port_release(port);
	if (err != 0)
		free(mr);
	return err;
}

int
softcx_mr_destroy(struct softcx_port *port, uint32_t lkey)
{
	cx_port_hold(port);
	struct cx_mr *mr = cx_table_find(&port->mrs, lkey >> 8);

	if (mr == NULL || mr->lkey != lkey) {
		cx_port_release(port);
		return -EINVAL;
	}
	cx_table_remove(&port->mrs, &mr->object);
	cx_port_release(port);
	free(mr->gone);
	free(mr);
	return 0;
}

bool
cx_mr_has_gone(const struct cx_mr *mr, uint64_t offset, uint64_t length)
{
	for (unsigned int i = 0; i < mr->n_gone; i++)
		if (offset < mr->gone[i].to && offset + length > mr->gone[i].from)
			return true;
	return false;
}

static bool
overlaps(const void *a, uint64_t a_len, const void *b, uint64_t b_len)
{
	return (uintptr_t)a < (uintptr_t)b + b_len && (uintptr_t)b < (uintptr_t)a + a_len;
}

/* Take out of the list what overlaps or touches the range, which then has it. */
static void
absorb(struct cx_mr *mr, struct cx_range *range)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < mr->n_gone; i++) {
		const struct cx_range *old = &mr->gone[i];

		if (old->from > range->to || old->to < range->from) {
			mr->gone[n++] = *old;
			continue;
		}
		range->from = old->from < range->from ? old->from : range->from;
		range->to = old->to > range->to ? old->to : range->to;
	}
	mr->n_gone = n;
}

static void
mr_lost(struct cx_mr *mr, const void *addr, size_t length)
{
	const uint8_t *from = addr, *to = from + length, *end = mr->host + mr->length;
	struct cx_range range = {
		.from = from > mr->host ? (uint64_t)(from - mr->host) : 0,
		.to = to < end ? (uint64_t)(to - mr->host) : mr->length,
	};

	absorb(mr, &range);

	struct cx_range *gone = realloc(mr->gone, (mr->n_gone + 1) * sizeof(*gone));

	if (gone == NULL) {
		/* no room to remember which part: none of it is good */
		mr->length = 0;
		return;
	}
	mr->gone = gone;
	gone[mr->n_gone++] = range;
}

static bool
wq_lies_in(const struct cx_wq *wq, const void *addr, size_t length)
{
	return overlaps(wq->buf, (uint64_t)wq->count << wq->log_stride, addr, length) ||
	       overlaps(wq->dbrec, sizeof(uint32_t), addr, length);
}

static bool
sq_lies_in(const struct cx_sq *sq, const void *addr, size_t length)
{
	return sq->count != 0 &&
	       (overlaps(sq->buf, (uint64_t)sq->count * MLX5_SEND_WQE_BB, addr, length) ||
		       overlaps(sq->dbrec, sizeof(uint32_t), addr, length));
}

static bool
cq_lies_in(const struct cx_cq *cq, const void *addr, size_t length)
{
	return overlaps(cq->buf, (uint64_t)cq->count * CX_LINE, addr, length) ||
	       overlaps(cq->dbrec, 2 * sizeof(uint32_t), addr, length);
}

/* Whether anything lies there; what does is lost where `lose` says so. */
static bool
visit(struct softcx_port *port, const void *addr, size_t length, bool lose)
{
	bool any = false;
	struct cx_mr *mr;
	struct cx_cq *cq;
	struct cx_wq *wq;
	struct cx_qp *qp;
	uint32_t i;

	CX_TABLE_FOREACH(&port->mrs, i, mr)
	{
		if (!overlaps(mr->host, mr->length, addr, length))
			continue;
		any = true;
		if (lose)
			mr_lost(mr, addr, length);
	}
	CX_TABLE_FOREACH(&port->cqs, i, cq)
	{
		if (cq->error || !cq_lies_in(cq, addr, length))
			continue;
		any = true;
		if (lose)
			cx_cq_fail(port, cq);
	}
	CX_TABLE_FOREACH(&port->wqs, i, wq)
	{
		if (!wq_lies_in(wq, addr, length))
			continue;
		any = true;
		if (lose)
			cx_wq_fatal(port, wq);
	}
	CX_TABLE_FOREACH(&port->qps, i, qp)
	{
		if (!qp->is_rss && sq_lies_in(&qp->sq, addr, length)) {
			any = true;
			if (lose)
				cx_qp_fatal(port, qp);
		}
		if (qp->sq.uar != NULL && overlaps(qp->sq.uar, 4096, addr, length)) {
			any = true;
			if (lose)
				qp->sq.uar = NULL;
		}
	}
	return any;
}

void
softcx_memory_gone(struct softcx_card *card, const void *addr, size_t length)
{
	for (unsigned int i = 0; i < card->config.ports; i++) {
		struct softcx_port *port = card->port[i];

		/* objects come and go by control calls only: no need to disturb the device */
		pthread_mutex_lock(&port->hold.control);
		const bool any = visit(port, addr, length, false);

		pthread_mutex_unlock(&port->hold.control);
		if (!any)
			continue;
		cx_port_hold(port);
		visit(port, addr, length, true);
		cx_port_release(port);
	}
}
