/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "identity.h"
#include "run.h"

#define TUN "/dev/net/tun"

static int
interface_up(int sock, const char *name)
{
	struct ifreq request = {.ifr_flags = 0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(sock, SIOCGIFFLAGS, &request) < 0)
		return -errno;
	request.ifr_flags |= IFF_UP;
	return ioctl(sock, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

bool
namespaces_enter(const char *folder)
{
	int sock;

	if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0)
		return false;
	/* Nothing that is mounted here may be seen outside. */
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
		say("the files in %s are not in memory of their own: %s", folder, strerror(errno));
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock >= 0) {
		if (interface_up(sock, "lo") < 0)
			say("lo is down: %s", strerror(errno));
		close(sock);
	}
	return true;
}

/* The tap lives as long as its descriptor, which nobody closes before this process ends. */
static int
create(int sock, unsigned int index)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	uint8_t mac[6];
	int tap = open(TUN, O_RDWR | O_CLOEXEC);

	if (tap < 0)
		return -errno;
	identity_netdev(index, request.ifr_name);
	if (ioctl(tap, TUNSETIFF, &request) < 0)
		return -errno;
	softcx_port_mac(index, mac);
	request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(request.ifr_hwaddr.sa_data, mac, sizeof(mac));
	if (ioctl(sock, SIOCSIFHWADDR, &request) < 0)
		return -errno;
	return interface_up(sock, request.ifr_name);
}

int
netdevs_create(unsigned int ports)
{
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = 0;
	unsigned int i;

	if (sock < 0)
		error = -errno;
	for (i = 0; i < ports && error == 0; i++)
		error = create(sock, i);
	if (sock >= 0)
		close(sock);
	if (error < 0)
		say("no netdevs (%s: %s), which DPDK's driver needs; verbs programs do without",
			TUN, strerror(-error));
	return error;
}
