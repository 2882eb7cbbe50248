/* SPDX-License-Identifier: BSD-3-Clause */
/* What a person may want to see of a zone. */

#include <inttypes.h>

#include "pp_internal.h"

void
pp_zone_get_stats(struct pp_zone *zone, struct pp_zone_stats *stats)
{
	pp_zone_lock(zone);
	*stats = zone->stats;
	stats->contended = zone->lock.contended;
	stats->pages = zone->pages;
	stats->bad_pages = pp_zone_bad_pages(zone);
	for (unsigned int kind = 0; kind < PP_BAD_KINDS; kind++)
		stats->bad[kind] = pp_zone_bad(zone, kind);
	stats->free = zone->free_pages;
	stats->watermark_min = zone->watermark_min;
	stats->watermark_low = zone->watermark_low;
	stats->watermark_high = zone->watermark_high;
	pp_unlock(&zone->lock);
}

void
pp_zone_dump(struct pp_zone *zone, FILE *f)
{
	struct pp_zone_stats stats;

	pp_zone_get_stats(zone, &stats);
	fprintf(f, "Node %d, zone %8s", zone->node, zone->name);
	for (unsigned int order = 0; order <= zone->max_order; order++)
		fprintf(f, " %6" PRIu64, stats.free_blocks[order]);
	fprintf(f,
		"\n  pages %" PRIu64 " free %" PRIu64 " min %" PRIu64 " low %" PRIu64
		" high %" PRIu64 " runs %u padding %" PRIu64 "\n",
		stats.pages, stats.free, stats.watermark_min, stats.watermark_low,
		stats.watermark_high, zone->n_runs, stats.padding);
	fprintf(f,
		"  splits %" PRIu64 " merges %" PRIu64 " failed %" PRIu64 " contended %" PRIu64
		" bad_frees %" PRIu64 " repairs %" PRIu64 "\n",
		stats.splits, stats.merges, stats.failed, stats.contended, stats.bad_frees,
		stats.repairs);
	if (stats.bad_pages > 0)
		fprintf(f, "  bad_pages %" PRIu64 "\n", stats.bad_pages);
	for (unsigned int kind = 0; kind < PP_BAD_KINDS; kind++)
		if (stats.bad[kind] > 0)
			fprintf(f, "  bad: %s %" PRIu64 "\n", pp_bad_kind_name(kind),
				stats.bad[kind]);
	for (unsigned int order = 0; order <= zone->max_order; order++)
		if (stats.allocs[order] + stats.frees[order] > 0)
			fprintf(f, "  order %u: allocs %" PRIu64 " frees %" PRIu64 "\n", order,
				stats.allocs[order], stats.frees[order]);
}
