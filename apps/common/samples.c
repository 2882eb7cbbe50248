/* SPDX-License-Identifier: BSD-3-Clause */
#include "samples.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int
samples_add(struct samples *samples, double value)
{
	if (samples->n == SAMPLES_MAX)
		return -ENOSPC;
	if (samples->n == samples->room) {
		const uint32_t room = samples->room == 0 ? 32 : 2 * samples->room;
		double *grown = realloc(samples->value, room * sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		samples->value = grown;
		samples->room = room;
	}
	samples->value[samples->n++] = value;
	return 0;
}

void
samples_free(struct samples *samples)
{
	free(samples->value);
	*samples = (struct samples){.n = 0};
}

#define SIGNIFICANT 0.01

static int
compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void
sort(const double *value, uint32_t n, double *sorted)
{
	assert(n > 0 && n <= SAMPLES_MAX);
	memcpy(sorted, value, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_doubles);
}

static struct median
median(const double *value, uint32_t n)
{
	double sorted[SAMPLES_MAX];

	sort(value, n, sorted);
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
samples_median(const struct samples *samples)
{
	return median(samples->value, samples->n);
}

double
samples_min(const struct samples *samples)
{
	double min = samples->value[0];

	for (uint32_t i = 1; i < samples->n; i++)
		min = fmin(min, samples->value[i]);
	return min;
}

double
samples_range(const struct samples *samples)
{
	const uint32_t n = samples->n;
	double sorted[SAMPLES_MAX];

	sort(samples->value, n, sorted);
	return sorted[(n - 1) * 3 / 4] - sorted[(n - 1) / 4];
}

struct median
samples_ratio(const struct samples *a, const struct samples *b)
{
	double ratio[SAMPLES_MAX];

	assert(a->n == b->n);
	for (uint32_t i = 0; i < a->n; i++)
		ratio[i] = a->value[i] / b->value[i];
	return median(ratio, a->n);
}

struct ranked {
	double value;
	double is_a; /* 1 or 0 */
};

double
samples_mann_whitney(const struct samples *a, const struct samples *b)
{
	struct ranked all[2 * SAMPLES_MAX];
	const double na = a->n, nb = b->n, n = na + nb;
	double ranks_a = 0, ties = 0;
	uint32_t total = 0, end;

	if (a->n < SAMPLES_MIN_TEST || b->n < SAMPLES_MIN_TEST)
		return NAN;
	for (uint32_t i = 0; i < a->n; i++)
		all[total++] = (struct ranked){a->value[i], 1};
	for (uint32_t i = 0; i < b->n; i++)
		all[total++] = (struct ranked){b->value[i], 0};
	qsort(all, total, sizeof(all[0]), compare_doubles);
	for (uint32_t i = 0; i < total; i = end) {
		double of_a = 0;

		for (end = i; end < total && !(all[end].value > all[i].value); end++)
			of_a += all[end].is_a;
		const double tied = end - i;

		ranks_a += of_a * (i + 1 + (tied - 1) / 2);
		ties += tied * tied * tied - tied;
	}
	const double u = ranks_a - na * (na + 1) / 2;
	const double variance = na * nb / 12 * (n + 1 - ties / (n * (n - 1)));
	const double distance = fabs(u - na * nb / 2) - 0.5;

	if (!(variance > 0) || distance <= 0)
		return 1;
	return erfc(distance / sqrt(2 * variance));
}

struct difference
samples_differ(
	const struct samples *before, const struct samples *after, uint32_t tests, double least)
{
	struct difference difference = {.gain = NAN, .p = samples_mann_whitney(before, after)};
	const double old = before->n > 0 ? samples_median(before).value : 0;

	if (old > 0 && after->n > 0)
		difference.gain = (old - samples_median(after).value) / old;
	if (isnan(difference.p) || isnan(difference.gain))
		return difference;
	difference.p = fmin(1, difference.p * tests);
	if (difference.p >= SIGNIFICANT || fabs(difference.gain) <= least)
		difference.verdict = VERDICT_NOISE;
	else
		difference.verdict = difference.gain > 0 ? VERDICT_BETTER : VERDICT_WORSE;
	return difference;
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
	for (uint32_t i = n; i-- > 1;) {
		const uint32_t k = (uint32_t)(next_random(seed) % (i + 1));
		const uint32_t swap = order[i];

		order[i] = order[k];
		order[k] = swap;
	}
}
