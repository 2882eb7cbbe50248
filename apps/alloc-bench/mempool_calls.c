/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_mempool's calls. Compiled twice, as MEMPOOL_CALLS_NAME: gcc's scalar-to-vector pass, on by
 * default, takes the minimum of two counts in a vector register and more than doubles the cost of a
 * get from the library's cache. The peer is measured without it; the other one shows what it costs.
 */

#include "loops.h"

static __rte_always_inline void *
handle_get(const struct handles *h)
{
	void *object;

	return rte_mempool_generic_get(h->mempool, &object, 1, h->mempool_cache) == 0 ? object
										      : NULL;
}

static __rte_always_inline void
handle_put(const struct handles *h, void *object)
{
	rte_mempool_generic_put(h->mempool, &object, 1, h->mempool_cache);
}

static __rte_always_inline int
handle_get_bulk(const struct handles *h, void **objects, uint32_t n)
{
	return rte_mempool_generic_get(h->mempool, objects, n, h->mempool_cache);
}

static __rte_always_inline void
handle_put_bulk(const struct handles *h, void *const *objects, uint32_t n)
{
	rte_mempool_generic_put(h->mempool, objects, n, h->mempool_cache);
}

static __rte_always_inline void *
public_get(const struct handles *h)
{
	void *object;

	return rte_mempool_get(h->mempool, &object) == 0 ? object : NULL;
}

static __rte_always_inline void
public_put(const struct handles *h, void *object)
{
	rte_mempool_put(h->mempool, object);
}

static __rte_always_inline int
public_get_bulk(const struct handles *h, void **objects, uint32_t n)
{
	return rte_mempool_get_bulk(h->mempool, objects, n);
}

static __rte_always_inline void
public_put_bulk(const struct handles *h, void *const *objects, uint32_t n)
{
	rte_mempool_put_bulk(h->mempool, objects, n);
}

LOOPS(handle, .get = handle_get, .put = handle_put);
LOOPS(handle_bulk, .bulk = true, .get_bulk = handle_get_bulk, .put_bulk = handle_put_bulk);
LOOPS(public, .get = public_get, .put = public_put);
LOOPS(public_bulk, .bulk = true, .get_bulk = public_get_bulk, .put_bulk = public_put_bulk);

const struct call MEMPOOL_CALLS_NAME[MEMPOOL_CALLS] = {
	{"single", "handle", &handle, NULL},
	{"single", "public", &public, NULL},
	{"bulk", "handle", &handle_bulk, NULL},
	{"bulk", "public", &public_bulk, NULL},
};
