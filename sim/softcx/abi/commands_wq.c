/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "card.h"
#include "command.h"

#define LOG_STRIDE_MAX 16

static int
check_wq(const struct ib_uverbs_ex_create_wq *request, const struct mlx5_ib_create_wq *driver)
{
	if (request->comp_mask)
		return -EOPNOTSUPP;
	if (request->wq_type != IBV_WQT_RQ)
		return -EINVAL;
	if (driver->comp_mask & ~MLX5_IB_CREATE_WQ_STRIDING_RQ)
		return -EOPNOTSUPP;
	/* Not modelled, and said so by query_device. */
	if (driver->comp_mask & MLX5_IB_CREATE_WQ_STRIDING_RQ ||
		driver->flags & MLX5_WQ_FLAG_SIGNATURE ||
		request->create_flags & ~IBV_WQ_FLAGS_CVLAN_STRIPPING)
		return -EOPNOTSUPP;
	if (request->max_wr > SOFTCX_MAX_WQE || driver->rq_wqe_count == 0 ||
		driver->rq_wqe_count > SOFTCX_MAX_WQE || driver->rq_wqe_shift > LOG_STRIDE_MAX)
		return -EINVAL;
	return 0;
}

int
cmd_ex_create_wq(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_ex_create_wq request;
	struct ib_uverbs_ex_create_wq_resp response = {.comp_mask = 0};
	struct mlx5_ib_create_wq driver;
	struct mlx5_ib_create_wq_resp driver_response = {.response_length = 0};
	struct softcx_wq_attr attr;
	struct pd_object *pd;
	struct cq_object *cq;
	struct wq_object *wq;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	error = command_driver_request(command, &driver,
		offsetof(struct mlx5_ib_create_wq, single_wqe_log_num_of_strides), sizeof(driver));
	if (error < 0)
		return error;
	error = check_wq(&request, &driver);
	if (error < 0)
		return error;
	pd = FIND(context, OBJECT_PD, struct pd_object, request.pd_handle);
	cq = FIND(context, OBJECT_CQ, struct cq_object, request.cq_handle);
	if (pd == NULL || cq == NULL)
		return -EINVAL;
	error = pin_ring(driver.buf_addr, (uint64_t)driver.rq_wqe_count << driver.rq_wqe_shift,
		driver.db_addr);
	if (error < 0)
		return error;
	wq = context_new_object(context, OBJECT_WQ, sizeof(*wq));
	if (wq == NULL)
		return -ENOMEM;
	wq->base.user_handle = request.user_handle;
	event_source_start(&wq->async, context->async);
	attr = (struct softcx_wq_attr){
		.pd = pd->pdn,
		.cqn = cq->base.number,
		.buf = (void *)(uintptr_t)driver.buf_addr,
		.dbrec = (void *)(uintptr_t)driver.db_addr,
		.wqe_count = driver.rq_wqe_count,
		.log_stride = driver.rq_wqe_shift,
		.user_index = driver.user_index,
		.flags = request.create_flags & IBV_WQ_FLAGS_CVLAN_STRIPPING ? SOFTCX_WQ_VLAN_STRIP
									     : 0,
		.cookie = wq,
	};
	error = softcx_wq_create(context->port, &attr, &wq->base.number);
	if (error < 0) {
		event_source_end(&wq->async);
		context_free_object(context, &wq->base);
		return error;
	}
	wq->pd = pd;
	wq->cq = cq;
	wq->state = IBV_WQS_RESET;
	pd->base.uses++;
	cq->base.uses++;
	response.wq_handle = wq->base.handle;
	response.max_wr = request.max_wr;
	response.max_sge = request.max_sge;
	response.wqn = wq->base.number;
	response.response_length = command_response_length(command, sizeof(response));
	command_respond(command, &response, sizeof(response));
	driver_response.response_length = sizeof(driver_response);
	command_driver_respond(command, &driver_response, sizeof(driver_response));
	return 0;
}

static int
modify_flags(
	struct uverbs_context *context, const struct wq_object *wq, uint32_t flags, uint32_t mask)
{
	if (mask & ~IBV_WQ_FLAGS_CVLAN_STRIPPING)
		return -EOPNOTSUPP;
	if (mask == 0)
		return 0;
	return softcx_wq_set_flags(context->port, wq->base.number,
		flags & IBV_WQ_FLAGS_CVLAN_STRIPPING ? SOFTCX_WQ_VLAN_STRIP : 0);
}

static bool
is_refused(uint32_t state)
{
	return (state == IBV_WQS_RESET && card_refuses(SOFTCX_REFUSE_RQ_RESET)) ||
	       (state == IBV_WQS_RDY && card_refuses(SOFTCX_REFUSE_RQ_READY));
}

