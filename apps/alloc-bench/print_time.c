/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "kernel_figures.h"
#include "result.h"

static void
print_figure(double value, FILE *f)
{
	if (isnan(value))
		fprintf(f, " %7s", "-");
	else
		fprintf(f, " %7.1f", value);
}

static void
print_kernel(const char *operation, FILE *f)
{
	const struct kernel_figure *figure = kernel_figure_find(operation);

	if (figure == NULL)
		return;
	print_figure(figure->i7_cycles, f);
	print_figure(figure->i7_ns, f);
	print_figure(figure->uml_plain, f);
	print_figure(figure->uml_thunk, f);
	fprintf(f, "  %s", figure->kernel);
}

void
print_time(const struct bench *bench, FILE *f)
{
	fprintf(f, "\n%-48s %26s  %13s | kernel: i7 cycles, ns; uml cycles plain, thunks\n", "",
		"median", "minimum");
	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];
		const struct row *row = &one->row[0];
		char label[64], type[160];

		if (!result_is_shown(bench, one))
			continue;
		result_label(bench, one, row, label);
		snprintf(type, sizeof(type), "%s%s%s%s%s", label, one->call->api != NULL ? "-" : "",
			one->call->api != NULL ? one->subject->title : "",
			one->call->api != NULL ? "-" : "",
			one->call->api == NULL                  ? ""
			: strcmp(one->call->api, "nested") == 0 ? one->call->api
								: one->call->call);
		fprintf(f, "Type:%-33s Per elem: %8.3f cycles(tsc) %8.3f ns  %8.3f%s |", type,
			row->cycles, result_ns(row->cycles), row->cycles_min,
			row->doubt != NULL ? "*" : " ");
		print_kernel(label, f);
		fprintf(f, "\n");
	}
	fprintf(f, "The kernel's figures are another machine's (i7-4790K, 2017) and a user-mode "
		   "kernel's (Linux 7.2 on EPYC,\nno fences, no hardware interrupts, mitigations "
		   "off and on): orders of magnitude, not rivals.\n");
}
