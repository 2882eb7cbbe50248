/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas of hugepages, in one IOVA mode (the argument: va or pa), and shortages of them. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include <pagepool.h>

#include "arena_unit.h"

#define PAGES     8 /* of the arenas below */
#define KIB_2M    2048
#define KIB_1G    (1024 * 1024)
#define SIZE_2M   (2 * UNIT_MIB)
#define SIZE_1G   (1024 * UNIT_MIB)
#define HEADER_MZ 1 /* pages that EAL takes beside a memzone's own */

static const struct pp_arena_config memfd = {
	.name = "memfd0",
	.backend = PP_BACKEND_MEMFD,
	.len = PAGES * SIZE_2M,
	.page_size = SIZE_2M,
	.node = PP_NODE_ANY,
};

static const struct pp_arena_config memzone = {
	.name = "memzone0",
	.backend = PP_BACKEND_MEMZONE,
	.len = PAGES * SIZE_2M,
	.page_size = SIZE_2M,
	.node = PP_NODE_ANY,
};

static void
need_pages(size_t kib, size_t n)
{
	if (unit_hugepages_available(kib) < n && !unit_hugepages_add(kib, n))
		unit_skip("%zu hugepages of %zu kB are not to be had here", n, kib);
}

static size_t
kernel_page_kib(const void *addr)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	size_t kib = 0;
	bool here = false;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		uintptr_t from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)addr >= from && (uintptr_t)addr < to;
		else if (here && sscanf(line, "KernelPageSize: %zu", &kib) == 1)
			break;
	}
	fclose(f);
	return kib;
}

static void
assert_arena_is_good(const struct pp_arena *arena, const struct pp_arena_config *config)
{
	char *addr = pp_arena_addr(arena);
	const struct rte_memseg_list *list = rte_mem_virt2memseg_list(addr);

	assert_int_equal(pp_arena_len(arena), config->len);
	assert_int_equal(pp_arena_page_size(arena), config->page_size);
	assert_int_equal((uintptr_t)addr % config->page_size, 0);
	assert_int_equal(kernel_page_kib(addr), config->page_size >> 10);
	assert_non_null(list);
	assert_int_equal(list->page_sz, config->page_size);
	for (size_t i = 0; i < config->len; i += config->page_size / 4) {
		const rte_iova_t iova = rte_mem_virt2iova(addr + i);
		const rte_iova_t expected = rte_eal_iova_mode() == RTE_IOVA_VA
						    ? (uintptr_t)addr + i
						    : rte_mem_virt2phy(addr + i);

		assert_true(iova == expected);
		assert_true(iova != RTE_BAD_IOVA);
		assert_ptr_equal(rte_mem_iova2virt(iova), addr + i);
		addr[i] = 1;
	}
}

static void
pages_are_huge_and_have_iovas(void **state)
{
	const struct pp_arena_config *const configs[] = {&memfd, &memzone};

	(void)state;
	need_pages(KIB_2M, PAGES + HEADER_MZ);
	for (size_t k = 0; k < RTE_DIM(configs); k++) {
		struct pp_arena *arena = pp_arena_create(configs[k]);

		assert_non_null(arena);
		assert_arena_is_good(arena, configs[k]);
		pp_arena_destroy(arena);
	}
}

static void
mempools_lie_in_arenas(void **state)
{
	(void)state;
	need_pages(KIB_2M, PAGES);
	struct pp_arena *arena = pp_arena_create(&memfd);
	struct rte_mempool *mp = rte_mempool_create_empty("mp", 4000, 2048, 0, 0, SOCKET_ID_ANY, 0);

	assert_non_null(arena);
	assert_non_null(mp);
	assert_int_equal(rte_mempool_populate_virt(mp, pp_arena_addr(arena), pp_arena_len(arena),
				 pp_arena_page_size(arena), NULL, NULL),
		4000);
	for (int i = 0; i < 4000; i++) {
		void *object;

		assert_int_equal(rte_mempool_get(mp, &object), 0);
		assert_true(rte_mempool_virt2iova(object) == rte_mem_virt2iova(object));
	}
	rte_mempool_free(mp);
	pp_arena_destroy(arena);
}

static void
plain_memory_warns_where_addresses_are_physical(void **state)
{
	const struct pp_arena_config config = {
		.name = "anon0",
		.backend = PP_BACKEND_ANON,
		.len = SIZE_2M,
		.page_size = 4096,
		.node = PP_NODE_ANY,
	};

	(void)state;
	unit_log_clear();
	struct pp_arena *arena = pp_arena_create(&config);

	assert_non_null(arena);
	assert_true(rte_mem_virt2iova(pp_arena_addr(arena)) != RTE_BAD_IOVA);
	assert_int_equal(strstr(unit_log(), "may move plain memory") != NULL,
		rte_eal_iova_mode() == RTE_IOVA_PA);
	pp_arena_destroy(arena);
}

static void
every_failing_allocation_is_clean(void **state)
{
	struct pp_arena_config config = memfd;

	(void)state;
	need_pages(KIB_2M, PAGES + HEADER_MZ);
	/* structure, file, its length, mapping, binding, populating, table, registration */
	config.node = 0;
	assert_int_equal(arena_fail_each(&config), 8);
	config = memzone;
	assert_int_equal(arena_fail_each(&config), 2);
}

/* Reserve what is there but `leave`. False when others take and give at the same time. */
static bool
hog(size_t leave, void **addr, size_t *len)
{
	const size_t available = unit_hugepages_available(KIB_2M);

	*len = 0;
	if (available <= leave)
		return available == leave;
	*len = (available - leave) * SIZE_2M;
	*addr = mmap(
		NULL, *len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << 26, -1, 0);
	if (*addr == MAP_FAILED) {
		*len = 0;
		return false;
	}
	return unit_hugepages_available(KIB_2M) == leave;
}

