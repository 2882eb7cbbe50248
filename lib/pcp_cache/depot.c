/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The depot: magazines that no lcore has loaded. Each lcore has a shelf, last in first out, and
 * looks at the others when that is empty: what it put down itself is in its own core's cache, and
 * so is the shelf's lock. Flushes, and calls past the caches, share a partial magazine.
 *
 * Locks, in this order: the depot's, of the partial magazines; one shelf's; the zone's.
 */

#include "pcp_internal.h"

static void
push(struct pcp_shelf *shelf, enum pcp_kind kind, struct pcp_magazine *magazine)
{
	struct pcp_stack *stack = &shelf->stack[kind];

	stack->slot[stack->top & shelf->mask] = magazine;
	pp_store_release(&stack->top, stack->top + 1);
}

/* There is one. */
static struct pcp_magazine *
pop(struct pcp_shelf *shelf, enum pcp_kind kind)
{
	struct pcp_stack *stack = &shelf->stack[kind];

	pp_store_release(&stack->top, stack->top - 1);
	return stack->slot[stack->top & shelf->mask];
}

static struct pcp_magazine *
pop_coldest(struct pcp_shelf *shelf, enum pcp_kind kind)
{
	struct pcp_stack *stack = &shelf->stack[kind];
	struct pcp_magazine *magazine = stack->slot[stack->bottom & shelf->mask];

	pp_store_release(&stack->bottom, stack->bottom + 1);
	return magazine;
}

uint64_t
pcp_depot_count(const struct pcp_depot_list *list, enum pcp_kind kind)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < list->n_shelves; i++)
		n += pcp_stack_count(&list->shelf[i].stack[kind]);
	return n;
}

/* ---- arrivals: of free pages where an attempt may have looked before ---- */

static uint64_t
arrivals(const struct pcp_depot *depot)
{
	uint64_t n = pp_load_acquire(&depot->arrivals);

	for (unsigned int order = 0; order <= depot->config.max_order; order++) {
		const struct pcp_depot_list *list = &depot->list[order];

		for (uint32_t i = 0; i < list->n_shelves; i++)
			n += pp_load_acquire(&list->shelf[i].given);
	}
	return n;
}

void
pcp_attempt_begins(struct pcp_attempt *attempt, const struct pcp_depot *depot)
{
	attempt->arrivals = arrivals(depot);
	attempt->tries++;
}

bool
pcp_attempt_missed(const struct pcp_attempt *attempt, const struct pcp_depot *depot)
{
	return arrivals(depot) != attempt->arrivals;
}

/* ---- locks ---- */

/* Whoever died holding a lock, the stacks are whole; an arrival may not have been counted. */
static void
lock(struct pcp_depot *depot, struct pp_lock *which)
{
	if (likely(!pp_lock(which)))
		return;
	pp_store_relaxed(&depot->inherited, true);
	pcp_count_arrival(depot);
}

static void
lock_shelf(struct pcp_depot *depot, unsigned int order, struct pcp_shelf *shelf)
{
	lock(depot, &shelf->lock);
	if (unlikely(depot->tag != 0))
		pcp_check_shelf(depot, order, shelf);
}

static void
unlock_shelf(struct pcp_shelf *shelf)
{
	pp_unlock(&shelf->lock);
}

/* To use the partial magazine of an order. */
static struct pcp_depot_list *
lock_partial(struct pcp_depot *depot, unsigned int order)
{
	lock(depot, &depot->lock);
	if (unlikely(depot->tag != 0))
		pcp_check_partial(depot, order);
	return &depot->list[order];
}

static void
unlock_partial(struct pcp_depot *depot)
{
	pp_unlock(&depot->lock);
}

void
pcp_depot_lock(struct pcp_depot *depot)
{
	lock(depot, &depot->lock);
	for (unsigned int order = 0; order <= depot->config.max_order; order++)
		for (uint32_t i = 0; i < depot->list[order].n_shelves; i++)
			lock(depot, &depot->list[order].shelf[i].lock);
}

void
pcp_depot_unlock(struct pcp_depot *depot)
{
	for (unsigned int order = 0; order <= depot->config.max_order; order++)
		for (uint32_t i = 0; i < depot->list[order].n_shelves; i++)
			pp_unlock(&depot->list[order].shelf[i].lock);
	pp_unlock(&depot->lock);
}

/* ---- the shelf that has a magazine ---- */

static struct pcp_shelf *
own_shelf(struct pcp_depot_list *list, unsigned int lcore_id)
{
	return &list->shelf[lcore_id & (list->n_shelves - 1)];
}

