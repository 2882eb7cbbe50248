/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "contend.h"
#include "options.h"
#include "pool.h"
#include "ports.h"
#include "stats.h"

/*
 * One stream per RX queue, each on an lcore of its own. 0, or -errno after one line on stderr.
 * Release with streams_free().
 */
int streams_create(struct streams *streams, const struct options *options,
	const struct ports *ports, const struct pool *pool);
void streams_free(struct streams *streams);

/* Free the packets that streams still hold, once nobody polls. */
void streams_release(struct streams *streams);

/* Whether the lcores fit the queues, before anything is set up for them. Returns as above. */
int streams_check_lcores(const struct options *options, const struct ports *ports);

/* From now on the first SIGINT or SIGTERM asks the streams to end, the second ends the program. */
void run_catch_signals(void);

/*
 * Poll for the duration or until a signal, with a line each second if stdout is a terminal, and
 * contend if so wished. The seconds that it took.
 */
double run(struct streams *streams, const struct options *options, struct ports *ports,
	struct contender *contender);
