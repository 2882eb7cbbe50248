/* SPDX-License-Identifier: BSD-3-Clause */
/* Predicates: what must hold of descriptors and zones whenever the lock is free. */

#include <inttypes.h>

#include "pp_internal.h"

bool
pp_page_is_valid(const struct pp_zone *zone, const struct pp_page *page)
{
	const struct pp_zone_run *run = page->run;
	const uint32_t i = (uint32_t)(page - run->pages);

	switch (pp_load_relaxed(&page->state)) {
	case PP_PAGE_PADDING:
		return i >= run->run.count;
	case PP_PAGE_TAIL:
		return i < run->run.count;
	case PP_PAGE_FREE:
	case PP_PAGE_USED:
	case PP_PAGE_RETURNED:
	case PP_PAGE_BAD:
		/* a head: aligned to its size in the run, and ending inside of it */
		return page->order <= zone->max_order && (i & ((1u << page->order) - 1)) == 0 &&
		       i + (1u << page->order) <= run->run.count;
	default:
		return false;
	}
}

/* The run is a sequence of blocks: a head, then its tails. No two free buddies stay apart. */
static bool
run_is_valid(const struct pp_zone *zone, const struct pp_zone_run *run, uint64_t *free_pages)
{
	uint32_t i = 0;

	while (i < run->run.count) {
		const struct pp_page *head = &run->pages[i];

		if (!pp_page_is_valid(zone, head) || pp_load_relaxed(&head->state) == PP_PAGE_TAIL)
			return false;
		for (uint32_t k = 1; k < 1u << head->order; k++)
			if (pp_load_relaxed(&head[k].state) != PP_PAGE_TAIL)
				return false;
		if (pp_load_relaxed(&head->state) == PP_PAGE_FREE) {
			const uint32_t buddy = i ^ 1u << head->order;

			*free_pages += 1u << head->order;
			if (head->order < zone->max_order && buddy < run->padded &&
				pp_load_relaxed(&run->pages[buddy].state) == PP_PAGE_FREE &&
				run->pages[buddy].order == head->order)
				return false;
		}
		i += 1u << head->order;
	}
	for (; i < run->padded; i++)
		if (run->pages[i].state != PP_PAGE_PADDING)
			return false;
	return true;
}

static bool
free_list_is_valid(const struct pp_zone *zone, unsigned int order)
{
	const struct pp_page *page;
	uint64_t n = 0;

	LIST_FOREACH (page, &zone->free_list[order], free) {
		if (page->state != PP_PAGE_FREE || page->order != order ||
			++n > zone->stats.free_blocks[order])
			return false;
	}
	return n == zone->stats.free_blocks[order] &&
	       (n > 0) == ((zone->nonempty >> order & 1) != 0);
}

bool
pp_zone_is_valid(struct pp_zone *zone)
{
	uint64_t in_runs = 0, in_lists = 0;
	const char *fault = NULL;

	pp_zone_lock(zone);
	for (uint32_t i = 0; i < zone->n_runs && fault == NULL; i++)
		if (!run_is_valid(zone, zone->runs[i], &in_runs))
			fault = "a run is no sequence of blocks, or two free buddies are apart";
	for (unsigned int order = 0; order <= zone->max_order && fault == NULL; order++) {
		if (!free_list_is_valid(zone, order))
			fault = "a free list differs from its count or its pages' state";
		in_lists += zone->stats.free_blocks[order] << order;
	}
	if (fault == NULL && (in_runs != zone->free_pages || in_lists != zone->free_pages))
		fault = "runs, lists and the counter disagree about free pages";
	pp_unlock(&zone->lock);
	if (fault != NULL)
		PP_LOG(ERR,
			"%s: invalid: %s (%" PRIu64 " in runs, %" PRIu64 " in lists, %" PRIu64
			" counted)",
			zone->name, fault, in_runs, in_lists, zone->free_pages);
	return fault == NULL;
}
