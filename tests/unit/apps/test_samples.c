/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics against figures worked out elsewhere. */

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <histogram.h>
#include <samples.h>

static void
expect_near(double value, double expected)
{
	assert_true(fabs(value - expected) <= 1e-6 * fmax(1, fabs(expected)));
}

static struct samples
make(uint32_t n, const double *value)
{
	struct samples samples = {.n = 0};

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(samples_add(&samples, value[i]), 0);
	return samples;
}

/* first, first + step, ... */
static struct samples
series(uint32_t n, double first, double step)
{
	struct samples samples = {.n = 0};

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(samples_add(&samples, first + i * step), 0);
	return samples;
}

static void
test_median(void **state)
{
	const double odd[] = {5, 1, 9}, even[] = {4, 1, 3, 2};
	struct samples a = make(3, odd), b = make(4, even), c = series(101, 0, 1);

	(void)state;
	expect_near(samples_median(&a).value, 5);
	expect_near(samples_min(&a), 1);
	expect_near(samples_median(&b).value, 2.5);
	expect_near(samples_median(&c).value, 50);
	expect_near(samples_median(&c).low, 40);
	expect_near(samples_median(&c).high, 61);
	expect_near(samples_range(&c), 50);
	samples_free(&a);
	samples_free(&b);
	samples_free(&c);
}

static void
test_one_sample(void **state)
{
	struct samples a = series(1, 3, 0);

	(void)state;
	expect_near(samples_median(&a).low, 3);
	expect_near(samples_median(&a).high, 3);
	expect_near(samples_range(&a), 0);
	samples_free(&a);
}

static void
test_full(void **state)
{
	struct samples a = series(SAMPLES_MAX, 0, 1), b = series(SAMPLES_MAX, 1, 1);

	(void)state;
	assert_int_equal(samples_add(&a, 1), -ENOSPC);
	assert_int_equal(a.n, SAMPLES_MAX);
	expect_near(samples_ratio(&b, &b).value, 1);
	assert_true(samples_mann_whitney(&a, &b) > 0.9);
	samples_free(&a);
	samples_free(&b);
	assert_int_equal(a.n, 0);
}

static void
test_mann_whitney(void **state)
{
	const double x[] = {1, 1, 2, 2, 3, 3, 4, 4}, y[] = {1, 2, 2, 3, 3, 4, 4, 5, 5};
	struct samples a = series(10, 1, 1), b = series(10, 6, 1);
	struct samples low = series(8, 0, 1), high = series(8, 100, 1);
	struct samples tied = make(8, x), ties = make(9, y), same = series(30, 7, 0);

	(void)state;
	expect_near(samples_mann_whitney(&a, &b), 0.005075392315);
	expect_near(samples_mann_whitney(&b, &a), 0.005075392315);
	expect_near(samples_mann_whitney(&low, &high), 0.000939105699);
	expect_near(samples_mann_whitney(&tied, &ties), 0.301718926539);
	expect_near(samples_mann_whitney(&a, &a), 1);
	expect_near(samples_mann_whitney(&same, &same), 1);
	samples_free(&a);
	samples_free(&b);
	samples_free(&low);
	samples_free(&high);
	samples_free(&tied);
	samples_free(&ties);
	samples_free(&same);
}

static void
test_too_few_to_tell(void **state)
{
	struct samples few = series(SAMPLES_MIN_TEST - 1, 0, 1), many = series(50, 100, 1);

	(void)state;
	assert_true(isnan(samples_mann_whitney(&few, &many)));
	assert_true(isnan(samples_mann_whitney(&many, &few)));
	samples_free(&few);
	samples_free(&many);
}