int
cmd_ex_modify_wq(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_ex_modify_wq request;
	struct mlx5_ib_modify_wq driver;
	struct wq_object *wq;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	if (request.attr_mask == 0 ||
		request.attr_mask >
			(IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS))
		return -EINVAL;
	wq = FIND(context, OBJECT_WQ, struct wq_object, request.wq_handle);
	if (wq == NULL)
		return -EINVAL;
	if (request.attr_mask & IBV_WQ_ATTR_CURR_STATE && request.curr_wq_state > IBV_WQS_ERR)
		return -EINVAL;
	if (request.attr_mask & IBV_WQ_ATTR_STATE && request.wq_state > IBV_WQS_ERR)
		return -EINVAL;
	error = command_driver_request(command, &driver, sizeof(driver), sizeof(driver));
	if (error < 0)
		return error;
	if (driver.comp_mask || driver.reserved)
		return -EOPNOTSUPP;
	if (request.attr_mask & IBV_WQ_ATTR_FLAGS) {
		error = modify_flags(context, wq, request.flags, request.flags_mask);
		if (error < 0)
			return error;
	}
	if (!(request.attr_mask & IBV_WQ_ATTR_STATE))
		return 0;
	/* The state that the caller believes in is the device's to contradict. */
	if (request.attr_mask & IBV_WQ_ATTR_CURR_STATE) {
		error = softcx_wq_query(context->port, wq->base.number, &wq->state);
		if (error < 0)
			return error;
		if (wq->state != request.curr_wq_state)
			return -EINVAL;
	}
	if (is_refused(request.wq_state))
		return -EIO;
	error = softcx_wq_modify(context->port, wq->base.number, request.wq_state);
	if (error == 0)
		wq->state = request.wq_state;
	return error;
}

int
destroy_wq(struct uverbs_context *context, struct wq_object *wq, uint32_t *events)
{
	int error;

	if (wq->base.uses != 0)
		return -EBUSY;
	error = softcx_wq_destroy(context->port, wq->base.number);
	if (error < 0)
		return error;
	*events = event_source_end(&wq->async);
	wq->pd->base.uses--;
	wq->cq->base.uses--;
	context_free_object(context, &wq->base);
	return 0;
}

int
cmd_ex_destroy_wq(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_ex_destroy_wq request;
	struct ib_uverbs_ex_destroy_wq_resp response = {.comp_mask = 0};
	struct object *wq;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	if (request.comp_mask)
		return -EOPNOTSUPP;
	wq = handle_find(&context->handles, OBJECT_WQ, request.wq_handle, &error);
	if (wq == NULL)
		return error;
	if (card_refuses(SOFTCX_REFUSE_RQ_DESTROY))
		return -EBUSY; /* EIO is that of a device which is gone */
	error = destroy_wq(context, (struct wq_object *)wq, &response.events_reported);
	if (error < 0)
		return error;
	response.response_length = command_response_length(command, sizeof(response));
	command_respond(command, &response, sizeof(response));
	return 0;
}

/* The queues of a table; all must be there. */
static int
find_wqs(const struct uverbs_context *context, const uint32_t *handles, struct table_object *table,
	uint32_t *wqn)
{
	unsigned int i;

	for (i = 0; i < table->n_wqs; i++) {
		table->wqs[i] = FIND(context, OBJECT_WQ, struct wq_object, handles[i]);
		if (table->wqs[i] == NULL)
			return -EINVAL;
		wqn[i] = table->wqs[i]->base.number;
	}
	return 0;
}

int
cmd_ex_create_rwq_ind_table(struct uverbs_context *context, const struct command *command)
{
	const struct ib_uverbs_ex_create_rwq_ind_table *request = command->in;
	struct ib_uverbs_ex_create_rwq_ind_table_resp response = {.comp_mask = 0};
	struct mlx5_ib_create_rwq_ind_tbl_resp driver_response = {.response_length = 0};
	struct table_object *table;
	uint32_t *wqn;
	unsigned int n, i;
	int error;

	if (request->comp_mask)
		return -EOPNOTSUPP;
	if (request->log_ind_tbl_size > IB_USER_VERBS_MAX_LOG_IND_TBL_SIZE)
		return -EINVAL;
	n = 1u << request->log_ind_tbl_size;
	if (command->in_length - sizeof(*request) < n * sizeof(uint32_t))
		return -ENOSPC;
	if (n > SOFTCX_MAX_RSS_SIZE)
		return -EINVAL;
	wqn = calloc(n, sizeof(*wqn));
	table = context_new_object(
		context, OBJECT_TABLE, sizeof(*table) + n * sizeof(struct wq_object *));
	if (wqn == NULL || table == NULL) {
		error = -ENOMEM;
	} else {
		table->n_wqs = n;
		error = find_wqs(context, request->wq_handles, table, wqn);
	}
	if (error == 0)
		error = softcx_rwq_table_create(context->port, wqn, n, &table->base.number);
	free(wqn);
	if (error < 0) {
		if (table != NULL)
			context_free_object(context, &table->base);
		return error;
	}
	for (i = 0; i < n; i++)
		table->wqs[i]->base.uses++;
	response.ind_tbl_handle = table->base.handle;
	response.ind_tbl_num = table->base.number;
	response.response_length = command_response_length(command, sizeof(response));
	command_respond(command, &response, sizeof(response));
	driver_response.response_length = sizeof(driver_response);
	command_driver_respond(command, &driver_response, sizeof(driver_response));
	return 0;
}

int
destroy_table(struct uverbs_context *context, struct table_object *table)
{
	unsigned int i;
	int error;

	if (table->base.uses != 0)
		return -EBUSY;
	error = softcx_rwq_table_destroy(context->port, table->base.number);
	if (error < 0)
		return error;
	for (i = 0; i < table->n_wqs; i++)
		table->wqs[i]->base.uses--;
	context_free_object(context, &table->base);
	return 0;
}

int
cmd_ex_destroy_rwq_ind_table(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_ex_destroy_rwq_ind_table request;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	if (request.comp_mask)
		return -EOPNOTSUPP;
	return context_destroy(context, OBJECT_TABLE, request.ind_tbl_handle);
}
