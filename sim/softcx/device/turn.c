/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One turn of the loop: send WQEs that are held are executed; those that were seen last time are
 * fetched, and their frames called into the cache; doorbells are read, and the WQEs that are new
 * called in; then a burst is received. So every line of software's that the device needs has a
 * burst's time to travel.
 */

#include "turn.h"
#include "../wire/watch.h"
#include "../wire/wire.h"
#include "fault.h"
#include "rx.h"
#include "tx.h"

#define ARM_EVERY 8 /* busy turns */

/* Queues have come, gone or changed their state: who is looked at. */
static void
relist(struct softcx_port *port)
{
	struct cx_qp *qp;
	struct cx_wq *wq;
	struct cx_cq *cq;
	uint32_t i;

	port->relist = false;
	port->n_tx = port->n_flush = port->n_armable = port->n_ready = 0;
	CX_TABLE_FOREACH(&port->qps, i, qp)
	{
		if (qp->sq.count > 0 && !qp->sq.dead &&
			(qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_ERR))
			port->tx[port->n_tx++] = qp;
	}
	CX_TABLE_FOREACH(&port->wqs, i, wq)
	{
		if (wq->state == IBV_WQS_RDY)
			port->n_ready++;
		else if (wq->state == IBV_WQS_ERR && !wq->dead)
			port->flush[port->n_flush++] = wq;
	}
	CX_TABLE_FOREACH(&port->cqs, i, cq)
	{
		if (cq->completion != NULL && !cq->error)
			port->armable[port->n_armable++] = cq;
	}
}

/*
 * Time that passed while somebody was not running does not count; nor by a virtual clock does what
 * control calls take, which on a card do not stop the traffic.
 */
static void
stand_still(struct softcx_port *port, uint64_t cycles)
{
	__atomic_store_n(&port->stalled, port->stalled + cycles, __ATOMIC_RELAXED);
	if (!port->rested || port->n_ready > 0) /* with a reason to run */
		port->stall += cycles;
}

void
cx_turn_time(struct softcx_port *port)
{
	const uint64_t cycles = cx_cycles();
	uint64_t took = cycles - port->cycles;

	port->cycles = cycles;
	if (port->watch != NULL) {
		uint64_t still = took;

		if (unlikely(port->rested))
			cx_watch_rested(port->watch, port->index, took);
		else
			still = cx_watch_still(
				port->watch, port->index, cycles, took, port->asleep);
		port->stalls = still > 0;
		if (still > 0)
			stand_still(port, still);
		took -= still;
	}
	port->asleep = 0;
	port->rested = false;
	port->run += took;
	if (port->was_idle)
		port->idle += took;
	port->now = cycles - port->stalled;
}

bool
cx_turn(struct softcx_port *port)
{
	unsigned int work = 0;

	if (unlikely(port->relist))
		relist(port);
	for (unsigned int i = 0; i < port->n_tx; i++)
		work += cx_tx_execute(port, port->tx[i]);
	for (unsigned int i = 0; i < port->n_tx; i++)
		cx_tx_fetch(port, port->tx[i]);
	work += cx_wire_receive(port);
	for (unsigned int i = 0; i < port->n_flush; i++)
		work += cx_rx_flush(port, port->flush[i]);
	cx_publish(port);
	/* software writes to the same line at each burst: not to be read at each turn */
	if (port->n_armable > 0 && (work == 0 || port->turns++ % ARM_EVERY == 0))
		for (unsigned int i = 0; i < port->n_armable; i++)
			if (!port->armable[i]->error)
				cx_cq_answer(port, port->armable[i]);
	port->at = CX_AT_NOTHING;
	port->was_idle = work == 0;
	return work > 0;
}

bool
softcx_port_step(struct softcx_port *port)
{
	bool any;

	cx_fault_guard(port);
	if (sigsetjmp(port->fault_env, 0) != 0)
		cx_fault_recover(port);
	cx_turn_time(port);
	any = cx_turn(port);
	cx_fault_unguard();
	return any;
}
