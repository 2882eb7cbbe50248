/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What telemetry says of zones and caches: its commands are called as its thread would, with
 * rte_tel_data replaced by one that can be read back, and whose calls can fail.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_telemetry.h>
#include <rte_version.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "pcp_unit.h"
#include "worker.h"

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define DICT_COUNT  "__wrap_rte_tel_data_add_dict_uint"
#define ARRAY_COUNT "__wrap_rte_tel_data_add_array_uint"
#else
#define DICT_COUNT  "__wrap_rte_tel_data_add_dict_u64"
#define ARRAY_COUNT "__wrap_rte_tel_data_add_array_u64"
#endif

#define MEMBERS_MAX 64
#define VALUES_MAX  256

struct rte_tel_data {
	uint32_t n;
	struct member {
		char name[32], text[64];
		uint64_t value;
		struct rte_tel_data *array;
	} member[MEMBERS_MAX];
	uint64_t value[VALUES_MAX];
};

static struct {
	const char *name;
	telemetry_cb function;
} commands[8];
static uint32_t n_commands;

static uint32_t fail_at, calls; /* of those below, by the main thread */
static int arrays;              /* allocated and not freed */

static int
count_call(void)
{
	return ++calls == fail_at ? -ENOSPC : 0;
}

int __wrap_rte_telemetry_register_cmd(const char *cmd, telemetry_cb fn, const char *help);
int
__wrap_rte_telemetry_register_cmd(const char *cmd, telemetry_cb fn, const char *help)
{
	commands[n_commands].name = cmd;
	commands[n_commands].function = fn;
	n_commands += help != NULL;
	return 0;
}

static struct member *
add(struct rte_tel_data *data, const char *name)
{
	struct member *member = &data->member[data->n++];

	assert_true(data->n <= MEMBERS_MAX);
	snprintf(member->name, sizeof(member->name), "%s", name);
	for (; *name != '\0'; name++) /* what names may consist of */
		assert_true(*name == '_' || (*name >= '0' && *name <= '9') ||
			    (*name >= 'a' && *name <= 'z'));
	return member;
}

int __wrap_rte_tel_data_start_dict(struct rte_tel_data *data);
int
__wrap_rte_tel_data_start_dict(struct rte_tel_data *data)
{
	data->n = 0;
	return count_call();
}

int __wrap_rte_tel_data_start_array(struct rte_tel_data *data, enum rte_tel_value_type type);
int
__wrap_rte_tel_data_start_array(struct rte_tel_data *data, enum rte_tel_value_type type)
{
	assert_int_equal(type, RTE_TEL_U64_VAL);
	data->n = 0;
	return count_call();
}

int __wrap_rte_tel_data_add_dict_string(
	struct rte_tel_data *data, const char *name, const char *value);
int
__wrap_rte_tel_data_add_dict_string(struct rte_tel_data *data, const char *name, const char *value)
{
	snprintf(add(data, name)->text, sizeof(data->member[0].text), "%s", value);
	return count_call();
}

/* By the name that the installed DPDK has for it. */
int add_dict_count(struct rte_tel_data *data, const char *name, uint64_t value) __asm__(DICT_COUNT);
int
add_dict_count(struct rte_tel_data *data, const char *name, uint64_t value)
{
	add(data, name)->value = value;
	return count_call();
}

int __wrap_rte_tel_data_add_dict_int(struct rte_tel_data *data, const char *name, int value);
int
__wrap_rte_tel_data_add_dict_int(struct rte_tel_data *data, const char *name, int value)
{
	add(data, name)->value = (uint64_t)value;
	return count_call();
}

int add_array_count(struct rte_tel_data *data, uint64_t value) __asm__(ARRAY_COUNT);
int
add_array_count(struct rte_tel_data *data, uint64_t value)
{
	assert_true(data->n < VALUES_MAX);
	data->value[data->n++] = value;
	return count_call();
}

struct rte_tel_data *__wrap_rte_tel_data_alloc(void);
struct rte_tel_data *
__wrap_rte_tel_data_alloc(void)
{
	if (count_call() != 0)
		return NULL;
	arrays++;
	return calloc(1, sizeof(struct rte_tel_data));
}

void __wrap_rte_tel_data_free(struct rte_tel_data *data);
void
__wrap_rte_tel_data_free(struct rte_tel_data *data)
{
	arrays -= data != NULL;
	free(data);
}

int __wrap_rte_tel_data_add_dict_container(
	struct rte_tel_data *data, const char *name, struct rte_tel_data *array, int keep);
int
__wrap_rte_tel_data_add_dict_container(
	struct rte_tel_data *data, const char *name, struct rte_tel_data *array, int keep)
{
	if (count_call() != 0)
		return -ENOSPC;
	assert_int_equal(keep, 0);
	add(data, name)->array = array;
	return 0;
}

