/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong frees and damaged pages, one kind at a time: each is found, reported and set aside. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "../../lib/pagepool/pp_internal.h"
#include "../../lib/pcp_cache/pcp_internal.h"
#include "checks_unit.h"

static void
foreign_pointer(void **state __rte_unused)
{
	static char elsewhere[PP_PAGE_SIZE];

	free_by(0, elsewhere);
	assert_found(PP_BAD_FOREIGN, 1, "no lcore");
	free_by(1, NULL);
	assert_found(PP_BAD_FOREIGN, 1, "no lcore");
	free_by(1, memory + CHECKS_PAGES * PP_PAGE_SIZE);
	assert_found(PP_BAD_FOREIGN, 1, "no lcore");
	assert_set_aside(0);
}

static void
misaligned_pointer(void **state __rte_unused)
{
	char *block = alloc_by(3);

	free_by(0, block + 64);
	assert_found(PP_BAD_ALIGNMENT, 1, "lcore 3");
	free_by(0, block + PP_PAGE_SIZE - 1);
	assert_found(PP_BAD_ALIGNMENT, 1, "lcore 3");
	/* It is the user's as before. */
	assert_balance(1, 1u << order);
	free_by(0, block);
	assert_set_aside(0);
}

static void
wrong_order(void **state __rte_unused)
{
	void *block = alloc_by(3);

	pcp_free_pages(handle(0), block, order + 1);
	assert_found(PP_BAD_ORDER, 1, "lcore 3");
	assert_balance(1, 1u << order);
	free_by(0, block);

	block = pcp_alloc_pages(handle(3), order + 1);
	free_by(0, block);
	assert_found(PP_BAD_ORDER, 1, "lcore 3");
	assert_balance(1, 2u << order);
	pcp_free_pages(handle(0), block, order + 1);
	assert_set_aside(0);
}

static void
middle_of_a_block(void **state __rte_unused)
{
	char *block = pcp_alloc_pages(handle(3), order + 1);

	free_by(0, block + (PP_PAGE_SIZE << order));
	assert_found(PP_BAD_STATE, 1, "lcore 3");
	pcp_free_pages(handle(0), block, order + 1);
	assert_set_aside(0);
}

/* ---- owner ---- */

static void
a_page_of_the_zone_itself(void **state __rte_unused)
{
	void *block = pp_zone_alloc(zone, order, 0);

	free_by(0, block);
	assert_found(PP_BAD_OWNER, 1, "no lcore");
	assert_int_equal(pp_zone_free(zone, block, order, 0), 0);
}

static void
another_caches_page(void **state __rte_unused)
{
	struct pcp_cache *other = pcp_cache_create(
		zone, &(struct pcp_config){.batch = 4, .max_order = 3, .checks = checks});
	void *block = pcp_alloc_pages(pcp_of_lcore(other, 3), order);

	free_by(0, block);
	assert_found(PP_BAD_OWNER, 1, "lcore 3");
	pcp_free_pages(pcp_of_lcore(other, 3), block, order);
	free_by(0, block); /* at rest there, or soon */
	assert_found(PP_BAD_OWNER, 1, "lcore 3");
	pcp_cache_destroy(other);
}

static void
a_caches_page_is_freed_to_the_zone(void **state __rte_unused)
{
	void *block = alloc_by(3);

	assert_int_equal(pp_zone_free(zone, block, order, 0), -EINVAL);
	assert_found(PP_BAD_OWNER, 1, "lcore 3");
	assert_int_equal(pp_zone_free_bulk(zone, order, &block, 1), 0);
	assert_found(PP_BAD_OWNER, 1, "lcore 3");
	free_by(3, block);
	assert_set_aside(0);
}

/* ---- double free ---- */

static void
twice_by_one_lcore(void **state __rte_unused)
{
	void *block = alloc_by(1);

	free_by(1, block);
	free_by(1, block);
	assert_found(PP_BAD_DOUBLE_FREE, 1, "lcore 1");
	assert_set_aside(1);
}

