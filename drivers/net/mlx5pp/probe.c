/* SPDX-License-Identifier: BSD-3-Clause */
/* A virtual device becomes a port on a verbs device that the machine has. */

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_kvargs.h>
#include <rte_malloc.h>

#include "mlx5pp.h"

RTE_LOG_REGISTER(mlx5pp_logtype, pmd.net.mlx5pp, NOTICE);

#define VENDOR_MELLANOX 0x02c9

/* ---- arguments ---- */

static const char *const recycle_names[] = {
	[MLX5PP_RECYCLE_OFF] = "off",
	[MLX5PP_RECYCLE_CACHE] = "cache",
	[MLX5PP_RECYCLE_REUSE] = "reuse",
	[MLX5PP_RECYCLE_POOL] = "pool",
};

const char *
mlx5pp_recycle_name(enum mlx5pp_recycle mode)
{
	return recycle_names[mode];
}

static int
parse_ibdev(const char *key __rte_unused, const char *value, void *arg)
{
	struct mlx5pp_args *args = arg;

	if (strlcpy(args->ibdev, value, sizeof(args->ibdev)) >= sizeof(args->ibdev)) {
		MLX5PP_LOG(ERR, "ibdev=%s: the name is too long", value);
		return -EINVAL;
	}
	return 0;
}

static int
parse_recycle(const char *key __rte_unused, const char *value, void *arg)
{
	struct mlx5pp_args *args = arg;

	for (unsigned int i = 0; i < RTE_DIM(recycle_names); i++) {
		if (strcmp(value, recycle_names[i]) == 0) {
			args->recycle = i;
			return 0;
		}
	}
	MLX5PP_LOG(ERR, "recycle=%s: must be off, cache, reuse or pool", value);
	return -EINVAL;
}

static int
parse_number(const char *value, unsigned long min, unsigned long max, unsigned long *number)
{
	char *end;

	errno = 0;
	*number = strtoul(value, &end, 10);
	return errno != 0 || end == value || *end != '\0' || value[0] == '-' || *number < min ||
			       *number > max
		       ? -EINVAL
		       : 0;
}

static int
parse_cache_size(const char *key __rte_unused, const char *value, void *arg)
{
	struct mlx5pp_args *args = arg;
	unsigned long number;

	if (parse_number(value, 2, MLX5PP_FIFO_MAX, &number) < 0) {
		MLX5PP_LOG(ERR, "cache_size=%s: must be 2 to %u pages", value, MLX5PP_FIFO_MAX);
		return -EINVAL;
	}
	args->cache_size = (uint32_t)number;
	return 0;
}

static int
parse_pcp(const char *key __rte_unused, const char *value, void *arg)
{
	struct mlx5pp_args *args = arg;
	enum pcp_mode mode;

	if (pcp_mode_parse(value, &mode) < 0) {
		MLX5PP_LOG(ERR, "pcp=%s: there is no such mode of page caches", value);
		return -EINVAL;
	}
	args->pcp = mode;
	return 0;
}

static int
parse_inline(const char *key __rte_unused, const char *value, void *arg)
{
	struct mlx5pp_args *args = arg;
	unsigned long number;

	if (parse_number(value, 0, 18, &number) < 0 || (number != 0 && number != 18)) {
		MLX5PP_LOG(ERR, "inline=%s: must be 0 or 18 bytes", value);
		return -EINVAL;
	}
	args->inline_len = (int)number;
	return 0;
}

static int
parse(const char *text, struct mlx5pp_args *args)
{
	static const char *const keys[] = {"ibdev", "recycle", "cache_size", "pcp", "inline", NULL};
	static const arg_handler_t handlers[] = {
		parse_ibdev, parse_recycle, parse_cache_size, parse_pcp, parse_inline};
	struct rte_kvargs *kvargs = rte_kvargs_parse(text, keys);
	int err = 0;

	if (kvargs == NULL) {
		MLX5PP_LOG(ERR,
			"'%s': the arguments are ibdev=NAME, recycle=off|cache|reuse|pool, "
			"cache_size=N, pcp=MODE and inline=0|18",
			text);
		return -EINVAL;
	}
	for (unsigned int i = 0; err == 0 && i < kvargs->count; i++)
		if (kvargs->pairs[i].value == NULL) {
			MLX5PP_LOG(ERR, "%s needs a value", kvargs->pairs[i].key);
			err = -EINVAL;
		}
	*args = (struct mlx5pp_args){.pcp = -1, .inline_len = -1};
	for (unsigned int i = 0; err == 0 && keys[i] != NULL; i++)
		err = rte_kvargs_process(kvargs, keys[i], handlers[i], args);
	rte_kvargs_free(kvargs);
	return err < 0 ? -EINVAL : 0;
}

