/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/param.h>

#include "card.h"
#include "command.h"
#include "identity.h"
#include "libc.h"

#define MAX_PD 0xffffff
#define MAX_MR 0x1000000

static int
fill_context_response(struct uverbs_context *context, struct mlx5_ib_alloc_ucontext_resp *response)
{
	*response = (struct mlx5_ib_alloc_ucontext_resp){
		.qp_tab_size = 1 << 18,
		.bf_reg_size = UAR_BFREG_SIZE,
		.tot_bfregs = context->uar.n_pages * UAR_BFREGS_USABLE,
		.cache_line_size = 64,
		.max_sq_desc_sz = SOFTCX_MAX_SQ_DESC,
		.max_rq_desc_sz = 512,
		.max_send_wqebb = SOFTCX_MAX_WQE,
		.max_recv_wr = SOFTCX_MAX_WQE,
		.max_srq_recv_wr = SOFTCX_MAX_WQE - 1,
		.num_ports = 1,
		.cqe_version = context->cqe_version,
		.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE,
		.eth_min_inline = MLX5_USER_INLINE_MODE_NONE,
		.log_uar_size = 12,
		.num_uars_per_page = 1,
	};
	return 0;
}

int
cmd_get_context(struct uverbs_context *context, const struct command *command)
{
	struct mlx5_ib_alloc_ucontext_req_v2 request;
	struct mlx5_ib_alloc_ucontext_resp driver;
	struct ib_uverbs_get_context_resp response = {.num_comp_vectors = 1};
	int error, fd;

	if (context->ready)
		return -EINVAL;
	if (command->driver_in_length != sizeof(struct mlx5_ib_alloc_ucontext_req) &&
		command->driver_in_length <
			offsetof(struct mlx5_ib_alloc_ucontext_req_v2, max_cqe_version))
		return -EINVAL;
	memset(&request, 0, sizeof(request));
	memcpy(&request, command->driver_in, MIN(command->driver_in_length, sizeof(request)));
	if (request.flags & ~MLX5_IB_ALLOC_UCTX_DEVX || request.comp_mask || request.reserved0 ||
		request.reserved1 || request.reserved2)
		return -EOPNOTSUPP;
	/* Firmware commands are not modelled; drivers then take the way of verbs. */
	if (request.flags & MLX5_IB_ALLOC_UCTX_DEVX)
		return -EINVAL;
	if (request.total_num_bfregs == 0 ||
		request.total_num_bfregs > UAR_PAGES_MAX * UAR_BFREGS_USABLE)
		return -ENOMEM;
	request.total_num_bfregs = roundup(request.total_num_bfregs, UAR_BFREGS_USABLE);
	if (request.num_low_latency_bfregs > request.total_num_bfregs - 1)
		return -EINVAL;
	error = uar_start(&context->uar, context->file.fd, request.total_num_bfregs,
		request.num_low_latency_bfregs);
	if (error < 0)
		return error;
	fd = event_queue_open(context, sizeof(struct ib_uverbs_async_event_desc));
	if (fd < 0) {
		uar_stop(&context->uar);
		return fd;
	}
	context->async = event_queue_get(context, fd, sizeof(struct ib_uverbs_async_event_desc));
	context->cqe_version = MIN(request.max_cqe_version, 1);
	context->ready = true;

	response.async_fd = fd;
	command_respond(command, &response, sizeof(response));
	fill_context_response(context, &driver);
	driver.response_length = MIN(command->driver_out_length, sizeof(driver));
	command_driver_respond(command, &driver, sizeof(driver));
	return 0;
}

static void
fill_device(const struct uverbs_context *context, struct ib_uverbs_query_device_resp *device)
{
	*device = (struct ib_uverbs_query_device_resp){
		.fw_ver = IDENTITY_FW_VERSION,
		.node_guid = htobe64(identity_guid(context->index)),
		.sys_image_guid = htobe64(identity_guid(0)),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffffffffffff000,
		.vendor_id = IDENTITY_VENDOR_ID,
		.vendor_part_id = IDENTITY_PART_ID,
		.max_qp = SOFTCX_MAX_QUEUES,
		.max_qp_wr = SOFTCX_MAX_WQE,
		.device_cap_flags = IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT |
				    IB_UVERBS_DEVICE_SYS_IMAGE_GUID | IB_UVERBS_DEVICE_RAW_IP_CSUM |
				    IB_UVERBS_DEVICE_MANAGED_FLOW_STEERING,
		.max_sge = SOFTCX_MAX_SGE,
		.max_cq = 1 << 16,
		.max_cqe = SOFTCX_MAX_CQE - 1,
		.max_mr = MAX_MR,
		.max_pd = MAX_PD,
		.max_raw_ethy_qp = SOFTCX_MAX_QUEUES,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
	};
}

