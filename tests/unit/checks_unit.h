/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the tests of checks share: one kind of corruption at a time, at each level and order. */

#include "pcp_unit.h"

#define CHECKS_BATCH 16u
#define CHECKS_PAGES 1024u

/* Of the test that runs. */
extern enum pcp_checks checks;
extern unsigned int order;

struct checks_test {
	const char *name;
	void (*f)(void **state);
};

#define CHECKS_TEST(f)                                                                             \
	{                                                                                          \
#f, f                                                                              \
	}

/* Run each test with checks deferred and full, at orders 0 and 2. Returns how many failed. */
int checks_run(const struct checks_test *tests, size_t n);

/* A block of `order` by an lcore's handle, and back. */
void *alloc_by(unsigned int lcore_id);
void free_by(unsigned int lcore_id, void *block);

/*
 * By the end of a drain, and with checks full before it: n of this kind were found since the last
 * call, nothing else, and the report says who had the page last.
 */
void assert_found(enum pp_bad_kind kind, uint32_t n, const char *last_owner);

/* So many blocks of `order` are set aside, after a drain at the latest, and nothing is lost. */
void assert_set_aside(uint32_t blocks);
