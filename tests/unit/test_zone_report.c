/* SPDX-License-Identifier: BSD-3-Clause */
/* The dump, and pp_zone_is_valid(). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_errno.h>

#include "zone_unit.h"

static void
dump_is_like_buddyinfo(void **state)
{
	struct pp_zone *zone = plain_zone(13, 2);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	void *page = pp_zone_alloc(zone, 0, 0);
	void *two = pp_zone_alloc(zone, 1, 0);

	(void)state;
	assert_int_equal(pp_zone_set_watermarks(zone, 1, 2, 3), 0);
	pp_zone_dump(zone, f);
	fclose(f);
	assert_non_null(strstr(text, "Node -1, zone     zone      0      1      2\n"));
	assert_non_null(strstr(text, "pages 13 free 10 min 1 low 2 high 3"));
	assert_non_null(strstr(text, "padding 3\n"));
	assert_non_null(
		strstr(text, "splits 1 merges 0 failed 0 contended 0 bad_frees 0 repairs 0\n"));
	assert_non_null(strstr(text, "order 0: allocs 1 frees 0\n"));
	assert_non_null(strstr(text, "order 1: allocs 1 frees 0\n"));
	assert_null(strstr(text, "order 2"));
	free(text);
	assert_int_equal(pp_zone_free(zone, page, 0, 0), 0);
	assert_int_equal(pp_zone_free(zone, two, 1, 0), 0);
	destroy_zone(zone);
}

#define assert_fault_found(zone, what)                                                             \
	do {                                                                                       \
		what;                                                                              \
		unit_log_clear();                                                                  \
		assert_false(pp_zone_is_valid(zone));                                              \
		unit_assert_logged("zone: invalid");                                               \
	} while (0)

static void
corruption_is_found(void **state)
{
	struct pp_zone *zone = odd_zone();
	void *used = pp_zone_alloc(zone, 1, 0);
	struct pp_page *page = pp_zone_page(zone, used);
	struct pp_page *first;

	(void)state;
	assert_non_null(page);

	assert_fault_found(zone, page->state = PP_PAGE_FREE);
	assert_fault_found(zone, page->state = PP_PAGE_TAIL);
	assert_fault_found(zone, page->state = PP_PAGE_PADDING);
	assert_fault_found(zone, page->state = 77);
	page->state = PP_PAGE_USED;
	assert_fault_found(zone, page->order = 0);
	assert_fault_found(zone, page->order = 2);
	assert_fault_found(zone, page->order = 10);
	page->order = 1;
	assert_fault_found(zone, page[1].state = PP_PAGE_USED);
	page[1].state = PP_PAGE_TAIL;

	assert_fault_found(zone, zone->free_pages++);
	zone->free_pages--;
	assert_fault_found(zone, zone->stats.free_blocks[9]--);
	zone->stats.free_blocks[9]++;
	assert_fault_found(zone, zone->nonempty &= ~(1u << 9));
	zone->nonempty |= 1u << 9;
	assert_fault_found(zone, zone->nonempty |= zone->nonempty + 1);
	zone->nonempty = 0;
	for (unsigned int order = 0; order <= 9; order++)
		zone->nonempty |= (uint32_t)(zone->stats.free_blocks[order] > 0) << order;

	/* a block that fell off its list */
	first = LIST_FIRST(&zone->free_list[9]);
	assert_non_null(first);
	assert_fault_found(zone, LIST_REMOVE(first, free));
	LIST_INSERT_HEAD(&zone->free_list[9], first, free);

	/* a list that goes round in a circle */
	struct pp_page *const next = LIST_NEXT(first, free);

	assert_fault_found(zone, first->free.le_next = first);
	first->free.le_next = next;

	/* two free buddies that lie apart */
	struct pp_page *split = LIST_FIRST(&zone->free_list[9]);

	LIST_REMOVE(split, free);
	split->order = split[256].order = 8;
	split[256].state = PP_PAGE_FREE;
	LIST_INSERT_HEAD(&zone->free_list[8], split, free);
	LIST_INSERT_HEAD(&zone->free_list[8], &split[256], free);
	zone->stats.free_blocks[9]--;
	assert_fault_found(zone, zone->stats.free_blocks[8] += 2);
	LIST_REMOVE(split, free);
	LIST_REMOVE(&split[256], free);
	split->order = 9;
	split[256].state = PP_PAGE_TAIL;
	LIST_INSERT_HEAD(&zone->free_list[9], split, free);
	zone->stats.free_blocks[9]++;
	zone->stats.free_blocks[8] -= 2;

	assert_true(pp_zone_is_valid(zone));
	assert_int_equal(pp_zone_free(zone, used, 1, 0), 0);
	destroy_zone(zone);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dump_is_like_buddyinfo),
		cmocka_unit_test(corruption_is_found),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
