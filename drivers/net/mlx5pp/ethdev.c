/* SPDX-License-Identifier: BSD-3-Clause */
/* What ethdev asks of a port. */

#include <errno.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "mlx5pp.h"

/* The card hashes either direction of a connection alike; so does this key on any other. */
static const uint8_t default_key[MLX5PP_KEY_LEN] = {0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a,
	0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d,
	0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a, 0x6d, 0x5a,
	0x6d, 0x5a};

#define RSS_TYPES (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP)

#define RX_OFFLOADS                                                                                \
	(RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_RSS_HASH |  \
		RTE_ETH_RX_OFFLOAD_VLAN_STRIP | RTE_ETH_RX_OFFLOAD_TIMESTAMP)
#define TX_OFFLOADS                                                                                \
	(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |                            \
		RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_MULTI_SEGS |                     \
		RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE)

/* ---- what it is ---- */

static int
infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	const struct mlx5pp_port *port = mlx5pp_port(dev);
	const struct rte_eth_desc_lim limits = {
		.nb_max = MLX5PP_DESC_MAX / 2,
		.nb_min = MLX5PP_DESC_MIN,
		.nb_align = MLX5PP_DESC_MIN,
		.nb_seg_max = MLX5PP_TX_SEGS_MAX,
		.nb_mtu_seg_max = MLX5PP_TX_SEGS_MAX,
	};
	const uint16_t queues =
		(uint16_t)RTE_MIN(MLX5PP_QUEUES_MAX, port->attr.orig_attr.max_qp - MLX5PP_CLASSES);

	info->max_rx_queues = info->max_tx_queues = queues;
	info->max_mac_addrs = MLX5PP_MACS_MAX;
	info->min_rx_bufsize = MLX5PP_FRAME_MIN + 1;
	info->max_rx_pktlen = MLX5PP_FRAME_MAX + RTE_ETHER_CRC_LEN;
	info->min_mtu = RTE_ETHER_MIN_MTU;
	info->max_mtu = MLX5PP_MTU_MAX;
	info->rx_queue_offload_capa = RX_OFFLOADS;
	info->rx_offload_capa = RX_OFFLOADS;
	info->tx_queue_offload_capa = TX_OFFLOADS;
	info->tx_offload_capa = TX_OFFLOADS;
	info->hash_key_size = MLX5PP_KEY_LEN;
	info->flow_type_rss_offloads = RSS_TYPES;
	info->rx_desc_lim = info->tx_desc_lim = limits;
	info->default_rxportconf = info->default_txportconf =
		(struct rte_eth_dev_portconf){.burst_size = 32, .ring_size = 1024, .nb_queues = 1};
	info->speed_capa = RTE_ETH_LINK_SPEED_10G | RTE_ETH_LINK_SPEED_25G |
			   RTE_ETH_LINK_SPEED_40G | RTE_ETH_LINK_SPEED_50G |
			   RTE_ETH_LINK_SPEED_100G;
	info->if_index = port->ifname[0] != '\0' ? if_nametoindex(port->ifname) : 0;
	return 0;
}

static int
fw_version_get(struct rte_eth_dev *dev, char *text, size_t size)
{
	const char *version = mlx5pp_port(dev)->attr.orig_attr.fw_ver;
	const size_t need = strlen(version) + 1;

	if (size < need)
		return (int)need;
	memcpy(text, version, need);
	return 0;
}

/* In Mbit/s, of one lane. */
static uint32_t
lane_speed(uint8_t active_speed)
{
	static const struct {
		uint8_t code;
		uint32_t mbits;
	} speeds[] = {{1, 2500}, {2, 5000}, {4, 10000}, {8, 10000}, {16, 14000}, {32, 25000},
		{64, 50000}, {128, 100000}};

	for (unsigned int i = 0; i < RTE_DIM(speeds); i++)
		if (speeds[i].code == active_speed)
			return speeds[i].mbits;
	return 0;
}

static uint32_t
lanes(uint8_t active_width)
{
	switch (active_width) {
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 1;
	}
}

