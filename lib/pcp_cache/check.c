/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of what moves between an lcore's magazines, the depot, the zone and users. The zone's
 * descriptors remember where each block is; here is who asks them, and what is done about counts.
 *
 *	deferred	blocks in an lcore's magazines are as good as handed out; the depot's rest
 *	full		all but those in use rest, and every call moves its own
 */

#include <errno.h>
#include <inttypes.h>

#include "pcp_internal.h"

static const char *const checks_names[] = {
	[PCP_CHECKS_OFF] = "off",
	[PCP_CHECKS_DEFERRED] = "deferred",
	[PCP_CHECKS_FULL] = "full",
};

const char *
pcp_checks_name(enum pcp_checks checks)
{
	return (unsigned int)checks < RTE_DIM(checks_names) ? checks_names[checks] : "unknown";
}

int
pcp_checks_parse(const char *name, enum pcp_checks *checks)
{
	const int i = pcp_find_name(checks_names, RTE_DIM(checks_names), name);

	if (i < 0)
		return -EINVAL;
	*checks = (enum pcp_checks)i;
	return 0;
}

/* ---- pages ---- */

uint32_t
pcp_check_pages(struct pcp_depot *depot, const struct pp_check *moved, void **pages, uint32_t n)
{
	struct pp_check check = *moved;

	check.tag = depot->tag;
	if (depot->checks_full) {
		check.poison_offset = depot->config.poison_offset;
		check.poison_len = depot->config.poison_len;
	}
	return pp_zone_check(depot->zone, &check, pages, n);
}

uint32_t
pcp_zone_alloc_bulk(struct pcp_depot *depot, enum pp_place to, unsigned int lcore_id,
	unsigned int order, void **pages, uint32_t n)
{
	uint32_t done = 0, got, good;

	do {
		got = pp_zone_alloc_bulk(depot->zone, order, pages + done, n - done,
			PP_ALLOC_REFILL | PP_ALLOC_CHECKED);
		good = pcp_check(depot, PP_PLACE_ZONE, to, lcore_id, order, pages + done, got);
		done += good;
	} while (unlikely(good < got));
	return done;
}

uint32_t
pcp_zone_free_bulk(struct pcp_depot *depot, enum pp_place from, unsigned int lcore_id,
	unsigned int order, void *const *pages, uint32_t n)
{
	uint32_t done = 0;

	if (likely(depot->tag == 0))
		return pp_zone_free_bulk(depot->zone, order, pages, n);
	for (uint32_t i = 0; i < n; i += PCP_CHECK_CHUNK) {
		const uint32_t k = RTE_MIN(n - i, PCP_CHECK_CHUNK);
		void *good[PCP_CHECK_CHUNK];

		pcp_copy(good, pages + i, k);
		done += pp_zone_free_bulk(depot->zone, order, good,
			pcp_check(depot, from, PP_PLACE_ZONE, lcore_id, order, good, k));
	}
	return done;
}

static bool
check_quietly(struct pcp_depot *depot, enum pp_place from, enum pp_place to, unsigned int order,
	void **page)
{
	const struct pp_check check = {
		.from = from,
		.to = to,
		.lcore_id = rte_lcore_id(),
		.order = order,
		.quiet = true,
	};

	return likely(depot->tag == 0) || pcp_check_pages(depot, &check, page, 1) == 1;
}

void *
pcp_zone_tryalloc(struct pcp_depot *depot, unsigned int order)
{
	void *page;

	do
		page = pp_zone_alloc(
			depot->zone, order, PP_ALLOC_REFILL | PP_ALLOC_TRYLOCK | PP_ALLOC_CHECKED);
	while (page != NULL && !check_quietly(depot, PP_PLACE_ZONE, PP_PLACE_OUT, order, &page));
	return page;
}

bool
pcp_zone_tryfree(struct pcp_depot *depot, void *page, unsigned int order)
{
	return check_quietly(depot, PP_PLACE_OUT, PP_PLACE_ZONE, order, &page) &&
	       pp_zone_free(depot->zone, page, order, PP_ALLOC_TRYLOCK) == 0;
}

/* ---- a block in both magazines of an lcore ---- */

/* Of a set of addresses: no false negatives, and with 256 of them few false positives. */
#define SET_BITS 16384u

