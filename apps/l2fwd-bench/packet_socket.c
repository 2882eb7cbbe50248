/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "packet_socket.h"

static uint64_t
drops_of(int fd, int if_index)
{
	struct sockaddr_ll address;
	struct tpacket_stats stats;
	socklen_t len = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
		address.sll_family != AF_PACKET || address.sll_ifindex != if_index)
		return 0;
	len = sizeof(stats);
	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) < 0)
		return 0;
	return stats.tp_drops;
}

uint64_t
packet_socket_drops(int if_index)
{
	const struct dirent *entry;
	uint64_t drops = 0;
	DIR *dir = opendir("/proc/self/fd");

	if (dir == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			drops += drops_of(atoi(entry->d_name), if_index);
	closedir(dir);
	return drops;
}
