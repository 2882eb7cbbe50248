/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_bus.h>
#include <rte_common.h>

#include "drivers.h"

/* By reading and by experiment, with DPDK 22.11; the man page has the reasons. */
static const struct driver drivers[] = {
	{
		.name = "net_null",
		.exact = true,
		.empty_poll_is_no_buffer = true,
	},
	{
		.name = "net_ring",
		.exact = true,
		.keeps_rx_ring = true,
		.rx_buffers = 1024, /* fixed, whatever the descriptors; RX and TX share the ring */
		.tx_buffers = 1024,
	},
	{
		.name = "net_mlx5pp",
		.exact = true,
	},
	{
		.name = "net_af_packet",
		.exact = true,
		.sleeps = true,
		.sockets = true,
	},
	{
		.name = "net_af_xdp",
		.exact = true,
		.oerrors = OERRORS_REFUSED,
		.sleeps = true,
		.sockets = true,
		.rx_buffers = 2048 + 1024,
		.tx_buffers = 2048 + 1024,
		.lost_at_close = 2048, /* the fill ring's */
		.maps_pool = true,
	},
};

static const struct driver other = {.oerrors = OERRORS_LOST};

/* On a device bus, but without a wire of a known speed. */
static const char *const virtual_nics[] = {"net_virtio", "net_vmxnet3", "net_ena", "net_gve"};

const struct driver *
driver_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(drivers); i++)
		if (strcmp(drivers[i].name, name) == 0)
			return &drivers[i];
	return &other;
}

bool
driver_has_wire(const char *driver_name, const struct rte_device *device)
{
	const char *bus = device == NULL ? "" : rte_bus_name(rte_dev_bus(device));
	unsigned int i;

	for (i = 0; i < RTE_DIM(virtual_nics); i++)
		if (strcmp(virtual_nics[i], driver_name) == 0)
			return false;
	return strcmp(bus, "pci") == 0 || strcmp(bus, "auxiliary") == 0;
}
