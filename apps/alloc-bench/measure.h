/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* One sample of one subject, taken in the process that the subject lives in. */

#include <stdint.h>

#include <histogram.h>

#include "subject.h"

enum kernel {
	KERNEL_PAIR,     /* allocate n, free n */
	KERNEL_SPLIT,    /* the same, timed apart */
	KERNEL_LATENCY,  /* the same, each call timed */
	KERNEL_PIPELINE, /* allocate here, free on another lcore, in bursts of n */
	KERNEL_TOUCH,    /* write to the first line of each of n live objects */
};

struct request {
	uint32_t subject, call; /* indices */
	uint32_t kernel;
	uint32_t n;
	uint32_t burst;  /* objects per bulk call, at most */
	uint32_t passes; /* over the n objects */
	uint32_t order;
	uint32_t size;
	uint32_t lcores;
	uint32_t warm_up; /* passes before the measured ones */
	uint32_t fresh;   /* of a subject that has just been opened */
};

struct reply {
	uint32_t failed;  /* passes that got fewer than n objects */
	uint64_t elapsed; /* TSC cycles, of all lcores together */
	double cycles[2]; /* TSC cycles per object and lcore: alloc and free, or the pair */
	struct histogram histogram[2]; /* KERNEL_LATENCY: alloc and free */
};

/* Room for `objects` live ones on each lcore. After EAL's start. 0 or -ENOMEM. */
int measure_init(uint32_t objects);

/* A subject of this process, opened as `need` says, until measure_close(). 0 or -errno. */
int measure_open(uint32_t subject, const struct need *need);
void measure_close(uint32_t subject, struct tally *tally);

/* On the main lcore. */
void measure(const struct request *request, struct reply *reply);
