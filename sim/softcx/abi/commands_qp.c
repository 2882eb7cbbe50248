/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "card.h"
#include "command.h"
#include "qp_states.h"

#define CREATE_FLAGS_KNOWN                                                                         \
	(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | CREATE_CROSS_CHANNEL | IBV_QP_CREATE_SCATTER_FCS |    \
		IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SOURCE_QPN |                         \
		IBV_QP_CREATE_PCI_WRITE_END_PADDING)
#define CREATE_CROSS_CHANNEL (1 << 2 | 1 << 3 | 1 << 4) /* the kernel's, without a verbs name */
#define DRIVER_FLAGS_IGNORED                                                                       \
	(MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE |                               \
		MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC | MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC)
#define USER_INDEX_MAX 0xffffff
#define LOG_STRIDE_MAX 16

/* What a command asks for, with the objects that it names. */
struct request {
	struct ib_uverbs_ex_create_qp core;
	struct pd_object *pd;
	struct cq_object *send_cq, *recv_cq;
	struct table_object *table;
};

static int
check_type(uint8_t type)
{
	switch (type) {
	case IBV_QPT_RAW_PACKET:
		return 0;
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
	case IBV_QPT_DRIVER:
		return -EOPNOTSUPP; /* RDMA is not modelled */
	default:
		return -EINVAL;
	}
}

static int
find_parts(const struct uverbs_context *context, struct request *request)
{
	const struct ib_uverbs_ex_create_qp *core = &request->core;
	bool table = core->comp_mask & IB_UVERBS_CREATE_QP_MASK_IND_TABLE;

	if (table) {
		request->table =
			FIND(context, OBJECT_TABLE, struct table_object, core->rwq_ind_tbl_handle);
		if (request->table == NULL || core->max_recv_wr || core->max_recv_sge ||
			core->is_srq)
			return -EINVAL;
	}
	if (core->is_srq) /* there are none */
		return -EINVAL;
	request->pd = FIND(context, OBJECT_PD, struct pd_object, core->pd_handle);
	if (request->pd == NULL)
		return -EINVAL;
	if (!table || core->max_send_wr != 0) {
		request->send_cq = FIND(context, OBJECT_CQ, struct cq_object, core->send_cq_handle);
		if (request->send_cq == NULL)
			return -EINVAL;
	}
	if (!table) {
		request->recv_cq = FIND(context, OBJECT_CQ, struct cq_object, core->recv_cq_handle);
		if (request->recv_cq == NULL)
			return -EINVAL;
	}
	return 0;
}

/* Bits that name one protocol of a layer. */
#define HASH_IPV4 (MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_DST_IPV4)
#define HASH_IPV6 (MLX5_RX_HASH_SRC_IPV6 | MLX5_RX_HASH_DST_IPV6)
#define HASH_TCP  (MLX5_RX_HASH_SRC_PORT_TCP | MLX5_RX_HASH_DST_PORT_TCP)
#define HASH_UDP  (MLX5_RX_HASH_SRC_PORT_UDP | MLX5_RX_HASH_DST_PORT_UDP)

static int
check_rss(const struct request *request, const struct mlx5_ib_create_qp_rss *driver)
{
	uint64_t fields = driver->rx_hash_fields_mask;

	if (request->core.create_flags != 0 || request->send_cq != NULL)
		return -EINVAL;
	if (driver->comp_mask != 0)
		return -EOPNOTSUPP;
	/* Tunnels are not modelled; what may come back to oneself makes no difference here. */
	if (driver->flags &
		~(MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC | MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC))
		return -EOPNOTSUPP;
	if (fields & (MLX5_RX_HASH_INNER | MLX5_RX_HASH_IPSEC_SPI))
		return -EOPNOTSUPP;
	if (driver->rx_hash_function != MLX5_RX_HASH_FUNC_TOEPLITZ)
		return -EOPNOTSUPP;
	if (driver->rx_key_len != SOFTCX_RSS_KEY_LEN)
		return -EINVAL;
	if (fields == 0 && request->table->n_wqs != 1)
		return -EINVAL;
	if ((fields & HASH_IPV4 && fields & HASH_IPV6) || (fields & HASH_TCP && fields & HASH_UDP))
		return -EINVAL;
	return 0;
}

