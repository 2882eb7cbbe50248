/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "output.h"

/* Fields of the JSON rows, which do without quotes. */
static const char *const columns[] = {"test", "subject", "mode", "checks", "api", "call", "op",
	"state", "order", "size", "batch", "burst", "lcores", "ns", "ns_low", "ns_high", "ns_min",
	"cycles", "cycles_min", "overhead_ns", "objects_per_second", "spread", "trusted", "doubt",
	"order_p", "order_change", "depends_on_order"};

static void
write_cell(FILE *f, const json_t *value)
{
	if (json_is_string(value))
		fputs(json_string_value(value), f);
	else if (json_is_integer(value))
		fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		fprintf(f, "%.10g", json_real_value(value));
	else if (json_is_boolean(value))
		fputs(json_boolean_value(value) ? "true" : "false", f);
}

static void
write_row(FILE *f, const json_t *row)
{
	for (uint32_t c = 0; c < RTE_DIM(columns); c++) {
		write_cell(f, json_object_get(row, columns[c]));
		fputc(c + 1 < RTE_DIM(columns) ? ',' : '\n', f);
	}
}

static int
write_csv(FILE *f, const void *arg)
{
	const struct bench *bench = arg;

	errno = 0;
	for (uint32_t c = 0; c < RTE_DIM(columns); c++)
		fprintf(f, "%s%c", columns[c], c + 1 < RTE_DIM(columns) ? ',' : '\n');
	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];

		for (uint32_t k = 0; k < one->n_rows && one->dropped == NULL; k++) {
			json_t *row = output_row(bench, one, &one->row[k]);

			write_row(f, row);
			json_decref(row);
		}
	}
	if (fflush(f) == 0 && !ferror(f))
		return 0;
	return errno != 0 ? -errno : -EIO;
}

int
output_csv(const struct bench *bench)
{
	const char *path = bench->options->csv;
	const int err = save_by(path, write_csv, bench);

	return err < 0 ? save_failed(path, "csv", err) : 0;
}