/* Where most are; NULL: there are none. */
static struct pcp_shelf *
fullest_shelf(struct pcp_depot_list *list, enum pcp_kind kind)
{
	struct pcp_shelf *fullest = NULL;
	uint32_t most = 0;

	for (uint32_t i = 0; i < list->n_shelves; i++) {
		const uint32_t n = pcp_stack_count(&list->shelf[i].stack[kind]);

		if (n > most) {
			most = n;
			fullest = &list->shelf[i];
		}
	}
	return fullest;
}

/* An empty shelf's line is left to its lcore. */
static bool
lock_if_any(
	struct pcp_depot *depot, unsigned int order, struct pcp_shelf *shelf, enum pcp_kind kind)
{
	if (pcp_stack_count(&shelf->stack[kind]) == 0)
		return false;
	lock_shelf(depot, order, shelf);
	if (likely(pcp_stack_count(&shelf->stack[kind]) > 0))
		return true;
	unlock_shelf(shelf);
	return false;
}

/* Whoever finds them taken again and again, by others who were faster, finds none. */
static struct pcp_shelf *
lock_fullest(struct pcp_depot *depot, unsigned int order, enum pcp_kind kind)
{
	struct pcp_depot_list *list = &depot->list[order];

	for (uint32_t i = 0; i < list->n_shelves; i++) {
		struct pcp_shelf *shelf = fullest_shelf(list, kind);

		if (shelf == NULL)
			break;
		if (lock_if_any(depot, order, shelf, kind))
			return shelf;
	}
	return NULL;
}

/* Or none, and none on its way from a shelf to the partial magazine or the zone. */
static struct pcp_shelf *
lock_any(struct pcp_depot *depot, unsigned int order, enum pcp_kind kind)
{
	struct pcp_depot_list *list = &depot->list[order];
	struct pcp_shelf *shelf = lock_fullest(depot, order, kind);

	for (uint32_t i = 0; shelf == NULL && i < list->n_shelves; i++) {
		if (pcp_stack_count(&list->shelf[i].stack[kind]) == 0 &&
			pp_load_acquire(&list->shelf[i].lock.holder) == 0)
			continue;
		lock_shelf(depot, order, &list->shelf[i]);
		if (pcp_stack_count(&list->shelf[i].stack[kind]) > 0)
			shelf = &list->shelf[i];
		else
			unlock_shelf(&list->shelf[i]);
	}
	if (shelf == NULL)
		return NULL;
	const uint32_t found = (uint32_t)(shelf - list->shelf);

	if (found != pp_load_relaxed(&list->found[kind]))
		pp_store_relaxed(&list->found[kind], found);
	return shelf;
}

/* The lcore's own, or where one was found before: what another lcore frees stays with that. */
static struct pcp_shelf *
lock_near(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order, enum pcp_kind kind)
{
	struct pcp_depot_list *list = &depot->list[order];
	struct pcp_shelf *shelf = own_shelf(list, lcore_id);

	if (likely(lock_if_any(depot, order, shelf, kind)))
		return shelf;
	shelf = &list->shelf[pp_load_relaxed(&list->found[kind])];
	return lock_if_any(depot, order, shelf, kind) ? shelf : NULL;
}

static struct pcp_magazine *
checked(struct pcp_depot *depot, unsigned int order, struct pcp_magazine *full)
{
	if (unlikely(depot->tag != 0))
		pcp_check_full_magazine(depot, order, full);
	return full;
}

/* An empty magazine, from wherever, and the lcore's own shelf locked; NULL, and nothing locked. */
static struct pcp_magazine *
take_empty(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order)
{
	struct pcp_shelf *own = own_shelf(&depot->list[order], lcore_id);
	struct pcp_shelf *shelf = lock_near(depot, lcore_id, order, PCP_EMPTY);

	if (shelf == NULL)
		shelf = lock_any(depot, order, PCP_EMPTY);
	if (unlikely(shelf == NULL))
		return NULL;
	struct pcp_magazine *empty = pop(shelf, PCP_EMPTY);

	if (shelf != own) {
		unlock_shelf(shelf);
		lock_shelf(depot, order, own);
	}
	return empty;
}

/* ---- surplus ---- */

/* Returns what the zone took. */
static uint32_t
give_to_zone(struct pcp_depot *depot, unsigned int order, struct pcp_magazine *magazine)
{
	const uint32_t n = magazine->count;

	/* Before the pages are elsewhere: a kill in between may lose them, not double them. */
	pp_store_release(&magazine->count, 0);
	pp_fetch_add(&depot->drains, 1);
	pp_fetch_add(&depot->drain_blocks, n);
	return pcp_zone_free_bulk(depot, PP_PLACE_REST, LCORE_ID_ANY, order, magazine->page, n);
}

