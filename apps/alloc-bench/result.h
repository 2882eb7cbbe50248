/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What samples mean, and the ways to show it. */

#include <stdio.h>

#include "bench.h"

/* Fill in what rows say, once all samples are there. */
void result_compute(struct bench *bench);

double result_ns(double cycles);

/* In the unit that the user chose. */
double result_unit(const struct bench *bench, double cycles);

/* Whether the case has samples, and was asked for: not only its cost to subtract. */
bool result_is_shown(const struct bench *bench, const struct bench_case *one);

/*
 * Who stands beside whom: groups of calls that ask the same of their user. The title of group g, or
 * NULL after the last one; and whether a case belongs to it, as those without such a difference
 * belong to several.
 */
const char *result_group(const struct bench *bench, uint32_t g);
bool result_in_group(const struct bench *bench, const struct bench_case *one, uint32_t g);

/* As the kernel's tables name it: alloc-odr0-16. */
void result_label(const struct bench *bench, const struct bench_case *one, const struct row *row,
	char label[64]);

/* With subject and call. */
void result_name(const struct bench *bench, const struct bench_case *one, const struct row *row,
	char name[192]);

/* Beyond noise. */
bool result_depends_on_order(const struct row *row);

/* Objects per second on all lcores together. */
double result_rate(const struct bench_case *one, const struct row *row);

/* Of a call's latency, without the clock's own: 50, 90, 99, 99.9, 99.99%, maximum; NAN: too few. */
#define RESULT_PERCENTILES 6
double result_percentile(const struct row *row, uint32_t which);

/* ---- tables ---- */

/* Rows down, subjects across, one table per kind of call; medians, then minima. */
void print_matrix(const struct bench *bench, FILE *f);

/* A line per row. */
void print_list(const struct bench *bench, FILE *f);
void print_latency(const struct bench *bench, FILE *f);

/* The layout of time_bench, and the kernel's own figures. */
void print_time(const struct bench *bench, FILE *f);

/* The seed, the machine, what was left out, what is doubtful, and where the pages are. */
void print_notes(const struct bench *bench, FILE *f);

/* ---- files: 0, or -errno after one line on stderr ---- */

int output_json(const struct bench *bench);
int output_csv(const struct bench *bench);

/* By gnuplot. */
int plot_check(const char *path);
int output_plot(const struct bench *bench);

/* ---- two of them ---- */

/* Print the differences. An exit status. */
int compare_files(const struct options *options);
