/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * pagepool: hugepage arenas and the buddy allocator over them.
 *
 * arena -> memory mapped once, pre-faulted and bound to a node
 * zone  -> a buddy allocator over runs of equally spaced pages; one lock
 * pool  -> one zone per NUMA node, with fallback by distance
 *
 * Pages are handed out by address. Their descriptors lie apart, so that free pages stay untouched.
 * Functions return 0 or -errno unless they say otherwise; those that return a pointer return NULL
 * and set rte_errno. Zone and pool operations are thread-safe; create, add and destroy are not.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <pp_atomic.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PP_PAGE_SHIFT 12
#define PP_PAGE_SIZE  (1u << PP_PAGE_SHIFT)
#define PP_MAX_ORDER  18 /* 1 GiB in 4-KiB pages */
#define PP_NODE_ANY   (-1)
#define PP_MAX_NODES  32 /* as RTE_MAX_NUMA_NODES */

/* ---- topology: which nodes there are, and how far apart ---- */

struct pp_topology {
	uint32_t n_nodes;
	bool bind; /* bind arenas to their node; false for an invented topology */
	uint8_t distance[PP_MAX_NODES][PP_MAX_NODES]; /* as in the ACPI SLIT: 10 is local */
};

/* The machine's topology, by libnuma; one node where NUMA is not available. */
void pp_topology_detect(struct pp_topology *topology);

/* -EINVAL unless 1..PP_MAX_NODES nodes, each nearest to itself. */
int pp_topology_check(const struct pp_topology *topology);

/*
 * The order in which `node`, < n_nodes, falls back: itself first, then by distance, then by number.
 */
void pp_topology_fallback(
	const struct pp_topology *topology, uint32_t node, uint8_t order[PP_MAX_NODES]);

/* ---- arenas ---- */

enum pp_backend {
	PP_BACKEND_MEMZONE, /* EAL's memory: shared with secondary processes */
	PP_BACKEND_MEMFD,   /* memfd hugetlb: needs no mounted hugetlbfs; this process only */
	PP_BACKEND_ANON,    /* 4-KiB pages, transparent huge pages where the kernel has them */
};

struct pp_arena_config {
	const char *name; /* unique among memzones */
	enum pp_backend backend;
	size_t len;       /* bytes; rounded up to page_size */
	size_t page_size; /* 4 KiB (MEMZONE without hugepages, ANON), 2 MiB or 1 GiB */
	int node;         /* to bind to, or PP_NODE_ANY */
};

struct pp_arena;

/*
 * Map and pre-fault an arena; the caller owns it until pp_arena_destroy(). A shortage shows here
 * (ENOMEM; the log says what to do), never as SIGBUS later. EINVAL: sizes that do not fit together.
 * ENAMETOOLONG; EEXIST for the name of another memzone; EFAULT where physical addresses are needed
 * and cannot be read; else what the kernel said, with a log line.
 */
struct pp_arena *pp_arena_create(const struct pp_arena_config *config);

/* Unmap; the caller guarantees that nothing uses the memory. NULL is ignored. */
void pp_arena_destroy(struct pp_arena *arena);

void *pp_arena_addr(const struct pp_arena *arena);
size_t pp_arena_len(const struct pp_arena *arena);
size_t pp_arena_page_size(const struct pp_arena *arena);
int pp_arena_node(const struct pp_arena *arena);

/* "memzone", "memfd" or "anon". */
const char *pp_backend_name(enum pp_backend backend);

/* ---- pages gone bad ---- */

/* What may be wrong with a page, or with a pointer to one. */
enum pp_bad_kind {
	PP_BAD_FOREIGN,     /* no memory of this zone */
	PP_BAD_ALIGNMENT,   /* inside of a page, or between two */
	PP_BAD_STATE,       /* not what its descriptor says it is */
	PP_BAD_ORDER,       /* a block of another order */
	PP_BAD_OWNER,       /* of another cache, or of a direct user of the zone */
	PP_BAD_DOUBLE_FREE, /* already at rest: in the zone or a cache */
	PP_BAD_POISON,      /* written to while it was free */
	PP_BAD_COUNT,       /* no page: a list's count that cannot be */
	PP_BAD_KINDS,
};

