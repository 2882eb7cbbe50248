/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocators of any size: rte_malloc(), and malloc() as this process has it. */

#include <stdlib.h>

#include <rte_malloc.h>

#include "loops.h"

/* Nothing to hold; only an address that is not NULL. */
static void *
open_heap(const struct subject *subject __rte_unused, const struct need *need __rte_unused)
{
	static char heap;

	return &heap;
}

static void
lend(void *state __rte_unused, struct handles *handles __rte_unused)
{
}

static void
close_heap(void *state __rte_unused, struct tally *tally __rte_unused)
{
}

const struct backend heap_backend = {open_heap, lend, close_heap, false};

static __rte_always_inline void *
rte_get(const struct handles *h)
{
	return rte_malloc(NULL, h->size, 0);
}

static __rte_always_inline void
rte_put(const struct handles *h __rte_unused, void *object)
{
	rte_free(object);
}

static __rte_always_inline void *
libc_get(const struct handles *h)
{
	return malloc(h->size);
}

static __rte_always_inline void
libc_put(const struct handles *h __rte_unused, void *object)
{
	free(object);
}

LOOPS(rte_loops, .get = rte_get, .put = rte_put);
LOOPS(libc_loops, .get = libc_get, .put = libc_put);

const struct call rte_malloc_calls[] = {{"single", "public", &rte_loops, &rte_loops}};
const struct call malloc_calls[] = {{"single", "public", &libc_loops, &libc_loops}};
