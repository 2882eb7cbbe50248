/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include <pp_recycle.h>

#include "mempool_unit.h"

bool
mempool_unit_init(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "nohuge";

	srand(1);
	if (strcmp(mode, "nohuge") != 0)
		return unit_eal_init_huge(128, mode);
	unit_eal_init(128);
	return true;
}

struct rte_mempool *
mempool_empty(unsigned int n, size_t element, unsigned int cache_size, unsigned int flags)
{
	struct rte_mempool *mp = rte_mempool_create_empty(
		"mp", n, (unsigned int)element, cache_size, 0, SOCKET_ID_ANY, flags);

	assert_non_null(mp);
	assert_int_equal(rte_mempool_set_ops_byname(mp, PP_MEMPOOL_OPS_NAME, NULL), 0);
	return mp;
}

void
assert_at_home(struct rte_mempool *mp, unsigned int n)
{
	struct pcp_cache *cache = pp_mempool_cache(mp);

	assert_non_null(cache);
	assert_int_equal(rte_mempool_avail_count(mp), n);
	assert_int_equal(rte_mempool_in_use_count(mp), mp->size - n);
	assert_int_equal(pp_zone_pages(pcp_cache_zone(cache)), n);
	assert_true(pcp_cache_is_valid(cache));
	assert_true(pp_zone_is_valid(pcp_cache_zone(cache)));
	rte_mempool_audit(mp);
}

static void
swap(void **a, void **b)
{
	void *c = *a;

	*a = *b;
	*b = c;
}

void
exercise(struct rte_mempool *mp, unsigned int n)
{
	void **object = calloc(n, sizeof(*object)), *more[2];
	unsigned int got = 0, length = 1;

	assert_non_null(object);
	while (got < n) {
		length = RTE_MIN(length * 2 % 61, n - got);
		assert_int_equal(rte_mempool_get_bulk(mp, object + got, length), 0);
		got += length;
		length++;
	}
	assert_int_equal(rte_mempool_avail_count(mp), 0);
	assert_int_not_equal(rte_mempool_get(mp, more), 0);
	for (unsigned int i = 0; i < n; i++) {
		assert_ptr_equal(rte_mempool_from_obj(object[i]), mp);
		memset(object[i], (int)(i % 251), mp->elt_size);
	}
	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *byte = object[i];

		for (size_t k = 0; k < mp->elt_size; k++)
			assert_int_equal(byte[k], i % 251);
	}
	for (unsigned int i = n; i > 1; i--)
		swap(&object[i - 1], &object[(unsigned int)rand() % i]);

	/* all or nothing */
	rte_mempool_put(mp, object[n - 1]);
	assert_int_not_equal(rte_mempool_get_bulk(mp, more, 2), 0);
	assert_int_equal(rte_mempool_avail_count(mp), 1);
	assert_int_equal(rte_mempool_get(mp, &object[n - 1]), 0);
	for (unsigned int i = 0; i < n; i += length) {
		length = RTE_MIN(1 + i % 37, n - i);
		rte_mempool_put_bulk(mp, object + i, length);
	}
	free(object);
	assert_at_home(mp, n);
}

void
assert_nothing_left(const struct unit_resources *before)
{
	struct unit_resources now, then = *before;

	unit_resources_get(&now);
	then.heap_bytes = now.heap_bytes;
	then.malloc_bytes = now.malloc_bytes;
	unit_resources_assert(&then);
}

void
assert_unmarked(struct rte_mempool *mp __rte_unused, void *arg __rte_unused, void *obj,
	unsigned int i __rte_unused)
{
	static const struct pp_page_mark none;

	assert_memory_equal(pp_page_mark(obj), &none, sizeof(none));
}
