/* SPDX-License-Identifier: BSD-3-Clause */
/* Arenas where there are no hugepages: plain memory, and EAL's own started with --no-huge. */

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include <pagepool.h>

#include "arena_unit.h"

static const struct pp_arena_config anon = {
	.name = "anon0",
	.backend = PP_BACKEND_ANON,
	.len = 4 * UNIT_MIB,
	.page_size = 4096,
	.node = PP_NODE_ANY,
};

static const struct pp_arena_config memzone = {
	.name = "memzone0",
	.backend = PP_BACKEND_MEMZONE,
	.len = 4 * UNIT_MIB,
	.page_size = 4096,
	.node = PP_NODE_ANY,
};

static void
assert_refused(const struct pp_arena_config *config, int err)
{
	struct unit_resources before;

	unit_resources_get(&before);
	rte_errno = 0;
	assert_null(pp_arena_create(config));
	assert_int_equal(rte_errno, err);
	unit_resources_assert(&before);
}

static void
anon_is_aligned_zeroed_and_present(void **state)
{
	static unsigned char present[2048];
	struct pp_arena_config config = anon;

	(void)state;
	config.len = 4 * UNIT_MIB - 5000; /* rounded up to whole pages */
	struct pp_arena *arena = pp_arena_create(&config);

	assert_non_null(arena);
	unsigned char *addr = pp_arena_addr(arena);
	const size_t len = pp_arena_len(arena);

	assert_int_equal(len, 4 * UNIT_MIB - 4096);
	assert_int_equal(pp_arena_page_size(arena), 4096);
	assert_int_equal(pp_arena_node(arena), PP_NODE_ANY);
	assert_int_equal((uintptr_t)addr % (2 * UNIT_MIB), 0);
	assert_int_equal(mincore(addr, len, present), 0);
	for (size_t i = 0; i < len / 4096; i++)
		assert_true(present[i] & 1);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(addr[i], 0);
	memset(addr, 0xa5, len);
	pp_arena_destroy(arena);
}

static void
destroy_gives_everything_back(void **state)
{
	const struct pp_arena_config *const configs[] = {&anon, &memzone};
	struct unit_resources before;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(configs); i++) {
		pp_arena_destroy(pp_arena_create(configs[i]));
		unit_resources_get(&before);
		for (int k = 0; k < 300; k++) { /* EAL has 128 places for memory of others */
			struct pp_arena *arena = pp_arena_create(configs[i]);

			assert_non_null(arena);
			pp_arena_destroy(arena);
		}
		unit_resources_assert(&before);
	}
	pp_arena_destroy(NULL);
}

static void
memzone_is_eals_memory(void **state)
{
	struct pp_arena *arena = pp_arena_create(&memzone);

	(void)state;
	assert_non_null(arena);
	assert_int_equal(pp_arena_len(arena), 4 * UNIT_MIB);
	assert_int_equal((uintptr_t)pp_arena_addr(arena) % (2 * UNIT_MIB), 0);

	const struct rte_memzone *mz = rte_memzone_lookup("memzone0");

	assert_non_null(mz);
	assert_ptr_equal(mz->addr, pp_arena_addr(arena));
	memset(pp_arena_addr(arena), 0xa5, pp_arena_len(arena));
	assert_refused(&memzone, EEXIST);
	pp_arena_destroy(arena);
	assert_null(rte_memzone_lookup("memzone0"));
}

static void
refuses_what_does_not_fit_together(void **state)
{
	static const struct pp_arena_config bad[] = {
		{NULL, PP_BACKEND_ANON, 4096, 4096, PP_NODE_ANY},
		{"", PP_BACKEND_ANON, 4096, 4096, PP_NODE_ANY},
		{"bad", PP_BACKEND_ANON, 0, 4096, PP_NODE_ANY},
		{"bad", PP_BACKEND_ANON, SIZE_MAX, 4096, PP_NODE_ANY},
		{"bad", PP_BACKEND_ANON, (size_t)1 << 52, 4096, PP_NODE_ANY},
		{"bad", PP_BACKEND_ANON, 4096, 0, PP_NODE_ANY},
		{"bad", PP_BACKEND_ANON, 4096, 8192, PP_NODE_ANY},
		{"bad", PP_BACKEND_ANON, 4096, 2 * UNIT_MIB, PP_NODE_ANY},
		{"bad", PP_BACKEND_ANON, 4096, 4096, -2},
		{"bad", PP_BACKEND_ANON, 4096, 4096, PP_MAX_NODES},
		{"bad", PP_BACKEND_MEMFD, 4096, 4096, PP_NODE_ANY},
		{"bad", PP_BACKEND_MEMFD, 4096, 4 * UNIT_MIB, PP_NODE_ANY},
		{"bad", PP_BACKEND_MEMZONE, 4096, 2 * UNIT_MIB, PP_NODE_ANY},
		{"bad", PP_BACKEND_MEMZONE, 4096, 1024 * UNIT_MIB, PP_NODE_ANY},
		{"bad", (enum pp_backend)3, 4096, 4096, PP_NODE_ANY},
		{"bad", (enum pp_backend)(-1), 4096, 4096, PP_NODE_ANY},
	};
	struct pp_arena_config config = anon;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(bad); i++)
		assert_refused(&bad[i], EINVAL);
	config.name = "a-name-that-is-longer-than-memzones-may-have";
	assert_refused(&config, ENAMETOOLONG);
}