/* ---- the verbs device ---- */

static void
list_devices(struct ibv_device **list, int n, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (int i = 0; i < n && len < size; i++)
		len += (size_t)snprintf(
			text + len, size - len, " %s", ibv_get_device_name(list[i]));
}

static int
open_device(struct mlx5pp_port *port)
{
	char names[256];
	int n = 0, err = -ENODEV;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list == NULL) {
		MLX5PP_LOG(ERR, "no verbs devices: %s", strerror(errno));
		return -errno;
	}
	for (int i = 0; i < n && port->context == NULL; i++) {
		/* the only one needs no name */
		if (port->args.ibdev[0] == '\0'
				? n > 1
				: strcmp(ibv_get_device_name(list[i]), port->args.ibdev) != 0)
			continue;
		strlcpy(port->args.ibdev, ibv_get_device_name(list[i]), sizeof(port->args.ibdev));
		strlcpy(port->sysfs, list[i]->ibdev_path, sizeof(port->sysfs));
		port->context = mlx5dv_is_supported(list[i]) ? ibv_open_device(list[i]) : NULL;
		err = port->context != NULL ? 0 : -ENOTSUP;
		if (!mlx5dv_is_supported(list[i]))
			MLX5PP_LOG(ERR, "%s is no ConnectX", port->args.ibdev);
		else if (err < 0)
			MLX5PP_LOG(
				ERR, "%s cannot be opened: %s", port->args.ibdev, strerror(errno));
	}
	if (err == -ENODEV) {
		list_devices(list, n, names, sizeof(names));
		MLX5PP_LOG(ERR, "ibdev=%s: there %s%s", port->args.ibdev,
			n == 0 ? "are no verbs devices" : "are only", names);
	}
	ibv_free_device_list(list);
	return err;
}

/* The card's own interface, for what verbs do not know: the address, and the MTU. */
static void
find_netdev(struct mlx5pp_port *port)
{
	char path[IBV_SYSFS_PATH_MAX + 16];
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/device/net", port->sysfs);
	dir = opendir(path);
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL && port->ifname[0] == '\0')
		if (entry->d_name[0] != '.')
			strlcpy(port->ifname, entry->d_name, sizeof(port->ifname));
	closedir(dir);
}

/* -ENODEV: the card has no interface. */
static int
ask_netdev(const struct mlx5pp_port *port, unsigned long what, struct ifreq *request)
{
	int fd, err = 0;

	if (port->ifname[0] == '\0')
		return -ENODEV;
	strlcpy(request->ifr_name, port->ifname, sizeof(request->ifr_name));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, what, request) < 0)
		err = -errno;
	close(fd);
	return err;
}

int
mlx5pp_netdev_set_mtu(const struct mlx5pp_port *port, uint16_t mtu)
{
	struct ifreq request = {.ifr_mtu = mtu};
	const int err = ask_netdev(port, SIOCSIFMTU, &request);

	return err != -ENODEV ? err : 0;
}

int
mlx5pp_netdev_raise_mtu(const struct mlx5pp_port *port, uint16_t mtu)
{
	struct ifreq request = {.ifr_mtu = 0};

	if (ask_netdev(port, SIOCGIFMTU, &request) == 0 && request.ifr_mtu >= mtu)
		return 0;
	return mlx5pp_netdev_set_mtu(port, mtu);
}

/*
 * That of its interface. Else it is in the first GID, with ff:fe in the middle; but a card may have
 * no GIDs, if RoCE is off.
 */
static int
learn_mac(const struct mlx5pp_port *port, struct rte_ether_addr *mac)
{
	struct ifreq request = {.ifr_mtu = 0};
	union ibv_gid gid;

	if (ask_netdev(port, SIOCGIFHWADDR, &request) == 0) {
		memcpy(mac->addr_bytes, request.ifr_hwaddr.sa_data, RTE_ETHER_ADDR_LEN);
		return 0;
	}
	if (ibv_query_gid(port->context, 1, 0, &gid) != 0)
		return -EIO;
	memcpy(&mac->addr_bytes[0], &gid.raw[8], 3);
	memcpy(&mac->addr_bytes[3], &gid.raw[13], 3);
	mac->addr_bytes[0] ^= 2;
	return 0;
}

