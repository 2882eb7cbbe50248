/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "histogram.h"

void
histogram_merge(struct histogram *to, const struct histogram *from)
{
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->count[i] += from->count[i];
	to->n += from->n;
	if (from->max > to->max)
		to->max = from->max;
}

/* The largest value of a bucket. */
static uint64_t
bucket_end(uint32_t bucket)
{
	const uint32_t shift = bucket >> HISTOGRAM_BITS;

	if (shift <= 1)
		return bucket;
	const uint64_t mantissa = (bucket & ((1u << HISTOGRAM_BITS) - 1)) | 1u << HISTOGRAM_BITS;

	return ((mantissa + 1) << (shift - 1)) - 1;
}

double
histogram_quantile(const struct histogram *histogram, double share)
{
	const double rank = ceil(share * histogram->n);
	uint64_t seen = 0;

	if (histogram->n == 0)
		return NAN;
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->count[i];
		if (seen > 0 && seen >= rank)
			return fmin(bucket_end(i), histogram->max);
	}
	return histogram->max;
}
