/* SPDX-License-Identifier: BSD-3-Clause */
/* Every object through stock libmlx5: what it says, what it refuses, what holds it. */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_unit.h"

#define N 64

static struct ibv_context *context;

static int
open_first(void **state)
{
	(void)state;
	context = verbs_open(0);
	return 0;
}

static int
close_first(void **state)
{
	(void)state;
	verbs_close(context);
	return 0;
}

static void
lists_its_ports(void **state)
{
	struct ibv_device **devices;
	struct ibv_context *second;
	int n;

	(void)state;
	devices = ibv_get_device_list(&n);
	assert_non_null(devices);
	assert_int_equal(n, 2);
	assert_string_not_equal(ibv_get_device_name(devices[0]), ibv_get_device_name(devices[1]));
	assert_true(mlx5dv_is_supported(devices[0]));
	assert_true(ibv_get_device_guid(devices[0]) != ibv_get_device_guid(devices[1]));
	ibv_free_device_list(devices);
	/* Several contexts, of one port and of both. */
	second = verbs_open(1);
	verbs_close(verbs_open(0));
	verbs_close(second);
}

static void
describes_itself(void **state)
{
	struct ibv_device_attr_ex device;
	struct mlx5dv_context dv = {.comp_mask = MLX5DV_CONTEXT_MASK_STRIDING_RQ |
						 MLX5DV_CONTEXT_MASK_CQE_COMPRESION |
						 MLX5DV_CONTEXT_MASK_DYN_BFREGS};
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	(void)state;
	assert_int_equal(ibv_query_device_ex(context, NULL, &device), 0);
	assert_int_equal(device.orig_attr.vendor_part_id, 0x1017);
	assert_int_equal(device.orig_attr.phys_port_cnt, 1);
	assert_true(device.rss_caps.supported_qpts & 1 << IBV_QPT_RAW_PACKET);
	assert_true(device.raw_packet_caps & IBV_RAW_PACKET_CAP_IP_CSUM);
	assert_int_equal(mlx5dv_query_device(context, &dv), 0);
	assert_true(dv.flags & MLX5DV_CONTEXT_FLAGS_CQE_V1);
	/* What is not modelled is not offered. */
	assert_int_equal(dv.striding_rq_caps.supported_qpts, 0);
	assert_int_equal(dv.cqe_comp_caps.max_num, 0);
	assert_int_equal(dv.max_dynamic_bfregs, 0);
	assert_int_equal(device.tso_caps.max_tso, 0);

	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(port.active_width, 2);
	assert_int_equal(port.active_speed, 32); /* 4 lanes of 25 Gbit/s */
	assert_int_not_equal(ibv_query_port(context, 2, &port), 0);
	assert_int_equal(ibv_query_gid(context, 1, 0, &gid), 0);
	assert_int_equal(gid.raw[0], 0xfe);
	assert_int_equal(ibv_query_pkey(context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
}

static void
refuses_firmware_commands(void **state)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};

	(void)state;
	assert_null(mlx5dv_open_device(devices[0], &attr));
	assert_int_equal(errno, EINVAL);
	ibv_free_device_list(devices);
}

static void
holds_what_is_used(void **state)
{
	struct verbs_rx rx;

	(void)state;
	verbs_rx_create(context, &rx, N, 1);
	assert_int_equal(ibv_destroy_qp(rx.qp), EBUSY);
	assert_int_equal(ibv_destroy_rwq_ind_table(rx.table), EBUSY);
	assert_int_equal(ibv_destroy_wq(rx.wq), EBUSY);
	assert_int_equal(ibv_destroy_cq(rx.cq), EBUSY);
	assert_int_equal(ibv_dealloc_pd(rx.pd), EBUSY);
	verbs_rx_destroy(&rx);
}

static void
holds_what_a_region_and_a_qp_use(void **state)
{
	static uint8_t memory[4096];
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, N - 1, NULL, NULL, 0);
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	(void)state;
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	qp = verbs_raw_qp(pd, cq, N, 0);
	assert_non_null(qp);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void
