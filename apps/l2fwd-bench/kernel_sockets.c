/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <rte_common.h>

#include "kernel_sockets.h"

#define XDP_SOCKETS_MAX 256

struct xdp_socket {
	int fd;
	int if_index;
	uint64_t rx_ring_full, tx_invalid; /* as read last: these only grow */
};

static struct xdp_socket xdp_sockets[XDP_SOCKETS_MAX];
static unsigned int n_xdp_sockets;

/* Call `visit` with every open socket of a domain. */
static void
for_each_socket(int domain, void (*visit)(int fd, void *arg), void *arg)
{
	const struct dirent *entry;
	socklen_t len;
	int fd, found;
	DIR *dir = opendir("/proc/self/fd");

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		fd = atoi(entry->d_name);
		len = sizeof(found);
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &found, &len) == 0 && found == domain)
			visit(fd, arg);
	}
	closedir(dir);
}

static void
claim(int fd, void *arg)
{
	unsigned int i;

	for (i = 0; i < n_xdp_sockets; i++)
		if (xdp_sockets[i].fd == fd)
			return;
	if (n_xdp_sockets < XDP_SOCKETS_MAX)
		xdp_sockets[n_xdp_sockets++] =
			(struct xdp_socket){.fd = fd, .if_index = *(const int *)arg};
}

void
kernel_sockets_claim(int if_index)
{
	for_each_socket(AF_XDP, claim, &if_index);
}

static void
add_xdp(struct xdp_socket *xdp, struct kernel_sockets *counters)
{
	struct xdp_statistics stats;
	socklen_t len = sizeof(stats);

	if (getsockopt(xdp->fd, SOL_XDP, XDP_STATISTICS, &stats, &len) < 0)
		return;
	counters->rx_drops += stats.rx_ring_full - xdp->rx_ring_full;
	counters->tx_drops += stats.tx_invalid_descs - xdp->tx_invalid;
	xdp->rx_ring_full = stats.rx_ring_full;
	xdp->tx_invalid = stats.tx_invalid_descs;
}

struct packet_sum {
	int if_index;
	struct kernel_sockets *counters;
};

/* Reading sets these counters to 0. */
static void
add_packet(int fd, void *arg)
{
	const struct packet_sum *sum = arg;
	struct sockaddr_ll address;
	struct tpacket_stats stats;
	socklen_t len = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
		address.sll_ifindex != sum->if_index)
		return;
	len = sizeof(stats);
	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) < 0)
		return;
	sum->counters->received += stats.tp_packets - stats.tp_drops;
	sum->counters->rx_drops += stats.tp_drops;
}

void
kernel_sockets_add(int if_index, struct kernel_sockets *counters)
{
	struct packet_sum sum = {if_index, counters};
	unsigned int i;

	for_each_socket(AF_PACKET, add_packet, &sum);
	for (i = 0; i < n_xdp_sockets; i++)
		if (xdp_sockets[i].if_index == if_index)
			add_xdp(&xdp_sockets[i], counters);
}
