/* SPDX-License-Identifier: BSD-3-Clause */
/* pagepool: page caches over a zone, and the zone by itself. */

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include <pcp_cpu.h>
#include <pcp_irq.h>

#include "loops.h"

#define MAX_ORDER       9
#define ANYWHERE        (UINT64_C(1) << 40) /* where only addresses move, nothing is behind them */
#define MAGAZINES_LCORE 8 /* pages that caches can hold, in magazines, per lcore */

struct pages {
	struct pp_arena *arena;
	struct pp_zone *zone;
	struct pcp_cache *cache;
};

static struct pp_arena *
create_arena(const char *name, size_t len)
{
	const struct pp_arena_config config = {
		.name = name,
		.backend = PP_BACKEND_MEMZONE,
		.len = len,
		.page_size = rte_eal_has_hugepages() ? RTE_PGSIZE_2M : PP_PAGE_SIZE,
		.node = PP_NODE_ANY,
	};

	return pp_arena_create(&config);
}

static int
fill_zone(struct pages *pages, const struct subject *subject, const struct need *need)
{
	/* As much again, since blocks of one order keep others from merging; and the caches'. */
	const uint32_t count =
		RTE_ALIGN(2 * need->pages + rte_lcore_count() * MAGAZINES_LCORE * CACHE_SIZE / 2,
			1u << MAX_ORDER);
	const struct pp_run run = {
		.addr = (char *)(uintptr_t)ANYWHERE,
		.stride = PP_PAGE_SIZE,
		.count = count,
	};

	if (need->size == 0)
		return pp_zone_add_runs(pages->zone, &run, 1);
	pages->arena = create_arena(subject->title, (size_t)count * PP_PAGE_SIZE);
	if (pages->arena == NULL)
		return -rte_errno;
	return pp_zone_add_arena(pages->zone, pages->arena, subject->coloured ? need->colours : 0);
}

static void
release(struct pages *pages)
{
	pcp_cache_destroy(pages->cache);
	if (pages->zone != NULL)
		pp_zone_abandon(pages->zone);
	pp_arena_destroy(pages->arena);
	rte_free(pages);
}

static void *
open_zone(const struct subject *subject, const struct need *need)
{
	struct pages *pages = rte_zmalloc("pages", sizeof(*pages), 0);
	int err = -ENOMEM;

	if (pages == NULL)
		return NULL;
	pages->zone = pp_zone_create(subject->title, PP_NODE_ANY, MAX_ORDER);
	if (pages->zone != NULL)
		err = fill_zone(pages, subject, need);
	if (err == 0)
		return pages;
	release(pages);
	rte_errno = -err;
	return NULL;
}

static void *
open_cache(const struct subject *subject, const struct need *need)
{
	const struct pcp_config config = {
		.mode = subject->mode,
		.checks = subject->checks,
		.batch = CACHE_SIZE / 2,
		.max_order = PCP_MAX_ORDER,
	};
	struct pages *pages = open_zone(subject, need);

	if (pages == NULL)
		return NULL;
	pages->cache = pcp_cache_create(pages->zone, &config);
	if (pages->cache != NULL)
		return pages;
	release(pages);
	return NULL;
}

static void
lend(void *state, struct handles *handles)
{
	struct pages *pages = state;

	handles->zone = pages->zone;
	handles->cache = pages->cache;
	handles->pcp = pages->cache != NULL ? pcp_this(pages->cache) : NULL;
}

static void
close_pages(void *state, struct tally *tally)
{
	struct pages *pages = state;

	tally->given = pp_zone_pages(pages->zone);
	tally->free = pages->cache != NULL ? pcp_cache_free_pages(pages->cache)
					   : pp_zone_free_pages(pages->zone);
	tally->valid = pp_zone_is_valid(pages->zone) &&
		       (pages->cache == NULL || pcp_cache_is_valid(pages->cache));
	release(pages);
}

const struct backend pagepool_backend = {open_cache, lend, close_pages, true};
const struct backend zone_backend = {open_zone, lend, close_pages, true};

/* ---- calls ---- */

static __rte_always_inline void
bh_disable(const struct handles *h)
{
	pcp_bh_disable(h->pcp);
}

static __rte_always_inline void
bh_enable(const struct handles *h)
{
	pcp_bh_enable(h->pcp);
}

static __rte_always_inline void
irq_save(const struct handles *h)
{
	pcp_irq_save(h->pcp);
}

static __rte_always_inline void
irq_restore(const struct handles *h)
{
	pcp_irq_restore(h->pcp);
}

static __rte_always_inline void *
nested_get(const struct handles *h)
{
	return pcp_alloc_nested(h->pcp);
}

static __rte_always_inline void
nested_put(const struct handles *h, void *page)
{
	pcp_free_nested(h->pcp, page);
}

static __rte_always_inline void *
nested_order_get(const struct handles *h)
{
	return pcp_alloc_pages_nested(h->pcp, h->order);
}

static __rte_always_inline void
nested_order_put(const struct handles *h, void *page)
{
	pcp_free_pages_nested(h->pcp, page, h->order);
}

static __rte_always_inline void *
irq_get(const struct handles *h)
{
	return pcp_irq_alloc(h->pcp);
}

static __rte_always_inline void
irq_put(const struct handles *h, void *page)
{
	pcp_irq_free(h->pcp, page);
}

static __rte_always_inline void *
cpu_get(const struct handles *h)
{
	return pcp_cpu_alloc(h->cache);
}