/* The partial magazine's, if more than `keep` blocks would stay. */
static bool
drain_partial(struct pcp_depot *depot, unsigned int order, uint64_t keep, uint64_t *moved)
{
	struct pcp_depot_list *list = lock_partial(depot, order);
	const uint64_t full = pcp_depot_count(list, PCP_FULL);
	const uint32_t n = list->partial->count;
	const bool any = n > 0 && full * list->batch + n > keep;

	if (any) {
		*moved += give_to_zone(depot, order, list->partial);
		pcp_count_arrival(depot);
	}
	unlock_partial(depot);
	return any;
}

/* The shelf whose coldest magazine goes, if more than `keep` blocks would stay or none is to. */
static struct pcp_shelf *
lock_surplus(struct pcp_depot *depot, unsigned int order, uint64_t keep)
{
	struct pcp_depot_list *list = &depot->list[order];
	const uint64_t most = keep / list->batch;

	if (keep == 0) /* those of other drains are waited for */
		return lock_any(depot, order, PCP_FULL);
	if (pcp_depot_count(list, PCP_FULL) <= most)
		return NULL;
	struct pcp_shelf *shelf = lock_fullest(depot, order, PCP_FULL);

	if (shelf != NULL && unlikely(pcp_depot_count(list, PCP_FULL) <= most)) {
		unlock_shelf(shelf);
		shelf = NULL;
	}
	return shelf;
}

/*
 * Give a magazine, or what is left in the partial one, to the zone. Under its lock: whoever finds
 * the depot dry must find the zone filled. False when there was none, or not too many.
 */
static bool
drain_one(struct pcp_depot *depot, unsigned int order, uint64_t keep, uint64_t *moved)
{
	struct pcp_shelf *shelf = lock_surplus(depot, order, keep);

	if (shelf == NULL)
		return drain_partial(depot, order, keep, moved);
	struct pcp_magazine *magazine = checked(depot, order, pop_coldest(shelf, PCP_FULL));

	*moved += give_to_zone(depot, order, magazine);
	push(shelf, PCP_EMPTY, magazine);
	pcp_count_arrival(depot);
	unlock_shelf(shelf);
	return true;
}

uint64_t
pcp_depot_drain(struct pcp_depot *depot, unsigned int order, uint64_t keep)
{
	uint64_t moved = 0;

	while (drain_one(depot, order, keep, &moved))
		;
	return moved;
}

/* One in, at most two out: no single free pays for all of a depot under pressure. */
static void
drain_surplus(struct pcp_depot *depot, unsigned int order)
{
	const struct pcp_depot_list *list = &depot->list[order];
	const uint32_t keep = pp_zone_pressure(depot->zone) ? 0 : list->high;
	uint64_t moved = 0;

	if (likely(keep == UINT32_MAX)) /* all may stay */
		return;
	for (int i = 0; i < 2 && pcp_depot_count(list, PCP_FULL) > keep; i++)
		drain_one(depot, order, (uint64_t)keep * list->batch, &moved);
}

/* ---- exchanges ---- */

static struct pcp_magazine *
take_partial(struct pcp_depot *depot, unsigned int order, struct pcp_magazine *empty)
{
	struct pcp_depot_list *list = lock_partial(depot, order);
	struct pcp_magazine *got = NULL;

	if (list->partial->count > 0) {
		got = list->partial;
		pp_store_release(&list->partial, empty);
		pp_store_relaxed(&depot->taken, depot->taken + 1);
	}
	unlock_partial(depot);
	return got;
}

struct pcp_magazine *
pcp_depot_take_full(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order,
	struct pcp_magazine *empty, struct pcp_attempt *attempt)
{
	struct pcp_shelf *shelf = lock_near(depot, lcore_id, order, PCP_FULL);

	pp_store_relaxed(&empty->count, 0);
	if (unlikely(shelf == NULL)) {
		pcp_attempt_begins(attempt, depot);
		shelf = lock_any(depot, order, PCP_FULL);
	}
	if (unlikely(shelf == NULL))
		return take_partial(depot, order, empty);
	struct pcp_magazine *full = checked(depot, order, pop(shelf, PCP_FULL));

	/* Where the next one will be filled. */
	push(shelf, PCP_EMPTY, empty);
	pp_store_relaxed(&shelf->taken, shelf->taken + 1);
	unlock_shelf(shelf);
	return full;
}

