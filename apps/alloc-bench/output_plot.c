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

/* Lines show pairs, warm allocations, or what there is in their place, if it can be trusted. */
static bool
is_drawn(const struct bench *bench, const struct bench_case *one, uint32_t g)
{
	return result_is_shown(bench, one) && result_in_group(bench, one, g) &&
	       one->request.kernel != KERNEL_SPLIT && one->request.fresh == 0 &&
	       one->row[0].doubt == NULL;
}

static double
x_of(const struct bench *bench, const struct bench_case *one)
{
	if (strcmp(bench->test->x, "size") == 0)
		return one->request.size;
	return strcmp(bench->test->x, "lcores") == 0 ? one->request.lcores : one->request.n;
}

/* A point, or of a latency one for each percentile: one in x calls takes longer. */
static void
write_case(const struct bench *bench, const struct bench_case *one, FILE *f)
{
	static const double one_in[RESULT_PERCENTILES - 1] = {2, 10, 100, 1000, 10000};
	const struct row *row = &one->row[0];

	if (row->histogram == NULL) {
		fprintf(f, "%g %g\n", x_of(bench, one), result_ns(row->cycles));
		return;
	}
	for (uint32_t p = 0; p < RTE_DIM(one_in); p++)
		if (!isnan(result_percentile(row, p)))
			fprintf(f, "%g %g\n", one_in[p], result_ns(result_percentile(row, p)));
}

static bool
same_line(const struct bench_case *a, const struct bench_case *b)
{
	return a->subject == b->subject && a->call == b->call;
}

/* The points of the line that starts at case `first`; false where it starts earlier. */
static bool
write_points(const struct bench *bench, uint32_t g, uint32_t first, FILE *f)
{
	for (uint32_t i = 0; i < first; i++)
		if (is_drawn(bench, &bench->cases[i], g) &&
			same_line(&bench->cases[i], &bench->cases[first]))
			return false;
	fprintf(f, "$line%u << EOD\n", first);
	for (uint32_t i = first; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];

		if (is_drawn(bench, one, g) && same_line(one, &bench->cases[first]))
			write_case(bench, one, f);
	}
	fprintf(f, "EOD\n");
	return true;
}

/* One picture of a group's calls. */
static void
write_lines(const struct bench *bench, uint32_t g, FILE *f)
{
	bool *is_first = calloc(bench->n_cases + 1, sizeof(*is_first));
	const char *separator = "plot ";

	if (is_first == NULL)
		return;
	for (uint32_t i = 0; i < bench->n_cases; i++)
		if (is_drawn(bench, &bench->cases[i], g))
			is_first[i] = write_points(bench, g, i, f);
	fprintf(f, "set title '%s %s'\n", bench->test->name, result_group(bench, g));
	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];
		const char *api = one->call->api;

		if (!is_first[i])
			continue;
		fprintf(f, "%s$line%u using 1:2 with linespoints title '%s%s'", separator, i,
			one->subject->title, strcmp(api, "nested") == 0 ? "/nested" : "");
		separator = ", ";
	}
	fprintf(f, "\n");
	free(is_first);
}

/* All groups side by side. */
static void
write_groups(const struct bench *bench, FILE *f)
{
	fprintf(f,
		"set logscale xy\nset xlabel '%s'\nset key outside right noenhanced\n"
		"set multiplot layout 2,2\n",
		bench->test->x);
	for (uint32_t g = 0; result_group(bench, g) != NULL; g++) {
		bool any = false;

		for (uint32_t i = 0; i < bench->n_cases; i++)
			any |= is_drawn(bench, &bench->cases[i], g);
		if (any)
			write_lines(bench, g, f);
	}
	fprintf(f, "unset multiplot\n");
}

static void
write_bars(const struct bench *bench, FILE *f)
{
	char name[192];

	fprintf(f, "set style fill solid 0.5\nset boxwidth 0.8\nset logscale y\n"
		   "set xtics rotate by 90 right noenhanced font ',8'\nset bmargin 26\n"
		   "$bars << EOD\n");
	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];

		for (uint32_t k = 0; k < one->n_rows; k++) {
			if (!result_is_shown(bench, one) || !(one->row[k].cycles > 0))
				continue;
			result_name(bench, one, &one->row[k], name);
			fprintf(f, "\"%s\" %g\n", name, result_ns(one->row[k].cycles));
		}
	}
	fprintf(f, "EOD\nplot $bars using 2:xtic(1) with boxes notitle\n");
}

/* gnuplot says nothing when the disk is full: a picture ends as its format does. */
static bool
is_whole(const char *file, const char *end, size_t length)
{
	char tail[16] = "";
	FILE *f = fopen(file, "re");
	size_t n = 0;

	if (f != NULL && fseek(f, -(long)sizeof(tail), SEEK_END) == 0)
		n = fread(tail, 1, sizeof(tail), f);
	if (f != NULL)
		fclose(f);
	return n == sizeof(tail) && memmem(tail, sizeof(tail), end, length) != NULL;
}

static int
write_plot(FILE *f, const void *arg)
{
	const struct bench *bench = arg;
	const bool is_png = strcmp(strrchr(bench->options->plot, '.'), ".png") == 0;
	const char *const end = is_png ? "IEND" : "</svg>";
	FILE *gnuplot = popen("gnuplot 2>/dev/null", "we");
	char file[64];

	if (gnuplot == NULL)
		return -errno;
	snprintf(file, sizeof(file), "/proc/%d/fd/%d", getpid(), fileno(f));
	fprintf(gnuplot,
		"set terminal %s size 1600,1000\nset output '%s'\n"
		"set title '%s'\nset ylabel 'ns per %s, median'\nset grid\n",
		is_png ? "png" : "svg", file, bench->test->name, bench->test->unit);
	if (bench->test->x != NULL)
		write_groups(bench, gnuplot);
	else
		write_bars(bench, gnuplot);
	return pclose(gnuplot) == 0 && is_whole(file, end, strlen(end)) ? 0 : -EIO;
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
