/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The pool that all packet buffers of a run come from. */

#include <stdint.h>

#include <rte_mempool.h>

#include <pcp.h>

#include "options.h"
#include "ports.h"

#define POOL_FORMULA_LEN 512

struct pool {
	int kind; /* enum pool_kind */
	struct rte_mempool *mp;
	struct pcp_cache *cache; /* NULL: the kind has none */
	struct pcp_config pcp;   /* in effect; with a cache only */
	uint16_t room;           /* for data and headroom, per buffer */
	uint32_t needed;         /* buffers that can be away at once */
	char formula[POOL_FORMULA_LEN];
	struct pcp_stats stats; /* at the end of the run; with a cache only */
	uint32_t missing;       /* at the end, beyond what drivers are known to keep */
	uint32_t kept;          /* at the end, by drivers known for it */
};

/*
 * Size the pool for the configured ports and create it. 0, or -errno after one line on stderr.
 * Release with pool_destroy().
 */
int pool_create(struct pool *pool, const struct options *options, const struct ports *ports);

/* All ports being closed: count the buffers that are not back, and take the last statistics. */
void pool_settle(struct pool *pool, const struct ports *ports);

/* A pool with buffers missing stays: whoever holds them may still write to them. */
void pool_destroy(struct pool *pool);
