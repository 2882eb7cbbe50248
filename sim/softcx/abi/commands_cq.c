/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "command.h"

#define CQE_SIZE 64

int
cmd_create_comp_channel(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_create_comp_channel_resp response;
	int fd = event_queue_open(context, sizeof(struct ib_uverbs_comp_event_desc));

	if (fd < 0)
		return fd;
	response.fd = fd;
	command_respond(command, &response, sizeof(response));
	return 0;
}

/* On the device's thread. */
static void
completion(void *cookie)
{
	struct cq_object *cq = cookie;
	struct ib_uverbs_comp_event_desc event = {.cq_handle = cq->base.user_handle};

	if (cq->completions.queue != NULL)
		event_queue_add(cq->completions.queue, &cq->completions, &event);
}

static uint32_t
power_of_two_above(uint32_t n)
{
	uint32_t power = 1;

	while (power <= n)
		power *= 2;
	return power;
}

static int
check_cq(const struct ib_uverbs_ex_create_cq *request, const struct mlx5_ib_create_cq *driver)
{
	if (request->comp_vector >= 1) /* there is one */
		return -EINVAL;
	if (request->cqe >= SOFTCX_MAX_CQE)
		return -EINVAL;
	if (request->flags &
		~(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN))
		return -EOPNOTSUPP;
	if (driver->flags &
		~(MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD | MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX |
			MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS))
		return -EINVAL;
	if ((driver->cqe_size != CQE_SIZE && driver->cqe_size != 2 * CQE_SIZE) ||
		driver->reserved0 || driver->reserved1)
		return -EINVAL;
	/* Of what the device could do, but does not. */
	if (driver->flags != 0 || driver->cqe_size != CQE_SIZE || driver->cqe_comp_en)
		return -EOPNOTSUPP;
	return 0;
}

static int
create_cq(struct uverbs_context *context, const struct command *command,
	const struct ib_uverbs_ex_create_cq *request, struct cq_object **made)
{
	struct mlx5_ib_create_cq driver;
	struct mlx5_ib_create_cq_resp driver_response = {.cqn = 0};
	struct event_queue *channel = NULL;
	struct softcx_cq_attr attr;
	struct cq_object *cq;
	int error = command_driver_request(command, &driver,
		offsetof(struct mlx5_ib_create_cq, uar_page_index), sizeof(driver));

	if (error < 0)
		return error;
	error = check_cq(request, &driver);
	if (error < 0)
		return error;
	attr = (struct softcx_cq_attr){
		.buf = (void *)(uintptr_t)driver.buf_addr,
		.dbrec = (void *)(uintptr_t)driver.db_addr,
		.cqe_count = power_of_two_above(request->cqe),
		.cqe_size = CQE_SIZE,
		.flags = request->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN
				 ? SOFTCX_CQ_IGNORE_OVERRUN
				 : 0,
		.completion = completion,
	};
	error = pin_ring(driver.buf_addr, (uint64_t)attr.cqe_count * CQE_SIZE, driver.db_addr);
	if (error < 0)
		return error;
	if (request->comp_channel >= 0) {
		/*
		 * libmlx5's first arming may be all zeros. The doorbell register tells it from
		 * none, but is one of many CQs; so the record starts as what no arming is.
		 */
		attr.dbrec[1] = UINT32_MAX;
		channel = event_queue_get(
			context, request->comp_channel, sizeof(struct ib_uverbs_comp_event_desc));
		if (channel == NULL)
			return -EBADF;
	}
	cq = context_new_object(context, OBJECT_CQ, sizeof(*cq));
	if (cq == NULL) {
		error = -ENOMEM;
	} else {
		cq->base.user_handle = request->user_handle;
		event_source_start(&cq->completions, channel);
		event_source_start(&cq->async, context->async);
		attr.cookie = cq;
		error = softcx_cq_create(context->port, &attr, &cq->base.number);
		if (error < 0) {
			event_source_end(&cq->completions);
			event_source_end(&cq->async);
			context_free_object(context, &cq->base);
		}
	}
	if (channel != NULL)
		file_put((struct abi_file *)channel);
	if (error < 0)
		return error;
	driver_response.cqn = cq->base.number;
	command_driver_respond(command, &driver_response, sizeof(driver_response));
	*made = cq;
	return 0;
}

int
cmd_create_cq(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_create_cq request;
	struct ib_uverbs_create_cq_resp response = {.cq_handle = 0};
	struct ib_uverbs_ex_create_cq ex;
	struct cq_object *cq;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	ex = (struct ib_uverbs_ex_create_cq){
		.user_handle = request.user_handle,
		.cqe = request.cqe,
		.comp_vector = request.comp_vector,
		.comp_channel = request.comp_channel,
	};
	error = create_cq(context, command, &ex, &cq);
	if (error < 0)
		return error;
	response.cq_handle = cq->base.handle;
	response.cqe = power_of_two_above(ex.cqe) - 1;
	command_respond(command, &response, sizeof(response));
	return 0;
}

int
cmd_ex_create_cq(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_ex_create_cq request;
	struct ib_uverbs_ex_create_cq_resp response = {.comp_mask = 0};
	struct cq_object *cq;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	if (request.comp_mask || request.reserved)
		return -EINVAL;
	error = create_cq(context, command, &request, &cq);
	if (error < 0)
		return error;
	response.base.cq_handle = cq->base.handle;
	response.base.cqe = power_of_two_above(request.cqe) - 1;
	response.response_length = command_response_length(command, sizeof(response));
	command_respond(command, &response, sizeof(response));
	return 0;
}

int
destroy_cq(struct uverbs_context *context, struct cq_object *cq, uint32_t *completions,
	uint32_t *events)
{
	int error;

	if (cq->base.uses != 0)
		return -EBUSY;
	error = softcx_cq_destroy(context->port, cq->base.number);
	if (error < 0)
		return error;
	*completions = event_source_end(&cq->completions);
	*events = event_source_end(&cq->async);
	context_free_object(context, &cq->base);
	return 0;
}

int
cmd_destroy_cq(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_destroy_cq request;
	struct ib_uverbs_destroy_cq_resp response;
	struct object *cq;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	cq = handle_find(&context->handles, OBJECT_CQ, request.cq_handle, &error);
	if (cq == NULL)
		return error;
	error = destroy_cq(context, (struct cq_object *)cq, &response.comp_events_reported,
		&response.async_events_reported);
	if (error < 0)
		return error;
	command_respond(command, &response, sizeof(response));
	return 0;
}