enum answer {
	GOOD,
	BAD,
	DISTURBED /* other programs took or gave pages */
};

/* Ask for an arena that needs `needs` pages while `pages` are available. */
static enum answer
ask(const struct pp_arena_config *config, size_t needs, size_t pages)
{
	struct unit_resources before;
	enum answer answer = DISTURBED;
	void *addr = NULL;
	char line[128];
	size_t len;

	if (hog(pages, &addr, &len)) {
		unit_resources_get(&before);
		unit_log_clear();
		rte_errno = 0;

		struct pp_arena *arena = pp_arena_create(config);
		const int err = rte_errno;

		snprintf(line, sizeof(line),
			"%s: needs %zu hugepages of 2048 kB, %zu are free: write ", config->name,
			needs, pages);
		if (arena != NULL) {
			memset(pp_arena_addr(arena), 1, pp_arena_len(arena));
			answer = pages >= needs ? GOOD : BAD;
		} else {
			answer = pages < needs && err == ENOMEM &&
						 strstr(unit_log(), line) != NULL &&
						 strstr(unit_log(),
							 "or more to /sys/kernel/mm/hugepages/"
							 "hugepages-2048kB/nr_hugepages") != NULL
					 ? GOOD
					 : BAD;
		}
		pp_arena_destroy(arena);
		unit_resources_assert(&before);
		if (unit_hugepages_available(KIB_2M) != pages)
			answer = DISTURBED; /* or leaked: then every time */
	}
	if (len > 0)
		munmap(addr, len);
	return answer;
}

static void
any_number_of_pages_gives_a_clean_answer(void **state)
{
	static const struct {
		const struct pp_arena_config *config;
		size_t needs;
	} cases[] = {{&memfd, PAGES}, {&memzone, PAGES + HEADER_MZ}};

	(void)state;
	need_pages(KIB_2M, PAGES + 2);
	for (size_t k = 0; k < RTE_DIM(cases); k++) {
		for (size_t pages = 0; pages <= PAGES + 2; pages++) {
			enum answer answer = DISTURBED;

			/* the pages are the whole system's: what others do must not matter */
			for (int i = 0; i < 100 && answer != GOOD; i++) {
				if (i > 0)
					usleep(10000);
				answer = ask(cases[k].config, cases[k].needs, pages);
			}
			assert_int_equal(answer, GOOD);
		}
	}
}

/* A cgroup's limit, or a node without pages, shows when pages are populated. */
static void
what_would_be_sigbus_is_enomem(void **state)
{
	struct unit_resources before;

	(void)state;
	need_pages(KIB_2M, PAGES);
	unit_resources_get(&before);
	unit_log_clear();
	unit_fail_calls("madvise", EFAULT);
	assert_null(pp_arena_create(&memfd));
	unit_fail_calls(NULL, 0);
	assert_int_equal(rte_errno, ENOMEM);
	unit_assert_logged("hugetlb.2MB.max");
	unit_resources_assert(&before);
}

static void
old_kernels_populate_by_fallocate(void **state)
{
	struct unit_resources before, with;

	(void)state;
	need_pages(KIB_2M, PAGES);
	unit_resources_get(&before);
	unit_fail_calls("madvise", EINVAL);
	struct pp_arena *arena = pp_arena_create(&memfd);

	unit_fail_calls(NULL, 0);
	assert_non_null(arena);
	unit_resources_get(&with);
	assert_int_equal(with.hugetlb_kib - before.hugetlb_kib, PAGES * KIB_2M);
	assert_arena_is_good(arena, &memfd);
	pp_arena_destroy(arena);
	unit_resources_assert(&before);
}

static void
a_page_size_that_the_kernel_lacks_is_an_error(void **state)
{
	struct unit_resources before;

	(void)state;
	unit_resources_get(&before);
	unit_log_clear();
	unit_fail_calls("memfd_create", ENODEV);
	assert_null(pp_arena_create(&memfd));
	unit_fail_calls(NULL, 0);
	assert_int_equal(rte_errno, ENODEV);
	unit_assert_logged("memfd0: the kernel has no hugepages of 2048 kB");
	unit_resources_assert(&before);
}

static void
one_gib_pages(void **state)
{
	struct pp_arena_config config = memfd;

	(void)state;
	config.name = "gib";
	config.len = SIZE_1G;
	config.page_size = SIZE_1G;
	if (unit_hugepages_available(KIB_1G) < 1) {
		unit_log_clear();
		assert_null(pp_arena_create(&config));
		assert_true(rte_errno == ENOMEM || rte_errno == ENODEV);
		unit_assert_logged(rte_errno == ENODEV ? "no hugepages of 1048576 kB"
						       : "gib: needs 1 hugepages of 1048576 kB");
	}
	need_pages(KIB_1G, 1);
	struct pp_arena *arena = pp_arena_create(&config);

	assert_non_null(arena);
	assert_arena_is_good(arena, &config);
	pp_arena_destroy(arena);
	unit_hugepages_restore();
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_huge_and_have_iovas),
		cmocka_unit_test(mempools_lie_in_arenas),
		cmocka_unit_test(plain_memory_warns_where_addresses_are_physical),
		cmocka_unit_test(every_failing_allocation_is_clean),
		cmocka_unit_test(any_number_of_pages_gives_a_clean_answer),
		cmocka_unit_test(what_would_be_sigbus_is_enomem),
		cmocka_unit_test(old_kernels_populate_by_fallocate),
		cmocka_unit_test(a_page_size_that_the_kernel_lacks_is_an_error),
		cmocka_unit_test(one_gib_pages),
	};

	if (!unit_eal_init_huge(16, argc > 1 ? argv[1] : "va"))
		return 77; /* skipped, to meson */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
