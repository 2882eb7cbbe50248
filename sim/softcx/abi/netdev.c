/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/ethtool.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "card.h"
#include "identity.h"
#include "netdev.h"

#define LINK_WORDS      1
#define SPEED_UNLIMITED 100000 /* Mbit/s, where the rate has no limit */

struct link_settings {
	struct ethtool_link_settings fixed;
	uint32_t modes[3 * LINK_WORDS]; /* supported, advertised, of the partner: none */
};

static uint32_t
speed(void)
{
	unsigned long mbits = card_rate() / 1000000;

	return mbits == 0 ? SPEED_UNLIMITED : mbits;
}

/* Linux's handshake: who asks with no words for modes is told how many there are. */
static int
link_settings(struct ethtool_link_settings *asked)
{
	struct link_settings settings = {.modes = {0}};

	settings.fixed.cmd = ETHTOOL_GLINKSETTINGS;
	settings.fixed.port = PORT_DA;
	settings.fixed.autoneg = AUTONEG_DISABLE;
	settings.fixed.duplex = DUPLEX_FULL;
	settings.fixed.speed = speed();
	if (asked->link_mode_masks_nwords != LINK_WORDS) {
		settings.fixed.link_mode_masks_nwords = -LINK_WORDS;
		memcpy(asked, &settings.fixed, sizeof(settings.fixed));
		return 0;
	}
	settings.fixed.link_mode_masks_nwords = LINK_WORDS;
	memcpy(asked, &settings, sizeof(settings));
	return 0;
}

static int
old_settings(struct ethtool_cmd *asked)
{
	struct ethtool_cmd settings = {
		.cmd = ETHTOOL_GSET,
		.port = PORT_DA,
		.duplex = DUPLEX_FULL,
		.autoneg = AUTONEG_DISABLE,
	};

	ethtool_cmd_speed_set(&settings, speed());
	*asked = settings;
	return 0;
}

bool
netdev_ethtool(void *argument, int *result)
{
	struct ifreq *request = argument;
	unsigned int index;
	char name[IFNAMSIZ];
	uint32_t command;
	int end = 0;

	if (request == NULL || request->ifr_data == NULL)
		return false;
	memcpy(name, request->ifr_name, sizeof(name));
	name[sizeof(name) - 1] = '\0';
	if (sscanf(name, IDENTITY_NETDEV "%n", &index, &end) != 1 || name[end] != '\0' ||
		index >= card_ports())
		return false;
	memcpy(&command, request->ifr_data, sizeof(command));
	switch (command) {
	case ETHTOOL_GLINKSETTINGS:
		*result = link_settings((struct ethtool_link_settings *)request->ifr_data);
		return true;
	case ETHTOOL_GSET:
		*result = old_settings((struct ethtool_cmd *)request->ifr_data);
		return true;
	default:
		return false; /* the tap's own answer is as good */
	}
}