static void
test_differ(void **state)
{
	struct samples old = series(20, 100, 0.1), faster = series(20, 80, 0.1);
	struct samples close = series(20, 100.6, 0.1), few = series(7, 10, 1), none = {.n = 0};
	struct samples zero = series(20, 0, 0);

	(void)state;
	assert_int_equal(samples_differ(&old, &old, 1, 0).verdict, VERDICT_NOISE);
	assert_int_equal(samples_differ(&old, &faster, 1, 0).verdict, VERDICT_BETTER);
	assert_int_equal(samples_differ(&faster, &old, 1, 0).verdict, VERDICT_WORSE);
	expect_near(samples_differ(&old, &faster, 1, 0).gain, 20 / 100.95);
	/* Significant alone, but not worth a word, or one of many. */
	assert_int_equal(samples_differ(&old, &close, 1, 0).verdict, VERDICT_WORSE);
	assert_int_equal(samples_differ(&old, &close, 1, 0.01).verdict, VERDICT_NOISE);
	assert_int_equal(samples_differ(&old, &close, 1000, 0).verdict, VERDICT_NOISE);
	expect_near(samples_differ(&old, &old, 1000, 0).p, 1);
	assert_int_equal(samples_differ(&few, &old, 1, 0).verdict, VERDICT_UNKNOWN);
	assert_int_equal(samples_differ(&none, &old, 1, 0).verdict, VERDICT_UNKNOWN);
	assert_int_equal(samples_differ(&zero, &old, 1, 0).verdict, VERDICT_UNKNOWN);
	samples_free(&old);
	samples_free(&faster);
	samples_free(&close);
	samples_free(&few);
	samples_free(&zero);
}

/* Every order of three turns up about as often as the others. */
static void
test_shuffle(void **state)
{
	uint32_t seen[27] = {0}, order[3], orders = 0;
	uint64_t seed = 1;

	(void)state;
	for (uint32_t i = 0; i < 6000; i++) {
		shuffle(order, 3, &seed);
		assert_int_equal(order[0] + order[1] + order[2], 3);
		seen[order[0] * 9 + order[1] * 3 + order[2]]++;
	}
	for (uint32_t i = 0; i < 27; i++) {
		orders += seen[i] > 0;
		assert_true(seen[i] == 0 || (seen[i] > 850 && seen[i] < 1150));
	}
	assert_int_equal(orders, 6);
	shuffle(order, 0, &seed);
}

static void
test_histogram(void **state)
{
	static struct histogram a, b;

	(void)state;
	assert_true(isnan(histogram_quantile(&a, 0.5)));
	for (uint32_t i = 1; i <= 100; i++)
		histogram_add(&a, i <= 50 ? i : 1000 * i);
	expect_near(histogram_quantile(&a, 0), 1);
	expect_near(histogram_quantile(&a, 0.5), 50);
	assert_true(histogram_quantile(&a, 0.9) >= 90000 && histogram_quantile(&a, 0.9) < 93000);
	expect_near(histogram_quantile(&a, 1), 100000);
	histogram_add(&b, UINT64_MAX);
	histogram_add(&b, 0);
	histogram_merge(&a, &b);
	assert_int_equal(a.n, 102);
	assert_true(a.max == UINT64_MAX);
	expect_near(histogram_quantile(&a, 0), 0);
}

/* A bucket's values lie within 1/32 of each other, and no two buckets overlap. */
static void
test_histogram_buckets(void **state)
{
	uint32_t last = histogram_bucket(0);

	(void)state;
	assert_int_equal(last, 0);
	for (uint64_t value = 1; value < UINT64_C(1) << 60; value += 1 + value / 64) {
		const uint32_t bucket = histogram_bucket(value);

		assert_true(bucket >= last && bucket < HISTOGRAM_BUCKETS);
		assert_true(value < 64 ? bucket == value
				       : histogram_bucket(value + value / 31 + 1) > bucket);
		last = bucket;
	}
	assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median),
		cmocka_unit_test(test_one_sample),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_mann_whitney),
		cmocka_unit_test(test_too_few_to_tell),
		cmocka_unit_test(test_differ),
		cmocka_unit_test(test_shuffle),
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_histogram_buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