/* "foreign pointer", "double free", ... */
const char *pp_bad_kind_name(enum pp_bad_kind kind);

/* ---- zones ---- */

#define PP_COLOUR_STEP RTE_CACHE_LINE_SIZE

/*
 * `count` equally spaced pages. Page i is at addr + i * stride, and (first_colour + i) % colours
 * steps further on: that staggers what applications touch first, or all of it would fall into one
 * set of the L1 cache. 0 and 1 colours mean none. A block never spans two runs.
 */
struct pp_run {
	char *addr;
	size_t stride;
	uint32_t count;
	uint32_t colours;
	uint32_t first_colour; /* of page 0, < colours */
};

/* The address of page i of a run. */
static inline void *
pp_run_addr(const struct pp_run *run, uint32_t i)
{
	const uint32_t colour = run->colours > 1 ? (run->first_colour + i) % run->colours : 0;

	return run->addr + i * run->stride + (size_t)colour * PP_COLOUR_STEP;
}

/* Where an allocation may go below the watermark `min`, and how it treats a held lock. */
enum pp_alloc_flags {
	PP_ALLOC_REFILL = 1u << 0,  /* may use the reserve: all pages below `min` */
	PP_ALLOC_TRYLOCK = 1u << 1, /* fail with EBUSY rather than wait: for signal handlers */
	PP_ALLOC_CHECKED = 1u << 2, /* pp_zone_check() follows: the poison stays to be looked at */
};

struct pp_zone;

/*
 * An empty zone; metadata lies in EAL's memory on `node`. `max_order` <= PP_MAX_ORDER bounds
 * blocks and merging. The name is copied, and cut as a memzone's. NULL: EINVAL, ENOMEM. Destroy
 * with pp_zone_destroy().
 */
struct pp_zone *pp_zone_create(const char *name, int node, unsigned int max_order);

/*
 * -EBUSY, and nothing done, while pages are in use; those set aside are not. The runs' memory is
 * the caller's. By the process that created it, whose telemetry knows the zone.
 */
int pp_zone_destroy(struct pp_zone *zone);

/*
 * As pp_zone_destroy(), also with pages in use: for an owner whose memory is gone whatever becomes
 * of them. Returns how many were in use.
 */
uint64_t pp_zone_abandon(struct pp_zone *zone);

/*
 * Give all pages of `runs` to the zone: all or nothing. Runs may come in any order and must not
 * overlap each other or earlier ones (-EINVAL). -ENOMEM when descriptors cannot be had. Not while
 * others free from handlers, or by caches with checks, which look descriptors up without the lock.
 */
int pp_zone_add_runs(struct pp_zone *zone, const struct pp_run *runs, uint32_t n_runs);

/*
 * Give a whole arena, in 4-KiB pages with `colours` colours. The arena stays the caller's. Colours
 * cost room: a block then ends (colours - 1) * PP_COLOUR_STEP bytes before its pages do.
 */
int pp_zone_add_arena(struct pp_zone *zone, const struct pp_arena *arena, uint32_t colours);

/* A block of 2^order pages, or NULL: ENOMEM, EBUSY (PP_ALLOC_TRYLOCK only), EINVAL. */
void *pp_zone_alloc(struct pp_zone *zone, unsigned int order, unsigned int flags);

/*
 * Up to n blocks in one lock hold, contiguous where the zone allows it: one big block is split
 * once. Returns how many, 0..n; the caller owns them.
 */
uint32_t pp_zone_alloc_bulk(
	struct pp_zone *zone, unsigned int order, void **pages, uint32_t n, unsigned int flags);

/*
 * Take back a block. -EINVAL: not the start of a block of that order that is in use (a foreign or
 * misaligned pointer, a double free); it is counted, logged and otherwise ignored. PP_ALLOC_TRYLOCK
 * never waits: while the lock is held, the block is left to whoever takes the lock next, and a
 * wrong one is refused but not counted; nothing is logged.
 */
