/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which packets come to which queue.
 *
 * The card hashes only fields that a packet has, and one set of them per queue pair: so there is an
 * RSS queue pair for each class of packets that the application wants hashed, over one table of all
 * queues, and a last one without hash for the rest, which goes to the first queue. For every
 * address that the port listens to there is a flow rule per class, those of L4 before those of L3
 * before the rest.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>

#include "mlx5pp.h"

#define TABLE_MIN 256 /* entries, where queues are not a power of two */

#define IPV4_FIELDS (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4)
#define IPV6_FIELDS (IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)
#define TCP_FIELDS  (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP)
#define UDP_FIELDS  (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)

static const struct {
	uint64_t fields;
	uint64_t types; /* of ethdev's hash types, any of which asks for it */
	uint16_t priority;
	enum ibv_flow_spec_type l3, l4; /* 0: any */
} classes[MLX5PP_CLASSES] = {
	[MLX5PP_IPV4_TCP] = {IPV4_FIELDS | TCP_FIELDS, RTE_ETH_RSS_NONFRAG_IPV4_TCP, 0,
		IBV_FLOW_SPEC_IPV4, IBV_FLOW_SPEC_TCP},
	[MLX5PP_IPV4_UDP] = {IPV4_FIELDS | UDP_FIELDS, RTE_ETH_RSS_NONFRAG_IPV4_UDP, 0,
		IBV_FLOW_SPEC_IPV4, IBV_FLOW_SPEC_UDP},
	[MLX5PP_IPV6_TCP] = {IPV6_FIELDS | TCP_FIELDS,
		RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_IPV6_TCP_EX, 0, IBV_FLOW_SPEC_IPV6,
		IBV_FLOW_SPEC_TCP},
	[MLX5PP_IPV6_UDP] = {IPV6_FIELDS | UDP_FIELDS,
		RTE_ETH_RSS_NONFRAG_IPV6_UDP | RTE_ETH_RSS_IPV6_UDP_EX, 0, IBV_FLOW_SPEC_IPV6,
		IBV_FLOW_SPEC_UDP},
	[MLX5PP_IPV4] = {IPV4_FIELDS,
		RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER, 1,
		IBV_FLOW_SPEC_IPV4, 0},
	[MLX5PP_IPV6] = {IPV6_FIELDS,
		RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER |
			RTE_ETH_RSS_IPV6_EX,
		1, IBV_FLOW_SPEC_IPV6, 0},
	[MLX5PP_ALL] = {0, 0, 2, 0, 0},
};

/* ---- queue pairs ---- */

static struct ibv_rwq_ind_table *
create_table(struct mlx5pp_port *port, uint32_t entries)
{
	struct ibv_wq **wqs = calloc(entries, sizeof(struct ibv_wq *));
	struct ibv_rwq_ind_table_init_attr attr = {
		.log_ind_tbl_size = rte_log2_u32(entries),
		.ind_tbl = wqs,
	};

	if (wqs == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	for (uint32_t i = 0; i < entries; i++) {
		const struct mlx5pp_rxq *rxq = port->data->rx_queues[i % port->data->nb_rx_queues];

		wqs[i] = rxq->wq;
	}
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(port->context, &attr);

	free(wqs);
	return table;
}

static struct ibv_qp *
create_qp(struct mlx5pp_port *port, struct ibv_rwq_ind_table *table, uint64_t fields)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = port->pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf =
			{
				.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				.rx_hash_key_len = MLX5PP_KEY_LEN,
				.rx_hash_key = port->rss_key,
				.rx_hash_fields_mask = fields,
			},
	};

	return ibv_create_qp_ex(port->context, &attr);
}

static bool
is_hashed(const struct mlx5pp_port *port, enum mlx5pp_class kind)
{
	return (port->data->dev_conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) &&
	       (port->rss_hf & classes[kind].types) != 0;
}

static int
create_qps(struct mlx5pp_port *port)
{
	struct mlx5pp_steering *steering = &port->steering;
	const uint32_t queues = port->data->nb_rx_queues;

	steering->first = create_table(port, 1);
	if (steering->first == NULL)
		return -errno;
	steering->table = create_table(port, rte_is_power_of_2(queues) ? queues : TABLE_MIN);
	if (steering->table == NULL)
		return -errno;
	for (int kind = 0; kind < MLX5PP_CLASSES; kind++) {
		const bool all = kind == MLX5PP_ALL;

		if (!all && !is_hashed(port, kind))
			continue;
		steering->qp[kind] = create_qp(
			port, all ? steering->first : steering->table, classes[kind].fields);
		if (steering->qp[kind] == NULL)
			return -errno;
	}
	return 0;
}

/* ---- rules ---- */

/* A rule as the verbs want it: a header, and the specifications behind each other. */
struct rule {
	struct ibv_flow_attr attr;
	uint8_t specs[sizeof(struct ibv_flow_spec_eth) + sizeof(struct ibv_flow_spec_ipv6) +
		      sizeof(struct ibv_flow_spec_tcp_udp)];
};

static void
add_spec(struct rule *rule, const void *spec, uint16_t size)
{
	memcpy((uint8_t *)rule + rule->attr.size, spec, size);
	rule->attr.size += size;
	rule->attr.num_of_specs++;
}

