/* SPDX-License-Identifier: BSD-3-Clause */
/* What a depot is born with: its magazines, and shelves with room for all of them. */

#include <rte_errno.h>
#include <rte_malloc.h>

#include "pcp_internal.h"

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

/*
 * Full magazines that stay; UINT32_MAX: all. Of higher orders a few: their pages serve the lower
 * ones, too.
 */
static uint32_t
high_of(const struct pcp_config *config, unsigned int order)
{
	if (order > 0)
		return 2 * config->lcores;
	return config->high >= config->pages ? UINT32_MAX
					     : (uint32_t)(config->high / config->batch);
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

/*
 * Magazines of higher orders have few lines, and there are many: no room for more stacks. Checks
 * know by what is on one shelf whether its counts can be.
 */
static uint32_t
n_shelves_of(const struct pcp_config *config, unsigned int order)
{
	return order == 0 && config->checks == PCP_CHECKS_OFF ? PCP_SHELVES : 1;
}

/* Any stack of an order can hold all of its magazines, n at most. Returns the slots left. */
static struct pcp_magazine **
shelf_init(struct pcp_shelf *shelf, struct pcp_magazine **slots, uint32_t n)
{
	shelf->mask = n - 1;
	for (unsigned int kind = 0; kind < PCP_KINDS; kind++, slots += n)
		shelf->stack[kind].slot = slots;
	return slots;
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
		list->n_shelves = n_shelves_of(config, order);
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
			slot = shelf_init(&list->shelf[i], slot, n_slots(depot, order));
		struct pcp_stack *first = &list->shelf[0].stack[PCP_EMPTY];

		for (uint64_t i = pcp_depot_magazines(depot, order); i > 0; i--) {
			struct pcp_magazine *magazine = (struct pcp_magazine *)memory;

			memory += pcp_magazine_size(list->batch);
			magazine->count = 0;
			first->slot[first->top++] = magazine;
		}
		list->partial = first->slot[--first->top];
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
