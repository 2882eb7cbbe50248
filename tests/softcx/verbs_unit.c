/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verbs_unit.h"

struct ibv_context *
verbs_open(unsigned int index)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	char name[32];
	unsigned int i;

	assert_non_null(devices);
	snprintf(name, sizeof(name), "mlx5_%u", index);
	for (i = 0; devices[i] != NULL; i++) {
		if (strcmp(ibv_get_device_name(devices[i]), name) == 0)
			context = ibv_open_device(devices[i]);
	}
	ibv_free_device_list(devices);
	assert_non_null(context);
	return context;
}

void
verbs_close(struct ibv_context *context)
{
	assert_int_equal(ibv_close_device(context), 0);
}

struct ibv_qp *
verbs_rss_qp(struct ibv_pd *pd, struct ibv_rwq_ind_table *table, uint64_t fields, uint8_t function,
	uint8_t key_length)
{
	static uint8_t key[128] = {0x2c, 0xc6, 0x81, 0xd1, 0x5b, 0xdb, 0xf4, 0xf7};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf =
			{
				.rx_hash_function = function,
				.rx_hash_key_len = key_length,
				.rx_hash_key = key,
				.rx_hash_fields_mask = fields,
			},
	};

	return ibv_create_qp_ex(pd->context, &attr);
}

struct ibv_qp *
verbs_raw_qp(struct ibv_pd *pd, struct ibv_cq *cq, uint32_t send, uint32_t receive)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.send_cq = cq,
		.recv_cq = cq,
		.cap =
			{
				.max_send_wr = send,
				.max_send_sge = send == 0 ? 0 : 1,
				.max_recv_wr = receive,
				.max_recv_sge = receive == 0 ? 0 : 1,
			},
	};

	return ibv_create_qp(pd, &attr);
}

void
verbs_ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

struct ibv_flow *
verbs_flow_all(struct ibv_qp *qp, uint16_t priority)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr =
			{
				.type = IBV_FLOW_ATTR_NORMAL,
				.size = sizeof(rule),
				.priority = priority,
				.num_of_specs = 1,
				.port = 1,
			},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
	};

	return ibv_create_flow(qp, &rule.attr);
}

void
verbs_rx_create(struct ibv_context *context, struct verbs_rx *rx, uint32_t n, uint32_t max_sge)
{
	struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ, .max_wr = n, .max_sge = max_sge};
	struct ibv_rwq_ind_table_init_attr table = {.ind_tbl = &rx->wq};
	struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};

	memset(rx, 0, sizeof(*rx));
	rx->pd = ibv_alloc_pd(context);
	assert_non_null(rx->pd);
	rx->cq = ibv_create_cq(context, (int)n - 1, NULL, NULL, 0);
	assert_non_null(rx->cq);
	wq.pd = rx->pd;
	wq.cq = rx->cq;
	rx->wq = ibv_create_wq(context, &wq);
	assert_non_null(rx->wq);
	rx->table = ibv_create_rwq_ind_table(context, &table);
	assert_non_null(rx->table);
	rx->qp = verbs_rss_qp(rx->pd, rx->table, 0, IBV_RX_HASH_FUNC_TOEPLITZ, 40);
	assert_non_null(rx->qp);
	rx->flow = verbs_flow_all(rx->qp, 0);
	assert_non_null(rx->flow);
	assert_int_equal(ibv_modify_wq(rx->wq, &ready), 0);
}

void
verbs_rx_destroy(struct verbs_rx *rx)
{
	assert_int_equal(ibv_destroy_flow(rx->flow), 0);
	assert_int_equal(ibv_destroy_qp(rx->qp), 0);
	assert_int_equal(ibv_destroy_rwq_ind_table(rx->table), 0);
	assert_int_equal(ibv_destroy_wq(rx->wq), 0);
	assert_int_equal(ibv_destroy_cq(rx->cq), 0);
	assert_int_equal(ibv_dealloc_pd(rx->pd), 0);
}