static int
create_rss(struct uverbs_context *context, const struct command *command,
	const struct request *request, struct qp_object *qp)
{
	struct mlx5_ib_create_qp_rss driver;
	struct mlx5_ib_create_qp_resp response = {.bfreg_index = 0};
	struct softcx_rss_attr attr;
	int error;

	if (command->driver_out_length < sizeof(response.bfreg_index))
		return -EINVAL;
	error = command_driver_request(command, &driver, sizeof(driver), sizeof(driver));
	if (error < 0)
		return error;
	error = check_rss(request, &driver);
	if (error < 0)
		return error;
	attr = (struct softcx_rss_attr){
		.pd = request->pd->pdn,
		.table = request->table->base.number,
		.fields =
			driver.rx_hash_fields_mask & (HASH_IPV4 | HASH_IPV6 | HASH_TCP | HASH_UDP),
	};
	memcpy(attr.key, driver.rx_hash_key, sizeof(attr.key));
	error = softcx_rss_qp_create(context->port, &attr, &qp->base.number);
	if (error < 0)
		return error;
	command_driver_respond(command, &response, sizeof(response));
	return 0;
}

static bool
is_power_of_two(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static int
check_raw(const struct request *request, const struct mlx5_ib_create_qp *driver)
{
	const struct ib_uverbs_ex_create_qp *core = &request->core;
	unsigned int flags = core->create_flags;

	if (flags & (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | CREATE_CROSS_CHANNEL))
		return -EINVAL;
	if (flags & ~IBV_QP_CREATE_CVLAN_STRIPPING)
		return -EOPNOTSUPP;
	if (driver->flags & MLX5_QP_FLAG_TUNNEL_OFFLOADS)
		return -EOPNOTSUPP;
	/* No signatures, and no doorbell registers on demand. */
	if (driver->flags & ~DRIVER_FLAGS_IGNORED)
		return -EINVAL;
	if (driver->uidx > USER_INDEX_MAX)
		return -EINVAL;
	if (core->max_send_wr > SOFTCX_MAX_WQE || core->max_recv_wr > SOFTCX_MAX_WQE)
		return -EINVAL;
	if (driver->sq_wqe_count != 0 &&
		(!is_power_of_two(driver->sq_wqe_count) || driver->sq_wqe_count > SOFTCX_MAX_WQE))
		return -EINVAL;
	/* A queue is there when the program asked for one. */
	if ((core->max_send_wr != 0) != (driver->sq_wqe_count != 0) ||
		(core->max_recv_wr != 0) != (driver->rq_wqe_count != 0))
		return -EINVAL;
	if (driver->rq_wqe_count != 0 &&
		(!is_power_of_two(driver->rq_wqe_count) || driver->rq_wqe_count > SOFTCX_MAX_WQE ||
			driver->rq_wqe_shift > LOG_STRIDE_MAX))
		return -EINVAL;
	return 0;
}

static int
create_raw(struct uverbs_context *context, const struct command *command,
	const struct request *request, struct qp_object *qp)
{
	struct mlx5_ib_create_qp driver;
	struct mlx5_ib_create_qp_resp response = {.bfreg_index = 0};
	struct softcx_qp_attr attr;
	int error = command_driver_request(
		command, &driver, offsetof(struct mlx5_ib_create_qp, ece_options), sizeof(driver));

	if (error < 0)
		return error;
	error = check_raw(request, &driver);
	if (error == 0 && driver.sq_wqe_count != 0)
		error = pin_ring(driver.sq_buf_addr,
			(uint64_t)driver.sq_wqe_count * MLX5_SEND_WQE_BB, driver.db_addr);
	if (error == 0 && driver.rq_wqe_count != 0)
		error = pin_ring(driver.buf_addr,
			(uint64_t)driver.rq_wqe_count << driver.rq_wqe_shift, driver.db_addr);
	if (error < 0)
		return error;
	attr = (struct softcx_qp_attr){
		.pd = request->pd->pdn,
		.dbrec = (void *)(uintptr_t)driver.db_addr,
		.user_index = driver.uidx,
		.cookie = qp,
		.sq =
			{
				.cqn = request->send_cq->base.number,
				.buf = (void *)(uintptr_t)driver.sq_buf_addr,
				.wqe_count = driver.sq_wqe_count,
			},
		.rq =
			{
				.cqn = request->recv_cq->base.number,
				.buf = (void *)(uintptr_t)driver.buf_addr,
				.wqe_count = driver.rq_wqe_count,
				.log_stride = driver.rq_wqe_shift,
				.flags = request->core.create_flags & IBV_QP_CREATE_CVLAN_STRIPPING
						 ? SOFTCX_WQ_VLAN_STRIP
						 : 0,
			},
	};
	if (driver.sq_wqe_count != 0) {
		qp->bfreg = uar_take(&context->uar);
		attr.uar = uar_page(&context->uar, qp->bfreg);
	}
	error = softcx_qp_create(context->port, &attr, &qp->base.number);
	if (error < 0) {
		if (qp->bfreg >= 0)
			uar_give(&context->uar, qp->bfreg);
		return error;
	}
	response.bfreg_index = qp->bfreg < 0 ? 0 : qp->bfreg;
	command_driver_respond(command, &response, sizeof(response));
	return 0;
}

static void
use_parts(const struct request *request, struct qp_object *qp)
{
	qp->pd = request->pd;
	qp->pd->base.uses++;
	qp->table = request->table;
	if (qp->table != NULL)
		qp->table->base.uses++;
	qp->send_cq = request->send_cq;
	if (qp->send_cq != NULL)
		qp->send_cq->base.uses++;
	qp->recv_cq = request->recv_cq;
	if (qp->recv_cq != NULL)
		qp->recv_cq->base.uses++;
}

static int
create_qp(struct uverbs_context *context, const struct command *command, struct request *request,
	struct ib_uverbs_create_qp_resp *response)
{
	const struct ib_uverbs_ex_create_qp *core = &request->core;
	struct qp_object *qp;
	int error = check_type(core->qp_type);

	if (error == 0)
		error = find_parts(context, request);
	if (error < 0)
		return error;
	if (core->create_flags & ~CREATE_FLAGS_KNOWN)
		return -EINVAL;
	qp = context_new_object(context, OBJECT_QP, sizeof(*qp));
	if (qp == NULL)
		return -ENOMEM;
	qp->base.user_handle = core->user_handle;
	qp->bfreg = -1;
	event_source_start(&qp->async, context->async);
	error = request->table != NULL ? create_rss(context, command, request, qp)
				       : create_raw(context, command, request, qp);
	if (error < 0) {
		event_source_end(&qp->async);
		context_free_object(context, &qp->base);
		return error;
	}
	use_parts(request, qp);
	qp->state = IBV_QPS_RESET;
	qp->sig_all = core->sq_sig_all;
	qp->cap = (struct ibv_qp_cap){
		.max_send_wr = core->max_send_wr,
		.max_recv_wr = core->max_recv_wr,
		.max_send_sge = core->max_send_sge,
		.max_recv_sge = core->max_recv_sge,
		.max_inline_data = core->max_inline_data,
	};
	*response = (struct ib_uverbs_create_qp_resp){
		.qp_handle = qp->base.handle,
		.qpn = qp->table != NULL ? 0 : qp->base.number,
		.max_send_wr = core->max_send_wr,
		.max_recv_wr = core->max_recv_wr,
		.max_send_sge = core->max_send_sge,
		.max_recv_sge = core->max_recv_sge,
		.max_inline_data = core->max_inline_data,
	};
	return 0;
}

int
cmd_create_qp(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_create_qp request;
	struct ib_uverbs_create_qp_resp response;
	struct request parts = {.pd = NULL};
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	parts.core = (struct ib_uverbs_ex_create_qp){
		.user_handle = request.user_handle,
		.pd_handle = request.pd_handle,
		.send_cq_handle = request.send_cq_handle,
		.recv_cq_handle = request.recv_cq_handle,
		.srq_handle = request.srq_handle,
		.max_send_wr = request.max_send_wr,
		.max_recv_wr = request.max_recv_wr,
		.max_send_sge = request.max_send_sge,
		.max_recv_sge = request.max_recv_sge,
		.max_inline_data = request.max_inline_data,
		.sq_sig_all = request.sq_sig_all,
		.qp_type = request.qp_type,
		.is_srq = request.is_srq,
	};
	error = create_qp(context, command, &parts, &response);
	if (error == 0)
		command_respond(command, &response, sizeof(response));
	return error;
}

int
cmd_ex_create_qp(struct uverbs_context *context, const struct command *command)
{
	struct request parts = {.pd = NULL};
	struct ib_uverbs_ex_create_qp_resp response = {.comp_mask = 0};
	int error = command_request(command, &parts.core, sizeof(parts.core));

	if (error < 0)
		return error;
	if (parts.core.comp_mask & ~IB_UVERBS_CREATE_QP_SUP_COMP_MASK || parts.core.reserved)
		return -EINVAL;
	error = create_qp(context, command, &parts, &response.base);
	if (error < 0)
		return error;
	response.response_length = command_response_length(command, sizeof(response));
	command_respond(command, &response, sizeof(response));
	return 0;
}

static bool
is_refused(enum ibv_qp_state state)
{
	return (state == IBV_QPS_RESET && card_refuses(SOFTCX_REFUSE_SQ_RESET)) ||
	       (state == IBV_QPS_RTS && card_refuses(SOFTCX_REFUSE_SQ_READY));
}

static int
modify_qp(struct uverbs_context *context, const struct ib_uverbs_modify_qp *request)
{
	struct qp_object *qp = FIND(context, OBJECT_QP, struct qp_object, request->qp_handle);
	uint32_t mask = request->attr_mask;
	enum ibv_qp_state from, to;
	int error;

	if (qp == NULL)
		return -EINVAL;
	if (mask & IBV_QP_PORT && request->port_num != 1)
		return -EINVAL;
	if ((mask & IBV_QP_CUR_STATE && request->cur_qp_state > IBV_QPS_ERR) ||
		(mask & IBV_QP_STATE && request->qp_state > IBV_QPS_ERR))
		return -EINVAL;
	if (qp->table != NULL) /* an RSS QP has no state */
		return -ENOSYS;
	from = mask & IBV_QP_CUR_STATE ? request->cur_qp_state : qp->state;
	to = mask & IBV_QP_STATE ? request->qp_state : from;
	if (!qp_transition_is_valid(from, to, mask))
		return -EINVAL;
	if (to == IBV_QPS_SQD || to == IBV_QPS_SQE) /* not of raw packets */
		return -EINVAL;
	if (mask & IBV_QP_STATE && is_refused(to))
		return -EIO;
	error = softcx_qp_modify(context->port, qp->base.number, to);
	if (error < 0)
		return error;
	qp->state = to;
	if (mask & IBV_QP_PORT)
		qp->port_num = request->port_num;
	return 0;
}

int
cmd_modify_qp(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_modify_qp request;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	if (request.attr_mask & ~QP_ATTR_STANDARD)
		return -EOPNOTSUPP;
	return modify_qp(context, &request);
}

int
cmd_ex_modify_qp(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_ex_modify_qp request;
	struct ib_uverbs_ex_modify_qp_resp response = {.comp_mask = 0};
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	/* Rates of single queues are not modelled either. */
	if (request.base.attr_mask & ~QP_ATTR_STANDARD)
		return -EOPNOTSUPP;
	error = modify_qp(context, &request.base);
	if (error < 0)
		return error;
	response.response_length = command_response_length(command, sizeof(response));
	command_respond(command, &response, sizeof(response));
	return 0;
}

int
cmd_query_qp(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_query_qp request;
	struct ib_uverbs_query_qp_resp response;
	enum ibv_qp_state state;
	const struct qp_object *qp;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	qp = FIND(context, OBJECT_QP, struct qp_object, request.qp_handle);
	if (qp == NULL)
		return -EINVAL;
	if (qp->table != NULL)
		return -ENOSYS;
	error = softcx_qp_query(context->port, qp->base.number, &state);
	if (error < 0)
		return error;
	response = (struct ib_uverbs_query_qp_resp){
		.max_send_wr = qp->cap.max_send_wr,
		.max_recv_wr = qp->cap.max_recv_wr,
		.max_send_sge = qp->cap.max_send_sge,
		.max_recv_sge = qp->cap.max_recv_sge,
		.max_inline_data = qp->cap.max_inline_data,
		.qp_state = state,
		.cur_qp_state = state,
		.port_num = qp->port_num,
		.sq_sig_all = qp->sig_all,
	};
	command_respond(command, &response, sizeof(response));
	return 0;
}

int
destroy_qp(struct uverbs_context *context, struct qp_object *qp, uint32_t *events)
{
	int error;

	if (qp->base.uses != 0)
		return -EBUSY;
	error = softcx_qp_destroy(context->port, qp->base.number);
	if (error < 0)
		return error;
	*events = event_source_end(&qp->async);
	if (qp->bfreg >= 0)
		uar_give(&context->uar, qp->bfreg);
	qp->pd->base.uses--;
	if (qp->table != NULL)
		qp->table->base.uses--;
	if (qp->send_cq != NULL)
		qp->send_cq->base.uses--;
	if (qp->recv_cq != NULL)
		qp->recv_cq->base.uses--;
	context_free_object(context, &qp->base);
	return 0;
}

int
cmd_destroy_qp(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_destroy_qp request;
	struct ib_uverbs_destroy_qp_resp response;
	struct object *qp;
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	qp = handle_find(&context->handles, OBJECT_QP, request.qp_handle, &error);
	if (qp == NULL)
		return error;
	if (((struct qp_object *)qp)->table == NULL && card_refuses(SOFTCX_REFUSE_SQ_DESTROY))
		return -EBUSY; /* EIO is that of a device which is gone */
	error = destroy_qp(context, (struct qp_object *)qp, &response.events_reported);
	if (error < 0)
		return error;
	command_respond(command, &response, sizeof(response));
	return 0;
}