/* ConnectX-4 wants the L2 header in the WQE; its successors do not. */
static uint32_t
inline_len(const struct mlx5pp_port *port)
{
	const uint32_t part = port->attr.orig_attr.vendor_part_id;

	if (port->args.inline_len >= 0)
		return (uint32_t)port->args.inline_len;
	return part >= 0x1013 && part <= 0x1016 ? 18 : 0;
}

static int
check_device(struct mlx5pp_port *port)
{
	struct ibv_port_attr attr;

	if (ibv_query_device_ex(port->context, NULL, &port->attr) != 0 ||
		ibv_query_port(port->context, 1, &attr) != 0) {
		MLX5PP_LOG(ERR, "%s does not say what it is", port->args.ibdev);
		return -EIO;
	}
	if (attr.link_layer != IBV_LINK_LAYER_ETHERNET ||
		port->attr.orig_attr.vendor_id != VENDOR_MELLANOX) {
		MLX5PP_LOG(ERR, "%s is no Ethernet port of a ConnectX", port->args.ibdev);
		return -ENOTSUP;
	}
	return 0;
}

static void
close_device(struct mlx5pp_port *port)
{
	if (port->pd != NULL)
		ibv_dealloc_pd(port->pd);
	if (port->context != NULL)
		ibv_close_device(port->context);
}

static int
prepare_device(struct mlx5pp_port *port)
{
	port->pd = ibv_alloc_pd(port->context);
	if (port->pd == NULL)
		return -errno;
	find_netdev(port);
	port->inline_len = inline_len(port);
	mlx5pp_stats_init(port);
	const int err = learn_mac(port, port->data->mac_addrs);

	return err < 0 ? err : mlx5pp_mr_init(port);
}

static int
start_device(struct mlx5pp_port *port)
{
	int err = open_device(port);

	if (err == 0)
		err = check_device(port);
	if (err < 0)
		return err;
	err = prepare_device(port);
	if (err < 0)
		MLX5PP_LOG(ERR, "%s cannot be used: %s", port->args.ibdev, rte_strerror(-err));
	return err;
}

/* ---- the virtual device ---- */

static int
init(struct rte_eth_dev *dev, const struct mlx5pp_args *args)
{
	struct mlx5pp_port *port = mlx5pp_port(dev);
	int err;

	port->data = dev->data;
	port->args = *args;
	dev->data->mac_addrs = rte_calloc("mlx5pp", MLX5PP_MACS_MAX, RTE_ETHER_ADDR_LEN, 0);
	if (dev->data->mac_addrs == NULL) {
		MLX5PP_LOG(ERR, "%s: no memory for its addresses", dev->data->name);
		return -ENOMEM;
	}
	err = start_device(port);
	if (err < 0) {
		close_device(port);
		return err;
	}
	dev->dev_ops = &mlx5pp_ops;
	dev->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
	mlx5pp_set_bursts(dev);
	return 0;
}

static int
probe(struct rte_vdev_device *vdev)
{
	struct mlx5pp_args args;
	struct rte_eth_dev *dev;
	int err;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		MLX5PP_LOG(
			ERR, "%s: only the primary process can use it", rte_vdev_device_name(vdev));
		return -ENOTSUP;
	}
	err = parse(rte_vdev_device_args(vdev), &args);
	if (err < 0)
		return err;
	dev = rte_eth_vdev_allocate(vdev, sizeof(struct mlx5pp_port));
	if (dev == NULL) {
		MLX5PP_LOG(
			ERR, "%s: no memory for a port, or too many", rte_vdev_device_name(vdev));
		return -ENOMEM;
	}
	err = init(dev, &args);
	if (err < 0) {
		rte_eth_dev_release_port(dev);
		return err;
	}
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int
remove_device(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
	int err = 0;

	if (dev == NULL)
		return 0;
	/* a port that is closed must be stopped; one that is unplugged need not */
	if (dev->data->dev_started)
		err = rte_eth_dev_stop(dev->data->port_id);
	return err == 0 ? rte_eth_dev_close(dev->data->port_id) : err;
}

static struct rte_vdev_driver driver = {
	.probe = probe,
	.remove = remove_device,
};

RTE_PMD_REGISTER_VDEV(net_mlx5pp, driver);
RTE_PMD_REGISTER_PARAM_STRING(net_mlx5pp,
	"ibdev=<string> recycle=off|cache|reuse|pool cache_size=<int> pcp=<string> inline=0|18");
