/* SPDX-License-Identifier: BSD-3-Clause */
/* The buddy allocator of one zone. */

#include <errno.h>
#include <inttypes.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_string_fns.h>

#include "pp_internal.h"

RTE_LOG_REGISTER(pp_logtype, lib.pagepool, NOTICE);

/* ---- free lists; all under the lock ---- */

static void
list_add(struct pp_zone *zone, struct pp_page *page, unsigned int order)
{
	page->order = (uint8_t)order;
	pp_store_release(&page->state, PP_PAGE_FREE);
	LIST_INSERT_HEAD(&zone->free_list[order], page, free);
	zone->nonempty |= 1u << order;
	zone->stats.free_blocks[order]++;
}

static void
list_remove(struct pp_zone *zone, struct pp_page *page, unsigned int order)
{
	LIST_REMOVE(page, free);
	pp_store_relaxed(&page->state, PP_PAGE_TAIL);
	if (LIST_EMPTY(&zone->free_list[order]))
		zone->nonempty &= ~(1u << order);
	zone->stats.free_blocks[order]--;
}

static void
set_free_pages(struct pp_zone *zone, uint64_t free)
{
	pp_store_relaxed(&zone->free_pages, free);
	if (free < zone->watermark_low)
		pp_store_relaxed(&zone->pressure, true);
	else if (free >= zone->watermark_high)
		pp_store_relaxed(&zone->pressure, false);
}

void
pp_zone_insert(struct pp_zone *zone, struct pp_page *page, unsigned int order)
{
	const struct pp_zone_run *run = page->run;
	uint32_t i = (uint32_t)(page - run->pages);

	set_free_pages(zone, zone->free_pages + (1u << order));
	pp_store_relaxed(&page->state, PP_PAGE_TAIL);
	for (; order < zone->max_order; order++) {
		const uint32_t buddy = i ^ 1u << order;
		struct pp_page *other = &run->pages[buddy];

		if (buddy >= run->padded || pp_load_relaxed(&other->state) != PP_PAGE_FREE ||
			other->order != order)
			break;
		list_remove(zone, other, order);
		zone->stats.merges++;
		i &= ~(1u << order);
	}
	list_add(zone, &run->pages[i], order);
}

bool
pp_zone_take_off(struct pp_zone *zone, struct pp_page *page)
{
	const struct pp_zone_run *run = page->run;
	const uint32_t i = (uint32_t)(page - run->pages);
	unsigned int order = 0;
	struct pp_page *head = page;

	while (pp_load_relaxed(&head->state) != PP_PAGE_FREE || head->order < order) {
		if (++order > zone->max_order)
			return false;
		head = &run->pages[i & ~((1u << order) - 1)];
	}
	order = head->order;
	list_remove(zone, head, order);
	/* The half without the page is free, and so is its quarter of the other, and so on. */
	while (order > 0) {
		const uint32_t half = 1u << --order;
		const bool upper = (i & half) != 0;

		list_add(zone, upper ? head : head + half, order);
		head += upper ? half : 0;
	}
	page->order = 0;
	set_free_pages(zone, zone->free_pages - 1);
	return true;
}

/*
 * The free block to carve n blocks of `order` from: the smallest that holds them all, else the
 * largest there is. NULL when none is left.
 */
static struct pp_page *
take_block(struct pp_zone *zone, unsigned int order, uint32_t n, unsigned int *block_order)
{
	const unsigned int whole = order + (n > 1 ? rte_fls_u32(n - 1) : 0u);
	const uint32_t usable = zone->nonempty & ~0u << order;
	const uint32_t enough = whole <= zone->max_order ? usable & ~0u << whole : 0;

	if (usable == 0)
		return NULL;
	*block_order = enough != 0 ? (unsigned int)__builtin_ctz(enough) : rte_fls_u32(usable) - 1u;

	struct pp_page *page = LIST_FIRST(&zone->free_list[*block_order]);

	list_remove(zone, page, *block_order);
	return page;
}

/* Hand out up to n blocks from the front of one free block; the rest goes back to the lists. */
static uint32_t
carve(struct pp_zone *zone, unsigned int order, void **pages, uint32_t n)
{
	unsigned int block_order;
	struct pp_page *block = take_block(zone, order, n, &block_order);

	if (block == NULL)
		return 0;
	n = RTE_MIN(n, 1u << (block_order - order));
	for (uint32_t i = 0; i < n; i++) {
		struct pp_page *page = block + ((size_t)i << order);

		page->order = (uint8_t)order;
		pp_store_release(&page->state, PP_PAGE_USED);
		pages[i] = pp_page_addr(page);
	}
	for (uint32_t rest = n << order; rest < 1u << block_order;) {
		const unsigned int rest_order = (unsigned int)__builtin_ctz(rest);

		list_add(zone, block + rest, rest_order);
		zone->stats.splits++;
		rest += 1u << rest_order;
	}
	set_free_pages(zone, zone->free_pages - ((uint64_t)n << order));
	return n;
}

