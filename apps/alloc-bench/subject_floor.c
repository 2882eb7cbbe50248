/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What others are measured by: `floor`, a private array of pointers; `empty`, the loops around
 * nothing, which is subtracted from all others; and `delay`, a floor with a known delay, to try
 * the instrument itself.
 */

#include <rte_errno.h>
#include <rte_malloc.h>

#include "loops.h"

struct array {
	uint32_t top;
	uint32_t delay;
	char *memory; /* behind the objects, where they are touched */
	void *object[];
} __rte_cache_aligned;

struct arrays {
	struct array *of[RTE_MAX_LCORE]; /* one per lcore that there is */
	uint32_t n;
};

static void
close_arrays(void *state, struct tally *tally)
{
	struct arrays *arrays = state;
	unsigned int lcore_id;

	RTE_LCORE_FOREACH (lcore_id) {
		if (arrays->of[lcore_id] == NULL)
			continue;
		if (tally != NULL) {
			tally->given += arrays->n;
			tally->free += arrays->of[lcore_id]->top;
			tally->valid = true;
		}
		rte_free(arrays->of[lcore_id]->memory);
		rte_free(arrays->of[lcore_id]);
	}
	rte_free(arrays);
}

static struct array *
create_array(uint32_t n, const struct need *need)
{
	struct array *array =
		rte_zmalloc("array", sizeof(*array) + n * sizeof(void *), RTE_CACHE_LINE_SIZE);

	if (array == NULL)
		return NULL;
	if (need->size != 0)
		array->memory = rte_zmalloc(
			"objects", (size_t)n * RTE_CACHE_LINE_SIZE, RTE_CACHE_LINE_SIZE);
	for (uint32_t i = 0; i < n; i++)
		array->object[i] = array->memory != NULL
					   ? array->memory + (size_t)i * RTE_CACHE_LINE_SIZE
					   : (char *)(array + 1) + i;
	array->top = n;
	array->delay = need->delay;
	return array;
}

static void *
open_arrays(const struct subject *subject __rte_unused, const struct need *need)
{
	struct arrays *arrays = rte_zmalloc("arrays", sizeof(*arrays), 0);
	unsigned int lcore_id;

	if (arrays == NULL)
		return NULL;
	arrays->n = need->objects;
	RTE_LCORE_FOREACH (lcore_id) {
		arrays->of[lcore_id] = create_array(arrays->n, need);
		if (arrays->of[lcore_id] == NULL) {
			close_arrays(arrays, NULL);
			rte_errno = ENOMEM;
			return NULL;
		}
	}
	return arrays;
}

static void
lend(void *state, struct handles *handles)
{
	const struct arrays *arrays = state;

	handles->array = arrays->of[rte_lcore_id()];
	handles->delay = handles->array->delay;
}

const struct backend array_backend = {open_arrays, lend, close_arrays, true};

/* ---- calls ---- */

static __rte_always_inline void *
floor_get(const struct handles *h)
{
	struct array *array = h->array;

	return likely(array->top > 0) ? array->object[--array->top] : NULL;
}

static __rte_always_inline void
floor_put(const struct handles *h, void *object)
{
	struct array *array = h->array;

	array->object[array->top++] = object;
}

static __rte_always_inline int
floor_get_bulk(const struct handles *h, void **objects, uint32_t n)
{
	struct array *array = h->array;

	if (unlikely(array->top < n))
		return -ENOMEM;
	array->top -= n;
	pcp_copy(objects, &array->object[array->top], n);
	return 0;
}

static __rte_always_inline void
floor_put_bulk(const struct handles *h, void *const *objects, uint32_t n)
{
	struct array *array = h->array;

	pcp_copy(&array->object[array->top], objects, n);
	array->top += n;
}

static __rte_always_inline void *
empty_get(const struct handles *h)
{
	void *object = h->array;

	USE(object); /* that it is not NULL is looked at each time, as of others */
	return object;
}

static __rte_always_inline void
empty_put(const struct handles *h __rte_unused, void *object __rte_unused)
{
}

static __rte_always_inline int
empty_get_bulk(
	const struct handles *h __rte_unused, void **objects __rte_unused, uint32_t n __rte_unused)
{
	return 0;
}

static __rte_always_inline void
empty_put_bulk(const struct handles *h __rte_unused, void *const *objects __rte_unused,
	uint32_t n __rte_unused)
{
}

/* One core cycle per turn: no processor takes more than one branch a cycle back to the same place.
 */
static __rte_always_inline void *
delay_get(const struct handles *h)
{
	for (uintptr_t turns = h->delay; turns > 0; turns--)
		USE(turns);
	return floor_get(h);
}

LOOPS(floor_single, .get = floor_get, .put = floor_put);
LOOPS(floor_bulk, .bulk = true, .get_bulk = floor_get_bulk, .put_bulk = floor_put_bulk);
LOOPS(empty_single, .get = empty_get, .put = empty_put);
LOOPS(empty_bulk, .bulk = true, .get_bulk = empty_get_bulk, .put_bulk = empty_put_bulk);
LOOPS(delay_single, .get = delay_get, .put = floor_put);

const struct call floor_calls[FLOOR_CALLS] = {
	{"single", NULL, &floor_single, &floor_single},
	{"bulk", NULL, &floor_bulk, &floor_bulk},
};

const struct call empty_calls[EMPTY_CALLS] = {
	{"single", NULL, &empty_single, &empty_single},
	{"bulk", NULL, &empty_bulk, &empty_bulk},
};

const struct call delay_calls[] = {{"single", NULL, &delay_single, &delay_single}};
