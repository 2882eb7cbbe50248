/* SPDX-License-Identifier: BSD-3-Clause */
#include "samples.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int
compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

void
samples_add(struct samples *samples, double value)
{
	assert(samples->n < SAMPLES_MAX);
	samples->value[samples->n++] = value;
}

struct median
samples_median(const struct samples *samples)
{
	const uint32_t n = samples->n;
	double sorted[SAMPLES_MAX];

	assert(n > 0);
	memcpy(sorted, samples->value, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare_doubles);

	/* Ranks of a binomial with p = 1/2: n/2 -+ 1.96 sqrt(n)/2. */
	const double half = 1.96 * sqrt(n) / 2;
	const double low = floor(n / 2.0 - half), high = ceil(n / 2.0 + half);

	return (struct median){
		.value = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2,
		.low = sorted[low < 0 ? 0 : (uint32_t)low],
		.high = sorted[high > n - 1 ? n - 1 : (uint32_t)high],
	};
}

struct median
samples_ratio(const struct samples *a, const struct samples *b)
{
	struct samples ratio = {.n = 0};

	assert(a->n == b->n);
	for (uint32_t i = 0; i < a->n; i++)
		samples_add(&ratio, a->value[i] / b->value[i]);
	return samples_median(&ratio);
}

static uint64_t
next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

void
shuffle(uint32_t *order, uint32_t n, uint64_t *seed)
{
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (uint32_t i = n - 1; i > 0; i--) {
		const uint32_t k = (uint32_t)(next_random(seed) % (i + 1));
		const uint32_t swap = order[i];

		order[i] = order[k];
		order[k] = swap;
	}
}
