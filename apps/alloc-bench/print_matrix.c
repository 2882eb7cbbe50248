/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include <report.h>

#include "result.h"

#define COLUMNS_MAX 48

struct column {
	uint32_t subject, call;
};

static uint32_t
find_columns(const struct bench *bench, uint32_t group, struct column *columns)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];
		const struct column column = {one->request.subject, one->request.call};
		uint32_t k = 0;

		if (!result_is_shown(bench, one) || !result_in_group(bench, one, group))
			continue;
		while (k < n && memcmp(&columns[k], &column, sizeof(column)) != 0)
			k++;
		if (k == n && n < COLUMNS_MAX)
			columns[n++] = column;
	}
	return n;
}

/* The row of that label in a column, or NULL. */
static const struct row *
find_row(const struct bench *bench, const struct column *column, const char *label)
{
	char other[64];

	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];

		if (one->request.subject != column->subject || one->request.call != column->call ||
			!result_is_shown(bench, one))
			continue;
		for (uint32_t k = 0; k < one->n_rows; k++) {
			result_label(bench, one, &one->row[k], other);
			if (strcmp(label, other) == 0)
				return &one->row[k];
		}
	}
	return NULL;
}

static int
add_cell(struct report_table *table, const struct bench *bench, const struct row *row, bool min)
{
	char text[REPORT_CELL_LEN];

	if (row == NULL)
		return report_text(table, "-");
	snprintf(text, sizeof(text), "%.2f%s",
		result_unit(bench, min ? row->cycles_min : row->cycles),
		row->doubt != NULL ? "*" : "");
	return report_text(table, text);
}

/* Labels in the order of rows: by op, then as the cases come. */
static int
add_lines(struct report_table *table, const struct bench *bench, const struct column *columns,
	uint32_t n, bool min)
{
	static const char *const ops[] = {"alloc", "free", "pair", "touch"};
	char labels[256][64];
	uint32_t n_labels = 0;
	int err = 0;

	for (uint32_t op = 0; op < RTE_DIM(ops); op++) {
		for (uint32_t i = 0; i < bench->n_cases; i++) {
			const struct bench_case *one = &bench->cases[i];

			for (uint32_t k = 0; k < one->n_rows && n_labels < RTE_DIM(labels); k++) {
				uint32_t old = 0;

				if (!result_is_shown(bench, one) ||
					strcmp(one->row[k].op, ops[op]) != 0)
					continue;
				result_label(bench, one, &one->row[k], labels[n_labels]);
				while (strcmp(labels[old], labels[n_labels]) != 0)
					old++;
				n_labels += old == n_labels;
			}
		}
	}
	for (uint32_t line = 0; line < n_labels; line++) {
		const struct row *cells[COLUMNS_MAX];
		uint32_t found = 0;

		for (uint32_t c = 0; c < n; c++) {
			cells[c] = find_row(bench, &columns[c], labels[line]);
			found += cells[c] != NULL;
		}
		if (found == 0)
			continue;
		err |= report_text(table, labels[line]);
		for (uint32_t c = 0; c < n; c++)
			err |= add_cell(table, bench, cells[c], min);
	}
	return err;
}

static void
print_table(const struct bench *bench, const struct column *columns, uint32_t n, bool min, FILE *f)
{
	char titles[COLUMNS_MAX][REPORT_CELL_LEN];
	const char *pointers[COLUMNS_MAX + 1] = {min ? "Min" : "Median"};
	struct report_table table;

	for (uint32_t c = 0; c < n; c++) {
		const struct subject *subject = &subjects[columns[c].subject];
		const char *api = subject->calls[columns[c].call].api;

		snprintf(titles[c], sizeof(titles[c]), "%s%s", subject->title,
			strcmp(api, "nested") == 0 && bench->test->bit != TEST_TOUCH ? "/nested"
										     : "");
		pointers[1 + c] = titles[c];
	}
	if (report_init(&table, n + 1, pointers) < 0)
		return;
	if (add_lines(&table, bench, columns, n, min) == 0)
		report_print(&table, f);
	report_free(&table);
}

void
print_matrix(const struct bench *bench, FILE *f)
{
	struct column columns[COLUMNS_MAX];
	const char *title;

	for (uint32_t g = 0; (title = result_group(bench, g)) != NULL; g++) {
		const uint32_t n = find_columns(bench, g, columns);

		if (n == 0)
			continue;
		fprintf(f, "\n%s, %s per %s\n", title, bench->options->cycles ? "TSC cycles" : "ns",
			bench->test->unit);
		print_table(bench, columns, n, false, f);
		fprintf(f, "\n");
		print_table(bench, columns, n, true, f);
	}
}