static int
link_update(struct rte_eth_dev *dev, int wait __rte_unused)
{
	struct rte_eth_link link = {.link_duplex = RTE_ETH_LINK_FULL_DUPLEX};
	struct ibv_port_attr attr;

	if (ibv_query_port(mlx5pp_port(dev)->context, 1, &attr) != 0)
		return -EIO;
	link.link_status = attr.state == IBV_PORT_ACTIVE;
	link.link_speed = lane_speed(attr.active_speed) * lanes(attr.active_width);
	if (link.link_speed == 0)
		link.link_speed = RTE_ETH_SPEED_NUM_UNKNOWN;
	return rte_eth_linkstatus_set(dev, &link);
}

/* ---- addresses ---- */

static int
update_if_started(struct rte_eth_dev *dev)
{
	return dev->data->dev_started ? mlx5pp_steering_update(mlx5pp_port(dev)) : 0;
}

/* ethdev sets the flag after the call; the rules follow the flag. */
static int
set_flag(struct rte_eth_dev *dev, bool promiscuous, bool on)
{
	const uint8_t promiscuous_before = dev->data->promiscuous;
	const uint8_t multicast_before = dev->data->all_multicast;

	if (promiscuous)
		dev->data->promiscuous = on;
	else
		dev->data->all_multicast = on;
	const int err = update_if_started(dev);

	dev->data->promiscuous = promiscuous_before & 1;
	dev->data->all_multicast = multicast_before & 1;
	return err;
}

static int
promiscuous_enable(struct rte_eth_dev *dev)
{
	return set_flag(dev, true, true);
}

static int
promiscuous_disable(struct rte_eth_dev *dev)
{
	return set_flag(dev, true, false);
}

static int
allmulticast_enable(struct rte_eth_dev *dev)
{
	return set_flag(dev, false, true);
}

static int
allmulticast_disable(struct rte_eth_dev *dev)
{
	return set_flag(dev, false, false);
}

static int
mac_set_at(struct rte_eth_dev *dev, uint32_t index, const struct rte_ether_addr *mac)
{
	const struct rte_ether_addr before = dev->data->mac_addrs[index];

	dev->data->mac_addrs[index] = *mac;
	const int err = update_if_started(dev);

	if (err < 0)
		dev->data->mac_addrs[index] = before;
	return err;
}

static int
mac_addr_add(struct rte_eth_dev *dev, struct rte_ether_addr *mac, uint32_t index,
	uint32_t vmdq __rte_unused)
{
	return mac_set_at(dev, index, mac);
}

static void
mac_addr_remove(struct rte_eth_dev *dev, uint32_t index)
{
	static const struct rte_ether_addr none;

	mac_set_at(dev, index, &none);
}

static int
mac_addr_set(struct rte_eth_dev *dev, struct rte_ether_addr *mac)
{
	return mac_set_at(dev, 0, mac);
}

static int
mtu_set(struct rte_eth_dev *dev, uint16_t mtu)
{
	struct mlx5pp_port *port = mlx5pp_port(dev);

	/* rings are made for frames of so many buffers */
	for (uint16_t i = 0; dev->data->dev_started && i < dev->data->nb_rx_queues; i++) {
		const struct mlx5pp_rxq *rxq = dev->data->rx_queues[i];

		if (mlx5pp_rxq_segs(rxq, mtu) != 1u << rxq->log_segs) {
			MLX5PP_LOG(ERR, "port %u: stop it first, for an MTU of %u",
				dev->data->port_id, mtu);
			return -EBUSY;
		}
	}
	const int err = mlx5pp_netdev_set_mtu(port, mtu);

	if (err < 0)
		MLX5PP_LOG(ERR, "%s: the MTU of its interface %s cannot be %u: %s",
			port->args.ibdev, port->ifname, mtu, rte_strerror(-err));
	return err;
}

static int
set_strip(struct rte_eth_dev *dev, uint16_t index, bool on)
{
	struct mlx5pp_rxq *rxq = dev->data->rx_queues[index];

	return rxq != NULL ? mlx5pp_rxq_set_strip(rxq, on) : 0;
}

