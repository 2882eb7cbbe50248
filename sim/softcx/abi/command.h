/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A command of the uverbs write() interface, taken apart: the core's part and the driver's, in and
 * out. Handlers return 0 or -errno; those that changed something cannot fail afterwards.
 */

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "context.h"

struct command {
	const void *in;
	size_t in_length;
	void *out;
	size_t out_length;
	const void *driver_in;
	size_t driver_in_length;
	void *driver_out;
	size_t driver_out_length;
};

/* Answer one write(). The length, or -errno. */
ssize_t command_write(struct uverbs_context *context, const void *buffer, size_t length);

/*
 * The core's request: shorter ones are extended with zeros; of longer ones the rest must be zero,
 * else -EOPNOTSUPP.
 */
int command_request(const struct command *command, void *request, size_t length);

/* The answer: cut, or extended with zeros, to what there is room for. */
void command_respond(const struct command *command, const void *response, size_t length);

/* What response_length says. */
uint32_t command_response_length(const struct command *command, size_t length);

/* The same for the driver's parts; less than `least` is -EINVAL. */
int command_driver_request(
	const struct command *command, void *request, size_t least, size_t length);
void command_driver_respond(const struct command *command, const void *response, size_t length);

/* Pin memory that the device will use, as the kernel does: -EINVAL, -EFAULT or 0. */
int pin_memory(uint64_t address, uint64_t length, bool writable);

/* The same for a ring and its doorbell record, which the device writes; aligned to 64 and 8. */
int pin_ring(uint64_t address, uint64_t length, uint64_t doorbell);

#define FIND(context, object_type, structure, handle)                                              \
	((structure *)(void *)find_object((context), (object_type), (handle)))

/* An object that a command refers to; NULL: there is none, which then is -EINVAL. */
struct object *find_object(
	const struct uverbs_context *context, enum object_type type, uint32_t handle);

/* Handlers, by the command's name. */
typedef int command_fn(struct uverbs_context *context, const struct command *command);

command_fn cmd_get_context, cmd_query_device, cmd_query_port, cmd_ex_query_device;
command_fn cmd_alloc_pd, cmd_dealloc_pd, cmd_reg_mr, cmd_dereg_mr;
command_fn cmd_create_comp_channel, cmd_create_cq, cmd_ex_create_cq, cmd_destroy_cq;
command_fn cmd_ex_create_wq, cmd_ex_modify_wq, cmd_ex_destroy_wq;
command_fn cmd_ex_create_rwq_ind_table, cmd_ex_destroy_rwq_ind_table;
command_fn cmd_create_qp, cmd_ex_create_qp, cmd_modify_qp, cmd_ex_modify_qp, cmd_query_qp,
	cmd_destroy_qp;
command_fn cmd_ex_create_flow, cmd_ex_destroy_flow;

int destroy_flow(struct uverbs_context *context, struct flow_object *flow);
int destroy_qp(struct uverbs_context *context, struct qp_object *qp, uint32_t *events);
int destroy_table(struct uverbs_context *context, struct table_object *table);
int destroy_wq(struct uverbs_context *context, struct wq_object *wq, uint32_t *events);
int destroy_cq(struct uverbs_context *context, struct cq_object *cq, uint32_t *completions,
	uint32_t *events);
int destroy_mr(struct uverbs_context *context, struct mr_object *mr);
int destroy_pd(struct uverbs_context *context, struct pd_object *pd);
