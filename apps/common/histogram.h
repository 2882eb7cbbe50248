/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Counts of cycles: exact below 64, within 1/32 above, and the exact maximum. */

#include <stdint.h>

#define HISTOGRAM_BITS    5
#define HISTOGRAM_BUCKETS ((65 - HISTOGRAM_BITS) << HISTOGRAM_BITS)

struct histogram {
	uint64_t max;
	uint64_t n;
	uint32_t count[HISTOGRAM_BUCKETS];
};

static inline uint32_t
histogram_bucket(uint64_t value)
{
	const uint32_t log = 63 - __builtin_clzll(value | 1);

	if (log <= HISTOGRAM_BITS)
		return value;
	return ((log - HISTOGRAM_BITS) << HISTOGRAM_BITS) + (value >> (log - HISTOGRAM_BITS));
}

static inline void
histogram_add(struct histogram *histogram, uint64_t value)
{
	histogram->count[histogram_bucket(value)]++;
	histogram->n++;
	if (value > histogram->max)
		histogram->max = value;
}

void histogram_merge(struct histogram *to, const struct histogram *from);

/* The value that a share of 0..1 of all counts does not exceed; NAN without counts. */
double histogram_quantile(const struct histogram *histogram, double share);
