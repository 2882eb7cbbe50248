/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's birth and death. */

#include <errno.h>
#include <stdlib.h>

#include "mr.h"
#include "queue.h"
#include "turn.h"

#define MAX_CQS    (2 * SOFTCX_MAX_QUEUES)
#define MAX_TABLES 1024
#define MAX_QPS    (2 * SOFTCX_MAX_QUEUES)
#define MAX_FLOWS  4096

/* Where numbers begin, so that one of the wrong kind is seen for what it is. */
enum { FIRST_MR = 1, FIRST_CQ = 0x400, FIRST_WQ = 0x100, FIRST_QP = 0x200, FIRST_OTHER = 1 };

static uint64_t
until_error(const struct softcx_inject *inject)
{
	return inject->every != 0 ? inject->every : UINT64_MAX;
}

int
cx_port_init(struct softcx_port *port, struct softcx_card *card, unsigned int index)
{
	port->card = card;
	port->index = index;
	softcx_port_mac(index, port->mac);
	port->random = card->config.seed * 2654435761u + index + 1;
	port->until_rq_error = until_error(&card->config.inject_rq);
	port->until_sq_error = until_error(&card->config.inject_sq);
	port->cycles = cx_cycles();
	port->rested = true;
	pthread_mutex_init(&port->hold.control, NULL);
	pthread_mutex_init(&port->hold.lock, NULL);
	pthread_cond_init(&port->hold.rested, NULL);
	pthread_cond_init(&port->hold.go, NULL);
	port->tx = calloc(MAX_QPS, sizeof(*port->tx));
	port->flush = calloc(2 * SOFTCX_MAX_QUEUES, sizeof(*port->flush));
	port->armable = calloc(MAX_CQS, sizeof(*port->armable));
	port->held = calloc(MAX_CQS, sizeof(*port->held));
	if (port->tx == NULL || port->flush == NULL || port->armable == NULL ||
		port->held == NULL || cx_table_init(&port->mrs, CX_MAX_MRS, FIRST_MR) != 0 ||
		cx_table_init(&port->cqs, MAX_CQS, FIRST_CQ) != 0 ||
		cx_table_init(&port->wqs, 2 * SOFTCX_MAX_QUEUES, FIRST_WQ) != 0 ||
		cx_table_init(&port->tables, MAX_TABLES, FIRST_OTHER) != 0 ||
		cx_table_init(&port->qps, MAX_QPS, FIRST_QP) != 0 ||
		cx_table_init(&port->flows, MAX_FLOWS, FIRST_OTHER) != 0)
		return -ENOMEM;
	return 0;
}

/* Those that others need last. */
static unsigned int
free_objects(struct softcx_port *port)
{
	unsigned int n = 0;
	struct cx_mr *mr;
	struct cx_object *object;
	uint32_t i;

	CX_TABLE_FOREACH(&port->flows, i, object)
	n += softcx_flow_destroy(port, object->number) == 0;
	CX_TABLE_FOREACH(&port->qps, i, object)
	n += softcx_qp_destroy(port, object->number) == 0;
	CX_TABLE_FOREACH(&port->tables, i, object)
	n += softcx_rwq_table_destroy(port, object->number) == 0;
	CX_TABLE_FOREACH(&port->wqs, i, object)
	n += softcx_wq_destroy(port, object->number) == 0;
	CX_TABLE_FOREACH(&port->cqs, i, object)
	n += softcx_cq_destroy(port, object->number) == 0;
	CX_TABLE_FOREACH(&port->mrs, i, mr)
	n += softcx_mr_destroy(port, mr->lkey) == 0;
	return n;
}

unsigned int
cx_port_fini(struct softcx_port *port)
{
	unsigned int leaks = 0;

	if (port->flows.slot != NULL)
		leaks = free_objects(port);
	cx_table_fini(&port->mrs);
	cx_table_fini(&port->cqs);
	cx_table_fini(&port->wqs);
	cx_table_fini(&port->tables);
	cx_table_fini(&port->qps);
	cx_table_fini(&port->flows);
	free(port->tx);
	free(port->flush);
	free(port->armable);
	free(port->held);
	pthread_mutex_destroy(&port->hold.control);
	pthread_mutex_destroy(&port->hold.lock);
	pthread_cond_destroy(&port->hold.rested);
	pthread_cond_destroy(&port->hold.go);
	return leaks;
}

void
cx_port_event(struct softcx_port *port, enum ibv_event_type type, void *cookie)
{
	if (port->event != NULL)
		port->event(port->event_arg, type, cookie);
}

int
softcx_port_set_events(struct softcx_port *port, softcx_event_fn fn, void *arg)
{
	cx_port_hold(port);
	port->event = fn;
	port->event_arg = arg;
	cx_port_release(port);
	return 0;
}

/* From any thread: the counter's, but for what a virtual clock has left out so far. */
uint64_t
softcx_port_clock(struct softcx_port *port)
{
	return cx_cycles() - __atomic_load_n(&port->stalled, __ATOMIC_RELAXED);
}

int
softcx_port_query(struct softcx_port *port, struct softcx_port_counters *counters)
{
	cx_port_hold(port);
	*counters = port->counters;
	counters->run_ns = cx_cycles_to_ns(port->run, port->card->hz);
	counters->idle_ns = cx_cycles_to_ns(port->idle, port->card->hz);
	counters->stall_ns = cx_cycles_to_ns(port->stall, port->card->hz);
	cx_port_release(port);
	return 0;
}
