/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The depot: magazines that no lcore has loaded. Each lcore has a shelf, last in first out, and
 * looks at the others when that is empty: what it put down itself is in its own core's cache.
 */

#include <rte_errno.h>
#include <rte_malloc.h>

#include "pcp_internal.h"

static void
push(struct pcp_stack *stack, struct pcp_magazine *magazine)
{
	stack->slot[stack->top & stack->mask] = magazine;
	pp_store_release(&stack->top, stack->top + 1);
}

static struct pcp_magazine *
pop(struct pcp_stack *stack)
{
	if (pcp_stack_count(stack) == 0)
		return NULL;
	pp_store_release(&stack->top, stack->top - 1);
	return stack->slot[stack->top & stack->mask];
}

static struct pcp_magazine *
pop_coldest(struct pcp_stack *stack)
{
	struct pcp_magazine *magazine = stack->slot[stack->bottom & stack->mask];

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

void
pcp_depot_recount(struct pcp_depot *depot)
{
	for (unsigned int order = 0; order <= depot->config.max_order; order++)
		pp_store_relaxed(&depot->n_full[order],
			(uint32_t)pcp_depot_count(&depot->list[order], PCP_FULL));
}

/* To use magazines of one order. */
static struct pcp_depot_list *
lock_list(struct pcp_depot *depot, unsigned int order)
{
	pcp_depot_lock(depot);
	if (unlikely(depot->tag != 0))
		pcp_check_depot_list(depot, order);
	return &depot->list[order];
}

static struct pcp_stack *
own_stack(struct pcp_depot_list *list, unsigned int lcore_id, enum pcp_kind kind)
{
	return &list->shelf[lcore_id & (list->n_shelves - 1)].stack[kind];
}

/* Where most are; none anywhere if none there. */
static struct pcp_shelf *
fullest_shelf(struct pcp_depot_list *list, enum pcp_kind kind)
{
	struct pcp_shelf *fullest = &list->shelf[0];

	for (uint32_t i = 1; i < list->n_shelves; i++)
		if (pcp_stack_count(&list->shelf[i].stack[kind]) >
			pcp_stack_count(&fullest->stack[kind]))
			fullest = &list->shelf[i];
	return fullest;
}

/* What one lcore allocates and another frees is found where it was found before. */
static struct pcp_magazine *
pop_elsewhere(struct pcp_depot_list *list, enum pcp_kind kind)
{
	struct pcp_magazine *magazine = pop(&list->shelf[list->found[kind]].stack[kind]);

	if (magazine == NULL) {
		struct pcp_shelf *fullest = fullest_shelf(list, kind);

		list->found[kind] = (uint32_t)(fullest - list->shelf);
		magazine = pop(&fullest->stack[kind]);
	}
	return magazine;
}

static struct pcp_magazine *
pop_any(struct pcp_depot_list *list, unsigned int lcore_id, enum pcp_kind kind)
{
	struct pcp_magazine *magazine = pop(own_stack(list, lcore_id, kind));

	return likely(magazine != NULL) ? magazine : pop_elsewhere(list, kind);
}

static void
count_full(struct pcp_depot *depot, unsigned int order, uint32_t n)
{
	pp_store_relaxed(&depot->n_full[order], depot->n_full[order] + n);
}

static struct pcp_magazine *
checked(struct pcp_depot *depot, unsigned int order, struct pcp_magazine *full)
{
	if (unlikely(depot->tag != 0) && full != NULL)
		pcp_check_full_magazine(depot, order, full);
	return full;
}

static struct pcp_magazine *
pop_full(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order)
{
	struct pcp_magazine *full = pop_any(&depot->list[order], lcore_id, PCP_FULL);

	if (likely(full != NULL))
		count_full(depot, order, -UINT32_C(1));
	return checked(depot, order, full);
}

static void
push_full(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order,
	struct pcp_magazine *full)
{
	push(own_stack(&depot->list[order], lcore_id, PCP_FULL), full);
	count_full(depot, order, 1);
}

/* Under the lock, and before the pages' former place looks empty. */
static void
count_arrival(struct pcp_depot *depot)
{
	pp_store_release(&depot->arrivals, depot->arrivals + 1);
}

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

/*
 * Give the coldest magazine of the fullest shelf to the zone, if more than `keep` blocks would stay
 * or none is to stay. Under the lock: whoever finds the depot dry must find the zone filled. False
 * when there was none.
 */
static bool
drain_one(struct pcp_depot *depot, unsigned int order, uint64_t keep, uint64_t *moved)
{
	struct pcp_depot_list *list = lock_list(depot, order);
	const uint64_t full = depot->n_full[order];
	bool any = true;

	if (full > keep / list->batch) {
		struct pcp_shelf *shelf = fullest_shelf(list, PCP_FULL);
		struct pcp_magazine *magazine =
			checked(depot, order, pop_coldest(&shelf->stack[PCP_FULL]));

		count_full(depot, order, -UINT32_C(1));
		*moved += give_to_zone(depot, order, magazine);
		push(&shelf->stack[PCP_EMPTY], magazine);
	} else if (list->partial->count > 0 && full * list->batch + list->partial->count > keep) {
		*moved += give_to_zone(depot, order, list->partial);
	} else {
		any = false;
	}
	if (any)
		count_arrival(depot);
	pcp_depot_unlock(depot);
	return any;
}

uint64_t
pcp_depot_drain(struct pcp_depot *depot, unsigned int order, uint64_t keep)
{
	uint64_t moved = 0;

	while (drain_one(depot, order, keep, &moved))
		;
	return moved;
}

struct pcp_magazine *
pcp_depot_take_full(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order,
	struct pcp_magazine *empty, struct pcp_attempt *attempt)
{
	struct pcp_depot_list *list = lock_list(depot, order);

	pcp_attempt_begins(attempt, depot);
	struct pcp_magazine *got = pop_full(depot, lcore_id, order);

	pp_store_relaxed(&empty->count, 0);
	if (likely(got != NULL)) {
		push(own_stack(list, lcore_id, PCP_EMPTY), empty);
		depot->taken++;
	} else if (list->partial->count > 0) {
		got = list->partial;
		pp_store_release(&list->partial, empty);
		depot->taken++;
	}
	pcp_depot_unlock(depot);
	return got;
}

struct pcp_magazine *
pcp_depot_give_full(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order,
	struct pcp_magazine *full)
{
	struct pcp_depot_list *list = lock_list(depot, order);
	struct pcp_magazine *got = pop_any(list, lcore_id, PCP_EMPTY);

	if (likely(got != NULL)) {
		pp_store_relaxed(&full->count, list->batch);
		push_full(depot, lcore_id, order, full);
		depot->given++;
		count_arrival(depot);
	}
	const uint32_t n_full = depot->n_full[order];

	pcp_depot_unlock(depot);
	const uint32_t keep = pp_zone_pressure(depot->zone) ? 0 : list->high;
	uint64_t moved = 0;

	/* One in, at most two out: no single free pays for all of a depot under pressure. */
	for (int i = 0; unlikely(n_full > keep) && i < 2; i++)
		drain_one(depot, order, (uint64_t)keep * list->batch, &moved);
	return got;
}

uint32_t
pcp_depot_take(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order, void **pages,
	uint32_t n)
{
	struct pcp_depot_list *list = lock_list(depot, order);
	uint32_t done = 0;

	while (done < n) {
		struct pcp_magazine *magazine = list->partial;

		if (magazine->count == 0) {
			struct pcp_magazine *full = pop_full(depot, lcore_id, order);

			if (full == NULL)
				break;
			pp_store_release(&list->partial, full);
			push(own_stack(list, lcore_id, PCP_EMPTY), magazine);
			magazine = full;
		}
		const uint32_t k = RTE_MIN(n - done, magazine->count);

		pp_store_release(&magazine->count, magazine->count - k);
		pcp_copy(pages + done, &magazine->page[magazine->count], k);
		done += k;
	}
	pcp_depot_unlock(depot);
	return done;
}

uint32_t
pcp_depot_put(struct pcp_depot *depot, unsigned int lcore_id, unsigned int order,
	void *const *pages, uint32_t n)
{
	struct pcp_depot_list *list = lock_list(depot, order);
	uint32_t done = 0;

	while (done < n) {
		struct pcp_magazine *magazine = list->partial;

		if (magazine->count == list->batch) {
			struct pcp_magazine *empty = pop_any(list, lcore_id, PCP_EMPTY);

			if (unlikely(empty == NULL))
				break;
			pp_store_relaxed(&empty->count, 0);
			pp_store_release(&list->partial, empty);
			push_full(depot, lcore_id, order, magazine);
			magazine = empty;
		}
		const uint32_t k = RTE_MIN(n - done, list->batch - magazine->count);

		pcp_copy(&magazine->page[magazine->count], pages + done, k);
		pp_store_release(&magazine->count, magazine->count + k);
		done += k;
	}
	if (done > 0)
		count_arrival(depot);
	pcp_depot_unlock(depot);
	return done;
}

uint64_t
pcp_depot_hint(const struct pcp_depot *depot, unsigned int order)
{
	const struct pcp_depot_list *list = &depot->list[order];

	return (uint64_t)pp_load_relaxed(&depot->n_full[order]) * list->batch +
	       pp_load_relaxed(&pp_load_relaxed(&list->partial)->count);
}

uint64_t
pcp_depot_pages(struct pcp_depot *depot)
{
	uint64_t pages = 0;

	pcp_depot_lock(depot);
	for (unsigned int order = 0; order <= depot->config.max_order; order++) {
		const struct pcp_depot_list *list = &depot->list[order];
		const uint64_t full = depot->n_full[order];

		pages += (full * list->batch + list->partial->count) << order;
	}
	pcp_depot_unlock(depot);
	return pages;
}

size_t
pcp_magazine_size(uint32_t batch)
{
	return RTE_ALIGN_CEIL(
		sizeof(struct pcp_magazine) + batch * sizeof(void *), RTE_CACHE_LINE_SIZE);
}

/* At most 256 KiB of 4-KiB pages lie in a magazine of a higher order. */
static uint32_t
batch_of(const struct pcp_config *config, unsigned int order)
{
	const uint64_t share = (config->pages >> order) / (8 * (uint64_t)config->lcores);
	const uint64_t most = PCP_BATCH_MAX / 4 >> order;

	if (order == 0)
		return config->batch;
	return share == 0 ? 1 : (uint32_t)RTE_MIN(share, most);
}

/* Full magazines that stay. Of higher orders a few: their pages serve the lower ones, too. */
static uint32_t
high_of(const struct pcp_config *config, unsigned int order)
{
	const uint64_t all = config->high / config->batch;

	return order == 0 ? (uint32_t)RTE_MIN(all, (uint64_t)UINT32_MAX) : 2 * config->lcores;
}

uint64_t
pcp_depot_magazines(const struct pcp_depot *depot, unsigned int order)
{
	const uint64_t blocks = depot->config.pages >> order;
	const uint32_t batch = depot->list[order].batch;

	return (blocks + batch - 1) / batch + 1;
}

static uint32_t
n_slots(const struct pcp_depot *depot, unsigned int order)
{
	return rte_align32pow2((uint32_t)pcp_depot_magazines(depot, order));
}

/* Magazines of higher orders have few lines, and there are many: no room for more stacks. */
static uint32_t
n_shelves_of(unsigned int order)
{
	return order == 0 ? PCP_SHELVES : 1;
}

/* Any stack of an order can hold all of its magazines. Returns the slots that are left. */
static struct pcp_magazine **
stack_init(struct pcp_stack *stack, struct pcp_magazine **slots, uint32_t n)
{
	stack->slot = slots;
	stack->mask = n - 1;
	return slots + n;
}

void *
pcp_meta_alloc(const struct pp_zone *zone, size_t size)
{
	const int node = pp_zone_node(zone);

	return rte_zmalloc_socket(
		"pcp_cache", size, RTE_CACHE_LINE_SIZE, node == PP_NODE_ANY ? SOCKET_ID_ANY : node);
}

struct pcp_depot *
pcp_depot_create(struct pp_zone *zone, const struct pcp_config *config)
{
	struct pcp_depot *depot = pcp_meta_alloc(zone, sizeof(*depot));
	size_t size = sizeof(struct pcp_memory), slots = 0;

	if (depot == NULL)
		goto no_memory;
	depot->zone = zone;
	depot->config = *config;
	depot->checks_full = config->checks == PCP_CHECKS_FULL;
	depot->in_magazine = depot->checks_full ? PP_PLACE_REST : PP_PLACE_OUT;
	if (config->checks != PCP_CHECKS_OFF)
		depot->tag = pp_zone_new_tag(zone);
	for (unsigned int order = 0; order <= config->max_order; order++) {
		struct pcp_depot_list *list = &depot->list[order];

		list->batch = batch_of(config, order);
		list->high = high_of(config, order);
		size += pcp_depot_magazines(depot, order) * pcp_magazine_size(list->batch);
		list->n_shelves = n_shelves_of(order);
		slots += (size_t)PCP_KINDS * list->n_shelves * n_slots(depot, order);
	}
	depot->magazines = pcp_meta_alloc(zone, size);
	depot->slots = pcp_meta_alloc(zone, slots * sizeof(depot->slots[0]));
	if (depot->magazines == NULL || depot->slots == NULL)
		goto no_memory;

	char *memory = (char *)(depot->magazines + 1);
	struct pcp_magazine **slot = depot->slots;

	for (unsigned int order = 0; order <= config->max_order; order++) {
		struct pcp_depot_list *list = &depot->list[order];

		for (uint32_t i = 0; i < list->n_shelves; i++)
			for (unsigned int kind = 0; kind < PCP_KINDS; kind++)
				slot = stack_init(
					&list->shelf[i].stack[kind], slot, n_slots(depot, order));
		struct pcp_stack *first = &list->shelf[0].stack[PCP_EMPTY];

		for (uint64_t i = pcp_depot_magazines(depot, order); i > 0; i--) {
			struct pcp_magazine *magazine = (struct pcp_magazine *)memory;

			memory += pcp_magazine_size(list->batch);
			magazine->count = 0;
			push(first, magazine);
		}
		list->partial = pop(first);
	}
	return depot;

no_memory:
	if (depot != NULL)
		pcp_depot_destroy(depot);
	rte_errno = ENOMEM;
	return NULL;
}

void
pcp_depot_destroy(struct pcp_depot *depot)
{
	rte_free(depot->slots);
	rte_free(depot->magazines);
	rte_free(depot);
}