static uint32_t
set_bit(const void *page)
{
	return (uint32_t)((uintptr_t)page * UINT64_C(0x9e3779b97f4a7c15) >> 50);
}

static_assert(SET_BITS == UINT32_C(1) << (64 - 50), "a hash is a bit of the set");

static bool
contains(void *const *pages, uint32_t n, const void *page)
{
	for (uint32_t i = 0; i < n; i++)
		if (pages[i] == page)
			return true;
	return false;
}

bool
pcp_magazines_overlap(const struct pcp_list *list)
{
	const uint32_t n = pcp_count(list) + list->parked;
	uint64_t set[SET_BITS / 64] = {0};

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t bit = set_bit(list->loaded->page[i]);

		set[bit / 64] |= UINT64_C(1) << bit % 64;
	}
	for (uint32_t i = 0; i < list->previous_count; i++) {
		const void *page = list->previous->page[i];
		const uint32_t bit = set_bit(page);

		if (unlikely(set[bit / 64] >> bit % 64 & 1) &&
			contains(list->loaded->page, n, page))
			return true;
	}
	return false;
}

/* ---- counts ---- */

static void
bad_count(struct pcp_depot *depot, unsigned int order, const char *what, uint64_t count)
{
	if (pp_zone_note_bad(depot->zone, PP_BAD_COUNT))
		PCP_LOG(ERR, "%s: bad count, order %u: %s is %" PRIu64 " of %u",
			pp_zone_name(depot->zone), order, what, count, depot->list[order].batch);
}

static void
bad_list_count(const struct pcp *pcp, unsigned int order, const char *what, uint64_t count)
{
	char text[64];

	snprintf(text, sizeof(text), "%s of lcore %u", what, pcp_lcore_id(pcp));
	bad_count(pcp->cache->depot, order, text, count);
}

static void
check_list(struct pcp *pcp, unsigned int order)
{
	struct pcp_list *list = &pcp->list[order];
	const uint32_t batch = list->loaded != NULL ? pcp->cache->depot->list[order].batch : 0;

	if (unlikely(list->capacity != 0 && list->capacity != batch)) {
		bad_list_count(pcp, order, "capacity", list->capacity);
		list->capacity = batch;
	}
	if (unlikely(pcp_count(list) > list->capacity)) {
		bad_list_count(pcp, order, "count", pcp_count(list));
		pcp_set_count(list, 0);
	}
	if (unlikely(list->previous_count != 0 && list->previous_count != batch)) {
		bad_list_count(pcp, order, "previous_count", list->previous_count);
		pp_store_relaxed(&list->previous_count, 0);
	}
	if (unlikely(list->parked > batch)) {
		bad_list_count(pcp, order, "parked", list->parked);
		pp_store_relaxed(&list->parked, 0);
	}
}

void
pcp_check_lists(struct pcp *pcp)
{
	for (unsigned int order = 0; order <= pcp->cache->depot->config.max_order; order++)
		check_list(pcp, order);
}

/* More magazines than there are: which of them are in two places, nobody knows. */
void
pcp_check_shelf(struct pcp_depot *depot, unsigned int order, struct pcp_shelf *shelf)
{
	uint64_t n = 0;

	for (unsigned int kind = 0; kind < PCP_KINDS; kind++)
		n += pcp_stack_count(&shelf->stack[kind]);
	if (likely(n < pcp_depot_magazines(depot, order)))
		return;
	bad_count(depot, order, "magazines in the depot", n);
	for (unsigned int kind = 0; kind < PCP_KINDS; kind++)
		pp_store_release(&shelf->stack[kind].top, shelf->stack[kind].bottom);
}

void
pcp_check_partial(struct pcp_depot *depot, unsigned int order)
{
	struct pcp_depot_list *list = &depot->list[order];

	if (likely(list->partial->count <= list->batch))
		return;
	bad_count(depot, order, "the partial magazine", list->partial->count);
	pp_store_relaxed(&list->partial->count, list->batch);
}

void
pcp_check_full_magazine(struct pcp_depot *depot, unsigned int order, struct pcp_magazine *magazine)
{
	const uint32_t batch = depot->list[order].batch;

	if (likely(magazine->count == batch))
		return;
	bad_count(depot, order, "a full magazine", magazine->count);
	pp_store_relaxed(&magazine->count, batch);
}