/* All queues, or those before one that cannot be are as they were. */
static int
vlan_offload_set(struct rte_eth_dev *dev, int mask)
{
	const bool strip =
		(dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0;

	if (!(mask & RTE_ETH_VLAN_STRIP_MASK))
		return 0;
	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++) {
		const int err = set_strip(dev, i, strip);

		if (err == 0)
			continue;
		while (i-- > 0)
			set_strip(dev, i, !strip);
		return err;
	}
	return 0;
}

/* ---- RSS ---- */

static int
rss_store(struct mlx5pp_port *port, const struct rte_eth_rss_conf *conf)
{
	if (conf->rss_key != NULL) {
		if (conf->rss_key_len != 0 && conf->rss_key_len != MLX5PP_KEY_LEN) {
			MLX5PP_LOG(ERR, "port %u: an RSS key of %u bytes; it must have %u",
				port->data->port_id, conf->rss_key_len, MLX5PP_KEY_LEN);
			return -EINVAL;
		}
		memcpy(port->rss_key, conf->rss_key, MLX5PP_KEY_LEN);
	}
	port->rss_hf = conf->rss_hf;
	return 0;
}

static int
rss_hash_update(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf)
{
	struct mlx5pp_port *port = mlx5pp_port(dev);
	uint8_t key[MLX5PP_KEY_LEN];
	struct rte_eth_rss_conf before = {.rss_key = key, .rss_hf = port->rss_hf};
	int err;

	memcpy(key, port->rss_key, sizeof(key));
	err = rss_store(port, conf);
	if (err < 0 || !dev->data->dev_started)
		return err;
	mlx5pp_steering_destroy(port);
	err = mlx5pp_steering_create(port);
	if (err < 0) {
		/* rather as it was than deaf */
		rss_store(port, &before);
		mlx5pp_steering_create(port);
	}
	return err;
}

static int
rss_hash_conf_get(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf)
{
	const struct mlx5pp_port *port = mlx5pp_port(dev);

	if (conf->rss_key != NULL && conf->rss_key_len >= MLX5PP_KEY_LEN)
		memcpy(conf->rss_key, port->rss_key, MLX5PP_KEY_LEN);
	conf->rss_key_len = MLX5PP_KEY_LEN;
	conf->rss_hf = port->rss_hf;
	return 0;
}

/* ---- configuration, start and stop ---- */

static int
configure(struct rte_eth_dev *dev)
{
	struct mlx5pp_port *port = mlx5pp_port(dev);

	memcpy(port->rss_key, default_key, sizeof(default_key));
	return rss_store(port, &dev->data->dev_conf.rx_adv_conf.rss_conf);
}

void
mlx5pp_set_bursts(struct rte_eth_dev *dev)
{
	const struct mlx5pp_port *port = mlx5pp_port(dev);
	bool rx_segs = false, tx_segs = false;

	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++)
		rx_segs |= ((const struct mlx5pp_rxq *)dev->data->rx_queues[i])->log_segs > 0;
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++)
		tx_segs |= (((const struct mlx5pp_txq *)dev->data->tx_queues[i])->offloads &
				   RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
	dev->rx_pkt_burst = rx_segs                                      ? mlx5pp_rx_burst_segs
			    : port->args.recycle == MLX5PP_RECYCLE_CACHE ? mlx5pp_rx_burst_cache
			    : port->args.recycle == MLX5PP_RECYCLE_REUSE ? mlx5pp_rx_burst_reuse
									 : mlx5pp_rx_burst;
	dev->tx_pkt_burst = tx_segs ? mlx5pp_tx_burst_segs : mlx5pp_tx_burst;
	dev->data->scattered_rx = rx_segs;
#if MLX5PP_HAS_RECYCLE_MBUFS
	dev->recycle_tx_mbufs_reuse = mlx5pp_recycle_tx_reuse;
	dev->recycle_rx_descriptors_refill = !rx_segs && port->args.recycle == MLX5PP_RECYCLE_OFF
						     ? mlx5pp_recycle_rx_refill
						     : NULL;
#endif
}

/* The card still has what the queue gave it; the port's stop destroys the queue. */
static void
explain_stop(const struct rte_eth_dev *dev, const char *kind, uint16_t index, int err)
{
	MLX5PP_LOG(ERR,
		"port %u: %s queue %u cannot be reset, and goes on with its buffers: %s; stop the "
		"port",
		dev->data->port_id, kind, index, rte_strerror(-err));
}

