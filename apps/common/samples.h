/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Samples of one subject, and what can honestly be said of them. */

#include <stdint.h>

#define SAMPLES_MAX 1000

/* Fewer on either side can hardly tell a difference from chance. */
#define SAMPLES_MIN_TEST 8

/* Zeroed memory is an empty one. Release with samples_free(). */
struct samples {
	uint32_t n;
	uint32_t room;
	double *value; /* in the order in which they were taken */
};

struct median {
	double value;
	double low,
		high; /* 95% interval of the median, by order statistics: no assumption of shape */
};

/* 0, -ENOMEM, or -ENOSPC after SAMPLES_MAX. */
int samples_add(struct samples *samples, double value);
void samples_free(struct samples *samples);

/* At least one sample is needed. */
struct median samples_median(const struct samples *samples);
double samples_min(const struct samples *samples);

/* From the first to the third quartile. */
double samples_range(const struct samples *samples);

/* The median of a[i] / b[i], samples taken next to each other in time. */
struct median samples_ratio(const struct samples *a, const struct samples *b);

/*
 * Mann-Whitney U test, two-sided, normal approximation with ties and continuity: the probability
 * that samples of one distribution differ by as much. NAN below SAMPLES_MIN_TEST on either side.
 */
double samples_mann_whitney(const struct samples *a, const struct samples *b);

enum verdict {
	VERDICT_UNKNOWN, /* too few samples */
	VERDICT_NOISE,
	VERDICT_BETTER,
	VERDICT_WORSE,
};

/* What `after` costs against `before`. */
struct difference {
	double gain; /* of the medians, as a share of before: positive where it costs less */
	double p;    /* corrected for `tests` of them at once (Bonferroni) */
	enum verdict verdict;
};

/* Noise is what may be chance, at 1% for all tests together, or is not above `least`. */
struct difference samples_differ(
	const struct samples *before, const struct samples *after, uint32_t tests, double least);

/* A shuffled 0..n-1, repeatable by its seed, which must not be 0. */
void shuffle(uint32_t *order, uint32_t n, uint64_t *seed);
