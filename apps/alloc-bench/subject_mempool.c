/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_mempool, by its ops and the library's cache. */

#include <rte_errno.h>

#include "loops.h"

/* Get and put touch no object, so that its size is of no consequence but to `touch`. */
#define ELEMENT_SIZE 64

static void *
open_mempool(const struct subject *subject, const struct need *need)
{
	const uint32_t cached = subject->cache_size + subject->cache_size / 2;
	const uint32_t n = need->lcores * need->objects + rte_lcore_count() * cached + CACHE_SIZE;
	char name[RTE_MEMPOOL_NAMESIZE];
	int err;

	snprintf(name, sizeof(name), "%s", subject->title);
	struct rte_mempool *mempool =
		rte_mempool_create_empty(name, n, need->size != 0 ? need->size : ELEMENT_SIZE,
			subject->cache_size, 0, SOCKET_ID_ANY, 0);

	if (mempool == NULL)
		return NULL;
	err = rte_mempool_set_ops_byname(mempool, subject->ops, NULL);
	if (err == 0) {
		err = rte_mempool_populate_default(mempool);
		if (err >= 0)
			return mempool;
	}
	rte_mempool_free(mempool);
	rte_errno = -err;
	return NULL;
}

static void
lend(void *state, struct handles *handles)
{
	handles->mempool = state;
	handles->mempool_cache = rte_mempool_default_cache(state, rte_lcore_id());
}

static void
close_mempool(void *state, struct tally *tally)
{
	const struct rte_mempool *mempool = state;

	tally->given = mempool->size;
	tally->free = rte_mempool_avail_count(mempool);
	tally->valid = true;
	rte_mempool_free(state);
}

const struct backend mempool_backend = {open_mempool, lend, close_mempool, true};

/* ---- calls ---- */

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
LOOPS(handle_bulk, .get_bulk = handle_get_bulk, .put_bulk = handle_put_bulk);
LOOPS(public, .get = public_get, .put = public_put);
LOOPS(public_bulk, .get_bulk = public_get_bulk, .put_bulk = public_put_bulk);

const struct call mempool_calls[MEMPOOL_CALLS] = {
	{"single", "handle", &handle, NULL},
	{"single", "public", &public, NULL},
	{"bulk", "handle", &handle_bulk, NULL},
	{"bulk", "public", &public_bulk, NULL},
};
