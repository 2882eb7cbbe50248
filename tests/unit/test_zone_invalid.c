/* SPDX-License-Identifier: BSD-3-Clause */
/* pp_zone_is_valid() sees each way in which descriptors, lists and counters can disagree. */

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/pagepool/pp_internal.h"
#include "zone_unit.h"

#define RUN_PAGES 6u /* in a run of 8 */

static struct pp_zone *zone;
static struct pp_page *pages;
static void *used;

static int
open_zone(void **state __rte_unused)
{
	zone = plain_zone(RUN_PAGES, 9);
	pages = zone->runs[0]->pages;
	used = pp_zone_alloc(zone, 0, 0);
	assert_non_null(used);
	return 0;
}

static int
close_zone(void **state __rte_unused)
{
	assert_int_equal(pp_zone_free(zone, used, 0, 0), 0);
	destroy_zone(zone);
	return 0;
}

#define assert_noticed(place, value, fault)                                                        \
	do {                                                                                       \
		const __typeof__(place) was = (place);                                             \
                                                                                                   \
		assert_true(pp_zone_is_valid(zone));                                               \
		(place) = (value);                                                                 \
		unit_log_clear();                                                                  \
		assert_false(pp_zone_is_valid(zone));                                              \
		unit_assert_logged(fault);                                                         \
		(place) = was;                                                                     \
	} while (0)

static void
heads_and_padding(void **state __rte_unused)
{
	const char *const fault = "a run is no sequence of blocks";
	struct pp_page *page = pp_zone_page(zone, used);
	const uint32_t i = (uint32_t)(page - pages);

	assert_noticed(page->order, 10, fault);
	assert_noticed(page->order, i % 2 == 0 ? 3 : 1, fault);
	assert_noticed(page->state, PP_PAGE_TAIL, fault);
	assert_noticed(pages[RUN_PAGES].state, PP_PAGE_TAIL, fault);
	assert_noticed(pages[RUN_PAGES + 1].state, 77, fault);
	assert_noticed(pages[0].state, PP_PAGE_PADDING, fault);
}

/* An odd page as the head of two. */
static void
misaligned_heads(void **state __rte_unused)
{
	void *other = pp_zone_alloc(zone, 0, 0);
	struct pp_page *page = pp_zone_page(zone, other);

	if ((page - pages) % 2 == 0)
		page = pp_zone_page(zone, used);
	assert_int_equal((page - pages) % 2, 1);
	assert_noticed(page->order, 1, "a run is no sequence of blocks");
	assert_int_equal(pp_zone_free(zone, other, 0, 0), 0);
}

static void
lists_and_counters(void **state __rte_unused)
{
	const unsigned int order = (unsigned int)__builtin_ctz(zone->nonempty);
	struct pp_page *page = LIST_FIRST(&zone->free_list[order]);

	assert_noticed(page->state, PP_PAGE_USED, "a free list differs");
	assert_noticed(zone->stats.free_blocks[order], 0, "a free list differs");
	assert_noticed(zone->nonempty, 0, "a free list differs");
	assert_noticed(zone->free_pages, 1, "disagree about free pages");

	/* free by its descriptor, and on no list */
	const uint32_t nonempty = zone->nonempty;

	LIST_REMOVE(page, free);
	zone->stats.free_blocks[order]--;
	if (LIST_EMPTY(&zone->free_list[order]))
		zone->nonempty &= ~(1u << order);
	unit_log_clear();
	assert_false(pp_zone_is_valid(zone));
	unit_assert_logged("disagree about free pages");
	LIST_INSERT_HEAD(&zone->free_list[order], page, free);
	zone->stats.free_blocks[order]++;
	zone->nonempty = nonempty;
}

/*
 * After a kill: a block on the return stack stays away, as nobody may know it; a head that cannot
 * be one is none.
 */
static void
repair_believes_only_valid_heads(void **state __rte_unused)
{
	struct pp_page *returned = pp_zone_page(zone, pp_zone_alloc(zone, 0, 0));
	const pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	returned->state = PP_PAGE_RETURNED;
	pages[0].state = PP_PAGE_USED;
	pages[0].order = 9;
	zone->lock.holder = (uint32_t)child;
	assert_int_equal(stats_of(zone).free, RUN_PAGES - 2);
	assert_int_equal(stats_of(zone).repairs, 1);
	assert_true(pp_zone_is_valid(zone));
	returned->state = PP_PAGE_USED;
	assert_int_equal(pp_zone_free(zone, pp_page_addr(returned), 0, 0), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_zone, close_zone)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(heads_and_padding),
		TEST(misaligned_heads),
		TEST(lists_and_counters),
		TEST(repair_believes_only_valid_heads),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
