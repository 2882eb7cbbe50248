/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <unistd.h>

#include "command.h"

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

struct method {
	command_fn *fn;
	size_t request, response; /* least sizes of the core's parts */
	bool driver;              /* what follows is the driver's */
};

#define METHOD(name, request, response, driver)                                                    \
	{                                                                                          \
		cmd_##name, request, response, driver                                              \
	}

static const struct method methods[IB_USER_VERBS_CMD_THRESHOLD] = {
	[IB_USER_VERBS_CMD_GET_CONTEXT] = METHOD(get_context, sizeof(struct ib_uverbs_get_context),
		sizeof(struct ib_uverbs_get_context_resp), true),
	[IB_USER_VERBS_CMD_QUERY_DEVICE] =
		METHOD(query_device, sizeof(struct ib_uverbs_query_device),
			sizeof(struct ib_uverbs_query_device_resp), false),
	[IB_USER_VERBS_CMD_QUERY_PORT] = METHOD(query_port, sizeof(struct ib_uverbs_query_port),
		sizeof(struct ib_uverbs_query_port_resp), false),
	[IB_USER_VERBS_CMD_ALLOC_PD] = METHOD(alloc_pd, sizeof(struct ib_uverbs_alloc_pd),
		sizeof(struct ib_uverbs_alloc_pd_resp), true),
	[IB_USER_VERBS_CMD_DEALLOC_PD] =
		METHOD(dealloc_pd, sizeof(struct ib_uverbs_dealloc_pd), 0, false),
	[IB_USER_VERBS_CMD_REG_MR] = METHOD(reg_mr, sizeof(struct ib_uverbs_reg_mr),
		sizeof(struct ib_uverbs_reg_mr_resp), true),
	[IB_USER_VERBS_CMD_DEREG_MR] =
		METHOD(dereg_mr, sizeof(struct ib_uverbs_dereg_mr), 0, false),
	[IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL] =
		METHOD(create_comp_channel, sizeof(struct ib_uverbs_create_comp_channel),
			sizeof(struct ib_uverbs_create_comp_channel_resp), false),
	[IB_USER_VERBS_CMD_CREATE_CQ] = METHOD(create_cq, sizeof(struct ib_uverbs_create_cq),
		sizeof(struct ib_uverbs_create_cq_resp), true),
	[IB_USER_VERBS_CMD_DESTROY_CQ] = METHOD(destroy_cq, sizeof(struct ib_uverbs_destroy_cq),
		sizeof(struct ib_uverbs_destroy_cq_resp), false),
	[IB_USER_VERBS_CMD_CREATE_QP] = METHOD(create_qp, sizeof(struct ib_uverbs_create_qp),
		sizeof(struct ib_uverbs_create_qp_resp), true),
	[IB_USER_VERBS_CMD_QUERY_QP] = METHOD(query_qp, sizeof(struct ib_uverbs_query_qp),
		sizeof(struct ib_uverbs_query_qp_resp), false),
	[IB_USER_VERBS_CMD_MODIFY_QP] =
		METHOD(modify_qp, sizeof(struct ib_uverbs_modify_qp), 0, true),
	[IB_USER_VERBS_CMD_DESTROY_QP] = METHOD(destroy_qp, sizeof(struct ib_uverbs_destroy_qp),
		sizeof(struct ib_uverbs_destroy_qp_resp), false),
};

