/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the tests of page caches share: a zone, caches over it, and what must hold at rest. */

#include <pcp.h>

#include "zone_unit.h"

extern struct pp_zone *zone;
extern struct pcp_cache *cache;

/* A zone of `pages` plain pages and caches over it; two lcores expected unless config says more. */
void pcp_unit_open(uint32_t pages, struct pcp_config config);

/* Assert that everything is back and balances, and destroy both. */
void pcp_unit_close(void);

/* As a teardown of tests that open themselves. */
int pcp_unit_teardown(void **state);

struct pcp_stats pcp_unit_stats(void);

/* What checks have found in the zone, of all kinds. */
uint64_t bad_reports(void);

/* At rest: lists are valid, nothing is lost, and the counters say what is in use. */
void assert_balance(uint64_t blocks_in_use, uint64_t pages_in_use);

/* The handle of any lcore: only while its own thread, if there is one, is at rest. */
struct pcp *handle(unsigned int lcore_id);

/* Sections of lcore 0, of either kind. */
enum section {
	BH,
	IRQ,
};

void section_begin(enum section section);
void section_end(enum section section);

/* The number of a page of the zone; fails for other addresses. */
uint32_t page_number(const void *page);

/* Of a process that has ended, and was waited for. */
uint32_t dead_pid(void);