/* ---- asking ---- */

static struct rte_tel_data answer;

static void
forget(struct rte_tel_data *data)
{
	for (uint32_t i = 0; i < MEMBERS_MAX; i++)
		__wrap_rte_tel_data_free(data->member[i].array);
	memset(data, 0, sizeof(*data));
}

static int
ask_into(struct rte_tel_data *data, const char *command, const char *params)
{
	forget(data);
	for (uint32_t i = 0; i < n_commands; i++)
		if (strcmp(commands[i].name, command) == 0)
			return commands[i].function(command, params, data);
	fail_msg("no command %s", command);
	return 0;
}

static int
ask(const char *command, const char *params)
{
	return ask_into(&answer, command, params);
}

static int
ask_number(const char *command, uint32_t number)
{
	char params[16];

	snprintf(params, sizeof(params), "%u", number);
	return ask(command, params);
}

static const struct member *
find(const char *name)
{
	for (uint32_t i = 0; i < answer.n; i++)
		if (strcmp(answer.member[i].name, name) == 0)
			return &answer.member[i];
	return NULL;
}

static uint64_t
value_of(const char *name)
{
	const struct member *member = find(name);

	if (member == NULL)
		fail_msg("no %s", name);
	return member->value;
}

static bool
is_listed(const struct pp_zone *one)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", pp_zone_id(one));
	assert_int_equal(ask("/pagepool/list", NULL), 0);
	return find(number) != NULL && strcmp(find(number)->text, pp_zone_name(one)) == 0;
}

/* ---- tests ---- */

static void
commands_are_registered(void **state __rte_unused)
{
	assert_int_equal(n_commands, 3);
	assert_int_equal(ask("/pagepool/list", ""), 0);
	assert_int_equal(answer.n, 0);
}

static void
zones_are_listed_from_birth_to_death(void **state __rte_unused)
{
	struct pp_zone *first = pp_zone_create("first", PP_NODE_ANY, 0);
	struct pp_zone *second = pp_zone_create("second", 0, 9);
	const uint32_t id = pp_zone_id(first);

	assert_true(is_listed(first) && is_listed(second));
	assert_int_equal(answer.n, 2);
	assert_string_equal(answer.member[0].text, "first");
	assert_int_equal(pp_zone_destroy(first), 0);
	assert_true(is_listed(second));
	assert_int_equal(answer.n, 1);
	assert_int_equal(ask_number("/pagepool/zone", id), -ENOENT);

	struct pp_zone *third = pp_zone_create("third", 0, 9);

	assert_true(pp_zone_id(third) != id && pp_zone_id(third) != pp_zone_id(second));
	assert_int_equal(pp_zone_destroy(second), 0);
	assert_int_equal(pp_zone_destroy(third), 0);
	assert_int_equal(ask("/pagepool/list", NULL), 0);
	assert_int_equal(answer.n, 0);
}

static void
a_zone_is_shown_as_its_statistics_are(void **state __rte_unused)
{
	struct pp_zone *one = plain_zone(PAGES, 9);
	void *page = pp_zone_alloc(one, 3, 0), *pages[10];
	static const char *const names[] = {"free_blocks", "allocs", "frees"};

	assert_int_equal(pp_zone_alloc_bulk(one, 0, pages, 10, 0), 10);
	assert_int_equal(pp_zone_free_bulk(one, 0, pages, 4), 4);
	assert_int_equal(pp_zone_set_watermarks(one, 1, 2, PAGES), 0);
	assert_int_equal(pp_zone_free(one, &page, 0, 0), -EINVAL);

	const struct pp_zone_stats stats = stats_of(one);

	assert_int_equal(ask_number("/pagepool/zone", pp_zone_id(one)), 0);
	assert_string_equal(find("name")->text, pp_zone_name(one));
	assert_string_equal(find("owner")->text, "application");
	assert_int_equal(value_of("pid"), getpid());
	assert_int_equal((int)value_of("node"), pp_zone_node(one));
	assert_int_equal(value_of("pages"), PAGES);
	assert_int_equal(value_of("free"), PAGES - 8 - 6);
	assert_int_equal(value_of("padding"), stats.padding);
	assert_int_equal(value_of("watermark_min"), 1);
	assert_int_equal(value_of("watermark_low"), 2);
	assert_int_equal(value_of("watermark_high"), PAGES);
	assert_int_equal(value_of("pressure"), 0);
	assert_int_equal(value_of("splits"), stats.splits);
	assert_int_equal(value_of("merges"), stats.merges);
	assert_int_equal(value_of("failed"), stats.failed);
	assert_int_equal(value_of("contended"), stats.contended);
	assert_int_equal(value_of("bad_frees"), 1);
	assert_int_equal(value_of("repairs"), 0);
	for (uint32_t i = 0; i < RTE_DIM(names); i++) {
		const uint64_t *const expected[] = {stats.free_blocks, stats.allocs, stats.frees};
		const struct rte_tel_data *array = find(names[i])->array;

		assert_int_equal(array->n, 10);
		assert_memory_equal(array->value, expected[i], 10 * sizeof(uint64_t));
	}
	pp_zone_set_owner(one, "somebody whose name is longer than there is room for it in the "
			       "zone, so that its end is cut off");
	assert_int_equal(ask_number("/pagepool/zone", pp_zone_id(one)), 0);
	assert_int_equal(strlen(find("owner")->text), PP_OWNER_LEN - 1);
	assert_int_equal(pp_zone_free_bulk(one, 0, pages + 4, 6), 6);
	assert_int_equal(pp_zone_free(one, page, 3, 0), 0);
	destroy_zone(one);
}