/* Least sizes are those of the first version, which later ones only extended. */
static const struct method ex_methods[] = {
	[IB_USER_VERBS_EX_CMD_QUERY_DEVICE] =
		METHOD(ex_query_device, sizeof(struct ib_uverbs_ex_query_device),
			offsetof(struct ib_uverbs_ex_query_device_resp, odp_caps), true),
	[IB_USER_VERBS_EX_CMD_CREATE_CQ] =
		METHOD(ex_create_cq, sizeof(struct ib_uverbs_ex_create_cq),
			sizeof(struct ib_uverbs_ex_create_cq_resp), true),
	[IB_USER_VERBS_EX_CMD_CREATE_QP] =
		METHOD(ex_create_qp, offsetof(struct ib_uverbs_ex_create_qp, rwq_ind_tbl_handle),
			sizeof(struct ib_uverbs_ex_create_qp_resp), true),
	[IB_USER_VERBS_EX_CMD_MODIFY_QP] =
		METHOD(ex_modify_qp, sizeof(struct ib_uverbs_modify_qp), 0, true),
	[IB_USER_VERBS_EX_CMD_CREATE_FLOW] =
		METHOD(ex_create_flow, sizeof(struct ib_uverbs_create_flow),
			sizeof(struct ib_uverbs_create_flow_resp), true),
	[IB_USER_VERBS_EX_CMD_DESTROY_FLOW] =
		METHOD(ex_destroy_flow, sizeof(struct ib_uverbs_destroy_flow), 0, false),
	[IB_USER_VERBS_EX_CMD_CREATE_WQ] =
		METHOD(ex_create_wq, offsetof(struct ib_uverbs_ex_create_wq, create_flags),
			offsetof(struct ib_uverbs_ex_create_wq_resp, wqn) + sizeof(uint32_t), true),
	[IB_USER_VERBS_EX_CMD_MODIFY_WQ] = METHOD(ex_modify_wq,
		offsetof(struct ib_uverbs_ex_modify_wq, curr_wq_state) + sizeof(uint32_t), 0, true),
	[IB_USER_VERBS_EX_CMD_DESTROY_WQ] =
		METHOD(ex_destroy_wq, sizeof(struct ib_uverbs_ex_destroy_wq),
			sizeof(struct ib_uverbs_ex_destroy_wq_resp), false),
	[IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL] =
		METHOD(ex_create_rwq_ind_table, sizeof(struct ib_uverbs_ex_create_rwq_ind_table),
			sizeof(struct ib_uverbs_ex_create_rwq_ind_table_resp), true),
	[IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL] = METHOD(ex_destroy_rwq_ind_table,
		sizeof(struct ib_uverbs_ex_destroy_rwq_ind_table), 0, false),
};

static int
take_apart(const struct method *method, const struct ib_uverbs_cmd_hdr *header, size_t length,
	struct command *command)
{
	uint64_t response = 0;

	if (header->in_words * 4 != length)
		return -EINVAL;
	if (length < sizeof(*header) + method->request || header->out_words * 4 < method->response)
		return -ENOSPC;
	command->in = header + 1;
	command->in_length = length - sizeof(*header);
	/* The address of the response comes first where there is one. */
	if (method->response != 0)
		memcpy(&response, command->in, sizeof(response));
	command->out = (void *)(uintptr_t)response;
	command->out_length = response == 0 ? 0 : header->out_words * 4;
	if (method->response != 0 && response == 0)
		return -EFAULT;
	if (method->driver) {
		command->driver_in = (const uint8_t *)command->in + method->request;
		command->driver_in_length = command->in_length - method->request;
		command->in_length = method->request;
		command->driver_out = (uint8_t *)command->out + method->response;
		command->driver_out_length = header->out_words * 4 - method->response;
		command->out_length = method->response;
	}
	return 0;
}

static int
take_apart_ex(const struct method *method, const struct ib_uverbs_cmd_hdr *header, size_t length,
	struct command *command)
{
	const struct ib_uverbs_ex_cmd_hdr *ex = (const void *)(header + 1);
	size_t parts = sizeof(*header) + sizeof(*ex);

	if (length < parts ||
		((size_t)header->in_words + ex->provider_in_words) * 8 != length - parts)
		return -EINVAL;
	if (header->in_words * 8 < method->request)
		return -ENOSPC;
	if (ex->cmd_hdr_reserved != 0 ||
		(ex->response != 0) != (header->out_words != 0 || ex->provider_out_words != 0))
		return -EINVAL;
	if (ex->response != 0 && header->out_words * 8 < method->response)
		return -ENOSPC;
	command->in = ex + 1;
	command->in_length = header->in_words * 8;
	command->driver_in = (const uint8_t *)command->in + command->in_length;
	command->driver_in_length = ex->provider_in_words * 8;
	command->out = (void *)(uintptr_t)ex->response;
	command->out_length = header->out_words * 8;
	command->driver_out = (uint8_t *)command->out + command->out_length;
	command->driver_out_length = ex->provider_out_words * 8;
	return 0;
}

