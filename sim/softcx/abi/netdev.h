/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The ports' netdevs are taps, which know no more than a name, addresses and an MTU. What a driver
 * asks of them beyond that is answered here.
 */

#include <stdbool.h>

/* Whether SIOCETHTOOL was about a port of ours; then *result is what ioctl() returns, or -errno. */
bool netdev_ethtool(void *argument, int *result);
