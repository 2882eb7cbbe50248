/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Rates of Ethernet traffic. DPDK's packet lengths leave out the frame check sequence, and no
 * length contains what else a frame occupies on the wire:
 *
 *	L2   the frame with its FCS: DPDK's length + 4
 *	L1   L2 + 20: preamble (7), start-of-frame delimiter (1), least gap between frames (12)
 *
 * So 64-byte frames (60 by DPDK's count) fill 10 Gbit/s of L1 at 14.88 Mpps and 7.62 Gbit/s of L2.
 * Lengths count as they are: frames that a wire would pad to 64 bytes are not padded.
 */

#include <math.h>
#include <stdint.h>

#define UNITS_FCS_LEN     4
#define UNITS_L1_OVERHEAD 20

static inline double
units_per_second(uint64_t count, double seconds)
{
	return seconds > 0 ? (double)count / seconds : 0;
}

/* Millions of packets per second. */
static inline double
units_mpps(uint64_t packets, double seconds)
{
	return units_per_second(packets, seconds) / 1e6;
}

/* `bytes` as DPDK counts them. */
static inline double
units_gbps_l2(uint64_t packets, uint64_t bytes, double seconds)
{
	return units_per_second(bytes + packets * UNITS_FCS_LEN, seconds) * 8 / 1e9;
}

static inline double
units_gbps_l1(uint64_t packets, uint64_t bytes, double seconds)
{
	return units_per_second(bytes + packets * (UNITS_FCS_LEN + UNITS_L1_OVERHEAD), seconds) *
	       8 / 1e9;
}

/* Percent of a link of `mbps` Mbit/s; NAN when the speed is not known, which is 0. */
static inline double
units_line_rate_percent(double gbps_l1, uint32_t mbps)
{
	return mbps == 0 ? NAN : gbps_l1 * 1e3 / mbps * 100;
}

/* NAN when there is nothing to divide by. */
static inline double
units_ratio(uint64_t of, uint64_t per)
{
	return per == 0 ? NAN : (double)of / (double)per;
}
