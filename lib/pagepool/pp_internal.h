/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the files of lib/pagepool share about zones. */

#include <sys/queue.h>

#include <rte_log.h>
#include <rte_memzone.h>
#include <rte_reciprocal.h>

#include "pagepool.h"

extern int pp_logtype;

#define PP_LOG(level, fmt, ...)                                                                    \
	rte_log(RTE_LOG_##level, pp_logtype, "pagepool: " fmt "\n", ##__VA_ARGS__)

/* A descriptor is a block's head, or lies inside a block (TAIL), or only rounds its run up. */
enum pp_page_state {
	PP_PAGE_TAIL,
	PP_PAGE_FREE,     /* on the free list of its order */
	PP_PAGE_USED,     /* handed out */
	PP_PAGE_RETURNED, /* freed while the lock was held: on the zone's return stack */
	PP_PAGE_PADDING,
	PP_PAGE_BAD, /* set aside */
};

struct pp_zone_run;

struct pp_page {
	union {
		LIST_ENTRY(pp_page) free;
		struct pp_page *returned;
	};
	struct pp_zone_run *run;
	uint8_t state;  /* pp_page_state */
	uint8_t order;  /* of the block it heads */
	bool poisoned;  /* filled while free, by a cache that checks it */
	uint32_t owner; /* of the block it heads; see below */
};

static_assert(sizeof(struct pp_page) == 32, "two descriptors to a cache line");

/* pp_page.owner: pp_place (8 bits), the cache's tag (8 bits), last owner's lcore + 1 (16 bits). */
#define PP_OWNER_PLACE   UINT32_C(0xff)
#define PP_OWNER_CACHE   UINT32_C(0xffff) /* place and tag */
#define PP_OWNER_SUSPECT UINT32_C(0x80)   /* at rest, and freed again: to be set aside */

static inline uint32_t
pp_page_place(const struct pp_page *page)
{
	return pp_load_relaxed(&page->owner) & PP_OWNER_PLACE;
}

LIST_HEAD(pp_page_list, pp_page);

struct pp_zone_run {
	struct pp_run run;
	struct rte_reciprocal_u64 stride_inverse;
	uint32_t padded; /* descriptors; blocks merge within them */
	struct pp_page *pages;
};

static inline const char *
pp_run_end(const struct pp_zone_run *run)
{
	return run->run.addr + run->run.stride * run->run.count;
}

/* One pp_zone_add_runs(): freed as a whole with the zone. */
struct pp_zone_chunk {
	struct pp_zone_chunk *next;
	struct pp_page *pages;
	uint32_t n_runs;
	struct pp_zone_run runs[];
};

struct pp_zone {
	struct pp_lock lock;
	uint32_t nonempty; /* bit per order that has free blocks */
	struct pp_page_list free_list[PP_MAX_ORDER + 1];
	uint64_t free_pages; /* written under the lock, read without */
	uint64_t watermark_min, watermark_low, watermark_high;
	bool pressure;
	struct pp_zone_stats stats;

	struct pp_page *returned __rte_cache_aligned; /* stack; pushed without the lock */
	uint64_t returned_pages;

	/* Atomic: page_check.c. */
	uint64_t bad_pages;
	uint64_t bad[PP_BAD_KINDS];
	uint64_t reports_since; /* TSC */
	uint32_t reports;       /* since then, shown or not */
	uint32_t tags;

	uint32_t max_order __rte_cache_aligned;
	uint32_t n_runs;
	struct pp_zone_run **runs; /* by address */
	struct pp_zone_chunk *chunks;
	uint64_t pages;
	bool poisons; /* pages may be poisoned */
	int node;
	uint32_t id;
	char name[RTE_MEMZONE_NAMESIZE];
	char owner[PP_OWNER_LEN];
};

/* Memory for metadata on the zone's node, zeroed, or NULL with rte_errno set. */
void *pp_meta_alloc(int node, size_t size);

static inline void *
pp_page_addr(const struct pp_page *page)
{
	return pp_run_addr(&page->run->run, (uint32_t)(page - page->run->pages));
}

/* The descriptor of the page at exactly this address, or NULL. */
struct pp_page *pp_zone_page(const struct pp_zone *zone, const void *addr);

/* Of the page that this address lies in, or behind. */
struct pp_page *pp_zone_page_around(const struct pp_zone *zone, const void *addr);

/* zone.c, under the lock: put a block that belongs to nobody on the free lists, merging. */
void pp_zone_insert(struct pp_zone *zone, struct pp_page *page, unsigned int order);

/* Under the lock: take one page out of the free block that holds it. False when none does. */
bool pp_zone_take_off(struct pp_zone *zone, struct pp_page *page);

/* Take the lock, and with it what was returned while it was held. */
void pp_zone_lock(struct pp_zone *zone);

/* telemetry.c: this process shows the zone, until it no longer does. 0 or -ENOMEM. */
int pp_zone_list(struct pp_zone *zone);
void pp_zone_unlist(const struct pp_zone *zone);

/* zone_repair.c: rebuild lists and counters from the descriptors, under an inherited lock. */
void pp_zone_repair(struct pp_zone *zone);

/* zone_check.c: descriptor and zone agree with themselves; under the lock. */
bool pp_page_is_valid(const struct pp_zone *zone, const struct pp_page *page);

/* page_check.c: a direct user of the zone frees no block of his; the first under the lock. */
void pp_bad_free(struct pp_zone *zone, const void *addr, unsigned int order);
void pp_log_bad_free(const struct pp_zone *zone, const void *addr, unsigned int order);

/* What a direct user gets is not looked at, and may be written to. */
void pp_forget_poison(struct pp_zone *zone, unsigned int order, void *const *pages, uint32_t n);