static void
names_its_backends(void **state)
{
	(void)state;
	assert_string_equal(pp_backend_name(PP_BACKEND_MEMZONE), "memzone");
	assert_string_equal(pp_backend_name(PP_BACKEND_MEMFD), "memfd");
	assert_string_equal(pp_backend_name(PP_BACKEND_ANON), "anon");
	assert_string_equal(pp_backend_name((enum pp_backend)7), "unknown");
}

static void
shortage_is_an_error_with_advice(void **state)
{
	struct pp_arena_config config = anon;

	(void)state;
	unit_log_clear();
	unit_limit_address_space();
	config.len = (size_t)2 << 40;
	assert_refused(&config, ENOMEM);
	unit_assert_logged("anon0: cannot get 2199023255552 bytes of memory");
	unit_assert_logged("free -m");

	unit_log_clear();
	config = memzone;
	config.len = 4096 * UNIT_MIB;
	assert_refused(&config, ENOMEM);
	unit_assert_logged("memzone0: cannot reserve a memzone of 4294967296 bytes");
	unit_assert_logged("larger -m");
}

static void
what_would_be_sigbus_is_enomem(void **state)
{
	(void)state;
	unit_log_clear();
	unit_fail_calls("madvise", EFAULT);
	assert_refused(&anon, ENOMEM);
	unit_fail_calls(NULL, 0);
	unit_assert_logged("anon0: cannot get 4194304 bytes of memory");
}

static void
old_kernels_populate_by_touching(void **state)
{
	static unsigned char present[1024];

	(void)state;
	unit_fail_calls("madvise", EINVAL);
	struct pp_arena *arena = pp_arena_create(&anon);

	unit_fail_calls(NULL, 0);
	assert_non_null(arena);
	assert_int_equal(mincore(pp_arena_addr(arena), pp_arena_len(arena), present), 0);
	for (size_t i = 0; i < RTE_DIM(present); i++)
		assert_true(present[i] & 1);
	pp_arena_destroy(arena);
}

static void
binds_to_a_node_that_exists(void **state)
{
	struct pp_arena_config config = anon;
	unsigned long mask;
	int mode;

	(void)state;
	if (numa_available() < 0)
		unit_skip("this kernel has no NUMA");
	config.node = 0;
	struct pp_arena *arena = pp_arena_create(&config);

	assert_non_null(arena);
	assert_int_equal(pp_arena_node(arena), 0);
	assert_int_equal(
		get_mempolicy(&mode, &mask, sizeof(mask) * 8, pp_arena_addr(arena), MPOL_F_ADDR),
		0);
	assert_int_equal(mode, MPOL_BIND);
	assert_int_equal(mask, 1);
	pp_arena_destroy(arena);
	if (numa_max_node() + 1 < PP_MAX_NODES) {
		unit_log_clear();
		config.node = numa_max_node() + 1;
		assert_refused(&config, EINVAL);
		unit_assert_logged("cannot bind memory to node");
	}
	unit_fail_calls("mbind", EPERM);
	config.node = 0;
	assert_refused(&config, EPERM);
	config.node = PP_NODE_ANY; /* needs no binding */
	arena = pp_arena_create(&config);
	unit_fail_calls(NULL, 0);
	assert_non_null(arena);
	pp_arena_destroy(arena);
}

static void
memzone_on_the_wrong_node_is_refused(void **state)
{
	struct pp_arena_config config = memzone;

	(void)state;
	config.node = 7; /* without hugepages all memory of EAL counts as node 0 */
	unit_log_clear();
	assert_refused(&config, ENOMEM);
	unit_assert_logged("on node 0 only");
}