registers_memory_that_is_there(void **state)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_mr *mr;
	uint8_t *memory =
		mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const int bad_access[] = {
		IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC, 1 << 30};
	unsigned int i;

	(void)state;
	assert_int_not_equal(memory, MAP_FAILED);
	assert_int_equal(mprotect(memory + page, page, PROT_READ), 0);
	assert_int_equal(munmap(memory + 3 * page, page), 0);

	/* Any start, any length. */
	mr = ibv_reg_mr(pd, memory + 5, 3 * page - 100, 0);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	/* Not what cannot be written, with the right to write. */
	assert_null(ibv_reg_mr(pd, memory, 2 * page, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	/* Nor what is not there. */
	assert_null(ibv_reg_mr(pd, memory + 2 * page, 2 * page, 0));
	assert_int_equal(errno, EFAULT);
	assert_null(ibv_reg_mr(pd, memory, 0, 0));
	assert_int_equal(errno, EINVAL);
	for (i = 0; i < sizeof(bad_access) / sizeof(bad_access[0]); i++) {
		int access = bad_access[i];

		assert_null(ibv_reg_mr(pd, memory, page, access));
		assert_int_equal(errno, EINVAL);
	}
	assert_null(ibv_reg_mr(pd, memory, page, IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EOPNOTSUPP);
	/* An address for work requests must have the same offset in its page. */
	mr = ibv_reg_mr_iova(pd, memory + 8, 64, 0x1000008, 0);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(ibv_reg_mr_iova(pd, memory + 8, 64, 0x1000010, 0));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	munmap(memory, 3 * page);
}

static void
gives_what_a_cq_was_asked_for(void **state)
{
	struct ibv_cq *cq;
	struct mlx5dv_cq dv;
	struct mlx5dv_obj object = {.cq = {.out = &dv}};
	static const struct {
		int asked;
		uint32_t given;
	} sizes[] = {{1, 2}, {2, 4}, {3, 4}, {255, 256}, {256, 512}, {32767, 32768}};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cq = ibv_create_cq(context, sizes[i].asked, NULL, NULL, 0);
		assert_non_null(cq);
		object.cq.in = cq;
		assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
		assert_int_equal(dv.cqe_cnt, sizes[i].given);
		assert_int_equal(dv.cqe_size, 64);
		assert_int_not_equal(dv.cqn, 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	assert_null(ibv_create_cq(context, 32768, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(context, 64, NULL, NULL, 1)); /* a vector that there is not */
	assert_int_equal(errno, EINVAL);
}

static void
refuses_queues_that_are_not_modelled(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, N - 1, NULL, NULL, 0);
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = N, .max_sge = 1, .pd = pd, .cq = cq};
	struct mlx5dv_wq_init_attr striding = {
		.comp_mask = MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ,
		.striding_rq_attrs = {.single_stride_log_num_of_bytes = 11,
			.single_wqe_log_num_of_strides = 9},
	};
	struct ibv_qp_init_attr qp = {.send_cq = cq,
		.recv_cq = cq,
		.cap.max_send_wr = 1,
		.cap.max_send_sge = 1,
		.qp_type = IBV_QPT_UD};
	struct ibv_wq *wq;

	(void)state;
	assert_null(mlx5dv_create_wq(context, &attr, &striding));
	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	attr.create_flags = IBV_WQ_FLAGS_SCATTER_FCS;
	assert_null(ibv_create_wq(context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.create_flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
	wq = ibv_create_wq(context, &attr);
	assert_non_null(wq);
	assert_int_equal(ibv_destroy_wq(wq), 0);
	assert_null(ibv_create_qp(pd, &qp)); /* RDMA */
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static int
modify_wq(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state};

	return ibv_modify_wq(wq, &attr);
}

static void
changes_a_wq_as_hardware(void **state)
{
	struct verbs_rx rx;
	struct ibv_wq_attr wrong = {.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
		.wq_state = IBV_WQS_RESET,
		.curr_wq_state = IBV_WQS_ERR};

	(void)state;
	verbs_rx_create(context, &rx, N, 1); /* ready */
	assert_int_equal(modify_wq(rx.wq, IBV_WQS_ERR), 0);
	assert_int_equal(modify_wq(rx.wq, IBV_WQS_RDY), EINVAL);
	assert_int_equal(modify_wq(rx.wq, IBV_WQS_RESET), 0);
	assert_int_equal(ibv_modify_wq(rx.wq, &wrong), EINVAL); /* it is not in ERR */
	assert_int_equal(modify_wq(rx.wq, IBV_WQS_RDY), 0);
	assert_int_equal(modify_wq(rx.wq, IBV_WQS_RESET), 0);
	wrong.wq_state = 7;
	wrong.attr_mask = IBV_WQ_ATTR_STATE;
	assert_int_equal(ibv_modify_wq(rx.wq, &wrong), EINVAL);
	verbs_rx_destroy(&rx);
}

static void
hashes_only_what_the_kernel_lets(void **state)
{
	struct verbs_rx rx;
	struct ibv_wq *two[2];
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 1, .ind_tbl = two};
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp;
	static const uint64_t good[] = {
		IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4,
		IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_PORT_UDP |
			IBV_RX_HASH_DST_PORT_UDP,
		IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_SRC_PORT_TCP |
			IBV_RX_HASH_DST_PORT_TCP,
		IBV_RX_HASH_DST_IPV6,
	};
	static const struct {
		uint64_t fields;
		uint8_t function, key_length;
		int error;
	} bad[] = {
		{0, IBV_RX_HASH_FUNC_TOEPLITZ, 40, EINVAL}, /* over more than one queue */
		{IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV6, IBV_RX_HASH_FUNC_TOEPLITZ, 40,
			EINVAL},
		{IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_UDP,
			IBV_RX_HASH_FUNC_TOEPLITZ, 40, EINVAL},
		{IBV_RX_HASH_SRC_IPV4, IBV_RX_HASH_FUNC_TOEPLITZ, 39, EINVAL},
		{IBV_RX_HASH_SRC_IPV4, IBV_RX_HASH_FUNC_TOEPLITZ, 41, EINVAL},
		{IBV_RX_HASH_SRC_IPV4, 0, 40, EOPNOTSUPP},
		{IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_INNER, IBV_RX_HASH_FUNC_TOEPLITZ, 40,
			EOPNOTSUPP},
		{IBV_RX_HASH_IPSEC_SPI, IBV_RX_HASH_FUNC_TOEPLITZ, 40, EOPNOTSUPP},
	};
	unsigned int i;

	(void)state;
	verbs_rx_create(context, &rx, N, 1);
	two[0] = two[1] = rx.wq;
	table = ibv_create_rwq_ind_table(context, &attr);
	assert_non_null(table);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		qp = verbs_rss_qp(rx.pd, table, good[i], IBV_RX_HASH_FUNC_TOEPLITZ, 40);
		assert_non_null(qp);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(verbs_rss_qp(
			rx.pd, table, bad[i].fields, bad[i].function, bad[i].key_length));
		assert_int_equal(errno, bad[i].error);
	}
	assert_int_equal(ibv_destroy_rwq_ind_table(table), 0);
	verbs_rx_destroy(&rx);
}

/* By the shortest way; a QP can always be reset. */
static void
bring_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET, .port_num = 1};
	unsigned int i;

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	for (i = 0; i < 3 && state != IBV_QPS_RESET; i++) {
		attr.qp_state = state == IBV_QPS_ERR && i == 1 ? IBV_QPS_ERR : way[i];
		assert_int_equal(ibv_modify_qp(qp, &attr,
					 attr.qp_state == IBV_QPS_INIT ? IBV_QP_STATE | IBV_QP_PORT
								       : IBV_QP_STATE),
			0);
		if (attr.qp_state == state)
			return;
	}
}