static void
by_two_lcores(void **state __rte_unused)
{
	void *block = alloc_by(1);

	free_by(1, block);
	free_by(2, block);
	free_by(3, block);
	assert_found(PP_BAD_DOUBLE_FREE, 2, "lcore 1");
	assert_set_aside(1);
}

/* Two magazines are full, and each holds it: the exchange that follows must find it. */
static void
in_both_magazines(void **state __rte_unused)
{
	void *block[2 * CHECKS_BATCH];
	const uint32_t batch = cache->depot->list[order].batch;

	for (uint32_t i = 0; i < 2 * batch; i++)
		block[i] = alloc_by(i % 2 == 0 ? 4 : 5);
	for (uint32_t i = 0; i < 2 * batch; i++)
		free_by(1, i == batch + 1 ? block[0] : block[i]);
	free_by(1, block[batch + 1]);
	assert_int_equal(pcp_unit_stats().bad[PP_BAD_DOUBLE_FREE], 1);
	assert_found(PP_BAD_DOUBLE_FREE, 1, "lcore 1");
	assert_set_aside(1);
}

static void
at_rest_in_the_depot(void **state __rte_unused)
{
	void *block = alloc_by(1);

	pcp_depot_free(cache, block, order);
	free_by(2, block);
	assert_int_equal(pcp_unit_stats().bad[PP_BAD_DOUBLE_FREE], checks == PCP_CHECKS_FULL);
	pcp_depot_free(cache, block, order);
	assert_int_equal(
		pcp_unit_stats().bad[PP_BAD_DOUBLE_FREE], checks == PCP_CHECKS_FULL ? 2 : 1);
	assert_found(PP_BAD_DOUBLE_FREE, 2, "lcore 0");
	assert_set_aside(1);
}

/* A suspect is not handed out, though it rests in the depot. */
static void
a_suspect_is_not_handed_out(void **state __rte_unused)
{
	void *block = alloc_by(1);

	pcp_cache_drain(cache);
	pcp_depot_free(cache, block, order);
	pcp_depot_free(cache, block, order);
	assert_int_equal(pcp_unit_stats().depot_pages, 1u << order);
	assert_int_equal(pcp_unit_stats().bad_pages, 0);
	void *other = pcp_depot_alloc(cache, order), *third = alloc_by(2);

	assert_non_null(other);
	assert_ptr_not_equal(other, block);
	assert_ptr_not_equal(third, block);
	assert_int_equal(pcp_unit_stats().bad_pages, 1u << order);
	pcp_depot_free(cache, other, order);
	free_by(2, third);
	assert_found(PP_BAD_DOUBLE_FREE, 1, "lcore 0");
	assert_set_aside(1);
}

static void
free_in_the_zone(void **state __rte_unused)
{
	void *block = alloc_by(1), *neighbour = alloc_by(1);

	free_by(1, block);
	pcp_cache_drain(cache);
	free_by(2, block);
	assert_found(PP_BAD_DOUBLE_FREE, 1, "lcore 1");
	assert_set_aside(1);
	/* Once more: it is set aside already. */
	free_by(2, block);
	assert_found(PP_BAD_DOUBLE_FREE, 1, "lcore 1");
	free_by(1, neighbour);
	assert_set_aside(1);
}

static void
to_the_zone_directly(void **state __rte_unused)
{
	void *block = alloc_by(1);

	pcp_depot_free(cache, block, order);
	assert_int_equal(pp_zone_free(zone, block, order, 0), -EINVAL);
	assert_int_equal(pp_zone_free(zone, block, order, PP_ALLOC_TRYLOCK), -EINVAL);
	assert_found(PP_BAD_DOUBLE_FREE, 2, "lcore 0");
	assert_set_aside(1);
}

