/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of pages that move between a zone, the caches over it and their users.
 *
 * A descriptor's owner word says where its block is, and every move that is checked changes it by
 * compare-and-swap: of two frees of one block, or of a free and a block at rest, one finds a place
 * that it does not expect.
 */

#include <inttypes.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_lcore.h>

#include "pp_internal.h"

/* As many lines per zone and second; the rest is counted. */
#define REPORTS_MAX 10u

static const char *const kind_names[] = {
	[PP_BAD_FOREIGN] = "foreign pointer",
	[PP_BAD_ALIGNMENT] = "alignment",
	[PP_BAD_STATE] = "state",
	[PP_BAD_ORDER] = "order",
	[PP_BAD_OWNER] = "owner",
	[PP_BAD_DOUBLE_FREE] = "double free",
	[PP_BAD_POISON] = "poison",
	[PP_BAD_COUNT] = "count",
};

const char *
pp_bad_kind_name(enum pp_bad_kind kind)
{
	return (unsigned int)kind < RTE_DIM(kind_names) ? kind_names[kind] : "unknown";
}

uint8_t
pp_zone_new_tag(struct pp_zone *zone)
{
	return (uint8_t)(pp_fetch_add(&zone->tags, 1) % UINT8_MAX + 1);
}

uint64_t
pp_zone_bad_pages(const struct pp_zone *zone)
{
	return pp_load_relaxed(&zone->bad_pages);
}

uint64_t
pp_zone_bad(const struct pp_zone *zone, enum pp_bad_kind kind)
{
	return pp_load_relaxed(&zone->bad[kind]);
}

bool
pp_zone_note_bad(struct pp_zone *zone, enum pp_bad_kind kind)
{
	const uint64_t now = rte_get_tsc_cycles(), since = pp_load_relaxed(&zone->reports_since);

	pp_fetch_add(&zone->bad[kind], 1);
	if (since == 0 || now - since > rte_get_tsc_hz()) {
		const uint32_t reports = pp_exchange(&zone->reports, 0);

		pp_store_relaxed(&zone->reports_since, now);
		if (reports > REPORTS_MAX)
			PP_LOG(ERR, "%s: %u more reports of bad pages were left out", zone->name,
				reports - REPORTS_MAX);
	}
	return pp_fetch_add(&zone->reports, 1) < REPORTS_MAX;
}

/* ---- what is wrong ---- */

struct verdict {
	enum pp_bad_kind kind;
	const char *why;
	struct pp_page *page; /* or NULL */
	uint32_t owner;       /* the last one, who may know more */
};

/* The head of the block that the page lies in; NULL when there is none, for it is changing. */
static struct pp_page *
head_of(const struct pp_zone *zone, struct pp_page *page)
{
	const uint32_t i = (uint32_t)(page - page->run->pages);

	for (unsigned int order = 0; order <= zone->max_order; order++) {
		struct pp_page *head = &page->run->pages[i & ~((1u << order) - 1)];

		if (pp_load_relaxed(&head->state) != PP_PAGE_TAIL)
			return head->order >= order ? head : NULL;
	}
	return NULL;
}

/* By a user, of a cache or of the zone itself. */
static bool
is_free(const struct pp_check *check)
{
	return check->from == PP_PLACE_OUT || check->from == check->to;
}

/* Of a block that the zone counts as in use. */
static struct verdict
judge_place(const struct pp_check *check, struct pp_page *page)
{
	const uint32_t owner = pp_load_relaxed(&page->owner);
	const bool ours = check->tag == 0 || (owner >> 8 & 0xff) == check->tag;
	enum pp_bad_kind kind = PP_BAD_STATE;
	const char *why = "moving";

	switch (owner & PP_OWNER_PLACE & ~PP_OWNER_SUSPECT) {
	case PP_PLACE_ZONE:
		kind = check->from == PP_PLACE_OUT ? PP_BAD_OWNER : PP_BAD_STATE;
		why = "taken from the zone itself";
		break;
	case PP_PLACE_REST:
		kind = !ours ? PP_BAD_OWNER : is_free(check) ? PP_BAD_DOUBLE_FREE : PP_BAD_STATE;
		why = ours ? "at rest in a cache already" : "at rest in another cache";
		break;
	case PP_PLACE_OUT:
		kind = !ours || is_free(check) ? PP_BAD_OWNER : PP_BAD_STATE;
		why = ours ? "handed out by a cache" : "handed out by another cache";
		break;
	}
	return (struct verdict){kind, why, page, owner};
}