static void
changes_a_qp_as_the_kernel(void **state)
{
	/* To: RESET INIT RTR RTS SQD SQE ERR */
	static const struct {
		enum ibv_qp_state from;
		bool to[7];
	} rows[] = {
		{IBV_QPS_RESET, {1, 1, 0, 0, 0, 0, 0}},
		{IBV_QPS_INIT, {1, 0, 1, 0, 0, 0, 1}}, /* INIT again without a port is below */
		{IBV_QPS_RTR, {1, 0, 0, 1, 0, 0, 1}},
		{IBV_QPS_RTS, {1, 0, 0, 1, 0, 0, 1}},
		{IBV_QPS_ERR, {1, 0, 0, 0, 0, 0, 1}},
	};
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, N - 1, NULL, NULL, 0);
	struct ibv_qp *qp = verbs_raw_qp(pd, cq, N, 0);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned int i, to;

	(void)state;
	assert_non_null(qp);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (to = 0; to < 7; to++) {
			int mask = to == IBV_QPS_INIT ? IBV_QP_STATE | IBV_QP_PORT : IBV_QP_STATE;

			bring_to(qp, rows[i].from);
			attr = (struct ibv_qp_attr){.qp_state = to, .port_num = 1};
			assert_int_equal(
				ibv_modify_qp(qp, &attr, mask), rows[i].to[to] ? 0 : EINVAL);
			assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
			assert_int_equal(attr.qp_state, rows[i].to[to] ? to : rows[i].from);
		}
	}
	bring_to(qp, IBV_QPS_INIT);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT};
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	/* To INIT with a port, of those there are, and nothing else. */
	bring_to(qp, IBV_QPS_RESET);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 2};
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	attr.port_num = 1;
	assert_int_equal(
		ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void
steers_by_what_is_modelled(void **state)
{
	struct verbs_rx rx;
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		union {
			struct ibv_flow_spec_ipv4 ipv4;
			struct ibv_flow_spec_tunnel tunnel;
			struct ibv_flow_spec_action_tag tag;
			struct ibv_flow_spec_action_drop drop;
		};
	} rule;
	struct ibv_flow *flow;

	(void)state;
	verbs_rx_create(context, &rx, N, 1);
	memset(&rule, 0, sizeof(rule));
	rule.attr.size = sizeof(rule);
	rule.attr.num_of_specs = 2;
	rule.attr.port = 1;
	rule.eth.type = IBV_FLOW_SPEC_ETH;
	rule.eth.size = sizeof(rule.eth);
	rule.ipv4.type = IBV_FLOW_SPEC_IPV4;
	rule.ipv4.size = sizeof(rule.ipv4);
	flow = ibv_create_flow(rx.qp, &rule.attr);
	assert_non_null(flow);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	/* A frame that is IPv6 and IPv4. */
	rule.eth.val.ether_type = htobe16(0x86dd);
	rule.eth.mask.ether_type = 0xffff;
	assert_null(ibv_create_flow(rx.qp, &rule.attr));
	assert_int_equal(errno, EINVAL);
	rule.eth.mask.ether_type = 0;
	rule.attr.port = 2;
	assert_null(ibv_create_flow(rx.qp, &rule.attr));
	assert_int_equal(errno, EINVAL);
	rule.attr.port = 1;
	rule.attr.priority = 16;
	assert_null(ibv_create_flow(rx.qp, &rule.attr));
	assert_int_equal(errno, EINVAL);
	rule.attr.priority = 15;
	rule.tunnel.type = IBV_FLOW_SPEC_VXLAN_TUNNEL;
	rule.tunnel.size = sizeof(rule.tunnel);
	assert_null(ibv_create_flow(rx.qp, &rule.attr));
	assert_int_equal(errno, EOPNOTSUPP);
	rule.tag.type = IBV_FLOW_SPEC_ACTION_TAG;
	rule.tag.size = sizeof(rule.tag);
	rule.tag.tag_id = 1 << 24;
	assert_null(ibv_create_flow(rx.qp, &rule.attr));
	assert_int_equal(errno, EINVAL);
	rule.tag.tag_id = 0xabcdef;
	flow = ibv_create_flow(rx.qp, &rule.attr);
	assert_non_null(flow);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	rule.drop.type = IBV_FLOW_SPEC_ACTION_DROP;
	rule.drop.size = sizeof(rule.drop);
	flow = ibv_create_flow(rx.qp, &rule.attr);
	assert_non_null(flow);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	rule.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	assert_null(ibv_create_flow(rx.qp, &rule.attr));
	assert_int_equal(errno, EOPNOTSUPP);
	verbs_rx_destroy(&rx);
}

/* Objects of one life are not those of the next: 1,000 lives leave nothing. */
static void
comes_and_goes(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	unsigned int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		cq = ibv_create_cq(context, 1, NULL, NULL, 0);
		assert_non_null(cq);
		qp = verbs_raw_qp(pd, cq, 1, 1);
		assert_non_null(qp);
		assert_int_equal(ibv_destroy_qp(qp), 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_its_ports),
		cmocka_unit_test(describes_itself),
		cmocka_unit_test(refuses_firmware_commands),
		cmocka_unit_test(holds_what_is_used),
		cmocka_unit_test(holds_what_a_region_and_a_qp_use),
		cmocka_unit_test(registers_memory_that_is_there),
		cmocka_unit_test(gives_what_a_cq_was_asked_for),
		cmocka_unit_test(refuses_queues_that_are_not_modelled),
		cmocka_unit_test(changes_a_wq_as_hardware),
		cmocka_unit_test(hashes_only_what_the_kernel_lets),
		cmocka_unit_test(changes_a_qp_as_the_kernel),
		cmocka_unit_test(steers_by_what_is_modelled),
		cmocka_unit_test(comes_and_goes),
	};

	return cmocka_run_group_tests(tests, open_first, close_first);
}
