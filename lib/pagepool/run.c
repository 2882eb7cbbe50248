/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs: how memory becomes pages of a zone, and an address a descriptor. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "pp_internal.h"

void *
pp_meta_alloc(int node, size_t size)
{
	void *p = rte_zmalloc_socket(
		"pagepool", size, RTE_CACHE_LINE_SIZE, node == PP_NODE_ANY ? SOCKET_ID_ANY : node);

	if (p == NULL)
		rte_errno = ENOMEM;
	return p;
}

/* The last run that starts at or below addr, or NULL. */
static struct pp_zone_run *
find_run(const struct pp_zone *zone, const char *addr)
{
	uint32_t low = 0, high = zone->n_runs;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (zone->runs[middle]->run.addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? zone->runs[low - 1] : NULL;
}

struct pp_page *
pp_zone_page_around(const struct pp_zone *zone, const void *addr)
{
	const struct pp_zone_run *run = find_run(zone, addr);

	if (run == NULL || (const char *)addr >= pp_run_end(run))
		return NULL;
	const uint64_t offset = (uint64_t)((const char *)addr - run->run.addr);
	const uint64_t i = rte_reciprocal_divide_u64(offset, &run->stride_inverse);

	return i < run->run.count ? &run->pages[i] : NULL;
}

struct pp_page *
pp_zone_page(const struct pp_zone *zone, const void *addr)
{
	struct pp_page *page = pp_zone_page_around(zone, addr);

	return page != NULL && pp_page_addr(page) == addr ? page : NULL;
}

bool
pp_zone_contains(const struct pp_zone *zone, const void *page)
{
	return pp_zone_page(zone, page) != NULL;
}

/* Blocks merge up to a power of two of pages, or in whole blocks of the zone's highest order. */
static uint32_t
padded_count(const struct pp_zone *zone, uint32_t count)
{
	const uint32_t block = 1u << zone->max_order;

	return count < block ? rte_align32pow2(count) : RTE_ALIGN_CEIL(count, block);
}

static bool
run_is_sane(const struct pp_run *run)
{
	const uint32_t colours = RTE_MAX(run->colours, 1u);

	/* A colour may not reach into the next page; indices, padded, stay within 32 bits. */
	return run->addr != NULL && run->count > 0 && run->count <= 1u << 31 && run->stride > 0 &&
	       (size_t)(colours - 1) * PP_COLOUR_STEP < run->stride &&
	       run->first_colour < colours &&
	       (size_t)run->count <= (SIZE_MAX - (uintptr_t)run->addr) / run->stride;
}

static void
run_init(const struct pp_zone *zone, struct pp_zone_run *run, const struct pp_run *from,
	struct pp_page *pages)
{
	run->run = *from;
	run->stride_inverse = rte_reciprocal_value_u64(from->stride);
	run->padded = padded_count(zone, from->count);
	run->pages = pages;
	for (uint32_t i = 0; i < run->padded; i++) {
		pages[i].run = run;
		pages[i].state = i < run->run.count ? PP_PAGE_TAIL : PP_PAGE_PADDING;
	}
}

static int
compare_runs(const void *a, const void *b)
{
	const struct pp_zone_run *const *x = a, *const *y = b;

	return (*x)->run.addr < (*y)->run.addr ? -1 : (*x)->run.addr > (*y)->run.addr;
}

/* The zone's runs and the chunk's in one table by address, or NULL: EINVAL for overlaps, ENOMEM. */
static struct pp_zone_run **
merge_runs(const struct pp_zone *zone, struct pp_zone_chunk *chunk)
{
	const uint32_t n = zone->n_runs + chunk->n_runs;
	struct pp_zone_run **table = pp_meta_alloc(zone->node, n * sizeof(struct pp_zone_run *));

	if (table == NULL)
		return NULL;
	if (zone->n_runs > 0)
		memcpy(table, zone->runs, zone->n_runs * sizeof(table[0]));
	for (uint32_t i = 0; i < chunk->n_runs; i++)
		table[zone->n_runs + i] = &chunk->runs[i];
	qsort(table, n, sizeof(table[0]), compare_runs);
	for (uint32_t i = 1; i < n; i++) {
		if (table[i]->run.addr < pp_run_end(table[i - 1])) {
			rte_free(table);
			rte_errno = EINVAL;
			return NULL;
		}
	}
	return table;
}

/* All pages of a run become free blocks, as large as their alignment in the run allows. */
static void
free_run(struct pp_zone *zone, struct pp_zone_run *run)
{
	for (uint32_t i = 0; i < run->run.count;) {
		unsigned int order = i == 0 ? zone->max_order : (unsigned int)__builtin_ctz(i);

		order = RTE_MIN(order, zone->max_order);
		order = RTE_MIN(order, rte_fls_u32(run->run.count - i) - 1u);
		pp_zone_insert(zone, &run->pages[i], order);
		i += 1u << order;
	}
}

int
pp_zone_add_runs(struct pp_zone *zone, const struct pp_run *runs, uint32_t n_runs)
{
	uint64_t n_pages = 0, padded = 0;

	for (uint32_t i = 0; i < n_runs; i++) {
		if (!run_is_sane(&runs[i]))
			return -EINVAL;
		n_pages += runs[i].count;
		padded += padded_count(zone, runs[i].count);
	}
	if (n_runs == 0)
		return 0;

	struct pp_zone_chunk *chunk =
		pp_meta_alloc(zone->node, sizeof(*chunk) + n_runs * sizeof(chunk->runs[0]));
	struct pp_page *pages = pp_meta_alloc(zone->node, padded * sizeof(*pages));

	if (chunk == NULL || pages == NULL)
		goto fail;
	chunk->pages = pages;
	chunk->n_runs = n_runs;
	for (uint32_t i = 0; i < n_runs; i++) {
		run_init(zone, &chunk->runs[i], &runs[i], pages);
		pages += chunk->runs[i].padded;
	}
	struct pp_zone_run **table = merge_runs(zone, chunk);

	if (table == NULL) {
		pages = chunk->pages;
		goto fail;
	}

	pp_zone_lock(zone);
	rte_free(zone->runs);
	zone->runs = table;
	zone->n_runs += n_runs;
	chunk->next = zone->chunks;
	zone->chunks = chunk;
	zone->stats.padding += padded - n_pages;
	pp_store_relaxed(&zone->pages, zone->pages + n_pages);
	for (uint32_t i = 0; i < n_runs; i++)
		free_run(zone, &chunk->runs[i]);
	pp_unlock(&zone->lock);
	return 0;

fail:
	rte_free(pages);
	rte_free(chunk);
	return rte_errno == EINVAL ? -EINVAL : -ENOMEM;
}

int
pp_zone_add_arena(struct pp_zone *zone, const struct pp_arena *arena, uint32_t colours)
{
	const size_t count = pp_arena_len(arena) / PP_PAGE_SIZE;
	const struct pp_run run = {
		.addr = pp_arena_addr(arena),
		.stride = PP_PAGE_SIZE,
		.count = (uint32_t)count,
		.colours = colours,
	};

	return count <= UINT32_MAX ? pp_zone_add_runs(zone, &run, 1) : -EINVAL;
}
