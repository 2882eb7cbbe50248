/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Results for people and for programs. */

#include "contend.h"
#include "options.h"
#include "pool.h"
#include "ports.h"
#include "stats.h"

struct outcome {
	const struct options *options;
	const struct ports *ports;
	const struct streams *streams;
	const struct pool *pool;
	const struct contender *contender;
	const struct result *results; /* one per port, and the total */
	double seconds;
};

/* The packets that a port, or all, forwarded: sent ones, or received ones in rxonly. */
uint64_t outcome_packets(const struct outcome *outcome, const struct result *result);
uint64_t outcome_bytes(const struct outcome *outcome, const struct result *result);

/* Percent of the links' speed, from L1 Gbit/s; NAN when one is not known. i: a port, or the total
 */
double outcome_line_rate(const struct outcome *outcome, uint16_t i, double gbps_l1);

/* Who forwards what to whom, before the measurement. */
void output_setup(const struct outcome *outcome);

void output_table(const struct outcome *outcome);

/* 0, or -errno after one line on stderr. */
int output_json(const struct outcome *outcome);
