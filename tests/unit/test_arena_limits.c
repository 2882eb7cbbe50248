/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas where the machine has less than most: no NUMA, odd files in /sys, pages of the wrong size.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "../../lib/pagepool/arena_internal.h"
#include "arena_unit.h"

static bool no_numa;
static const char *sys_text; /* what every file has in it; NULL: what it has */

int __wrap_numa_available(void);
int __real_numa_available(void);
FILE *__wrap_fopen64(const char *path, const char *mode);
FILE *__real_fopen64(const char *path, const char *mode);

int
__wrap_numa_available(void)
{
	return no_numa ? -1 : __real_numa_available();
}

FILE *
__wrap_fopen64(const char *path, const char *mode)
{
	static char text[64];

	if (sys_text == NULL)
		return __real_fopen64(path, mode);
	assert_non_null(strstr(path, "hugepages"));
	snprintf(text, sizeof(text), "%s", sys_text);
	return fmemopen(text, strlen(text), "r");
}

static void
node_0_needs_no_numa(void **state __rte_unused)
{
	struct pp_arena_config config = {
		.name = "arena",
		.backend = PP_BACKEND_ANON,
		.len = 2 * UNIT_MIB,
		.page_size = PP_PAGE_SIZE,
	};

	no_numa = true;
	unit_fail_calls("mbind", ENOSYS);

	struct pp_arena *arena = pp_arena_create(&config);

	assert_non_null(arena);
	assert_int_equal(pp_arena_node(arena), 0);
	pp_arena_destroy(arena);
	config.node = 1;
	unit_log_clear();
	assert_null(pp_arena_create(&config));
	assert_int_equal(rte_errno, ENOSYS);
	unit_assert_logged("cannot bind memory to node 1");
	unit_fail_calls(NULL, 0);
	no_numa = false;
}

static void
shortages_are_told_by_size_and_node(void **state __rte_unused)
{
	struct pp_arena arena = {.name = "arena", .page_size = PP_SIZE_1G, .node = PP_NODE_ANY};

	unit_log_clear();
	sys_text = "nothing that is a number";
	arena_log_shortage(&arena, 3);
	unit_assert_logged("needs 3 hugepages of 1048576 kB, 0 are free: write 3 or more to "
			   "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages");

	/* as many reserved as are free */
	sys_text = "7\n";
	arena.node = 1;
	arena.page_size = PP_SIZE_2M;
	arena_log_shortage(&arena, 3);
	unit_assert_logged(
		"needs 3 hugepages of 2048 kB, 0 are free: write 10 or more to "
		"/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages");
	sys_text = NULL;

	arena.node = PP_NODE_ANY;
	arena_log_shortage(&arena, 0);
	unit_assert_logged("cannot get 0 hugepages of 2048 kB");
	unit_assert_logged("(hugetlb.2MB.max)");
	arena.page_size = PP_SIZE_1G;
	arena_log_shortage(&arena, 0);
	unit_assert_logged("(hugetlb.1GB.max)");
}

/* EAL's memory comes in the pages that EAL runs on; each refusal says why. */
static void
memzones_have_eals_page_sizes(void **state __rte_unused)
{
	const struct pp_arena_config config = {
		.name = "arena",
		.backend = PP_BACKEND_MEMZONE,
		.len = UNIT_MIB,
		.page_size = rte_eal_has_hugepages() ? PP_SIZE_4K : PP_SIZE_2M,
		.node = PP_NODE_ANY,
	};

	unit_log_clear();
	assert_null(pp_arena_create(&config));
	assert_int_equal(rte_errno, EINVAL);
	unit_assert_logged("in memzone memory");
	assert_int_equal(
		strstr(unit_log(), "EAL runs without hugepages") == NULL, rte_eal_has_hugepages());
}

static void
memzones_are_had_on_nodes_that_are_there(void **state __rte_unused)
{
	struct pp_arena_config config = {
		.name = "arena",
		.backend = PP_BACKEND_MEMZONE,
		.len = UNIT_MIB,
		.page_size = rte_eal_has_hugepages() ? PP_SIZE_2M : PP_SIZE_4K,
	};
	struct pp_arena *arena = pp_arena_create(&config);

	assert_non_null(arena);
	assert_int_equal(pp_arena_node(arena), 0);
	pp_arena_destroy(arena);
	config.node = PP_MAX_NODES - 1;
	assert_null(pp_arena_create(&config));
}

static void
memzones_of_1_gib_pages(void **state __rte_unused)
{
	const struct pp_arena_config config = {
		.name = "arena",
		.backend = PP_BACKEND_MEMZONE,
		.len = PP_SIZE_1G,
		.page_size = PP_SIZE_1G,
		.node = PP_NODE_ANY,
	};

	if (!rte_eal_has_hugepages())
		unit_skip("EAL runs without hugepages");
	unit_log_clear();

	struct pp_arena *arena = pp_arena_create(&config);

	if (arena == NULL)
		unit_assert_logged("hugepages of 1048576 kB");
	else
		assert_int_equal((uintptr_t)pp_arena_addr(arena) % PP_SIZE_1G, 0);
	pp_arena_destroy(arena);
}

static void
memfd_fails_cleanly_on_old_kernels_too(void **state __rte_unused)
{
	const struct pp_arena_config config = {
		.name = "arena",
		.backend = PP_BACKEND_MEMFD,
		.len = 16 * UNIT_MIB,
		.page_size = PP_SIZE_2M,
		.node = PP_NODE_ANY,
	};

	if (!rte_eal_has_hugepages())
		unit_skip("there are no hugepages");
	/* What is no shortage is told as what it is. */
	unit_fail_calls("ftruncate64", EIO);
	unit_log_clear();
	assert_null(pp_arena_create(&config));
	assert_int_equal(rte_errno, EIO);
	unit_assert_logged("cannot map 16777216 bytes of hugepages: Input/output error");

	unit_fail_calls("madvise", EINVAL); /* then pages come by fallocate */
	assert_true(arena_fail_each(&config) > 4);
	unit_fail_calls(NULL, 0);
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_0_needs_no_numa),
		cmocka_unit_test(shortages_are_told_by_size_and_node),
		cmocka_unit_test(memzones_have_eals_page_sizes),
		cmocka_unit_test(memzones_are_had_on_nodes_that_are_there),
		cmocka_unit_test(memzones_of_1_gib_pages),
		cmocka_unit_test(memfd_fails_cleanly_on_old_kernels_too),
	};

	if (argc > 1 && strcmp(argv[1], "va") == 0) {
		if (!unit_eal_init_huge(64, "va"))
			return 77;
	} else {
		unit_eal_init(64);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