struct pcp_magazine *
pcp_depot_give_full(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order,
	struct pcp_magazine *full)
{
	struct pcp_depot_list *list = &depot->list[order];
	struct pcp_shelf *own = own_shelf(list, lcore_id);
	struct pcp_magazine *empty = take_empty(depot, lcore_id, order);

	if (likely(empty != NULL)) {
		pp_store_relaxed(&full->count, list->batch);
		push(own, PCP_FULL, full);
		pp_store_release(&own->given, own->given + 1);
		unlock_shelf(own);
	}
	drain_surplus(depot, order);
	return empty;
}

/* A full partial magazine; NULL, and the empty one kept, when there is none. */
static struct pcp_magazine *
refill_partial(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order)
{
	struct pcp_depot_list *list = &depot->list[order];
	struct pcp_magazine *empty = list->partial;
	struct pcp_shelf *shelf = lock_near(depot, lcore_id, order, PCP_FULL);

	if (shelf == NULL)
		shelf = lock_any(depot, order, PCP_FULL);
	if (shelf == NULL)
		return NULL;
	struct pcp_magazine *full = checked(depot, order, pop(shelf, PCP_FULL));

	pp_store_release(&list->partial, full);
	push(shelf, PCP_EMPTY, empty);
	unlock_shelf(shelf);
	return full;
}

/* An empty one; NULL, and the full one kept, when there is none. */
static struct pcp_magazine *
empty_partial(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order)
{
	struct pcp_depot_list *list = &depot->list[order];
	struct pcp_magazine *full = list->partial;
	struct pcp_magazine *empty = take_empty(depot, lcore_id, order);

	if (unlikely(empty == NULL))
		return NULL;
	struct pcp_shelf *own = own_shelf(list, lcore_id);

	pp_store_relaxed(&empty->count, 0);
	pp_store_release(&list->partial, empty);
	push(own, PCP_FULL, full);
	unlock_shelf(own);
	return empty;
}

uint32_t
pcp_depot_take(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order, void **pages,
	uint32_t n)
{
	struct pcp_depot_list *list = lock_partial(depot, order);
	struct pcp_magazine *magazine = list->partial;
	uint32_t done = 0;

	while (done < n) {
		if (magazine->count == 0) {
			magazine = refill_partial(depot, lcore_id, order);
			if (magazine == NULL)
				break;
		}
		const uint32_t k = RTE_MIN(n - done, magazine->count);

		pp_store_release(&magazine->count, magazine->count - k);
		pcp_copy(pages + done, &magazine->page[magazine->count], k);
		done += k;
	}
	unlock_partial(depot);
	return done;
}

uint32_t
pcp_depot_put(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order,
	void *const *pages, uint32_t n)
{
	struct pcp_depot_list *list = lock_partial(depot, order);
	struct pcp_magazine *magazine = list->partial;
	uint32_t done = 0;

	while (done < n) {
		if (magazine->count == list->batch) {
			magazine = empty_partial(depot, lcore_id, order);
			if (unlikely(magazine == NULL))
				break;
		}
		const uint32_t k = RTE_MIN(n - done, list->batch - magazine->count);

		pcp_copy(&magazine->page[magazine->count], pages + done, k);
		pp_store_release(&magazine->count, magazine->count + k);
		done += k;
	}
	if (done > 0)
		pcp_count_arrival(depot);
	unlock_partial(depot);
	return done;
}

/* ---- counts ---- */

uint64_t
pcp_depot_hint(const struct pcp_depot *depot, unsigned int order)
{
	const struct pcp_depot_list *list = &depot->list[order];

	return pcp_depot_count(list, PCP_FULL) * list->batch +
	       pp_load_relaxed(&pp_load_relaxed(&list->partial)->count);
}

void
pcp_depot_exchanges(const struct pcp_depot *depot, uint64_t *taken, uint64_t *given)
{
	*taken = pp_load_relaxed(&depot->taken);
	*given = 0;
	for (unsigned int order = 0; order <= depot->config.max_order; order++) {
		const struct pcp_depot_list *list = &depot->list[order];

		for (uint32_t i = 0; i < list->n_shelves; i++) {
			*taken += pp_load_relaxed(&list->shelf[i].taken);
			*given += pp_load_relaxed(&list->shelf[i].given);
		}
	}
}

uint64_t
pcp_depot_pages(struct pcp_depot *depot)
{
	uint64_t pages = 0;

	pcp_depot_lock(depot);
	for (unsigned int order = 0; order <= depot->config.max_order; order++)
		pages += pcp_depot_hint(depot, order) << order;
	pcp_depot_unlock(depot);
	return pages;
}