static void
ask_of_cache(void)
{
	assert_int_equal(ask_number("/pagepool/pcp", pp_zone_id(zone)), 0);
}

/* Each block shows once: where it came from, and where it went. */
static void
a_cache_counts_as_page_pool_does(void **state __rte_unused)
{
	static void *page[64];
	void *block[3];

	pcp_unit_open(PAGES, (struct pcp_config){.batch = 16, .max_order = 1});
	struct pcp *pcp = pcp_this(cache);

	for (uint32_t i = 0; i < 40; i++) /* three magazines from the zone */
		page[i] = pcp_alloc(pcp);
	assert_int_equal(pcp_depot_alloc_bulk(cache, 0, page + 40, 5), 0);
	block[0] = pcp_alloc_pages(pcp, 1);
	block[1] = pcp_depot_alloc(cache, 2); /* orders above max_order pass the caches by */
	block[2] = pcp_handler_alloc(cache, 1);
	ask_of_cache();
	assert_string_equal(find("name")->text, pp_zone_name(zone));
	assert_string_equal(find("mode")->text, "bh");
	assert_string_equal(find("checks")->text, pcp_checks_name((enum pcp_checks)0));
	assert_int_equal(value_of("bad_pages"), 0);
	assert_int_equal(value_of("batch"), 16);
	assert_int_equal(value_of("high"), PAGES);
	assert_int_equal(value_of("alloc_fast"), 41);
	assert_int_equal(value_of("alloc_slow"), 5);
	assert_int_equal(value_of("alloc_slow_high_order"), 2);
	assert_int_equal(value_of("alloc_empty"), 4);
	assert_int_equal(value_of("alloc_refill"), 0);
	assert_int_equal(value_of("alloc_failed"), 0);
	assert_int_equal(value_of("inflight"), 45 + 2 + 4 + 2);
	assert_int_equal(value_of("missing_pages"), 0);
	assert_int_equal(value_of("cached_pages"), pcp_unit_stats().cached_pages);
	assert_int_equal(find("lcores")->array->n, 1);
	assert_int_equal(find("lcores")->array->value[0], rte_lcore_id());
	assert_int_equal(find("lcore_pages")->array->value[0], pcp_unit_stats().cached_pages);

	for (uint32_t i = 0; i < 40; i++) /* 8 are there: two magazines full, one goes */
		pcp_free(pcp, page[i]);
	pcp_depot_free_bulk(cache, 0, page + 40, 5);
	pcp_free_pages(pcp, block[0], 1);
	pcp_depot_free(cache, block[1], 2);
	pcp_handler_free(cache, block[2], 1);
	ask_of_cache();
	assert_int_equal(value_of("recycle_cached"), 41);
	assert_int_equal(value_of("recycle_cache_full"), 1);
	assert_int_equal(value_of("recycle_ring"), 5 + 1 + 1);
	assert_int_equal(value_of("recycle_ring_full"), 0);
	assert_int_equal(value_of("inflight"), 0);
	assert_int_equal(value_of("depot_pages"), 16 + 5);

	assert_int_equal(pcp_cache_shrink(cache, 0), 21);
	for (uint32_t i = 0; i < 48; i++)
		page[i] = pcp_alloc(pcp);
	ask_of_cache();
	assert_int_equal(value_of("recycle_ring_full"), 21);
	assert_int_equal(value_of("alloc_empty"), 5);
	pcp_free_bulk(pcp, page, 48);
	assert_int_equal(pcp_alloc_bulk(pcp, page, 48), 0); /* the one that went comes back */
	ask_of_cache();
	assert_int_equal(value_of("alloc_refill"), 1);
	pcp_free_bulk(pcp, page, 48);
	pcp_unit_close();
}

