/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables: aligned, whatever is in them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <report.h>

static void
expect_print(const struct report_table *table, const char *expected)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	report_print(table, f);
	fclose(f);
	assert_string_equal(text, expected);
	free(text);
}

static void
test_aligned(void **state)
{
	static const char *const titles[] = {"port", "Mpps", "x"};
	struct report_table table;

	(void)state;
	assert_int_equal(report_init(&table, 3, titles), 0);
	assert_int_equal(report_count(&table, 0), 0);
	assert_int_equal(report_real(&table, 14.8809, 2), 0);
	assert_int_equal(report_count(&table, UINT64_MAX), 0);
	assert_int_equal(report_text(&table, "total"), 0);
	assert_int_equal(report_real(&table, NAN, 2), 0);
	assert_int_equal(report_text(&table, ""), 0);
	expect_print(&table, " port   Mpps                     x\n"
			     "    0  14.88  18446744073709551615\n"
			     "total      -                      \n");
	report_free(&table);
}

/* A longer text than a cell holds is cut, not written beyond it. */
static void
test_long_text(void **state)
{
	static const char *const titles[] = {"a"};
	struct report_table table;
	char text[100], expected[400];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(report_init(&table, 1, titles), 0);
	assert_int_equal(report_text(&table, text), 0);
	assert_int_equal(report_text(&table, "b"), 0);
	snprintf(expected, sizeof(expected), "%*s\n%.*s\n%*s\n", REPORT_CELL_LEN - 1, "a",
		REPORT_CELL_LEN - 1, text, REPORT_CELL_LEN - 1, "b");
	expect_print(&table, expected);
	report_free(&table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aligned),
		cmocka_unit_test(test_long_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
