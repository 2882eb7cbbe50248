/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates against the figures that everybody in this field knows. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <units.h>

static void
expect_near(double value, double expected, double distance)
{
	assert_true(fabs(value - expected) <= distance);
}

static void
test_64_bytes_at_10_gigabit(void **state)
{
	const uint64_t packets = 14880952, bytes = packets * 60;

	(void)state;
	expect_near(units_mpps(packets, 1), 14.880952, 1e-9);
	expect_near(units_gbps_l2(packets, bytes, 1), 7.619047, 1e-5);
	expect_near(units_gbps_l1(packets, bytes, 1), 10, 1e-5);
	expect_near(units_line_rate_percent(units_gbps_l1(packets, bytes, 1), 10000), 100, 1e-4);
}

/* MTU 1500 is 1538 bytes on the wire: 8.127 Mpps at 100 Gbit/s. */
static void
test_1518_bytes_at_100_gigabit(void **state)
{
	const uint64_t packets = 2 * 8127438, bytes = packets * 1514;

	(void)state;
	expect_near(units_mpps(packets, 2), 8.127438, 1e-9);
	expect_near(units_gbps_l1(packets, bytes, 2), 100, 1e-4);
	expect_near(units_line_rate_percent(units_gbps_l1(packets, bytes, 2), 100000), 100, 1e-4);
}

static void
test_nothing(void **state)
{
	(void)state;
	assert_true(units_mpps(0, 1) == 0);
	assert_true(units_mpps(5, 0) == 0);
	assert_true(units_gbps_l1(0, 0, 1) == 0);
	assert_true(isnan(units_line_rate_percent(1, 0)));
	assert_true(isnan(units_ratio(5, 0)));
	expect_near(units_ratio(5, 2), 2.5, 1e-12);
}

/* A year at 1 Tbit/s: sums must not lose small numbers, nor wrap. */
static void
test_large(void **state)
{
	const double seconds = 365.0 * 24 * 3600;
	const uint64_t packets = 81274380ull * 365 * 24 * 3600, bytes = packets * 1514;

	(void)state;
	expect_near(units_gbps_l1(packets, bytes, seconds), 1000, 1e-3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_64_bytes_at_10_gigabit),
		cmocka_unit_test(test_1518_bytes_at_100_gigabit),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
