/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdint.h>

/*
 * Frames that the kernel dropped, since the last call, because the RX rings of this process's
 * packet sockets on an interface were full. The driver net_af_packet owns the sockets, but does
 * not ask for this number, and nobody else can.
 */
uint64_t packet_socket_drops(int if_index);