ssize_t
command_write(struct uverbs_context *context, const void *buffer, size_t length)
{
	const struct ib_uverbs_cmd_hdr *header = buffer;
	const struct method *method = NULL;
	struct command command = {.in = NULL};
	unsigned int number;
	bool ex;
	int error;

	if (length < sizeof(*header))
		return -EINVAL;
	if (header->command & ~(IB_USER_VERBS_CMD_COMMAND_MASK | IB_USER_VERBS_CMD_FLAG_EXTENDED))
		return -EINVAL;
	number = header->command & IB_USER_VERBS_CMD_COMMAND_MASK;
	ex = header->command & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	if (ex && number < sizeof(ex_methods) / sizeof(ex_methods[0]))
		method = &ex_methods[number];
	else if (!ex && number < sizeof(methods) / sizeof(methods[0]))
		method = &methods[number];
	if (method == NULL || method->fn == NULL)
		return -EOPNOTSUPP;
	error = ex ? take_apart_ex(method, header, length, &command)
		   : take_apart(method, header, length, &command);
	if (error < 0)
		return error;
	pthread_mutex_lock(&context->lock);
	if (context->ready || method->fn == cmd_get_context)
		error = method->fn(context, &command);
	else
		error = -EINVAL;
	pthread_mutex_unlock(&context->lock);
	return error < 0 ? error : (ssize_t)length;
}

static int
copy_in(const void *from, size_t from_length, void *to, size_t length)
{
	const uint8_t *rest = from;
	size_t i;

	memcpy(to, from, MIN(from_length, length));
	if (from_length < length)
		memset((uint8_t *)to + from_length, 0, length - from_length);
	for (i = length; i < from_length; i++) {
		if (rest[i] != 0)
			return -EOPNOTSUPP;
	}
	return 0;
}

int
command_request(const struct command *command, void *request, size_t length)
{
	return copy_in(command->in, command->in_length, request, length);
}

int
command_driver_request(const struct command *command, void *request, size_t least, size_t length)
{
	if (command->driver_in_length < least)
		return -EINVAL;
	return copy_in(command->driver_in, command->driver_in_length, request, length);
}

void
command_respond(const struct command *command, const void *response, size_t length)
{
	if (command->out_length == 0)
		return;
	memcpy(command->out, response, MIN(command->out_length, length));
	if (length < command->out_length)
		memset((uint8_t *)command->out + length, 0, command->out_length - length);
}

uint32_t
command_response_length(const struct command *command, size_t length)
{
	return MIN(command->out_length, length);
}

void
command_driver_respond(const struct command *command, const void *response, size_t length)
{
	length = MIN(command->driver_out_length, length);
	if (length != 0)
		memcpy(command->driver_out, response, length);
}

struct object *
find_object(const struct uverbs_context *context, enum object_type type, uint32_t handle)
{
	int error;

	return handle_find(&context->handles, type, handle, &error);
}

static bool populate_works;

static void
try_populate(void)
{
	static uint8_t here;
	uint64_t page = sysconf(_SC_PAGESIZE);

	populate_works =
		madvise((void *)((uintptr_t)&here & ~(page - 1)), page, MADV_POPULATE_READ) == 0;
}

/*
 * Memory that is not there, or not writable, is found now, as by the kernel's pinning; where the
 * kernel is too old to tell, when the device meets it.
 */
int
pin_memory(uint64_t address, uint64_t length, bool writable)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint64_t page = sysconf(_SC_PAGESIZE), start = address & ~(page - 1), end;

	if (length == 0 || __builtin_add_overflow(address, length, &end) || end > end + page - 1)
		return -EINVAL;
	pthread_once(&once, try_populate);
	end = (end + page - 1) & ~(page - 1);
	if (!populate_works || madvise((void *)(uintptr_t)start, end - start,
				       writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
		return 0;
	return errno == EAGAIN || errno == EINTR ? -EAGAIN : -EFAULT;
}

int
pin_ring(uint64_t address, uint64_t length, uint64_t doorbell)
{
	int error;

	if (address % 64 != 0 || doorbell % 8 != 0)
		return -EINVAL;
	error = pin_memory(address, length, true);
	return error < 0 ? error : pin_memory(doorbell, 2 * sizeof(uint32_t), true);
}
