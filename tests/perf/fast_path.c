/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path as a program gets it, for tests/perf/fast_path to disassemble: compiled once for
 * each level of checks, which the compiler knows.
 */

#include <pcp.h>

struct pcp_cache *fast_create(struct pp_zone *zone);
void *fast_alloc(struct pcp *pcp);
void fast_free(struct pcp *pcp, void *page);
void *fast_alloc_nested(struct pcp *pcp);
void fast_free_nested(struct pcp *pcp, void *page);
void *fast_alloc_order_2(struct pcp *pcp);
void fast_free_order_2(struct pcp *pcp, void *block);
int fast_alloc_bulk(struct pcp *pcp, void **pages, uint32_t n);
void fast_free_bulk(struct pcp *pcp, void *const *pages, uint32_t n);
void fast_section(struct pcp *pcp, void *page);

void *
fast_alloc(struct pcp *pcp)
{
	return pcp_alloc(pcp);
}

void
fast_free(struct pcp *pcp, void *page)
{
	pcp_free(pcp, page);
}

void *
fast_alloc_nested(struct pcp *pcp)
{
	return pcp_alloc_nested(pcp);
}

void
fast_free_nested(struct pcp *pcp, void *page)
{
	pcp_free_nested(pcp, page);
}

void *
fast_alloc_order_2(struct pcp *pcp)
{
	return pcp_alloc_pages(pcp, 2);
}

void
fast_free_order_2(struct pcp *pcp, void *block)
{
	pcp_free_pages(pcp, block, 2);
}

int
fast_alloc_bulk(struct pcp *pcp, void **pages, uint32_t n)
{
	return pcp_alloc_bulk(pcp, pages, n);
}

void
fast_free_bulk(struct pcp *pcp, void *const *pages, uint32_t n)
{
	pcp_free_bulk(pcp, pages, n);
}

void
fast_section(struct pcp *pcp, void *page)
{
	pcp_bh_disable(pcp);
	pcp_free_nested(pcp, page);
	pcp_bh_enable(pcp);
}

struct pcp_cache *
fast_create(struct pp_zone *zone)
{
	const struct pcp_config config = {.checks = CHECKS};

	return pcp_cache_create(zone, &config);
}
