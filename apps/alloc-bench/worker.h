/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A general malloc in a process of its own: this program again, with the library preloaded. It
 * takes its samples when it is told to, on the same lcores, and so takes part in the same rounds.
 */

#include "measure.h"

struct worker;

/*
 * Start the process and wait until it can measure. NULL with rte_errno; ENOENT when the library is
 * not installed. Ends with worker_stop(), or with this process.
 */
struct worker *worker_start(uint32_t subject, const struct need *need);

/* 0, or -EPIPE when the process died. */
int worker_measure(struct worker *worker, const struct request *request, struct reply *reply);

void worker_stop(struct worker *worker);

/* The other side, when main() finds WORKER_WORD as its first argument. An exit status. */
#define WORKER_WORD "--worker"
int worker_main(int argc, char **argv);
