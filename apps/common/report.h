/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Tables of right-aligned figures for people to read. */

#include <stdint.h>
#include <stdio.h>

#define REPORT_CELL_LEN 32

struct report_table {
	unsigned int n_columns;
	unsigned int n_cells;
	char (*cells)[REPORT_CELL_LEN]; /* row by row; the titles are the first row */
};

/* Start a table with its row of titles. 0 or -ENOMEM. Release with report_free(). */
int report_init(struct report_table *table, unsigned int n_columns, const char *const *titles);
void report_free(struct report_table *table);

/* Append one cell. A row is full after n_columns. 0 or -ENOMEM. */
int report_text(struct report_table *table, const char *text);
int report_count(struct report_table *table, uint64_t count);

/* With `decimals` digits after the point; "-" for NAN. */
int report_real(struct report_table *table, double value, int decimals);

/* Columns are as wide as their widest cell. */
void report_print(const struct report_table *table, FILE *f);
