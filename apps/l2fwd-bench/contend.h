/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * A second user of the pool: the main lcore, which takes buffers and frees them all the time. What
 * it shares with the lcores that are measured is what the pool shares between lcores: nothing where
 * its caches are used, a lock where they are not. It does nothing else, and so asks for that lock
 * more often than the poll loop of another port would, which has packets to move: it stands for
 * several.
 */

#include <stdint.h>

#include "options.h"
#include "pool.h"

struct contender {
	struct rte_mempool *pool;
	struct pcp_cache *cache; /* for sections; NULL: none */
	uint32_t n;              /* buffers at once; 0: there is no contender */
	uint64_t buffers;        /* taken and freed so far */
};

void contender_init(
	struct contender *contender, const struct options *options, const struct pool *pool);

/* Take and free once; nothing if there are not so many. From one lcore, outside of sections. */
void contender_round(struct contender *contender);