static int
rx_queue_start(struct rte_eth_dev *dev, uint16_t index)
{
	const int err = mlx5pp_rxq_start(dev->data->rx_queues[index]);

	if (err == 0)
		dev->data->rx_queue_state[index] = RTE_ETH_QUEUE_STATE_STARTED;
	else
		MLX5PP_LOG(ERR, "port %u: RX queue %u does not start: %s", dev->data->port_id,
			index, rte_strerror(-err));
	return err;
}

static int
rx_queue_stop(struct rte_eth_dev *dev, uint16_t index)
{
	const int err = mlx5pp_rxq_stop(dev->data->rx_queues[index]);

	if (err == 0)
		dev->data->rx_queue_state[index] = RTE_ETH_QUEUE_STATE_STOPPED;
	else
		explain_stop(dev, "RX", index, err);
	return err;
}

static int
tx_queue_start(struct rte_eth_dev *dev, uint16_t index)
{
	const int err = mlx5pp_txq_start(dev->data->tx_queues[index]);

	if (err == 0)
		dev->data->tx_queue_state[index] = RTE_ETH_QUEUE_STATE_STARTED;
	else
		MLX5PP_LOG(ERR, "port %u: TX queue %u does not start: %s", dev->data->port_id,
			index, rte_strerror(-err));
	return err;
}

static int
tx_queue_stop(struct rte_eth_dev *dev, uint16_t index)
{
	const int err = mlx5pp_txq_stop(dev->data->tx_queues[index]);

	if (err == 0)
		dev->data->tx_queue_state[index] = RTE_ETH_QUEUE_STATE_STOPPED;
	else
		explain_stop(dev, "TX", index, err);
	return err;
}

/* All of it, in the order in which nothing that leads to a queue outlives it. */
static void
take_down(struct rte_eth_dev *dev)
{
	mlx5pp_steering_destroy(mlx5pp_port(dev));
	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++) {
		struct mlx5pp_rxq *rxq = dev->data->rx_queues[i];

		if (rxq->wq == NULL)
			continue;
		mlx5pp_rxq_destroy(rxq);
		dev->data->rx_queue_state[i] = RTE_ETH_QUEUE_STATE_STOPPED;
	}
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++) {
		struct mlx5pp_txq *txq = dev->data->tx_queues[i];

		if (txq->qp == NULL)
			continue;
		mlx5pp_txq_destroy(txq);
		dev->data->tx_queue_state[i] = RTE_ETH_QUEUE_STATE_STOPPED;
	}
}

static int
start_queues(struct rte_eth_dev *dev)
{
	int err = 0;

	for (uint16_t i = 0; err == 0 && i < dev->data->nb_tx_queues; i++) {
		struct mlx5pp_txq *txq = dev->data->tx_queues[i];

		err = mlx5pp_txq_create(txq);
		if (err == 0 && !txq->deferred)
			err = tx_queue_start(dev, i);
	}
	for (uint16_t i = 0; err == 0 && i < dev->data->nb_rx_queues; i++) {
		struct mlx5pp_rxq *rxq = dev->data->rx_queues[i];

		err = mlx5pp_rxq_create(rxq);
		if (err == 0 && !rxq->deferred)
			err = rx_queue_start(dev, i);
	}
	return err;
}

static int
check_queues(const struct rte_eth_dev *dev)
{
	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++) {
		const struct mlx5pp_rxq *rxq = dev->data->rx_queues[i];

		if (rxq != NULL && rxq->mp != NULL)
			continue;
		MLX5PP_LOG(ERR, "port %u: RX queue %u %s", dev->data->port_id, i,
			rxq == NULL ? "was never set up" : "has lost its pool, which was freed");
		return -EINVAL;
	}
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++)
		if (dev->data->tx_queues[i] == NULL) {
			MLX5PP_LOG(ERR, "port %u: TX queue %u was never set up", dev->data->port_id,
				i);
			return -EINVAL;
		}
	return 0;
}

