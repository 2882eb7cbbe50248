/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures, drawn by gnuplot: lines over batches or sizes, or a bar per row. */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output.h"

int
plot_check(const char *path)
{
	if (system("command -v gnuplot >/dev/null 2>&1") == 0)
		return 0;
	cli_error("no gnuplot to draw %s; install package gnuplot-nox, or leave out --plot", path);
	return -ENOENT;
}

/* Lines show pairs; where there are none, as in `touch`, all there is. */
static const struct row *
plotted_row(const struct bench *bench, const struct bench_case *one)
{
	const bool usable = result_is_shown(bench, one) && one->request.kernel != KERNEL_SPLIT;

	return usable ? &one->row[0] : NULL;
}

static double
x_of(const struct bench *bench, const struct bench_case *one)
{
	if (strcmp(bench->test->x, "size") == 0)
		return one->request.size;
	return strcmp(bench->test->x, "lcores") == 0 ? one->request.lcores : one->request.n;
}

static bool
same_line(const struct bench_case *a, const struct bench_case *b)
{
	return a->subject == b->subject && a->call == b->call;
}

/* The points of the line that starts at case `first`; false where it is not the line's first. */
static bool
write_points(const struct bench *bench, uint32_t first, FILE *f)
{
	for (uint32_t i = 0; i < first; i++)
		if (plotted_row(bench, &bench->cases[i]) != NULL &&
			same_line(&bench->cases[i], &bench->cases[first]))
			return false;
	fprintf(f, "$line%u << EOD\n", first);
	for (uint32_t i = first; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];
		const struct row *row = plotted_row(bench, one);

		if (row != NULL && same_line(one, &bench->cases[first]))
			fprintf(f, "%g %g\n", x_of(bench, one), result_ns(row->cycles));
	}
	fprintf(f, "EOD\n");
	return true;
}

static void
write_lines(const struct bench *bench, FILE *f)
{
	bool *is_first = calloc(bench->n_cases, sizeof(*is_first));
	const char *separator = "plot ";
	char name[64];

	fprintf(f, "set logscale xy\nset xlabel '%s'\nset key outside right noenhanced\n",
		bench->test->x);
	for (uint32_t i = 0; i < bench->n_cases && is_first != NULL; i++)
		if (plotted_row(bench, &bench->cases[i]) != NULL)
			is_first[i] = write_points(bench, i, f);
	for (uint32_t i = 0; i < bench->n_cases && is_first != NULL; i++) {
		const struct bench_case *one = &bench->cases[i];

		if (!is_first[i])
			continue;
		fprintf(f, "%s$line%u using 1:2 with linespoints title '%s, %s%s%s'", separator, i,
			subject_name(one->subject, name), one->call->api,
			one->call->call != NULL ? ", " : "",
			one->call->call != NULL ? one->call->call : "");
		separator = ", ";
	}
	fprintf(f, "\n");
	free(is_first);
}

static void
write_bars(const struct bench *bench, FILE *f)
{
	char name[192];

	fprintf(f, "set style fill solid 0.5\nset boxwidth 0.8\nset yrange [0:*]\n"
		   "set xtics rotate by -60 noenhanced\nset bmargin 14\n$bars << EOD\n");
	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];

		for (uint32_t k = 0; k < one->n_rows && result_is_shown(bench, one); k++) {
			result_name(bench, one, &one->row[k], name);
			fprintf(f, "\"%s\" %g\n", name, result_ns(one->row[k].cycles));
		}
	}
	fprintf(f, "EOD\nplot $bars using 2:xtic(1) with boxes notitle\n");
}

static int
write_plot(FILE *f, const void *arg)
{
	const struct bench *bench = arg;
	const char *dot = strrchr(bench->options->plot, '.');
	FILE *gnuplot = popen("gnuplot 2>/dev/null", "we");

	if (gnuplot == NULL)
		return -errno;
	fprintf(gnuplot,
		"set terminal %s size 1200,800\nset output '/proc/%d/fd/%d'\n"
		"set title 'alloc-bench %s'\nset ylabel 'ns per %s, median'\nset grid\n",
		strcmp(dot, ".png") == 0 ? "png" : "svg", getpid(), fileno(f), bench->test->name,
		bench->test->unit);
	if (bench->test->x != NULL)
		write_lines(bench, gnuplot);
	else
		write_bars(bench, gnuplot);
	return pclose(gnuplot) == 0 ? 0 : -EIO;
}

int
output_plot(const struct bench *bench)
{
	const char *path = bench->options->plot;
	const int err = save_by(path, write_plot, bench);

	if (err < 0)
		cli_error("gnuplot cannot draw %s: %s; choose another --plot file, or leave it out",
			path, json_strerror(err));
	return err;
}