int pp_zone_free(struct pp_zone *zone, void *page, unsigned int order, unsigned int flags);

/* Take back n blocks in one lock hold. Returns how many were accepted; bad ones as above. */
uint32_t pp_zone_free_bulk(
	struct pp_zone *zone, unsigned int order, void *const *pages, uint32_t n);

/* Whether `page` is the address of a page of this zone. */
bool pp_zone_contains(const struct pp_zone *zone, const void *page);

/*
 * Free pages below `min` are kept for PP_ALLOC_REFILL, which is what page caches refill with. Below
 * `low` the zone is under pressure, and stays so until `high` is reached: pp_zone_pressure().
 * -EINVAL unless min <= low <= high <= pages.
 */
int pp_zone_set_watermarks(struct pp_zone *zone, uint64_t min, uint64_t low, uint64_t high);
bool pp_zone_pressure(const struct pp_zone *zone);

/*
 * Pages, free or not; and free ones: exact at rest, a snapshot otherwise. No lock taken, so a
 * process that died under it may have left the count of free ones wrong: pp_zone_recover().
 */
uint64_t pp_zone_pages(const struct pp_zone *zone);
uint64_t pp_zone_free_pages(const struct pp_zone *zone);

/*
 * Mend what a process that died under the zone's lock has left, as the next call to take the lock
 * would. Costs one look when the lock is free, or held by this process.
 */
void pp_zone_recover(struct pp_zone *zone);

struct pp_zone_stats {
	uint64_t pages;
	uint64_t free;
	uint64_t padding; /* descriptors that round runs up to powers of two; never allocated */
	uint64_t free_blocks[PP_MAX_ORDER + 1];
	uint64_t allocs[PP_MAX_ORDER + 1]; /* blocks handed out, by order */
	uint64_t frees[PP_MAX_ORDER + 1];  /* blocks taken back */
	uint64_t splits;
	uint64_t merges;
	uint64_t failed;    /* allocations that got fewer blocks than they asked for */
	uint64_t contended; /* lock holds that had to wait */
	uint64_t bad_frees; /* foreign, misaligned or double */
	uint64_t repairs;   /* after a process died under the lock */
	uint64_t bad_pages; /* set aside: neither free nor in use, and never handed out again */
	uint64_t bad[PP_BAD_KINDS]; /* what was found, by bad frees and pp_zone_check() */
	uint64_t watermark_min, watermark_low, watermark_high;
};

/* A consistent snapshot, under the zone's lock. */
void pp_zone_get_stats(struct pp_zone *zone, struct pp_zone_stats *stats);

/* One line in the manner of /proc/buddyinfo, then the counters. */
void pp_zone_dump(struct pp_zone *zone, FILE *f);

/* As given at creation. */
int pp_zone_node(const struct pp_zone *zone);
unsigned int pp_zone_max_order(const struct pp_zone *zone);
const char *pp_zone_name(const struct pp_zone *zone);

/* Who uses the zone, for a person to read; "application" unless told. Copied, up to 63 bytes. */
#define PP_OWNER_LEN 64
void pp_zone_set_owner(struct pp_zone *zone, const char *owner);

/*
 * Walk every descriptor and list and compare them with each other and the counters, under the
 * lock: for asserts, tests and fuzzers. False at the first fault, which is logged.
 */
bool pp_zone_is_valid(struct pp_zone *zone);

/* ---- checks: for caches over a zone ---- */

/* Where a block is that the zone counts as in use. */
enum pp_place {
	PP_PLACE_ZONE, /* with a direct user of the zone, or on its way */
	PP_PLACE_REST, /* at rest in a cache */
	PP_PLACE_OUT,  /* handed out by a cache; or in lists that it does not look into */
};