int
cmd_query_device(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_query_device_resp response;

	fill_device(context, &response);
	command_respond(command, &response, sizeof(response));
	return 0;
}

int
cmd_ex_query_device(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_ex_query_device request;
	struct ib_uverbs_ex_query_device_resp response = {
		.timestamp_mask = UINT64_MAX,
		.hca_core_clock = IDENTITY_CLOCK_KHZ,
		.rss_caps =
			{
				.supported_qpts = 1 << IBV_QPT_RAW_PACKET,
				.max_rwq_indirection_tables = SOFTCX_MAX_QUEUES,
				.max_rwq_indirection_table_size = SOFTCX_MAX_RSS_SIZE,
			},
		.max_wq_type_rq = SOFTCX_MAX_QUEUES,
		.raw_packet_caps =
			IB_UVERBS_RAW_PACKET_CAP_CVLAN_STRIPPING | IB_UVERBS_RAW_PACKET_CAP_IP_CSUM,
	};
	struct mlx5_ib_query_device_resp driver = {
		.rss_caps =
			{
				.rx_hash_fields_mask =
					MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_DST_IPV4 |
					MLX5_RX_HASH_SRC_IPV6 | MLX5_RX_HASH_DST_IPV6 |
					MLX5_RX_HASH_SRC_PORT_TCP | MLX5_RX_HASH_DST_PORT_TCP |
					MLX5_RX_HASH_SRC_PORT_UDP | MLX5_RX_HASH_DST_PORT_UDP,
				.rx_hash_function = MLX5_RX_HASH_FUNC_TOEPLITZ,
			},
	};
	int error = command_request(command, &request, sizeof(request));

	if (error < 0)
		return error;
	if (request.comp_mask || request.reserved)
		return -EINVAL;
	/* A driver's part in the request is none that we know. */
	if (command->driver_in_length != 0)
		return -EINVAL;
	fill_device(context, &response.base);
	response.device_cap_flags_ex = response.base.device_cap_flags;
	response.response_length = command_response_length(command, sizeof(response));
	command_respond(command, &response, sizeof(response));
	driver.response_length = MIN(command->driver_out_length, sizeof(driver));
	command_driver_respond(command, &driver, sizeof(driver));
	return 0;
}

/* Width and speed codes of the port's rate; the nearest that there is. */
static void
port_speed(uint64_t rate, struct ib_uverbs_query_port_resp *port)
{
	static const struct {
		uint64_t gbits;
		uint8_t width, speed; /* enum ib_port_width, enum ib_port_speed */
	} speeds[] = {
		{10, 1, 8},
		{25, 1, 32},
		{40, 2, 8},
		{50, 1, 64},
		{100, 2, 32},
		{200, 2, 64},
		{400, 2, 128},
	};
	size_t i = 0;

	while (i + 1 < sizeof(speeds) / sizeof(speeds[0]) &&
		(rate == 0 || rate > speeds[i].gbits * 1000000000))
		i++;
	port->active_width = speeds[i].width;
	port->active_speed = speeds[i].speed;
}

int
cmd_query_port(struct uverbs_context *context, const struct command *command)
{
	struct ib_uverbs_query_port request;
	struct ib_uverbs_query_port_resp response = {
		.port_cap_flags = 1 << 16 /* CM_SUP */,
		.max_msg_sz = 1 << 30,
		.gid_tbl_len = 1,
		.pkey_tbl_len = 1,
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_1024,
		.max_vl_num = 0,
		.phys_state = 5, /* link up */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	int error = command_request(command, &request, sizeof(request));

	(void)context;
	if (error < 0)
		return error;
	if (request.port_num != 1)
		return -EINVAL;
	port_speed(card_rate(), &response);
	command_respond(command, &response, sizeof(response));
	return 0;
}