/* The MTU may have come by rte_eth_dev_configure(). Not all may change an interface's. */
static void
apply_mtu(const struct rte_eth_dev *dev)
{
	const struct mlx5pp_port *port = mlx5pp_port(dev);
	const int err = mlx5pp_netdev_raise_mtu(port, dev->data->mtu);

	if (err < 0)
		MLX5PP_LOG(WARNING,
			"%s: the MTU of its interface %s cannot be %u: %s; longer frames may not "
			"come",
			port->args.ibdev, port->ifname, dev->data->mtu, rte_strerror(-err));
}

static int
dev_start(struct rte_eth_dev *dev)
{
	int err = check_queues(dev);

	if (err < 0)
		return err;
	apply_mtu(dev);
	err = start_queues(dev);
	if (err == 0)
		err = mlx5pp_steering_create(mlx5pp_port(dev));
	if (err < 0) {
		take_down(dev);
		return err;
	}
	mlx5pp_set_bursts(dev);
	link_update(dev, 0);
	return 0;
}

static int
dev_stop(struct rte_eth_dev *dev)
{
	take_down(dev);
	return 0;
}

static int
dev_close(struct rte_eth_dev *dev)
{
	struct mlx5pp_port *port = mlx5pp_port(dev);

	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++)
		mlx5pp_rxq_release(dev, i);
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++)
		mlx5pp_txq_release(dev, i);
	mlx5pp_mr_fini(port);
	ibv_dealloc_pd(port->pd);
	ibv_close_device(port->context);
	return 0;
}

/* ---- queues ---- */

static void
rxq_info_get(struct rte_eth_dev *dev, uint16_t index, struct rte_eth_rxq_info *info)
{
	const struct mlx5pp_rxq *rxq = dev->data->rx_queues[index];

	info->mp = rxq->mp;
	info->scattered_rx = rxq->log_segs > 0;
	info->conf.offloads = rxq->offloads;
	info->conf.rx_deferred_start = rxq->deferred;
	info->nb_desc = rxq->n_desc;
}

static void
txq_info_get(struct rte_eth_dev *dev, uint16_t index, struct rte_eth_txq_info *info)
{
	const struct mlx5pp_txq *txq = dev->data->tx_queues[index];

	info->conf.offloads = txq->offloads;
	info->conf.tx_deferred_start = txq->deferred;
	info->nb_desc = txq->n_desc;
}

const struct eth_dev_ops mlx5pp_ops = {
#if MLX5PP_HAS_RECYCLE_MBUFS
	.recycle_rxq_info_get = mlx5pp_recycle_rxq_info_get,
#endif
	.dev_configure = configure,
	.dev_start = dev_start,
	.dev_stop = dev_stop,
	.dev_close = dev_close,
	.dev_infos_get = infos_get,
	.fw_version_get = fw_version_get,
	.dev_supported_ptypes_get = mlx5pp_rx_ptypes,
	.link_update = link_update,
	.promiscuous_enable = promiscuous_enable,
	.promiscuous_disable = promiscuous_disable,
	.allmulticast_enable = allmulticast_enable,
	.allmulticast_disable = allmulticast_disable,
	.mac_addr_add = mac_addr_add,
	.mac_addr_remove = mac_addr_remove,
	.mac_addr_set = mac_addr_set,
	.mtu_set = mtu_set,
	.vlan_offload_set = vlan_offload_set,
	.rss_hash_update = rss_hash_update,
	.rss_hash_conf_get = rss_hash_conf_get,
	.rx_queue_setup = mlx5pp_rxq_setup,
	.rx_queue_release = mlx5pp_rxq_release,
	.rx_queue_start = rx_queue_start,
	.rx_queue_stop = rx_queue_stop,
	.rxq_info_get = rxq_info_get,
	.tx_queue_setup = mlx5pp_txq_setup,
	.tx_queue_release = mlx5pp_txq_release,
	.tx_queue_start = tx_queue_start,
	.tx_queue_stop = tx_queue_stop,
	.txq_info_get = txq_info_get,
	.tx_done_cleanup = mlx5pp_tx_done_cleanup,
	.stats_get = mlx5pp_stats_get,
	.stats_reset = mlx5pp_stats_reset,
	.xstats_get = mlx5pp_xstats_get,
	.xstats_get_names = mlx5pp_xstats_get_names,
	.xstats_reset = mlx5pp_xstats_reset,
};
