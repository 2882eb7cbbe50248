/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Samples of one subject, and what can honestly be said of them. */

#include <stdint.h>

#define SAMPLES_MAX 1000

struct samples {
	uint32_t n;
	double value[SAMPLES_MAX]; /* in the order in which they were taken */
};

struct median {
	double value;
	double low,
		high; /* 95% interval of the median, by order statistics: no assumption of shape */
};

void samples_add(struct samples *samples, double value);
struct median samples_median(const struct samples *samples);

/* The median of a[i] / b[i], samples taken next to each other in time. */
struct median samples_ratio(const struct samples *a, const struct samples *b);

/* A shuffled 0..n-1, repeatable by its seed. */
void shuffle(uint32_t *order, uint32_t n, uint64_t *seed);
