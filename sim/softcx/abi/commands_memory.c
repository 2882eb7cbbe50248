/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <unistd.h>

#include "card.h"
#include "command.h"

#define ACCESS_WRITES                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |             \
		IBV_ACCESS_MW_BIND)
#define ACCESS_KNOWN                                                                               \
	(ACCESS_WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |   \
		IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)

int
cmd_alloc_pd(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_alloc_pd_resp response = {.pd_handle = 0};
	struct mlx5_ib_alloc_pd_resp driver;
	struct pd_object *pd = context_new_object(context, OBJECT_PD, sizeof(*pd));

	if (pd == NULL)
		return -ENOMEM;
	/* A protection domain is nothing but a number, which two contexts must not share. */
	pd->pdn = card_new_pdn();
	pd->base.number = pd->pdn;
	response.pd_handle = pd->base.handle;
	driver.pdn = pd->pdn;
	command_respond(command, &response, sizeof(response));
	command_driver_respond(command, &driver, sizeof(driver));
	return 0;
}

int
destroy_pd(struct uverbs_context *context, struct pd_object *pd)
{
	if (pd->base.uses != 0)
		return -EBUSY;
	context_free_object(context, &pd->base);
	return 0;
}

int
cmd_dealloc_pd(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_dealloc_pd request;
	int error = command_request(command, &request, sizeof(request));

	return error < 0 ? error : context_destroy(context, OBJECT_PD, request.pd_handle);
}

static int
check_region(const struct ib_uverbs_reg_mr *request)
{
	uint64_t in_page = sysconf(_SC_PAGESIZE) - 1;

	if ((request->start & in_page) != (request->hca_va & in_page))
		return -EINVAL;
	if (request->access_flags & ~ACCESS_KNOWN)
		return -EINVAL;
	/* Others write only where the owner may. */
	if (request->access_flags & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
		!(request->access_flags & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (request->access_flags & IBV_ACCESS_ON_DEMAND)
		return -EOPNOTSUPP;
	return pin_memory(request->start, request->length, request->access_flags & ACCESS_WRITES);
}

int
cmd_reg_mr(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_reg_mr request;
	struct ib_uverbs_reg_mr_resp response = {.mr_handle = 0};
	struct softcx_mr_attr attr;
	struct pd_object *pd;
	struct mr_object *mr;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	pd = FIND(context, OBJECT_PD, struct pd_object, request.pd_handle);
	if (pd == NULL)
		return -EINVAL;
	error = check_region(&request);
	if (error < 0)
		return error;
	mr = context_new_object(context, OBJECT_MR, sizeof(*mr));
	if (mr == NULL)
		return -ENOMEM;
	attr = (struct softcx_mr_attr){
		.pd = pd->pdn,
		.addr = (void *)(uintptr_t)request.start,
		.length = request.length,
		.iova = request.hca_va,
		.access = request.access_flags,
	};
	error = softcx_mr_create(context->port, &attr, &mr->base.number);
	if (error < 0) {
		context_free_object(context, &mr->base);
		return error;
	}
	mr->pd = pd;
	pd->base.uses++;
	response.mr_handle = mr->base.handle;
	response.lkey = mr->base.number;
	response.rkey = mr->base.number;
	command_respond(command, &response, sizeof(response));
	return 0;
}

int
destroy_mr(struct uverbs_context *context, struct mr_object *mr)
{
	int error = softcx_mr_destroy(context->port, mr->base.number);

	if (error < 0)
		return error;
	mr->pd->base.uses--;
	context_free_object(context, &mr->base);
	return 0;
}

int
cmd_dereg_mr(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_dereg_mr request;
	int error = command_request(command, &request, sizeof(request));

	return error < 0 ? error : context_destroy(context, OBJECT_MR, request.mr_handle);
}
