/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process that was killed under a zone's lock left half done.
 *
 * Descriptors are the truth: a block in use, or set aside, has a head that says so, set before the
 * block is handed out and cleared before it joins a list. Whatever no head in use covers was free,
 * or on its way to be, and the lists and counters follow.
 */

#include <inttypes.h>

#include "pp_internal.h"

static bool
is_head_in_use(const struct pp_page *page)
{
	const uint8_t state = pp_load_relaxed(&page->state);

	return state == PP_PAGE_USED || state == PP_PAGE_RETURNED || state == PP_PAGE_BAD;
}

static void
repair_run(struct pp_zone *zone, struct pp_zone_run *run)
{
	for (uint32_t i = 0; i < run->run.count;) {
		struct pp_page *page = &run->pages[i];

		if (is_head_in_use(page) && pp_page_is_valid(zone, page)) {
			i += 1u << page->order;
			continue;
		}
		pp_zone_insert(zone, page, 0);
		i++;
	}
}

/* No page may look free to a merge before it is inserted. */
static void
forget_free(struct pp_zone_run *run)
{
	for (uint32_t i = 0; i < run->run.count; i++)
		if (pp_load_relaxed(&run->pages[i].state) == PP_PAGE_FREE)
			pp_store_relaxed(&run->pages[i].state, PP_PAGE_TAIL);
}

void
pp_zone_repair(struct pp_zone *zone)
{
	for (unsigned int order = 0; order <= PP_MAX_ORDER; order++) {
		LIST_INIT(&zone->free_list[order]);
		zone->stats.free_blocks[order] = 0;
	}
	zone->nonempty = 0;
	pp_store_relaxed(&zone->free_pages, 0);
	for (uint32_t i = 0; i < zone->n_runs; i++)
		forget_free(zone->runs[i]);
	for (uint32_t i = 0; i < zone->n_runs; i++)
		repair_run(zone, zone->runs[i]);
	zone->stats.repairs++;
	PP_LOG(WARNING, "%s: a process died under the lock; lists rebuilt, %" PRIu64 " pages free",
		zone->name, zone->free_pages);
}