static void
add_header(struct rule *rule, enum ibv_flow_spec_type type)
{
	/* zero masks: that the header is there is all that counts */
	const uint16_t size = type == IBV_FLOW_SPEC_IPV4   ? sizeof(struct ibv_flow_spec_ipv4)
			      : type == IBV_FLOW_SPEC_IPV6 ? sizeof(struct ibv_flow_spec_ipv6)
							   : sizeof(struct ibv_flow_spec_tcp_udp);
	struct ibv_flow_spec_ipv6 spec = {.type = type, .size = size}; /* the largest */

	if (type != 0)
		add_spec(rule, &spec, size);
}

static struct ibv_flow *
create_flow(struct mlx5pp_port *port, const struct mlx5pp_flow *flow)
{
	struct rule rule = {
		.attr =
			{
				.type = IBV_FLOW_ATTR_NORMAL,
				.size = sizeof(struct ibv_flow_attr),
				.priority = classes[flow->kind].priority,
				.port = 1,
			},
	};
	struct ibv_flow_spec_eth eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(eth)};

	memcpy(eth.val.dst_mac, &flow->mac, RTE_ETHER_ADDR_LEN);
	memcpy(eth.mask.dst_mac, &flow->mask, RTE_ETHER_ADDR_LEN);
	add_spec(&rule, &eth, sizeof(eth));
	add_header(&rule, classes[flow->kind].l3);
	add_header(&rule, classes[flow->kind].l4);
	return ibv_create_flow(port->steering.qp[flow->kind], &rule.attr);
}

static struct mlx5pp_flow *
find_flow(struct mlx5pp_steering *steering, enum mlx5pp_class kind,
	const struct rte_ether_addr *mac, const struct rte_ether_addr *mask)
{
	for (uint32_t i = 0; i < steering->n_flows; i++) {
		struct mlx5pp_flow *flow = &steering->flow[i];

		if (flow->kind == kind && rte_is_same_ether_addr(&flow->mac, mac) &&
			rte_is_same_ether_addr(&flow->mask, mask))
			return flow;
	}
	return NULL;
}

/* Frames to an address, in all classes that have a queue pair. */
static int
want(struct mlx5pp_port *port, const struct rte_ether_addr *mac, const struct rte_ether_addr *mask)
{
	struct mlx5pp_steering *steering = &port->steering;

	for (int kind = 0; kind < MLX5PP_CLASSES; kind++) {
		struct mlx5pp_flow *flow = find_flow(steering, kind, mac, mask);

		if (steering->qp[kind] == NULL)
			continue;
		if (flow == NULL) {
			if (steering->n_flows == MLX5PP_FLOWS_MAX)
				return -ENOSPC;
			flow = &steering->flow[steering->n_flows];
			*flow = (struct mlx5pp_flow){.kind = kind, .mac = *mac, .mask = *mask};
			flow->flow = create_flow(port, flow);
			if (flow->flow == NULL) {
				const int err = errno;

				MLX5PP_LOG(ERR,
					"%s: no flow rule: %s; on a real card they need the right "
					"CAP_NET_RAW",
					port->args.ibdev, strerror(err));
				return -err;
			}
			steering->n_flows++;
		}
		flow->wanted = true;
	}
	return 0;
}

static int
want_all(struct mlx5pp_port *port)
{
	static const struct rte_ether_addr none, every = {{255, 255, 255, 255, 255, 255}};
	static const struct rte_ether_addr group = {{1, 0, 0, 0, 0, 0}};
	int err;

	if (port->data->promiscuous)
		return want(port, &none, &none);
	err = port->data->all_multicast ? want(port, &group, &group) : want(port, &every, &every);
	for (uint32_t i = 0; err == 0 && i < MLX5PP_MACS_MAX; i++)
		if (!rte_is_zero_ether_addr(&port->data->mac_addrs[i]))
			err = want(port, &port->data->mac_addrs[i], &every);
	return err;
}

/*
 * New rules come before old ones go, so that no packet falls between them. Where one cannot be had
 * the old ones stay alone.
 */
int
mlx5pp_steering_update(struct mlx5pp_port *port)
{
	struct mlx5pp_steering *steering = &port->steering;
	const uint32_t before = steering->n_flows;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < before; i++)
		steering->flow[i].wanted = false;
	const int err = want_all(port);

	for (uint32_t i = 0; i < steering->n_flows; i++) {
		if (err == 0 ? steering->flow[i].wanted : i < before)
			steering->flow[kept++] = steering->flow[i];
		else
			ibv_destroy_flow(steering->flow[i].flow);
	}
	steering->n_flows = kept;
	return err;
}

int
mlx5pp_steering_create(struct mlx5pp_port *port)
{
	int err;

	if (port->data->nb_rx_queues == 0)
		return 0;
	err = create_qps(port);
	if (err < 0)
		MLX5PP_LOG(ERR, "%s: RSS cannot be had: %s", port->args.ibdev, rte_strerror(-err));
	else
		err = mlx5pp_steering_update(port);
	if (err < 0)
		mlx5pp_steering_destroy(port);
	return err;
}

void
mlx5pp_steering_destroy(struct mlx5pp_port *port)
{
	struct mlx5pp_steering *steering = &port->steering;

	for (uint32_t i = 0; i < steering->n_flows; i++)
		ibv_destroy_flow(steering->flow[i].flow);
	for (int kind = 0; kind < MLX5PP_CLASSES; kind++)
		if (steering->qp[kind] != NULL)
			ibv_destroy_qp(steering->qp[kind]);
	if (steering->table != NULL)
		ibv_destroy_rwq_ind_table(steering->table);
	if (steering->first != NULL)
		ibv_destroy_rwq_ind_table(steering->first);
	memset(steering, 0, sizeof(*steering));
}
