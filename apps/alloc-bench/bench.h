/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The measuring engine: cases (a subject, a call, and what is asked of it) take turns in rounds,
 * one sample per round, in an order that is shuffled each time.
 */

#include <samples.h>

#include "options.h"
#include "worker.h"

#define OBJECTS_MAX (1u << 20)

/* One line of the results. */
struct row {
	const char *op;         /* alloc, free, pair; NULL: none */
	struct samples samples; /* TSC cycles per object, with the loop's own */
	/* Where the case before came earlier, and later, in the list; or rounds in order, shuffled.
	 */
	struct samples group[2];
	struct histogram *histogram; /* latency */

	/* By result_compute(): TSC cycles, without the loop's own */
	double cycles, cycles_low, cycles_high, cycles_min;
	double overhead;              /* what was subtracted */
	double spread;                /* interquartile ranges of both, over cycles */
	const char *doubt;            /* why it is not to be trusted; NULL: it is */
	double p_order, order_change; /* of group[1] against group[0]; p as corrected */
};

struct bench_case {
	struct request request;
	const struct subject *subject;
	const struct call *call;
	int base;            /* the case whose cost is subtracted; -1: none */
	const char *dropped; /* why it has no samples */
	uint32_t n_rows;
	struct row row[2];
};

/* A subject in this run. */
struct seat {
	bool used, open;
	char missing[96]; /* why it could not take part; empty: it could */
	struct worker *worker;
	struct tally tally;
	bool lost; /* pages or objects, or its lists are wrong */
};

struct bench;

struct test {
	const char *name;
	uint32_t bit;       /* in subject.tests */
	uint32_t sample_us; /* at least, per sample */
	uint32_t lcores;    /* at least */
	const char *x;      /* what plots are drawn over; NULL: bars */
	const char *unit;   /* of one operation, for headings */
	int (*build)(struct bench *bench);
	void (*print)(const struct bench *bench, FILE *f);
};

struct bench {
	const struct test *test;
	const struct options *options;
	struct need need;
	struct bench_case *cases;
	uint32_t n_cases, room;
	struct seat *seats; /* by subject */
	uint32_t seed;
	double clock_cycles;          /* of one reading */
	uint64_t clock_step;          /* cycles by which it steps */
	double tsc_per_core_cycle[2]; /* before and after */
	double steal_ms, seconds;     /* during the rounds */
};

/* Whether the run has this subject at all. */
bool bench_wants(const struct bench *bench, const struct subject *subject);

/*
 * Add the cases of all subjects of the run and all their calls, subject by subject, each in the
 * order of `requests`; and those whose cost is to be subtracted. 0, or -ENOMEM after one line.
 */
int bench_add(struct bench *bench, const struct request *requests, uint32_t n);

/* Open the subjects of all cases, and drop the cases of those that cannot be. As bench_run(). */
int seats_open(struct bench *bench);

/* The one line that tells why nobody is left to measure. -ENOENT. */
int seats_none_left(const struct bench *bench);

/* One subject; closing counts what it gave. 0 or -errno. */
int seat_open(struct bench *bench, uint32_t subject);
void seat_close(struct bench *bench, uint32_t subject);

/* Take all samples. 0, or -errno after one line on stderr. bench_close() in either case. */
int bench_run(struct bench *bench);
void bench_close(struct bench *bench);

/* Whether every page and object that was given is free again. After bench_run(). */
bool bench_conserved(const struct bench *bench);
