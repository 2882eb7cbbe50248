/* SPDX-License-Identifier: BSD-3-Clause */
/* pcp_cache_is_valid() sees each way in which magazines, counts and lists can disagree. */

#include <string.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "pcp_unit.h"

#define BATCH 16u

/* With a wrong value in one place the caches are invalid, and that is logged; then valid again. */
#define assert_noticed(place, value)                                                               \
	do {                                                                                       \
		const __typeof__(place) was = (place);                                             \
                                                                                                   \
		(place) = (value);                                                                 \
		unit_log_clear();                                                                  \
		assert_false(pcp_cache_is_valid(cache));                                           \
		unit_assert_logged("invalid: magazines and counts disagree");                      \
		(place) = was;                                                                     \
		assert_true(pcp_cache_is_valid(cache));                                            \
	} while (0)

/* An lcore with two full magazines, and full ones in the depot. */
static int
open_and_fill(void **state __rte_unused)
{
	void *page[8 * BATCH];

	pcp_unit_open(1024, (struct pcp_config){.batch = BATCH, .max_order = 1});
	for (unsigned int i = 0; i < RTE_DIM(page); i++)
		assert_non_null(page[i] = pcp_alloc(handle(0)));
	for (unsigned int i = 0; i < RTE_DIM(page); i++)
		pcp_free(handle(0), page[i]);
	return 0;
}

static void
lists_of_an_lcore(void **state __rte_unused)
{
	struct pcp_list *list = &handle(0)->list[0];

	assert_int_equal(list->capacity, BATCH);
	assert_int_equal(list->previous_count, BATCH);
	assert_noticed(list->capacity, BATCH - 1);
	assert_noticed(list->state, (list->state & ~PCP_STATE_COUNT) | (BATCH + 1));
	assert_noticed(list->parked, BATCH + 1);
	assert_noticed(list->parked, 1);
	assert_noticed(list->previous_count, 1);
	assert_noticed(list->previous, list->loaded);
	assert_noticed(handle(0)->busy, 1);
}

static void
lists_without_magazines(void **state __rte_unused)
{
	struct pcp_list *list = &handle(7)->list[0];

	assert_null(list->loaded);
	assert_noticed(list->state, 1);
	assert_noticed(list->previous_count, BATCH);
	assert_noticed(list->parked, 1);
	assert_noticed(list->capacity, BATCH);
}

static void
the_depots_stacks(void **state __rte_unused)
{
	struct pcp_depot *depot = cache->depot;
	struct pcp_depot_list *list = &depot->list[0];
	struct pcp_stack *full = &list->shelf[0].stack[PCP_FULL];
	struct pcp_stack *empty = &list->shelf[0].stack[PCP_EMPTY];

	assert_true(pcp_stack_count(full) > 0);
	assert_noticed(full->slot[full->bottom & list->shelf[0].mask]->count, BATCH - 1);
	assert_noticed(list->partial, NULL);
	assert_noticed(list->partial->count, BATCH + 1);
	assert_noticed(empty->top, empty->top + 1);

	/* A magazine may be missing after a process was killed, but none may be added. */
	assert_noticed(empty->top, empty->top - 1);
	depot->buried = 1;
	assert_noticed(empty->top, empty->top + 1);
	empty->top--;
	assert_true(pcp_cache_is_valid(cache));
	empty->top++;
	depot->buried = 0;
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			lists_of_an_lcore, open_and_fill, pcp_unit_teardown),
		cmocka_unit_test_setup_teardown(
			lists_without_magazines, open_and_fill, pcp_unit_teardown),
		cmocka_unit_test_setup_teardown(
			the_depots_stacks, open_and_fill, pcp_unit_teardown),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
