/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two results side by side, as mmtests does: the second one's gain in percent, and whether it is
 * more than noise. Samples of one run share its luck, so that a test of the samples alone finds
 * differences between any two runs. The peers are the same code in both: how far they moved shows
 * what two runs on this machine can tell apart.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

#define NOISE_MIN  0.01 /* no two runs agree better than that */
#define NAME_WIDTH 71

struct pair {
	const json_t *row[2];
	struct samples samples[2];
};

static json_t *
load(const char *path)
{
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error);

	if (root == NULL) {
		cli_error("cannot read %s: %s; give a file that --json wrote", path, error.text);
		return NULL;
	}
	if (json_integer_value(json_object_get(root, "schema")) == OUTPUT_SCHEMA &&
		strcmp(json_string_value(json_object_get(root, "program")) != NULL
				? json_string_value(json_object_get(root, "program"))
				: "",
			PROGRAM) == 0 &&
		json_is_array(json_object_get(root, "results")))
		return root;
	cli_error("%s is no result of " PROGRAM " with schema %d; measure again", path,
		OUTPUT_SCHEMA);
	json_decref(root);
	return NULL;
}

static bool
same_row(const json_t *a, const json_t *b)
{
	static const char *const keys[] = {"test", "subject", "mode", "checks", "api", "call", "op",
		"state", "order", "size", "batch", "burst", "lcores"};

	for (uint32_t i = 0; i < RTE_DIM(keys); i++)
		if (!json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i])))
			return false;
	return true;
}

static const json_t *
find_row(const json_t *rows, const json_t *wanted)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) if (same_row(row, wanted)) return row;
	return NULL;
}

static void
read_samples(const json_t *row, struct samples *samples)
{
	json_t *value;
	size_t i;

	json_array_foreach(json_object_get(row, "samples"), i, value) if (json_is_number(value))
		samples_add(samples, json_number_value(value));
}

static const char *
text(const json_t *row, const char *name)
{
	const char *value = json_string_value(json_object_get(row, name));

	return value != NULL ? value : "";
}

static uint32_t
count(const json_t *row, const char *name)
{
	return json_integer_value(json_object_get(row, name));
}

static bool
is_trusted(const struct pair *pair)
{
	return json_is_true(json_object_get(pair->row[0], "trusted")) &&
	       json_is_true(json_object_get(pair->row[1], "trusted"));
}

/* What is ours, or made to be found, is no control. */
static bool
is_control(const struct pair *pair)
{
	const char *subject = text(pair->row[0], "subject");

	return is_trusted(pair) && text(pair->row[0], "mode")[0] == '\0' &&
	       strcmp(subject, "zone") != 0 && strcmp(subject, "delay") != 0;
}

static int
by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* How far all but one in twenty of the controls moved, at most; NAN without any. */
static double
control(const struct pair *pairs, size_t n)
{
	double *moved = calloc(n, sizeof(*moved)), most = NAN;
	size_t found = 0;

	for (size_t i = 0; i < n && moved != NULL; i++) {
		const double gain =
			samples_differ(&pairs[i].samples[0], &pairs[i].samples[1], 1, 0).gain;

		if (is_control(&pairs[i]) && !isnan(gain))
			moved[found++] = fabs(gain);
	}
	if (found > 0) {
		qsort(moved, found, sizeof(*moved), by_size);
		most = moved[(found * 95 + 99) / 100 - 1];
	}
	free(moved);
	return most;
}

/* What tells rows apart, in a few words. */
static void
print_name(const json_t *row, const char *statistic)
{
	const bool pages = strcmp(text(row, "test"), "pages") == 0;
	const char *mode = text(row, "mode"), *call = text(row, "call"),
		   *state = text(row, "state");
	int width = printf("%-6s %s", statistic, text(row, "test"));

	if (text(row, "op")[0] != '\0')
		width +=
			printf(" %s-%s%s%u-%u", text(row, "op"), state, state[0] != '\0' ? "-" : "",
				count(row, pages ? "order" : "size"), count(row, "batch"));
	width += printf(" %s%s%s %s%s%s", text(row, "subject"), mode[0] != '\0' ? "/" : "", mode,
		text(row, "api"), call[0] != '\0' ? " " : "", call);
	if (count(row, "lcores") > 1)
		width += printf(" x%u", count(row, "lcores"));
	printf("%*s", RTE_MAX(NAME_WIDTH - width, 0), "");
}

