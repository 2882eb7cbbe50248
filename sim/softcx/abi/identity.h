/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the card says it is, in sysfs and in answers to queries: a ConnectX-5. */

#include <stdint.h>
#include <stdio.h>

#define IDENTITY_VENDOR_ID  0x02c9 /* of the IEEE, in verbs */
#define IDENTITY_PCI_VENDOR 0x15b3
#define IDENTITY_PART_ID    0x1017
#define IDENTITY_SUBSYSTEM  0x0007
#define IDENTITY_BOARD      "SFT0000000001"
#define IDENTITY_FW_TEXT    "16.35.1012"
#define IDENTITY_FW_VERSION ((uint64_t)16 << 32 | 35 << 16 | 1012)
#define IDENTITY_CLOCK_KHZ  1000000
#define IDENTITY_NETDEV     "softcx%u"
#define IDENTITY_PCI        "0000:03:00.%u"
#define IDENTITY_DEVICE     "mlx5_%u"

/* Of a port; its MAC address, softcx_port_mac(), has the same last byte. */
static inline uint64_t
identity_guid(unsigned int index)
{
	return 0x0202c9fffe000000 + index + 1;
}

/* IFNAMSIZ bytes; there are fewer than a hundred ports. */
static inline void
identity_netdev(unsigned int index, char name[16])
{
	snprintf(name, 16, IDENTITY_NETDEV, index % 100);
}