/* From in use to `state`: true for one caller only, whoever else frees the block. */
static bool
pp_page_take(struct pp_page *page, enum pp_page_state state)
{
	uint8_t used = PP_PAGE_USED;

	return __atomic_compare_exchange_n(
		&page->state, &used, (uint8_t)state, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* What a cache that checks has, only that cache frees. */
static bool
is_freeable(const struct pp_page *page, unsigned int order)
{
	return page != NULL && page->order == order && pp_page_place(page) == PP_PLACE_ZONE;
}

static bool
release(struct pp_zone *zone, const void *addr, unsigned int order)
{
	struct pp_page *page = pp_zone_page(zone, addr);

	/* Atomic: a handler may return the same block meanwhile, without the lock. */
	if (!is_freeable(page, order) || !pp_page_take(page, PP_PAGE_TAIL)) {
		pp_bad_free(zone, addr, order);
		return false;
	}
	pp_zone_insert(zone, page, order);
	zone->stats.frees[order]++;
	return true;
}

/* ---- the lock and the return stack ---- */

/*
 * Pages are counted only while they are there, by pushers too: a kill may leave too few counted,
 * even less than none, but never a page that nobody can have.
 */
static void
count_returned(struct pp_zone *zone, uint64_t pages)
{
	pp_fetch_add(&zone->returned_pages, pages);
}

/*
 * One by one: a kill loses one block at most. Only who holds the lock pops, so that the head cannot
 * come back in between.
 */
static void
absorb_returned(struct pp_zone *zone)
{
	struct pp_page *page = pp_load_acquire(&zone->returned);

	while (page != NULL) {
		const unsigned int order = page->order;

		count_returned(zone, -(UINT64_C(1) << order));
		if (!__atomic_compare_exchange_n(&zone->returned, &page, page->returned, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			count_returned(zone, UINT64_C(1) << order);
			continue;
		}
		pp_zone_insert(zone, page, order);
		zone->stats.frees[order]++;
		page = pp_load_acquire(&zone->returned);
	}
}

static void
locked(struct pp_zone *zone)
{
	if (unlikely(pp_load_relaxed(&zone->returned) != NULL))
		absorb_returned(zone);
}

void
pp_zone_lock(struct pp_zone *zone)
{
	if (unlikely(pp_lock(&zone->lock)))
		pp_zone_repair(zone);
	locked(zone);
}

void
pp_zone_recover(struct pp_zone *zone)
{
	if (likely(!pp_lock_inherit(&zone->lock)))
		return;
	pp_zone_repair(zone);
	pp_unlock(&zone->lock);
}

static bool
lock_for(struct pp_zone *zone, unsigned int flags)
{
	if (likely(!(flags & PP_ALLOC_TRYLOCK))) {
		pp_zone_lock(zone);
		return true;
	}
	if (!pp_trylock(&zone->lock))
		return false;
	locked(zone);
	return true;
}

/* The lock's holder may be the very context that a handler interrupted: leave it the block. */
static int
push_returned(struct pp_zone *zone, const void *addr, unsigned int order)
{
	struct pp_page *page = pp_zone_page(zone, addr);

	if (!is_freeable(page, order) || !pp_page_take(page, PP_PAGE_RETURNED))
		return -EINVAL;
	page->returned = pp_load_relaxed(&zone->returned);
	while (!__atomic_compare_exchange_n(
		&zone->returned, &page->returned, page, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	count_returned(zone, UINT64_C(1) << order);
	return 0;
}

/* ---- public ---- */

uint32_t
pp_zone_alloc_bulk(
	struct pp_zone *zone, unsigned int order, void **pages, uint32_t n, unsigned int flags)
{
	uint32_t done = 0;

	if (unlikely(order > zone->max_order)) {
		rte_errno = EINVAL;
		return 0;
	}
	if (!lock_for(zone, flags)) {
		rte_errno = EBUSY;
		return 0;
	}
	const uint64_t reserve = flags & PP_ALLOC_REFILL ? 0 : zone->watermark_min;
	const uint64_t usable = zone->free_pages > reserve ? zone->free_pages - reserve : 0;
	const uint32_t allowed = (uint32_t)RTE_MIN(usable >> order, (uint64_t)n);

	while (done < allowed) {
		const uint32_t got = carve(zone, order, pages + done, allowed - done);

		if (got == 0)
			break;
		done += got;
	}
	zone->stats.allocs[order] += done;
	if (unlikely(done < n)) {
		zone->stats.failed++;
		rte_errno = ENOMEM;
	}
	pp_unlock(&zone->lock);
	if (unlikely(zone->poisons) && !(flags & PP_ALLOC_CHECKED))
		pp_forget_poison(zone, order, pages, done);
	return done;
}

void *
pp_zone_alloc(struct pp_zone *zone, unsigned int order, unsigned int flags)
{
	void *page;

	return pp_zone_alloc_bulk(zone, order, &page, 1, flags) == 1 ? page : NULL;
}

int
pp_zone_free(struct pp_zone *zone, void *page, unsigned int order, unsigned int flags)
{
	if (!lock_for(zone, flags))
		return push_returned(zone, page, order);

	const bool ok = release(zone, page, order);

	pp_unlock(&zone->lock);
	if (ok)
		return 0;
	if (!(flags & PP_ALLOC_TRYLOCK))
		pp_log_bad_free(zone, page, order);
	return -EINVAL;
}

uint32_t
pp_zone_free_bulk(struct pp_zone *zone, unsigned int order, void *const *pages, uint32_t n)
{
	const void *bad = NULL;
	uint32_t done = 0;

	pp_zone_lock(zone);
	for (uint32_t i = 0; i < n; i++) {
		if (likely(release(zone, pages[i], order)))
			done++;
		else
			bad = pages[i];
	}
	pp_unlock(&zone->lock);
	if (unlikely(done < n))
		pp_log_bad_free(zone, bad, order);
	return done;
}

struct pp_zone *
pp_zone_create(const char *name, int node, unsigned int max_order)
{
	if (max_order > PP_MAX_ORDER || name == NULL) {
		rte_errno = EINVAL;
		return NULL;
	}
	struct pp_zone *zone = pp_meta_alloc(node, sizeof(*zone));

	if (zone == NULL)
		return NULL;
	for (unsigned int order = 0; order <= PP_MAX_ORDER; order++)
		LIST_INIT(&zone->free_list[order]);
	zone->max_order = max_order;
	zone->node = node;
	rte_strscpy(zone->name, name, sizeof(zone->name));
	pp_zone_set_owner(zone, "application");
	if (pp_zone_list(zone) != 0) {
		rte_free(zone);
		rte_errno = ENOMEM;
		return NULL;
	}
	return zone;
}

void
pp_zone_set_owner(struct pp_zone *zone, const char *owner)
{
	pp_zone_lock(zone);
	rte_strscpy(zone->owner, owner, sizeof(zone->owner));
	pp_unlock(&zone->lock);
}

static uint64_t
pages_in_use(struct pp_zone *zone)
{
	pp_zone_lock(zone);
	const uint64_t in_use = zone->pages - zone->free_pages - pp_zone_bad_pages(zone);

	pp_unlock(&zone->lock);
	return in_use;
}

uint64_t
pp_zone_abandon(struct pp_zone *zone)
{
	const uint64_t in_use = pages_in_use(zone);

	pp_zone_unlist(zone);
	for (struct pp_zone_chunk *chunk = zone->chunks, *next; chunk != NULL; chunk = next) {
		next = chunk->next;
		rte_free(chunk->pages);
		rte_free(chunk);
	}
	rte_free(zone->runs);
	rte_free(zone);
	return in_use;
}

int
pp_zone_destroy(struct pp_zone *zone)
{
	const uint64_t in_use = pages_in_use(zone);

	if (in_use > 0) {
		PP_LOG(ERR, "%s: not destroyed, %" PRIu64 " pages are in use", zone->name, in_use);
		return -EBUSY;
	}
	pp_zone_abandon(zone);
	return 0;
}

int
pp_zone_set_watermarks(struct pp_zone *zone, uint64_t min, uint64_t low, uint64_t high)
{
	if (min > low || low > high || high > pp_zone_pages(zone))
		return -EINVAL;
	pp_zone_lock(zone);
	zone->watermark_min = min;
	zone->watermark_low = low;
	zone->watermark_high = high;
	set_free_pages(zone, zone->free_pages);
	pp_unlock(&zone->lock);
	return 0;
}

bool
pp_zone_pressure(const struct pp_zone *zone)
{
	return pp_load_relaxed(&zone->pressure);
}

uint64_t
pp_zone_pages(const struct pp_zone *zone)
{
	return pp_load_relaxed(&zone->pages);
}

uint64_t
pp_zone_free_pages(const struct pp_zone *zone)
{
	const int64_t returned = (int64_t)pp_load_relaxed(&zone->returned_pages);

	return pp_load_relaxed(&zone->free_pages) + (returned > 0 ? (uint64_t)returned : 0);
}

unsigned int
pp_zone_max_order(const struct pp_zone *zone)
{
	return zone->max_order;
}

int
pp_zone_node(const struct pp_zone *zone)
{
	return zone->node;
}

const char *
pp_zone_name(const struct pp_zone *zone)
{
	return zone->name;
}