static struct verdict
judge(const struct pp_zone *zone, const struct pp_check *check, const void *addr)
{
	const enum pp_bad_kind free_already = is_free(check) ? PP_BAD_DOUBLE_FREE : PP_BAD_STATE;
	struct pp_page *page = pp_zone_page_around(zone, addr);

	if (page == NULL)
		return (struct verdict){PP_BAD_FOREIGN, "no memory of this zone", NULL, 0};

	const uint32_t owner = pp_load_relaxed(&page->owner);
	struct pp_page *head = head_of(zone, page);

	if (pp_page_addr(page) != addr)
		return (struct verdict){
			PP_BAD_ALIGNMENT, "inside of a page, or between two", page, owner};
	if (head == NULL)
		return (struct verdict){PP_BAD_STATE, "no block at all", page, owner};
	switch (pp_load_relaxed(&head->state)) {
	case PP_PAGE_USED:
		break;
	case PP_PAGE_BAD:
		return (struct verdict){free_already, "set aside before", page, owner};
	case PP_PAGE_FREE:
	case PP_PAGE_RETURNED:
		return (struct verdict){free_already, "free in the zone", page, owner};
	default:
		return (struct verdict){PP_BAD_STATE, "no block at all", page, owner};
	}
	if (head != page)
		return (struct verdict){PP_BAD_STATE, "inside of a block in use", page,
			pp_load_relaxed(&head->owner)};
	if (page->order != check->order)
		return (struct verdict){PP_BAD_ORDER, "in use at another order", page, owner};
	return judge_place(check, page);
}

/* ---- what becomes of it ---- */

