/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The device's state. All of it belongs to the port's thread while that runs, and to the control
 * call that holds the port at its quiescent point (cx_port_hold()) otherwise; only what `struct
 * cx_hold` says is shared.
 */

#include <pthread.h>
#include <setjmp.h>

#include "../device.h"
#include "clock.h"
#include "shared.h"

/* WQEs of a receive queue, or basic blocks of a send queue, that the card holds. */
#define CX_FETCH 64
#define CX_HELD  64 /* CQEs that the card holds until the burst is over */

struct cx_gen;
struct cx_check;
struct cx_link;
struct cx_watch;

/* ---- numbers ---- */

/* Objects start with this. */
struct cx_object {
	uint32_t number;
	uint32_t refs; /* other objects that need it */
};

struct cx_table {
	struct cx_object **slot;
	uint32_t mask;
	uint32_t last; /* number given */
	uint32_t count, max;
};

int cx_table_init(struct cx_table *table, uint32_t max, uint32_t first);
void cx_table_fini(struct cx_table *table);
int cx_table_add(struct cx_table *table, struct cx_object *object);
void cx_table_remove(struct cx_table *table, struct cx_object *object);

static inline void *
cx_table_find(const struct cx_table *table, uint32_t number)
{
	struct cx_object *object = table->slot[number & table->mask];

	return object != NULL && object->number == number ? object : NULL;
}

/* Over all objects; the body may remove the one it has. */
#define CX_TABLE_FOREACH(table, i, object)                                                         \
	for ((i) = 0; (i) <= (table)->mask; (i)++)                                                 \
		if (((object) = (void *)(table)->slot[i]) != NULL)

/* ---- objects ---- */

struct cx_range {
	uint64_t from, to; /* offsets into the region */
};

struct cx_mr {
	struct cx_object object;
	uint32_t lkey, pd;
	uint64_t iova, length;
	uint8_t *host;
	bool writable;
	unsigned int n_gone;
	struct cx_range *gone; /* unmapped since */
};

/* Vendor syndromes of error CQEs: which check it was. */
enum cx_why {
	CX_WHY_NONE,
	CX_WHY_LKEY,
	CX_WHY_PD,
	CX_WHY_BOUNDS,
	CX_WHY_ACCESS,
	CX_WHY_GONE,
	CX_WHY_LENGTH,
	CX_WHY_INDEX,
	CX_WHY_QPN,
	CX_WHY_OPCODE,
	CX_WHY_FORMAT,
	CX_WHY_INJECTED,
};

struct cx_cq {
	struct cx_object object;
	uint8_t *buf;
	uint32_t *dbrec;
	uint32_t count, log;
	uint32_t pi; /* CQEs written, or held */
	uint16_t ci; /* as last read */
	uint16_t n_held;
	bool listed; /* in the port's `held` */
	bool error;
	bool ignore_overrun;
	/* arming: only where a completion can be told of */
	void (*completion)(void *cookie);
	void *cookie;
	uint64_t *uar_arm;  /* doorbell register */
	uint32_t arm_fired; /* value of the record that has been answered */
	bool armed, armed_solicited;
	uint32_t arm_ci;
	uint32_t solicited_pi;      /* one past the last CQE that was solicited or an error */
	uint8_t (*shadow)[CX_LINE]; /* strict: what we wrote */
	uint64_t held[CX_HELD][CX_LINE / 8]; /* CQEs of this burst, not yet in the ring */
};

struct cx_wq {
	struct cx_object object;
	enum ibv_wq_state state;
	uint8_t *buf;
	uint32_t *dbrec;
	uint32_t count, log_stride;
	uint32_t pd;
	uint32_t cons;    /* next WQE to be used */
	uint32_t fetched; /* one past the last that is held in raw */
	uint16_t posted;  /* doorbell as last read */
	bool vlan_strip;
	uint32_t user_index_be;
	uint8_t *raw; /* WQEs as fetched; never read from the ring again */
	struct cx_cq *cq;
	void *cookie;
	bool of_qp; /* part of a raw packet QP */
	bool dead;  /* nobody can be told in CQEs, or the ring is gone: not touched until reset */
};

struct cx_rwq_table {
	struct cx_object object;
	uint32_t count;
	struct cx_wq *wq[];
};

struct cx_sq {
	uint8_t *buf;
	uint32_t *dbrec; /* the QP's word of it */
	uint32_t count;
	uint32_t cons;    /* basic block of the next WQE to be executed */
	uint32_t fetched; /* one past the last block that is held in raw */
	uint16_t posted;
	struct cx_cq *cq;
	uint8_t *raw;
	uint8_t *uar;
	bool dead; /* as of a receive queue */
	/* strict: the doorbell register must follow the record */
	uint64_t rung_at;
	uint64_t last_ctrl;
	bool ring_checked;
};

