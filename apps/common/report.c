/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static char *
add_cell(struct report_table *table)
{
	void *cells;

	if (table->n_cells % table->n_columns == 0) {
		cells = realloc(
			table->cells, (table->n_cells + table->n_columns) * sizeof(*table->cells));
		if (cells == NULL)
			return NULL;
		table->cells = cells;
	}
	return table->cells[table->n_cells++];
}

int
report_init(struct report_table *table, unsigned int n_columns, const char *const *titles)
{
	unsigned int i;

	memset(table, 0, sizeof(*table));
	table->n_columns = n_columns;
	for (i = 0; i < n_columns; i++) {
		if (report_text(table, titles[i]) < 0) {
			report_free(table);
			return -ENOMEM;
		}
	}
	return 0;
}

void
report_free(struct report_table *table)
{
	free(table->cells);
	table->cells = NULL;
	table->n_cells = 0;
}

int
report_text(struct report_table *table, const char *text)
{
	char *cell = add_cell(table);

	if (cell == NULL)
		return -ENOMEM;
	snprintf(cell, REPORT_CELL_LEN, "%s", text);
	return 0;
}

int
report_count(struct report_table *table, uint64_t count)
{
	char text[REPORT_CELL_LEN];

	snprintf(text, sizeof(text), "%" PRIu64, count);
	return report_text(table, text);
}

int
report_real(struct report_table *table, double value, int decimals)
{
	char text[REPORT_CELL_LEN];

	if (isnan(value))
		return report_text(table, "-");
	snprintf(text, sizeof(text), "%.*f", decimals, value);
	return report_text(table, text);
}

static int
column_width(const struct report_table *table, unsigned int column)
{
	size_t width = 0, len;
	unsigned int i;

	for (i = column; i < table->n_cells; i += table->n_columns) {
		len = strlen(table->cells[i]);
		if (len > width)
			width = len;
	}
	return width;
}

void
report_print(const struct report_table *table, FILE *f)
{
	unsigned int i, column;

	for (i = 0; i < table->n_cells; i++) {
		column = i % table->n_columns;
		fprintf(f, "%*s%s", column_width(table, column), table->cells[i],
			column + 1 == table->n_columns ? "\n" : "  ");
	}
}
