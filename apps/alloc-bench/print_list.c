/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include <report.h>

#include "result.h"

/* The cells that say which row it is. */
static int
add_names(struct report_table *table, const struct bench *bench, const struct bench_case *one,
	const struct row *row)
{
	char label[64], name[64];

	result_label(bench, one, row, label);
	return report_text(table, label) | report_text(table, subject_name(one->subject, name)) |
	       report_text(table, one->call->api) |
	       report_text(table, one->call->call != NULL ? one->call->call : "-");
}

/* The same case on one lcore, or NULL. */
static const struct bench_case *
alone(const struct bench *bench, const struct bench_case *one)
{
	struct request request = one->request;

	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *other = &bench->cases[i];

		request.lcores = 1;
		request.passes = other->request.passes;
		if (other->dropped == NULL &&
			memcmp(&other->request, &request, sizeof(request)) == 0)
			return other;
	}
	return NULL;
}

/* How many times as many objects all lcores move than one does. */
static double
scale(const struct bench *bench, const struct bench_case *one)
{
	const struct bench_case *single = alone(bench, one);

	return single == NULL || single == one
		       ? NAN
		       : result_rate(one, &one->row[0]) / result_rate(single, &single->row[0]);
}

/* What `floor` scales by where `one` does. */
static double
floor_scale(const struct bench *bench, const struct bench_case *one)
{
	const bool bulk = strcmp(one->call->api, "bulk") == 0;

	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *other = &bench->cases[i];

		if (strcmp(other->subject->name, "floor") == 0 && other->dropped == NULL &&
			other->request.n == one->request.n &&
			other->request.lcores == one->request.lcores &&
			(strcmp(other->call->api, "bulk") == 0) == bulk)
			return scale(bench, other);
	}
	return NAN;
}

void
print_list(const struct bench *bench, FILE *f)
{
	static const char *const titles[] = {"", "subject", "api", "call", "lcores", "ns", "ns min",
		"cycles", "cycles min", "Mobjects/s", "spread %", "scale", "of floor's"};
	struct report_table table;
	int err = 0;

	if (report_init(&table, RTE_DIM(titles), titles) < 0)
		return;
	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];
		const struct row *row = &one->row[0];
		char ns[REPORT_CELL_LEN];

		if (!result_is_shown(bench, one))
			continue;
		snprintf(ns, sizeof(ns), "%.2f%s", result_ns(row->cycles),
			row->doubt != NULL ? "*" : "");
		err |= add_names(&table, bench, one, row);
		err |= report_count(&table, one->request.lcores);
		err |= report_text(&table, ns);
		err |= report_real(&table, result_ns(row->cycles_min), 2);
		err |= report_real(&table, row->cycles, 2);
		err |= report_real(&table, row->cycles_min, 2);
		err |= report_real(&table, result_rate(one, row) / 1e6, 1);
		err |= report_real(&table, 100 * row->spread, 1);
		err |= report_real(&table, scale(bench, one), 2);
		err |= report_real(&table, scale(bench, one) / floor_scale(bench, one), 2);
	}
	fprintf(f, "\nper %s and lcore\n", bench->test->unit);
	if (err == 0)
		report_print(&table, f);
	report_free(&table);
}

void
print_latency(const struct bench *bench, FILE *f)
{
	static const char *const titles[] = {"", "subject", "api", "call", "calls", "p50", "p90",
		"p99", "p99.9", "p99.99", "max"};
	struct report_table table;
	int err = 0;

	if (report_init(&table, RTE_DIM(titles), titles) < 0)
		return;
	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];

		if (!result_is_shown(bench, one))
			continue;
		for (uint32_t k = 0; k < one->n_rows; k++) {
			const struct row *row = &one->row[k];

			err |= add_names(&table, bench, one, row);
			err |= report_count(&table, row->histogram->n);
			for (uint32_t p = 0; p < RESULT_PERCENTILES; p++)
				err |= report_real(
					&table, result_unit(bench, result_percentile(row, p)), 1);
		}
	}
	fprintf(f, "\nof one call, in %s; the clock steps by %.1f\n",
		bench->options->cycles ? "TSC cycles" : "ns",
		result_unit(bench, (double)bench->clock_step));
	if (err == 0)
		report_print(&table, f);
	report_free(&table);
}