static void
wrong_parameters_are_refused(void **state __rte_unused)
{
	static const char *const wrong[] = {NULL, "", " 0", "-1", "+1", "x", "0x0", "0,", "0 ",
		"0,1", "4294967296", "99999999999999999999"};
	static const char *const names[] = {"/pagepool/zone", "/pagepool/pcp"};
	struct pp_zone *bare = plain_zone(PAGES, 9);

	pcp_unit_open(PAGES, (struct pcp_config){0});
	for (uint32_t k = 0; k < RTE_DIM(names); k++) {
		for (uint32_t i = 0; i < RTE_DIM(wrong); i++) {
			assert_int_equal(ask(names[k], wrong[i]), -EINVAL);
			assert_int_equal(answer.n, 0);
		}
		assert_int_equal(ask(names[k], "4294967295"), -ENOENT);
		assert_int_equal(ask_number(names[k], pp_zone_id(zone)), 0);
	}
	assert_int_equal(ask_number("/pagepool/pcp", pp_zone_id(bare)), -ENOENT);
	destroy_zone(bare);
	pcp_unit_close();
}

/* Whatever an answer has no room for: an error, and no array is left behind. */
static void
every_failing_call_is_clean(void **state __rte_unused)
{
	static const char *const names[] = {"/pagepool/zone", "/pagepool/pcp"};

	pcp_unit_open(PAGES, (struct pcp_config){0});
	pcp_cache_free(cache, pcp_cache_alloc(cache)); /* the lcore has a cache */
	for (uint32_t k = 0; k < RTE_DIM(names); k++) {
		uint32_t n = 0;
		int err;

		do {
			calls = 0;
			fail_at = ++n;
			err = ask_number(names[k], pp_zone_id(zone));
			forget(&answer);
			assert_int_equal(arrays, 0);
			assert_true(err == 0 || err == -ENOSPC || err == -ENOMEM);
			assert_int_equal(err == 0, calls < fail_at);
		} while (err != 0);
		assert_true(n > 20);
	}
	fail_at = 0;
	pcp_unit_close();
}

/* The list is as long as an answer can be. */
static void
a_full_list_is_an_answer(void **state __rte_unused)
{
	struct pp_zone *one = plain_zone(PAGES, 9), *two = plain_zone(PAGES, 9);

	calls = 0;
	fail_at = 3;
	assert_int_equal(ask("/pagepool/list", NULL), 0);
	fail_at = 0;
	assert_true(answer.n >= 1);
	destroy_zone(one);
	destroy_zone(two);
}

/* A cache that another process made, and may destroy, is not looked at. */
static void
caches_of_others_are_not_shown(void **state __rte_unused)
{
	pcp_unit_open(PAGES, (struct pcp_config){0});
	pcp_process_leaves(cache);
	assert_true(pcp_process_joins(cache, false));
	assert_int_equal(ask_number("/pagepool/pcp", pp_zone_id(zone)), -ENOENT);
	pcp_unit_close();
}

static uint32_t stop, newest, answers;

static void
ask_for_all(void *arg __rte_unused)
{
	static struct rte_tel_data data;
	char params[16];

	while (!pp_load_acquire(&stop)) {
		/* Those that were there a moment ago. */
		snprintf(params, sizeof(params), "%u", pp_load_acquire(&newest));
		if (ask_into(&data, "/pagepool/zone", params) == 0 &&
			ask_into(&data, "/pagepool/pcp", params) == 0)
			pp_fetch_add(&answers, 1);
		ask_into(&data, "/pagepool/list", NULL);
	}
	forget(&data);
}

static void
destruction_waits_for_answers(void **state __rte_unused)
{
	struct worker *telemetry = worker_start(false);

	worker_begin(telemetry, ask_for_all, NULL);
	for (uint32_t i = 0; i < 300; i++) {
		pcp_unit_open(64, (struct pcp_config){0});
		pp_store_release(&newest, pp_zone_id(zone));
		pcp_cache_free(cache, pcp_cache_alloc(cache));
		/* Answered at least once, and being asked again. */
		for (const uint32_t before = pp_load_relaxed(&answers);
			pp_load_relaxed(&answers) == before;)
			sched_yield();
		pcp_unit_close();
	}
	pp_store_release(&stop, 1);
	worker_wait(telemetry);
	worker_end(telemetry, false);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_are_registered),
		cmocka_unit_test(zones_are_listed_from_birth_to_death),
		cmocka_unit_test(a_zone_is_shown_as_its_statistics_are),
		cmocka_unit_test(a_cache_counts_as_page_pool_does),
		cmocka_unit_test(wrong_parameters_are_refused),
		cmocka_unit_test(every_failing_call_is_clean),
		cmocka_unit_test(a_full_list_is_an_answer),
		cmocka_unit_test(caches_of_others_are_not_shown),
		cmocka_unit_test(destruction_waits_for_answers),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