static void
set_aside(struct pp_zone *zone, struct pp_page *page)
{
	uint8_t used = PP_PAGE_USED;

	if (__atomic_compare_exchange_n(
		    &page->state, &used, PP_PAGE_BAD, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		pp_fetch_add(&zone->bad_pages, UINT64_C(1) << page->order);
}

/* As set_aside(), for pages that are free, or were a moment ago. */
static void
set_aside_free(struct pp_zone *zone, struct pp_page *page, unsigned int order)
{
	const struct pp_zone_run *run = page->run;
	const uint32_t i = (uint32_t)(page - run->pages);
	const uint32_t n = RTE_MIN(1u << order, run->run.count - i);

	pp_zone_lock(zone);
	for (uint32_t k = 0; k < n; k++) {
		if (!pp_zone_take_off(zone, &page[k]))
			continue;
		pp_store_relaxed(&page[k].state, PP_PAGE_BAD);
		pp_fetch_add(&zone->bad_pages, 1);
	}
	pp_unlock(&zone->lock);
}

/* Two say that they were the last to have it, and one may still write to it. */
static void
distrust(struct pp_zone *zone, const struct pp_check *check, struct pp_page *page)
{
	uint32_t owner = pp_load_relaxed(&page->owner);

	if (pp_load_relaxed(&page->state) == PP_PAGE_USED) {
		if ((owner & PP_OWNER_PLACE) == PP_PLACE_REST)
			__atomic_compare_exchange_n(&page->owner, &owner, owner | PP_OWNER_SUSPECT,
				false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	} else if (!check->quiet) {
		set_aside_free(zone, page, check->order);
	}
}

struct lcore_name {
	char text[sizeof("lcore 4294967295")];
};

static struct lcore_name
lcore_name(uint32_t lcore_plus_1)
{
	struct lcore_name name = {"no lcore"};

	if (lcore_plus_1 != 0)
		snprintf(name.text, sizeof(name.text), "lcore %u", lcore_plus_1 - 1);
	return name;
}

static uint32_t
lcore_plus_1(const struct pp_check *check)
{
	return check->lcore_id < RTE_MAX_LCORE ? check->lcore_id + 1 : 0;
}

static void
report(const struct pp_zone *zone, const struct pp_check *check, const void *addr,
	const struct verdict *verdict)
{
	PP_LOG(ERR, "%s: bad page %p, order %u: %s: %s; by %s, last owner %s", zone->name, addr,
		check->order, pp_bad_kind_name(verdict->kind), verdict->why,
		lcore_name(lcore_plus_1(check)).text, lcore_name(verdict->owner >> 16).text);
}

static void
note(struct pp_zone *zone, const struct pp_check *check, const void *addr,
	const struct verdict *verdict)
{
	if (check->quiet)
		pp_fetch_add(&zone->bad[verdict->kind], 1);
	else if (pp_zone_note_bad(zone, verdict->kind))
		report(zone, check, addr, verdict);
}

static void __rte_noinline
bad_page(struct pp_zone *zone, const struct pp_check *check, const void *addr)
{
	const struct verdict verdict = judge(zone, check, addr);

	/* The other free of it has been reported. */
	if (verdict.kind == PP_BAD_STATE && check->from == PP_PLACE_REST &&
		pp_page_place(verdict.page) == (PP_PLACE_REST | PP_OWNER_SUSPECT)) {
		set_aside(zone, verdict.page);
		return;
	}
	note(zone, check, addr, &verdict);
	if (verdict.kind == PP_BAD_DOUBLE_FREE)
		distrust(zone, check, verdict.page);
	else if (verdict.kind == PP_BAD_STATE && check->from == PP_PLACE_ZONE)
		set_aside(zone, verdict.page); /* the zone has just given it to the caller */
}

/* A free by a direct user of the zone: in place in the zone, and about to be so. */
static struct pp_check
direct_free(unsigned int order)
{
	return (struct pp_check){.order = order, .lcore_id = rte_lcore_id(), .quiet = true};
}

void
pp_bad_free(struct pp_zone *zone, const void *addr, unsigned int order)
{
	const struct pp_check check = direct_free(order);
	const struct verdict verdict = judge(zone, &check, addr);

	zone->stats.bad_frees++;
	pp_fetch_add(&zone->bad[verdict.kind], 1);
	if (verdict.kind == PP_BAD_DOUBLE_FREE)
		distrust(zone, &check, verdict.page);
}

void
pp_log_bad_free(const struct pp_zone *zone, const void *addr, unsigned int order)
{
	const struct pp_check check = direct_free(order);
	const struct verdict verdict = judge(zone, &check, addr);

	PP_LOG(ERR,
		"%s: free of %p at order %u, which is no block of this zone in use (double free?): "
		"%s: %s; by %s, last owner %s",
		zone->name, addr, order, pp_bad_kind_name(verdict.kind), verdict.why,
		lcore_name(lcore_plus_1(&check)).text, lcore_name(verdict.owner >> 16).text);
}

/* ---- poison ---- */

static uint8_t *
poison_of(struct pp_page *page, const struct pp_check *check)
{
	return (uint8_t *)pp_page_addr(page) + check->poison_offset;
}

static void
poison(struct pp_zone *zone, const struct pp_check *check, struct pp_page *page)
{
	if (!pp_load_relaxed(&zone->poisons))
		pp_store_relaxed(&zone->poisons, true);
	for (uint32_t i = 0; i < 1u << check->order; i++) {
		memset(poison_of(&page[i], check), PP_PAGE_POISON, check->poison_len);
		page[i].poisoned = true;
	}
}

/* The first byte that somebody has written, or NULL. */
static const uint8_t *
find_write(const uint8_t *bytes, uint32_t len)
{
	if (bytes[0] == PP_PAGE_POISON && memcmp(bytes, bytes + 1, len - 1) == 0)
		return NULL;
	while (*bytes == PP_PAGE_POISON)
		bytes++;
	return bytes;
}

static bool
is_intact(struct pp_zone *zone, const struct pp_check *check, struct pp_page *page, uint32_t owner)
{
	const struct verdict verdict = {PP_BAD_POISON, "written to while it was free", page, owner};
	const uint8_t *written = NULL;

	for (uint32_t i = 0; i < 1u << check->order; i++) {
		if (page[i].poisoned && written == NULL)
			written = find_write(poison_of(&page[i], check), check->poison_len);
		page[i].poisoned = false;
	}
	if (likely(written == NULL))
		return true;
	note(zone, check, written, &verdict);
	set_aside(zone, page);
	return false;
}

void
pp_forget_poison(struct pp_zone *zone, unsigned int order, void *const *pages, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct pp_page *page = pp_zone_page(zone, pages[i]);

		for (uint32_t k = 0; k < 1u << order; k++)
			page[k].poisoned = false;
	}
}

/* ---- the check ---- */

/* The move, if the block is where it should be; `was` gets its owner word. */
static bool
page_expected_state(struct pp_page *page, const struct pp_check *check, uint32_t *was)
{
	const uint32_t tag = (uint32_t)check->tag << 8;
	const uint32_t expected = check->from | (check->from != PP_PLACE_ZONE ? tag : 0);
	const uint32_t next = check->to | (check->to != PP_PLACE_ZONE ? tag : 0);
	const bool has_user = check->from == PP_PLACE_OUT || check->to == PP_PLACE_OUT;

	if (unlikely(pp_load_acquire(&page->state) != PP_PAGE_USED || page->order != check->order))
		return false;
	*was = pp_load_relaxed(&page->owner);
	if (unlikely((*was & PP_OWNER_CACHE) != expected))
		return false;
	const uint32_t lcore = has_user ? lcore_plus_1(check) << 16 : *was & ~PP_OWNER_CACHE;

	return __atomic_compare_exchange_n(
		&page->owner, was, next | lcore, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static bool
check_page(struct pp_zone *zone, const struct pp_check *check, const void *addr)
{
	struct pp_page *page = pp_zone_page(zone, addr);
	uint32_t was;

	if (unlikely(page == NULL || !page_expected_state(page, check, &was))) {
		bad_page(zone, check, addr);
		return false;
	}
	if (check->poison_len == 0)
		return true;
	if (check->from == PP_PLACE_OUT)
		poison(zone, check, page);
	return check->to != PP_PLACE_OUT || is_intact(zone, check, page, was);
}

uint32_t
pp_zone_check(struct pp_zone *zone, const struct pp_check *check, void **pages, uint32_t n)
{
	uint32_t good = 0;

	for (uint32_t i = 0; i < n; i++) {
		void *page = pages[i];

		if (likely(check_page(zone, check, page)))
			pages[good++] = page;
	}
	return good;
}
