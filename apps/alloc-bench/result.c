/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include "result.h"

/* Rows below these are marked. */
#define CLOCK_SHARE_MIN 8    /* a timed stretch against the reading of the clock */
#define STEPS_MIN       1000 /* a sample against the clock's step */
#define OVERHEAD_MAX    0.75 /* of what was measured */
#define SPREAD_MAX      0.5

/* A percentile needs so many calls beyond it. */
#define BEYOND_MIN 5

/* An effect of order must be unlikely, and matter. */
#define ORDER_P      0.01
#define ORDER_CHANGE 0.05

double
result_ns(double cycles)
{
	return cycles * 1e9 / (double)rte_get_tsc_hz();
}

double
result_unit(const struct bench *bench, double cycles)
{
	return bench->options->cycles ? cycles : result_ns(cycles);
}

double
result_rate(const struct bench_case *one, const struct row *row)
{
	const double lcores =
		one->request.kernel == KERNEL_PIPELINE ? 1 : (double)one->request.lcores;

	return row->cycles > 0 ? (double)rte_get_tsc_hz() / row->cycles * lcores : NAN;
}

/* Whether the clock can see what was measured. */
static bool
is_too_short(const struct bench *bench, const struct bench_case *one, double gross)
{
	const double stretch = gross * one->request.n;

	switch (one->request.kernel) {
	case KERNEL_SPLIT:
		return stretch < CLOCK_SHARE_MIN * bench->clock_cycles;
	case KERNEL_LATENCY:
		return false; /* percentiles come with the clock's step */
	default:
		return stretch * one->request.passes < STEPS_MIN * (double)bench->clock_step;
	}
}

static const char *
doubt(const struct bench *bench, const struct bench_case *one, const struct row *row, double gross)
{
	if (is_too_short(bench, one, gross))
		return "too short for the clock";
	if (one->request.kernel == KERNEL_LATENCY)
		return NULL;
	if (row->overhead > OVERHEAD_MAX * gross)
		return "mostly the loop's own cost";
	if (!(row->spread <= SPREAD_MAX))
		return "spread over 50%";
	return NULL;
}

static void
compute_row(const struct bench *bench, struct bench_case *one, uint32_t k)
{
	struct row *row = &one->row[k];
	const struct median gross = samples_median(&row->samples);

	/* The least, since what disturbs a loop never makes it faster; and it flatters nobody. */
	if (one->base >= 0 && bench->cases[one->base].row[k].samples.n > 0)
		row->overhead = samples_min(&bench->cases[one->base].row[k].samples);
	row->cycles = fmax(0, gross.value - row->overhead);
	row->cycles_low = fmax(0, gross.low - row->overhead);
	row->cycles_high = fmax(0, gross.high - row->overhead);
	row->cycles_min = fmax(0, samples_min(&row->samples) - row->overhead);
	row->spread = row->cycles > 0 ? samples_range(&row->samples) / row->cycles : NAN;
	row->doubt = doubt(bench, one, row, gross.value);
	row->p_order = samples_mann_whitney(&row->group[0], &row->group[1]);
	if (!isnan(row->p_order))
		row->order_change = samples_median(&row->group[1]).value /
					    samples_median(&row->group[0]).value -
				    1;
}

void
result_compute(struct bench *bench)
{
	uint32_t tested = 0;

	for (uint32_t i = 0; i < bench->n_cases; i++) {
		struct bench_case *one = &bench->cases[i];

		for (uint32_t k = 0; k < one->n_rows; k++) {
			if (one->row[k].samples.n == 0 && one->dropped == NULL)
				one->dropped = "no samples";
			if (one->dropped != NULL)
				continue;
			compute_row(bench, one, k);
			tested += !isnan(one->row[k].p_order);
		}
	}
	/* Bonferroni: so many tests at once would find something in any noise. */
	for (uint32_t i = 0; i < bench->n_cases; i++)
		for (uint32_t k = 0; k < 2; k++)
			if (bench->cases[i].row[k].p_order * tested < 1)
				bench->cases[i].row[k].p_order *= tested;
			else if (!isnan(bench->cases[i].row[k].p_order))
				bench->cases[i].row[k].p_order = 1;
}

static const struct {
	const char *title, *api, *other_api, *call;
} groups[] = {
	{"by handle: single and nested", "single", "nested", "handle"},
	{"by the public call: single", "single", NULL, "public"},
	{"by handle: bulk", "bulk", NULL, "handle"},
	{"by the public call: bulk", "bulk", NULL, "public"},
};

const char *
result_group(const struct bench *bench, uint32_t g)
{
	/* However objects were got, they are touched in the same way. */
	if (bench->test->bit == TEST_TOUCH)
		return g == 0 ? "live objects" : NULL;
	return g < RTE_DIM(groups) ? groups[g].title : NULL;
}

bool
result_in_group(const struct bench *bench, const struct bench_case *one, uint32_t g)
{
	const char *api = one->call->api, *call = one->call->call;

	if (bench->test->bit == TEST_TOUCH)
		return true;
	if (api == NULL || (call != NULL && strcmp(call, groups[g].call) != 0))
		return false;
	return strcmp(api, groups[g].api) == 0 ||
	       (groups[g].other_api != NULL && strcmp(api, groups[g].other_api) == 0);
}

bool
result_is_shown(const struct bench *bench, const struct bench_case *one)
{
	return one->dropped == NULL && bench_wants(bench, one->subject);
}

void
result_label(const struct bench *bench, const struct bench_case *one, const struct row *row,
	char label[64])
{
	const struct request *request = &one->request;
	const bool pairs = request->kernel == KERNEL_PAIR;

	switch (bench->test->bit) {
	case TEST_TIME:
		snprintf(label, 64, "%s",
			one->call->api == NULL ? one->subject->name : "page_alloc_put");
		break;
	case TEST_PAGES:
		snprintf(label, 64, "%s-odr%u-%u", row->op, request->order, request->n);
		break;
	case TEST_KMALLOC:
		snprintf(label, 64, "%s-%u",
			pairs             ? "pair"
			: row == one->row ? "kmalloc"
					  : "kfree",
			request->size);
		break;
	case TEST_LATENCY:
		snprintf(label, 64, "%s-%s-%u", row->op, request->fresh ? "fresh" : "warm",
			request->n);
		break;
	default:
		snprintf(label, 64, "%s-%u", bench->test->name, request->n);
	}
}

void
result_name(const struct bench *bench, const struct bench_case *one, const struct row *row,
	char name[192])
{
	char label[64], subject[64];

	result_label(bench, one, row, label);
	subject_name(one->subject, subject);
	if (one->call->api == NULL)
		snprintf(name, 192, "%s", subject);
	else
		snprintf(name, 192, "%s of %s, %s%s%s", label, subject, one->call->api,
			one->call->call != NULL ? ", " : "",
			one->call->call != NULL ? one->call->call : "");
}

bool
result_depends_on_order(const struct row *row)
{
	return row->p_order < ORDER_P && fabs(row->order_change) > ORDER_CHANGE;
}

double
result_percentile(const struct row *row, uint32_t which)
{
	static const double shares[RESULT_PERCENTILES] = {0.5, 0.9, 0.99, 0.999, 0.9999, 1};

	const double share = shares[which];

	if (share < 1 && (1 - share) * row->histogram->n < BEYOND_MIN)
		return NAN;
	return fmax(0, histogram_quantile(row->histogram, share) - row->overhead);
}