static void
print_numbers(const struct pair *pair, const char *field)
{
	const double a = json_number_value(json_object_get(pair->row[0], field));
	const double b = json_number_value(json_object_get(pair->row[1], field));

	printf(" %12.2f (%7.2f%%) %12.2f (%7.2f%%)", a, 0.0, b, a > 0 ? 100 * (a - b) / a : NAN);
}

static void
print_pair(const struct pair *pair, const struct difference *difference, bool cycles)
{
	static const char *const verdicts[] = {
		[VERDICT_UNKNOWN] = "too few samples",
		[VERDICT_NOISE] = "noise",
		[VERDICT_BETTER] = "better",
		[VERDICT_WORSE] = "worse",
	};

	print_name(pair->row[0], "Min");
	print_numbers(pair, cycles ? "cycles_min" : "ns_min");
	printf("\n");
	print_name(pair->row[0], "Median");
	print_numbers(pair, cycles ? "cycles" : "ns");
	printf("  %s", verdicts[difference->verdict]);
	if (difference->verdict != VERDICT_UNKNOWN)
		printf(", p %.2g", difference->p);
	printf("%s\n", is_trusted(pair) ? "" : " (not to be trusted)");
}

/* Two machines, or two builds, are not one. */
static void
print_machines(const json_t *a, const json_t *b)
{
	static const char *const facts[] = {"cpu", "tsc_hz", "kernel", "hugepage_size", "dpdk",
		"compiler", "march", "linkage", "governor", "mitigations", "lcores"};

	for (uint32_t i = 0; i < RTE_DIM(facts); i++)
		if (!json_equal(json_object_get(json_object_get(a, "machine"), facts[i]),
			    json_object_get(json_object_get(b, "machine"), facts[i])))
			printf("the two differ in %s\n", facts[i]);
}

static int
compare(const json_t *a, const json_t *b, struct pair *pairs, const struct options *options)
{
	const json_t *others = json_object_get(b, "results");
	uint32_t verdicts[4] = {0};
	json_t *row;
	size_t i, n = 0;

	json_array_foreach(json_object_get(a, "results"), i, row)
	{
		const json_t *other = find_row(others, row);

		if (other == NULL || strcmp(text(row, "subject"), "empty") == 0)
			continue;
		pairs[n].row[0] = row;
		pairs[n].row[1] = other;
		read_samples(row, &pairs[n].samples[0]);
		read_samples(other, &pairs[n].samples[1]);
		n++;
	}
	if (n == 0) {
		cli_error("the two files have no row in common; compare runs of the same test");
		return CLI_EXIT_FAILURE;
	}
	const double moved = control(pairs, n);
	const double least = fmax(NOISE_MIN, isnan(moved) ? 0 : moved);

	printf("%-*s %23.23s %23.23s\n", NAME_WIDTH, options->cycles ? "TSC cycles" : "ns",
		options->compare[0], options->compare[1]);
	for (i = 0; i < n; i++) {
		struct difference difference =
			samples_differ(&pairs[i].samples[0], &pairs[i].samples[1], n, least);

		if (difference.verdict != VERDICT_UNKNOWN && !is_trusted(&pairs[i]))
			difference.verdict = VERDICT_NOISE;
		verdicts[difference.verdict]++;
		print_pair(&pairs[i], &difference, options->cycles);
		samples_free(&pairs[i].samples[0]);
		samples_free(&pairs[i].samples[1]);
	}
	printf("\n%zu rows: %u better, %u worse, %u noise, %u with too few samples\n", n,
		verdicts[VERDICT_BETTER], verdicts[VERDICT_WORSE], verdicts[VERDICT_NOISE],
		verdicts[VERDICT_UNKNOWN]);
	if (isnan(moved))
		printf("no peer's row to tell how the machine itself moved; differences up to "
		       "%.0f%% count as noise\n",
			100 * least);
	else
		printf("peers, the same code in both, moved by up to %.1f%%, but for one row in "
		       "twenty: no smaller difference counts\n",
			100 * moved);
	printf("percent: gain of the second; noise: no larger than that, p at or above 0.01 by "
	       "Mann-Whitney's U times the number of rows, or a row not to be trusted\n");
	print_machines(a, b);
	return 0;
}

int
compare_files(const struct options *options)
{
	json_t *a = load(options->compare[0]), *b = a == NULL ? NULL : load(options->compare[1]);
	struct pair *pairs = NULL;
	int status = CLI_EXIT_FAILURE;

	if (b != NULL)
		pairs = calloc(json_array_size(json_object_get(a, "results")) + 1, sizeof(*pairs));
	if (pairs != NULL)
		status = compare(a, b, pairs, options);
	free(pairs);
	json_decref(a);
	json_decref(b);
	return status;
}