static void
pages_have_iovas(void **state)
{
	const struct pp_arena_config *const configs[] = {&anon, &memzone};

	(void)state;
	for (size_t k = 0; k < RTE_DIM(configs); k++) {
		struct pp_arena *arena = pp_arena_create(configs[k]);

		assert_non_null(arena);
		char *addr = pp_arena_addr(arena);
		const struct rte_memseg_list *list = rte_mem_virt2memseg_list(addr);

		assert_non_null(list);
		assert_int_equal(list->page_sz, 4096);
		assert_int_equal(list->external, configs[k] == &anon);
		for (size_t i = 0; i < pp_arena_len(arena); i += 4096) {
			const rte_iova_t iova = rte_mem_virt2iova(addr + i);

			assert_true(iova != RTE_BAD_IOVA);
			assert_ptr_equal(rte_mem_iova2virt(iova), addr + i);
		}
		pp_arena_destroy(arena);
	}
}

static void
mempools_lie_in_arenas(void **state)
{
	struct pp_arena *arena = pp_arena_create(&anon);
	struct rte_mempool *mp = rte_mempool_create_empty("mp", 1000, 2048, 0, 0, SOCKET_ID_ANY, 0);
	void *object;

	(void)state;
	assert_non_null(arena);
	assert_non_null(mp);
	assert_int_equal(rte_mempool_populate_virt(mp, pp_arena_addr(arena), pp_arena_len(arena),
				 pp_arena_page_size(arena), NULL, NULL),
		1000);
	assert_int_equal(rte_mempool_get(mp, &object), 0);
	assert_true((uintptr_t)object - (uintptr_t)pp_arena_addr(arena) < pp_arena_len(arena));
	assert_true(rte_mempool_virt2iova(object) != RTE_BAD_IOVA);
	rte_mempool_put(mp, object);
	rte_mempool_free(mp);
	pp_arena_destroy(arena);
}

static void
registration_that_fails_is_an_error(void **state)
{
	(void)state;
	unit_log_clear();
	unit_fail_calls("rte_mem_virt2iova", EPERM);
	assert_refused(&anon, EFAULT);
	unit_assert_logged("anon0: physical addresses cannot be read");
	unit_log_clear();
	unit_fail_calls("rte_extmem_register", ENOSPC);
	assert_refused(&anon, ENOSPC);
	unit_assert_logged("anon0: cannot register memory with EAL");
	unit_fail_calls(NULL, 0);
}

static void
memory_that_eal_keeps_stays_mapped(void **state)
{
	struct pp_arena *arena = pp_arena_create(&anon);

	(void)state;
	assert_non_null(arena);
	char *addr = pp_arena_addr(arena);
	const size_t len = pp_arena_len(arena);

	unit_log_clear();
	unit_fail_calls("rte_extmem_unregister", EBUSY);
	pp_arena_destroy(arena);
	unit_fail_calls(NULL, 0);
	unit_assert_logged("anon0: stays mapped");
	addr[len - 1] = 1;
	assert_int_equal(rte_extmem_unregister(addr, len), 0);
	munmap(addr, len);
}

static void
every_failing_allocation_is_clean(void **state)
{
	struct pp_arena_config config = anon;

	(void)state;
	/* the structure, the mapping, huge pages, populating, the table, the registration */
	assert_int_equal(arena_fail_each(&config), 6);
	config = memzone;
	assert_int_equal(arena_fail_each(&config), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(anon_is_aligned_zeroed_and_present),
		cmocka_unit_test(destroy_gives_everything_back),
		cmocka_unit_test(memzone_is_eals_memory),
		cmocka_unit_test(refuses_what_does_not_fit_together),
		cmocka_unit_test(names_its_backends),
		cmocka_unit_test(shortage_is_an_error_with_advice),
		cmocka_unit_test(what_would_be_sigbus_is_enomem),
		cmocka_unit_test(old_kernels_populate_by_touching),
		cmocka_unit_test(binds_to_a_node_that_exists),
		cmocka_unit_test(memzone_on_the_wrong_node_is_refused),
		cmocka_unit_test(pages_have_iovas),
		cmocka_unit_test(mempools_lie_in_arenas),
		cmocka_unit_test(registration_that_fails_is_an_error),
		cmocka_unit_test(memory_that_eal_keeps_stays_mapped),
		cmocka_unit_test(every_failing_allocation_is_clean),
	};

	unit_eal_init(64);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
