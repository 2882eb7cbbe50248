/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the tests of zones share. */

#include <pagepool.h>
#include <pp_internal.h>

#include "unit.h"

#define PAGES 1024u /* of the zone that most tests use: two blocks of order 9 */

/* 2 GiB that cannot even be read: zones must not touch their pages. */
extern char *memory;

/* Get it, and start EAL. */
void zone_unit_init(void);

struct pp_zone *new_zone(const struct pp_run *runs, uint32_t n_runs, unsigned int max_order);
struct pp_zone *plain_zone(uint32_t pages, unsigned int max_order);
void destroy_zone(void *zone);
struct pp_zone_stats stats_of(struct pp_zone *zone);

/* So many free blocks of each order 0..max_order, and no others; and the zone is valid. */
void assert_free_blocks(struct pp_zone *zone, const uint64_t *blocks, unsigned int max_order);

void shuffle(void **page, uint32_t n);
int compare_addresses(const void *a, const void *b);

/* Odd counts and strides, in no order, with gaps: as chunks of a mempool are. */
#define ODD_RUNS    6
#define ODD_PAGES   (839 + 1 + 513 + 3 + 100 + 5)
#define ODD_PADDING ((1024 - 839) + 0 + (1024 - 513) + 1 + 28 + 3)

struct odd_run {
	size_t offset, stride; /* in `memory` */
	uint32_t count, colours;
};

extern const struct odd_run odd_runs[ODD_RUNS];
struct pp_zone *odd_zone(void);
char *odd_page(uint32_t run, uint32_t i);