static __rte_always_inline void
cpu_put(const struct handles *h, void *page)
{
	pcp_cpu_free(h->cache, page);
}

static __rte_always_inline int
cpu_get_bulk(const struct handles *h, void **pages, uint32_t n)
{
	return pcp_cpu_alloc_bulk(h->cache, pages, n);
}

static __rte_always_inline void
cpu_put_bulk(const struct handles *h, void *const *pages, uint32_t n)
{
	pcp_cpu_free_bulk(h->cache, pages, n);
}

static __rte_always_inline void *
handle_get(const struct handles *h)
{
	return pcp_alloc(h->pcp);
}

static __rte_always_inline void
handle_put(const struct handles *h, void *page)
{
	pcp_free(h->pcp, page);
}

static __rte_always_inline void *
handle_order_get(const struct handles *h)
{
	return pcp_alloc_pages(h->pcp, h->order);
}

static __rte_always_inline void
handle_order_put(const struct handles *h, void *page)
{
	pcp_free_pages(h->pcp, page, h->order);
}

static __rte_always_inline int
handle_get_bulk(const struct handles *h, void **pages, uint32_t n)
{
	return pcp_alloc_bulk(h->pcp, pages, n);
}

static __rte_always_inline void
handle_put_bulk(const struct handles *h, void *const *pages, uint32_t n)
{
	pcp_free_bulk(h->pcp, pages, n);
}

static __rte_always_inline void *
public_get(const struct handles *h)
{
	return pcp_cache_alloc(h->cache);
}

static __rte_always_inline void
public_put(const struct handles *h, void *page)
{
	pcp_cache_free(h->cache, page);
}

static __rte_always_inline int
public_get_bulk(const struct handles *h, void **pages, uint32_t n)
{
	return pcp_cache_alloc_bulk(h->cache, pages, n);
}

static __rte_always_inline void
public_put_bulk(const struct handles *h, void *const *pages, uint32_t n)
{
	pcp_cache_free_bulk(h->cache, pages, n);
}

static __rte_always_inline void *
zone_get(const struct handles *h)
{
	return pp_zone_alloc(h->zone, h->order, 0);
}

static __rte_always_inline void
zone_put(const struct handles *h, void *page)
{
	pp_zone_free(h->zone, page, h->order, 0);
}

static __rte_always_inline int
zone_get_bulk(const struct handles *h, void **pages, uint32_t n)
{
	const uint32_t got = pp_zone_alloc_bulk(h->zone, h->order, pages, n, 0);

	if (likely(got == n))
		return 0;
	pp_zone_free_bulk(h->zone, h->order, pages, got);
	return -ENOMEM;
}

static __rte_always_inline void
zone_put_bulk(const struct handles *h, void *const *pages, uint32_t n)
{
	pp_zone_free_bulk(h->zone, h->order, pages, n);
}

LOOPS(nested, .get = nested_get, .put = nested_put, .enter = bh_disable, .leave = bh_enable);
LOOPS(nested_order, .get = nested_order_get, .put = nested_order_put, .enter = bh_disable,
	.leave = bh_enable);
LOOPS(irq_nested, .get = nested_get, .put = nested_put, .enter = irq_save, .leave = irq_restore);
LOOPS(irq_nested_order, .get = nested_order_get, .put = nested_order_put, .enter = irq_save,
	.leave = irq_restore);
LOOPS(irq_single, .get = irq_get, .put = irq_put);
LOOPS(cpu, .get = cpu_get, .put = cpu_put);
LOOPS(cpu_bulk, .bulk = true, .get_bulk = cpu_get_bulk, .put_bulk = cpu_put_bulk);
LOOPS(handle, .get = handle_get, .put = handle_put);
LOOPS(handle_order, .get = handle_order_get, .put = handle_order_put);
LOOPS(handle_bulk, .bulk = true, .get_bulk = handle_get_bulk, .put_bulk = handle_put_bulk);
LOOPS(public, .get = public_get, .put = public_put);
LOOPS(public_bulk, .bulk = true, .get_bulk = public_get_bulk, .put_bulk = public_put_bulk);
LOOPS(zone_single, .get = zone_get, .put = zone_put);
LOOPS(zone_bulk, .bulk = true, .get_bulk = zone_get_bulk, .put_bulk = zone_put_bulk);

/* Those that look the same in any mode. */
#define PAGEPOOL_OTHER_CALLS                                                                       \
	{"single", "public", &public, NULL}, {"bulk", "handle", &handle_bulk, NULL},               \
	{                                                                                          \
		"bulk", "public", &public_bulk, NULL                                               \
	}

const struct call pagepool_calls[PAGEPOOL_CALLS] = {
	{"nested", "handle", &nested, &nested_order},
	{"single", "handle", &handle, &handle_order},
	PAGEPOOL_OTHER_CALLS,
};

const struct call pagepool_cpu_calls[PAGEPOOL_CPU_CALLS] = {
	{"single", "handle", &cpu, &handle_order},
	{"single", "public", &public, NULL},
	{"bulk", "handle", &cpu_bulk, NULL},
	{"bulk", "public", &public_bulk, NULL},
};

const struct call pagepool_irq_calls[PAGEPOOL_CALLS] = {
	{"nested", "handle", &irq_nested, &irq_nested_order},
	{"single", "handle", &irq_single, &handle_order},
	PAGEPOOL_OTHER_CALLS,
};

const struct call zone_calls[ZONE_CALLS] = {
	{"single", "public", &zone_single, &zone_single},
	{"bulk", "public", &zone_bulk, &zone_bulk},
};
