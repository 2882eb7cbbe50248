/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* An open uverbs node: the kernel's view of one ibv_context. */

#include <pthread.h>

#include "device.h"
#include "events.h"
#include "handles.h"
#include "uar.h"

struct uverbs_context {
	struct abi_file file; /* first */
	unsigned int index;   /* of the port: mlx5_<index> */
	struct softcx_port *port;
	pthread_mutex_t lock; /* commands come one at a time */
	bool ready;           /* GET_CONTEXT was answered */
	uint8_t cqe_version;
	struct event_queue *async; /* with a reference, once ready */
	struct uar uar;
	struct handle_table handles;
};

struct pd_object {
	struct object base;
	uint32_t pdn;
};

struct mr_object {
	struct object base; /* number: lkey */
	struct pd_object *pd;
};

struct cq_object {
	struct object base; /* number: cqn */
	struct event_source completions, async;
};

struct wq_object {
	struct object base; /* number: wqn */
	struct pd_object *pd;
	struct cq_object *cq;
	struct event_source async;
	enum ibv_wq_state state;
};

struct table_object {
	struct object base;
	unsigned int n_wqs;
	struct wq_object *wqs[];
};

struct qp_object {
	struct object base; /* number: the device's qpn */
	struct pd_object *pd;
	struct cq_object *send_cq, *recv_cq;
	struct table_object *table; /* of an RSS QP, which has no state and no queues */
	struct event_source async;
	int bfreg; /* -1: none */
	enum ibv_qp_state state;
	uint8_t port_num;
	bool sig_all;
	struct ibv_qp_cap cap;
};

struct flow_object {
	struct object base;
	struct qp_object *qp;
};

/* Open the node of a port. The descriptor, or -errno. */
int context_open(unsigned int index, int flags);

/* Whether a descriptor's file is a node, then of which port; or -1. */
int context_port(const struct abi_file *file);

/* What every object needs: a zeroed structure with a handle; NULL: -ENOMEM. */
void *context_new_object(struct uverbs_context *context, enum object_type type, size_t size);

/* Take an object's handle and free it; its device half is gone. */
void context_free_object(struct uverbs_context *context, struct object *object);

/* Destroy an object that nobody uses. 0, -EBUSY, or what the device says. */
int context_destroy_object(struct uverbs_context *context, struct object *object);

/* The same by handle, as a command says it. *events: asynchronous ones read; may be NULL. */
int context_destroy(struct uverbs_context *context, enum object_type type, uint32_t handle);

/* An asynchronous event of the device's; its callback. */
void context_event(void *arg, enum ibv_event_type type, void *cookie);
