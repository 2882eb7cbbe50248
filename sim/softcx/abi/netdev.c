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

#define LINK_WORDS      1      /* of modes: supported, advertised, of the partner; there are none */
#define SPEED_UNLIMITED 100000 /* Mbit/s, where the rate has no limit */

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
	const bool told = asked->link_mode_masks_nwords == LINK_WORDS;

	memset(asked, 0, sizeof(*asked));
	asked->cmd = ETHTOOL_GLINKSETTINGS;
	asked->port = PORT_DA;
	asked->autoneg = AUTONEG_DISABLE;
	asked->duplex = DUPLEX_FULL;
	asked->speed = speed();
	asked->link_mode_masks_nwords = told ? LINK_WORDS : -LINK_WORDS;
	if (told)
		memset(asked->link_mode_masks, 0, 3 * LINK_WORDS * sizeof(uint32_t));
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

/* Counters by the names that the kernel's driver gives them. */
static const struct {
	const char *name;
	size_t offset;
} statistics[] = {
#define STATISTIC(name, counter)                                                                   \
	{                                                                                          \
		name, offsetof(struct softcx_port_counters, counter)                               \
	}
	STATISTIC("rx_packets_phy", offered),
	STATISTIC("rx_out_of_buffer", out_of_buffer),
	STATISTIC("rx_vport_unicast_packets", rx_packets),
	STATISTIC("rx_vport_unicast_bytes", rx_bytes),
	STATISTIC("rx_steer_missed_packets", no_flow),
	STATISTIC("rx_wqe_err", rx_errors),
	STATISTIC("tx_packets_phy", tx_packets),
	STATISTIC("tx_vport_unicast_packets", tx_packets),
	STATISTIC("tx_vport_unicast_bytes", tx_bytes),
	STATISTIC("tx_errors_phy", tx_errors),
#undef STATISTIC
};
#define N_STATISTICS (sizeof(statistics) / sizeof(statistics[0]))

static int
driver_info(unsigned int index, struct ethtool_drvinfo *asked)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO, .n_stats = N_STATISTICS};

	snprintf(info.driver, sizeof(info.driver), "mlx5_core");
	snprintf(info.fw_version, sizeof(info.fw_version), "%s", IDENTITY_FW_TEXT);
	snprintf(info.bus_info, sizeof(info.bus_info), IDENTITY_PCI, index);
	*asked = info;
	return 0;
}

static int
string_sets(struct ethtool_sset_info *asked)
{
	bool statistic = asked->sset_mask & 1u << ETH_SS_STATS;

	asked->sset_mask = statistic ? 1u << ETH_SS_STATS : 0;
	if (statistic)
		asked->data[0] = N_STATISTICS;
	return 0;
}

static int
strings(struct ethtool_gstrings *asked)
{
	unsigned int i;

	if (asked->string_set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	asked->len = N_STATISTICS;
	memset(asked->data, 0, N_STATISTICS * ETH_GSTRING_LEN);
	for (i = 0; i < N_STATISTICS; i++)
		snprintf((char *)asked->data + i * ETH_GSTRING_LEN, ETH_GSTRING_LEN, "%s",
			statistics[i].name);
	return 0;
}

static int
values(unsigned int index, struct ethtool_stats *asked)
{
	struct softcx_port_counters counters;
	uint64_t value;
	unsigned int i;

	card_counters(index, &counters);
	asked->n_stats = N_STATISTICS;
	for (i = 0; i < N_STATISTICS; i++) {
		memcpy(&value, (uint8_t *)&counters + statistics[i].offset, sizeof(value));
		asked->data[i] = value;
	}
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
	case ETHTOOL_GDRVINFO:
		*result = driver_info(index, (struct ethtool_drvinfo *)request->ifr_data);
		return true;
	case ETHTOOL_GSSET_INFO:
		*result = string_sets((struct ethtool_sset_info *)request->ifr_data);
		return true;
	case ETHTOOL_GSTRINGS:
		*result = strings((struct ethtool_gstrings *)request->ifr_data);
		return true;
	case ETHTOOL_GSTATS:
		*result = values(index, (struct ethtool_stats *)request->ifr_data);
		return true;
	default:
		return false; /* the tap's own answer is as good */
	}
}