/* A move of blocks from one place to another, by a cache. */
struct pp_check {
	enum pp_place from, to;
	unsigned int order;
	unsigned int lcore_id; /* who moves them: the last owner, should they turn up wrongly */
	uint8_t tag;           /* of the cache: pp_zone_new_tag() */
	bool quiet;            /* from a signal handler: nothing is logged */
	/* Bytes of each page to fill while it is free: by frees, and looked at by allocations. */
	uint32_t poison_offset, poison_len;
};

#define PP_PAGE_POISON 0xaa

/*
 * Check n blocks that move, and note in their descriptors that they did. Whatever is wrong is
 * counted and reported, with its last owner, and taken out of `pages`; a page that is in two
 * places, or was written to while free, is set aside for good. Returns how many are left. Takes no
 * lock unless something is wrong. Blocks go to the zone by two calls: to PP_PLACE_ZONE, then
 * pp_zone_free_bulk(), which refuses those that a cache has.
 */
uint32_t pp_zone_check(
	struct pp_zone *zone, const struct pp_check *check, void **pages, uint32_t n);

/* A number, never 0, by which descriptors know a cache; the 256th cache shares the first's. */
uint8_t pp_zone_new_tag(struct pp_zone *zone);

/* Count something bad. True when a line may be logged: a few per second are. */
bool pp_zone_note_bad(struct pp_zone *zone, enum pp_bad_kind kind);

/* Pages set aside, and what was found; as in the statistics, but no lock is taken. */
uint64_t pp_zone_bad_pages(const struct pp_zone *zone);
uint64_t pp_zone_bad(const struct pp_zone *zone, enum pp_bad_kind kind);

/* ---- pools: a zone per node ---- */

struct pp_pool_config {
	const char *name;
	const struct pp_topology *topology; /* NULL: detect */
	enum pp_backend backend;
	size_t page_size;
	size_t bytes_per_node[PP_MAX_NODES]; /* 0: no zone there */
	uint32_t colours;
};

struct pp_pool;

/*
 * All nodes' arenas and zones, or NULL and nothing left behind: EINVAL without a name, without
 * bytes, or with bytes for a node that is not there; else as pp_arena_create(), whose names are
 * NAME-NODE. The topology is copied.
 */
struct pp_pool *pp_pool_create(const struct pp_pool_config *config);

/* -EBUSY, and nothing done, while pages are in use. */
int pp_pool_destroy(struct pp_pool *pool);

/* The node's zone, or NULL when it has none. */
struct pp_zone *pp_pool_zone(struct pp_pool *pool, uint32_t node);

/*
 * A block from `node` or, where that has none, from the next by distance. NULL as pp_zone_alloc(),
 * and EINVAL for a node that is not there.
 */
void *pp_pool_alloc(struct pp_pool *pool, uint32_t node, unsigned int order, unsigned int flags);

/* Take back a block of any node's zone; errors as pp_zone_free(). */
int pp_pool_free(struct pp_pool *pool, void *page, unsigned int order);

/* As the kernel's numastat: hits on the node asked for, misses served by this node for another. */
struct pp_pool_node_stats {
	uint64_t numa_hit;
	uint64_t numa_miss;
	uint64_t numa_foreign; /* asked of this node, served by another */
};
void pp_pool_get_node_stats(
	const struct pp_pool *pool, uint32_t node, struct pp_pool_node_stats *stats);
void pp_pool_dump(struct pp_pool *pool, FILE *f);

/* ---- telemetry: /pagepool/list, /pagepool/zone,N; and what layers above need for theirs ---- */

/* The zone's number in the process that created it; none is used twice. */
uint32_t pp_zone_id(const struct pp_zone *zone);

/* The number that a command's parameters are; -EINVAL: they are none, or something else. */
int pp_telemetry_id(const char *params, uint32_t *id);

struct rte_tel_data;

struct pp_counter {
	const char *name;
	uint64_t value;
};

/* Add members to the dict `data`. 0 or -errno. */
int pp_telemetry_counters(struct rte_tel_data *data, const struct pp_counter *counters, uint32_t n);
int pp_telemetry_array(
	struct rte_tel_data *data, const char *name, const uint64_t *values, uint32_t n);

#ifdef __cplusplus
}
#endif