struct cx_rss {
	struct cx_rwq_table *table;
	uint64_t fields;
	uint8_t key[SOFTCX_RSS_KEY_LEN];
};

struct cx_qp {
	struct cx_object object;
	enum ibv_qp_state state;
	uint32_t pd;
	uint32_t user_index_be;
	void *cookie;
	bool is_rss;
	struct cx_sq sq;  /* count 0: none */
	struct cx_wq *rq; /* its own, or NULL */
	struct cx_rss rss;
};

struct cx_flow {
	struct cx_object object;
	struct cx_flow *next; /* in the order of matching */
	struct softcx_flow_attr attr;
	struct cx_qp *qp; /* NULL: drop */
};

/* ---- the port ---- */

/* What the device is touching, should that fault: kind in the low bits of the object's address. */
enum cx_place {
	CX_AT_NOTHING,
	CX_AT_RQ,
	CX_AT_RX_DATA,
	CX_AT_SQ,
	CX_AT_TX_DATA,
	CX_AT_CQ,
	CX_AT_ARM,
	CX_AT_UAR,
	CX_AT_MASK = 15,
};

struct cx_hold {
	pthread_mutex_t control; /* one control call at a time */
	pthread_mutex_t lock;    /* of what follows */
	pthread_cond_t rested, go;
	bool resting;
	uint32_t asked; /* atomic: come to rest */
	bool end;
};

struct softcx_port {
	struct softcx_card *card;
	unsigned int index;
	struct cx_hold hold;
	pthread_t thread;
	pid_t tid; /* of it; atomic */
	bool running;

	uintptr_t at; /* object | enum cx_place */
	sigjmp_buf fault_env;

	/* time */
	uint64_t cycles;  /* counter at the start of the turn */
	uint64_t stalled; /* cycles left out */
	uint64_t now;     /* device time */
	uint64_t run, idle, stall;
	uint64_t turns;
	uint64_t idle_since;
	uint64_t asleep; /* cycles since the last turn in which the thread did not want to run */
	bool rested;     /* since the last turn, for a control call or want of queues */
	bool was_idle, stalls;

	uint64_t random;
	uint64_t until_rq_error, until_sq_error; /* WQEs to the one that fails; UINT64_MAX: none */
	struct softcx_port_counters counters;

	struct cx_table mrs, cqs, wqs, tables, qps, flows;
	struct cx_flow *flow_list;
	uint32_t steering; /* changes whenever steering may have */

	/* QPs to be looked at, WQs to be flushed, CQs that may be armed; rebuilt when they change
	 */
	struct cx_qp **tx;
	struct cx_wq **flush;
	struct cx_cq **armable;
	unsigned int n_tx, n_flush, n_armable;
	struct cx_cq **held; /* CQs with CQEs to be published */
	unsigned int n_held;
	unsigned int n_ready; /* receive queues */
	unsigned int n_sqs;
	bool relist;

	softcx_event_fn event;
	void *event_arg;
	uint8_t mac[6];

	struct cx_gen *gen;  /* what it receives, of a generator */
	struct cx_link *in;  /* or of a port, maybe itself */
	struct cx_link *out; /* what it sends goes there; NULL: to the checker */
	struct cx_check *check;
	struct cx_watch *watch; /* virtual clock: who is running; NULL: a real one */
};

struct softcx_card {
	struct softcx_config config;
	uint64_t hz;
	unsigned int leaks;
	struct cx_watch *watch;
	struct softcx_port *port[SOFTCX_MAX_PORTS];
};

/* Bring the device to rest, and let it go on. Between them the caller owns the port. */
void cx_port_hold(struct softcx_port *port);
void cx_port_release(struct softcx_port *port);

/* Note what is touched next; what was written to the port's state so far is in memory. */
static inline void
cx_at(struct softcx_port *port, const void *object, enum cx_place place)
{
	port->at = (uintptr_t)object | place;
	__asm__ volatile("" : : : "memory");
}

static inline uint64_t
cx_random(struct softcx_port *port)
{
	port->random ^= port->random << 13;
	port->random ^= port->random >> 7;
	port->random ^= port->random << 17;
	return port->random;
}

void cx_port_event(struct softcx_port *port, enum ibv_event_type type, void *cookie);

/* A line about what hardware would punish; only where strict. */
void cx_strict(struct softcx_port *port, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static inline bool
cx_is_strict(const struct softcx_port *port)
{
	return port->card->config.strict;
}
