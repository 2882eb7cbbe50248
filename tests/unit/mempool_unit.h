/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the tests of mempools share. */

#include <rte_mempool.h>

#include <pp_mempool.h>

#include "unit.h"

/* Start EAL as argv[1] says: "nohuge", "va" or "pa". False, with a line, where it cannot be. */
bool mempool_unit_init(int argc, char **argv);

/* An unpopulated pool with ops pagepool. */
struct rte_mempool *mempool_empty(
	unsigned int n, size_t element, unsigned int cache_size, unsigned int flags);

/* n objects; everything at home, and the structures below valid. */
void assert_at_home(struct rte_mempool *mp, unsigned int n);

/*
 * Take all n objects, in bulks of different lengths; they are distinct, whole, and the pool's own.
 * Nothing more can be had then. Give them back in another order.
 */
void exercise(struct rte_mempool *mp, unsigned int n);

/*
 * As unit_resources_assert(), but for bytes: blocks of EAL's heap differ with where they fall, and
 * what is logged grows.
 */
void assert_nothing_left(const struct unit_resources *before);

/* An rte_mempool_obj_cb_t: no driver recycles the object. */
void assert_unmarked(struct rte_mempool *mp, void *arg, void *obj, unsigned int i);