static void
by_a_handler(void **state __rte_unused)
{
	void *block = pcp_handler_alloc(cache, order);

	pcp_handler_free(cache, block, order);
	unit_log_clear();
	pcp_handler_free(cache, block, order);
	assert_int_equal(pcp_unit_stats().bad[PP_BAD_DOUBLE_FREE], 1);
	assert_string_equal(unit_log(), ""); /* not from there */
	free_by(0, block);
	assert_found(PP_BAD_DOUBLE_FREE, 2, "lcore 0");
	assert_set_aside(1);
}

static void
in_bulk(void **state __rte_unused)
{
	void *page[100];

	assert_int_equal(pcp_alloc_bulk(handle(1), page, RTE_DIM(page)), 0);
	void *const kept[] = {page[40], page[50]};

	page[40] = page[90];
	page[50] = NULL;
	pcp_free_bulk(handle(1), page, RTE_DIM(page));
	pcp_cache_drain(cache);
	assert_int_equal(pcp_unit_stats().bad[PP_BAD_DOUBLE_FREE], 1);
	assert_int_equal(pcp_unit_stats().bad[PP_BAD_FOREIGN], 1);
	assert_int_equal(pcp_unit_stats().bad_pages, 1);
	assert_balance(RTE_DIM(kept), RTE_DIM(kept));
	pcp_free_bulk(handle(1), kept, RTE_DIM(kept));
}

static void
in_a_section(void **state __rte_unused)
{
	void *block;

	pcp_bh_disable(handle(1));
	block = pcp_alloc_pages_nested(handle(1), order);
	pcp_free_pages_nested(handle(1), block, order);
	pcp_free_pages_nested(handle(1), block, order);
	pcp_bh_enable(handle(1));
	assert_found(PP_BAD_DOUBLE_FREE, 1, "lcore 1");
	assert_set_aside(1);
}

/* ---- damage ---- */

/* With checks full a write after a free is found; deferred does not look into pages. */
static void
write_after_free(void **state __rte_unused)
{
	static const uint32_t offsets[] = {0, 1, 2000, PP_PAGE_SIZE - 1};

	for (uint32_t i = 0; i < RTE_DIM(offsets); i++) {
		char *block = alloc_by(2), *again;

		free_by(2, block);
		if (checks == PCP_CHECKS_FULL)
			assert_int_equal((uint8_t)block[offsets[i]], PP_PAGE_POISON);
		block[(PP_PAGE_SIZE << order) - PP_PAGE_SIZE + offsets[i]] = 1;
		if (i % 2 == 1) /* and in another page of it, if there is one */
			block[offsets[i]] = 1;
		again = alloc_by(2);
		if (checks == PCP_CHECKS_FULL) {
			assert_ptr_not_equal(again, block);
			assert_found(PP_BAD_POISON, 1, "lcore 2");
		} else {
			assert_ptr_equal(again, block);
		}
		free_by(2, again);
	}
	assert_set_aside(checks == PCP_CHECKS_FULL ? RTE_DIM(offsets) : 0);
}

/* The same, found when the block comes from the zone, by another order. */
static void
write_after_it_went_to_the_zone(void **state __rte_unused)
{
	char *block = alloc_by(2);
	uint64_t n = 0;

	free_by(2, block);
	pcp_cache_drain(cache);
	block[100] = 1;
	while (pcp_alloc(handle(2)) != NULL)
		n++;
	assert_int_equal(n, CHECKS_PAGES - (checks == PCP_CHECKS_FULL));
	assert_int_equal(pcp_unit_stats().bad[PP_BAD_POISON], checks == PCP_CHECKS_FULL);
	for (uint32_t i = 0; i < CHECKS_PAGES; i++)
		if (checks != PCP_CHECKS_FULL || memory + i * PP_PAGE_SIZE != block)
			pcp_free(handle(2), memory + i * PP_PAGE_SIZE);
}

