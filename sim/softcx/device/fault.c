/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory can vanish under the device in ways nobody tells it (free() of a large block, a file that
 * was cut short). On its own thread SIGSEGV and SIGBUS become errors of the queue; on all others
 * they are the application's, as if we were not there.
 */

#include <errno.h>
#include <string.h>

#include "fault.h"
#include "rx.h"
#include "tx.h"

/* The C library's, whoever interposes the name without underscores. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier) */
int __sigaction(int signum, const struct sigaction *act, struct sigaction *old);

static const int signals[] = {SIGSEGV, SIGBUS};
#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

static _Thread_local struct softcx_port *guarded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction application[N_SIGNALS];
static bool installed;

static unsigned int
slot_of(int signum)
{
	return signum == SIGSEGV ? 0 : 1;
}

static void
call_application(int signum, siginfo_t *info, void *context)
{
	struct sigaction *act = &application[slot_of(signum)];
	const struct sigaction was = *act;

	/* whatever its flags: SA_RESETHAND leaves them as they were */
	if (was.sa_handler == SIG_DFL || was.sa_handler == SIG_IGN) {
		/* a fault cannot be ignored: it comes again, and then ends the process */
		struct sigaction dfl = {.sa_handler = SIG_DFL};

		__sigaction(signum, &dfl, NULL);
		if (info->si_code <= 0) /* not a fault: somebody sent it */
			raise(signum);
		return;
	}
	sigset_t mask = was.sa_mask, before;

	if ((was.sa_flags & SA_NODEFER) == 0)
		sigaddset(&mask, signum);
	if ((was.sa_flags & (int)SA_RESETHAND) != 0)
		act->sa_handler = SIG_DFL;
	pthread_sigmask(SIG_BLOCK, &mask, &before);
	if ((was.sa_flags & SA_SIGINFO) != 0)
		was.sa_sigaction(signum, info, context);
	else
		was.sa_handler(signum);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void
handle(int signum, siginfo_t *info, void *context)
{
	struct softcx_port *port = guarded;

	if (port != NULL && port->at != CX_AT_NOTHING && info->si_code > 0)
		siglongjmp(port->fault_env, 1);
	call_application(signum, info, context);
}

static int
put_in_front(unsigned int i, struct sigaction *old)
{
	struct sigaction ours = {
		.sa_sigaction = handle,
		/* the jump out of the handler leaves the mask as it is */
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK,
	};

	sigemptyset(&ours.sa_mask);
	return __sigaction(signals[i], &ours, old) != 0 ? -errno : 0;
}

int
cx_fault_install(void)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < N_SIGNALS && err == 0; i++) {
		struct sigaction now;

		if (__sigaction(signals[i], NULL, &now) != 0)
			err = -errno;
		else if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != handle)
			err = put_in_front(i, &application[i]);
	}
	installed = err == 0;
	pthread_mutex_unlock(&lock);
	return err;
}

int
softcx_guard_sigaction(int signum, const struct sigaction *act, struct sigaction *old)
{
	if (signum != SIGSEGV && signum != SIGBUS) {
		errno = EINVAL;
		return -1;
	}
	pthread_mutex_lock(&lock);
	if (!installed) {
		pthread_mutex_unlock(&lock);
		return __sigaction(signum, act, old);
	}
	struct sigaction *theirs = &application[slot_of(signum)];

	if (old != NULL)
		*old = *theirs;
	if (act != NULL)
		*theirs = *act;
	pthread_mutex_unlock(&lock);
	return 0;
}

void
cx_fault_guard(struct softcx_port *port)
{
	guarded = port;
}

void
cx_fault_unguard(void)
{
	guarded = NULL;
}

/* A packet that was offered and has met no fate yet: it dies here. */
static void
count_packet(struct softcx_port *port)
{
	struct softcx_port_counters *c = &port->counters;

	c->rx_errors = c->offered - c->rx_packets - c->out_of_buffer - c->no_flow - c->flow_drops -
		       c->queue_not_ready;
}

void
cx_fault_recover(struct softcx_port *port)
{
	const enum cx_place place = port->at & CX_AT_MASK;
	void *object = (void *)(port->at & ~(uintptr_t)CX_AT_MASK);

	port->at = CX_AT_NOTHING;
	port->counters.faults++;
	count_packet(port);
	switch (place) {
	case CX_AT_RQ:
		cx_wq_fatal(port, object);
		break;
	case CX_AT_RX_DATA:
		cx_rx_fail(port, object, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, CX_WHY_GONE, true);
		break;
	case CX_AT_SQ:
		cx_qp_fatal(port, object);
		break;
	case CX_AT_TX_DATA:
		cx_tx_fail(port, object, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, CX_WHY_GONE);
		break;
	case CX_AT_CQ:
		((struct cx_cq *)object)->n_held = 0;
		cx_cq_fail(port, object);
		break;
	case CX_AT_ARM:
		((struct cx_cq *)object)->uar_arm = NULL;
		cx_cq_fail(port, object);
		break;
	case CX_AT_UAR:
		((struct cx_qp *)object)->sq.uar = NULL;
		break;
	case CX_AT_NOTHING:
	case CX_AT_MASK:
		break;
	}
	cx_publish(port); /* the turn did not get to it */
}