/* A direct user of the zone may write, and give back what he has written. */
static void
no_poison_for_direct_users(void **state __rte_unused)
{
	char *block = alloc_by(2);

	free_by(2, block);
	pcp_cache_drain(cache);
	block = pp_zone_alloc(zone, 9, 0);
	memset(block, 1, PP_PAGE_SIZE << 9);
	assert_int_equal(pp_zone_free(zone, block, 9, 0), 0);
	block = pp_zone_alloc(zone, 9, 0);
	memset(block, 1, PP_PAGE_SIZE << 9);
	assert_int_equal(pp_zone_free(zone, block, 9, 0), 0);
}

static struct pp_page *
descriptor(const void *block)
{
	return pp_zone_page(zone, block);
}

/* A block rests in the depot, and its descriptor says otherwise: it is handed out to nobody. */
static void
damaged_descriptor(void **state __rte_unused)
{
	void *block = alloc_by(1);
	const uint32_t owner = descriptor(block)->owner;

	pcp_cache_drain(cache);
	pcp_depot_free(cache, block, order);
	descriptor(block)->owner = owner;
	assert_int_equal(pcp_depot_alloc_bulk(cache, order, &block, 1), 0);
	assert_found(PP_BAD_STATE, 1, "lcore 1");
	assert_int_equal(pcp_unit_stats().missing_pages, 1u << order);
	pcp_depot_free(cache, block, order);
	/* What is missing has one owner: whoever the descriptor says. */
	for (uint32_t i = 0; i < CHECKS_PAGES; i++) {
		struct pp_page *page = descriptor(memory + i * PP_PAGE_SIZE);

		if (page->state == PP_PAGE_USED && page->owner == owner) {
			page->owner = PP_PLACE_ZONE;
			assert_int_equal(
				pp_zone_free(zone, memory + i * PP_PAGE_SIZE, order, 0), 0);
		}
	}
}

/* The zone has all pages, and by their descriptors a cache has them. */
static void
damage_all_descriptors(void)
{
	void *block = alloc_by(1);
	const uint32_t owner = descriptor(block)->owner;

	free_by(1, block);
	pcp_cache_drain(cache);
	for (uint32_t i = 0; i < CHECKS_PAGES; i++)
		descriptor(memory + i * PP_PAGE_SIZE)->owner = owner;
}

/* The zone hands out what, by its descriptor, a cache has. */
static void
damaged_descriptor_in_the_zone(void **state __rte_unused)
{
	damage_all_descriptors();
	assert_null(pcp_depot_alloc(cache, order));
	assert_int_equal(pcp_unit_stats().bad[PP_BAD_STATE], CHECKS_PAGES >> order);
	assert_set_aside(CHECKS_PAGES >> order);
}

/* The same, met by a handler: it gets none of them, and logs nothing. */
static void
damaged_descriptors_met_by_a_handler(void **state __rte_unused)
{
	damage_all_descriptors();
	unit_log_clear();
	assert_null(pcp_handler_alloc(cache, order));
	assert_string_equal(unit_log(), "");
	assert_int_equal(pcp_unit_stats().bad[PP_BAD_STATE], CHECKS_PAGES >> order);
	assert_set_aside(CHECKS_PAGES >> order);
}

/* Nothing in a full magazine can be handed out: there is another one. */
static void
damaged_descriptors_of_a_magazine(void **state __rte_unused)
{
	const uint32_t batch = cache->depot->list[order].batch;
	struct pcp_shelf *shelf =
		&cache->depot->list[order].shelf[0]; /* with checks the only one */
	struct pcp_stack *full = &shelf->stack[PCP_FULL];
	void *block[4 * CHECKS_BATCH] = {NULL}, *bad[CHECKS_BATCH];

	for (uint32_t i = 0; i < 4 * batch; i++)
		block[i] = alloc_by(2);
	const uint32_t owner = descriptor(block[0])->owner;

	for (uint32_t i = 0; i < 4 * batch; i++)
		free_by(1, block[i]);
	assert_true(pcp_stack_count(full) > 1);
	pcp_copy(bad, full->slot[(full->top - 1) & shelf->mask]->page, batch);
	for (uint32_t i = 0; i < batch; i++)
		descriptor(bad[i])->owner = owner;
	void *good = alloc_by(3);

	for (uint32_t i = 0; i < batch; i++)
		assert_ptr_not_equal(good, bad[i]);
	free_by(3, good);
	assert_found(PP_BAD_STATE, batch, "lcore 2");
	assert_int_equal(pcp_unit_stats().missing_pages, batch << order);
	for (uint32_t i = 0; i < batch; i++) {
		descriptor(bad[i])->owner = PP_PLACE_ZONE;
		assert_int_equal(pp_zone_free(zone, bad[i], order, 0), 0);
	}
}

/* ---- reports ---- */

static void
many_reports_are_a_few_lines(void **state __rte_unused)
{
	uint32_t lines = 0;

	for (uint32_t i = 0; i < 1000; i++)
		free_by(0, NULL);
	pcp_cache_drain(cache);
	assert_int_equal(pcp_unit_stats().bad[PP_BAD_FOREIGN], 1000);
	for (const char *line = unit_log(); (line = strstr(line, "foreign pointer")) != NULL;
		line++)
		lines++;
	assert_in_range(lines, 1, 100); /* ten, and ten more in each second that passes */
	/* and when one has passed, how many there were besides */
	zone->reports_since = 1;
	free_by(0, NULL);
	pcp_cache_drain(cache);
	unit_assert_logged("more reports of bad pages were left out\n");
	assert_string_equal(pp_bad_kind_name(PP_BAD_KINDS), "unknown");
}

static void
the_dump_shows_them(void **state __rte_unused)
{
	void *block = alloc_by(1);
	char *text = NULL, expected[64];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	free_by(1, block);
	free_by(1, block);
	free_by(1, NULL);
	pcp_cache_drain(cache);
	pcp_cache_dump(cache, f);
	pp_zone_dump(zone, f);
	fclose(f);
	snprintf(expected, sizeof(expected), "checks %s\n", pcp_checks_name(checks));
	assert_non_null(strstr(text, expected));
	snprintf(expected, sizeof(expected), "  bad_pages %u, foreign pointer 1, double free 1\n",
		1u << order);
	assert_non_null(strstr(text, expected));
	snprintf(expected, sizeof(expected), "  bad_pages %u\n", 1u << order);
	assert_non_null(strstr(text, expected));
	assert_non_null(strstr(text, "  bad: double free 1\n"));
	free(text);
}

int
main(void)
{
	static const struct checks_test tests[] = {
		CHECKS_TEST(foreign_pointer),
		CHECKS_TEST(misaligned_pointer),
		CHECKS_TEST(wrong_order),
		CHECKS_TEST(middle_of_a_block),
		CHECKS_TEST(a_page_of_the_zone_itself),
		CHECKS_TEST(another_caches_page),
		CHECKS_TEST(a_caches_page_is_freed_to_the_zone),
		CHECKS_TEST(twice_by_one_lcore),
		CHECKS_TEST(by_two_lcores),
		CHECKS_TEST(in_both_magazines),
		CHECKS_TEST(at_rest_in_the_depot),
		CHECKS_TEST(a_suspect_is_not_handed_out),
		CHECKS_TEST(free_in_the_zone),
		CHECKS_TEST(to_the_zone_directly),
		CHECKS_TEST(by_a_handler),
		CHECKS_TEST(in_bulk),
		CHECKS_TEST(in_a_section),
		CHECKS_TEST(write_after_free),
		CHECKS_TEST(write_after_it_went_to_the_zone),
		CHECKS_TEST(no_poison_for_direct_users),
		CHECKS_TEST(damaged_descriptor),
		CHECKS_TEST(damaged_descriptor_in_the_zone),
		CHECKS_TEST(damaged_descriptors_met_by_a_handler),
		CHECKS_TEST(damaged_descriptors_of_a_magazine),
		CHECKS_TEST(many_reports_are_a_few_lines),
		CHECKS_TEST(the_dump_shows_them),
	};

	zone_unit_init();
	return checks_run(tests, RTE_DIM(tests));
}
