/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "subject.h"

#define SINGLE_LCORE_TESTS (TEST_PAGES | TEST_KMALLOC | TEST_LATENCY)
#define ALLOCATOR_TESTS    (SINGLE_LCORE_TESTS | TEST_PIPELINE | TEST_CONTEND)
#define ANY_ORDER          UINT32_MAX

/* An operation on a page cache. */
#define PCP_OPERATION(id, name_, mode_)                                                            \
	{                                                                                          \
		.name = name_, .title = name_, .mode = mode_, .tests = TEST_TIME,                  \
		.backend = &pagepool_backend, .calls = &operation_calls[id], .n_calls = 1          \
	}

#define PAGEPOOL_CHECKED(id, name_, checks_, calls_, n_, ...)                                      \
	{                                                                                          \
		.name = "pagepool", .title = name_, .mode = id, .checks = checks_,                 \
		.max_order = PCP_MAX_ORDER, .tests = TEST_TIME | ALLOCATOR_TESTS,                  \
		.min_size = PP_PAGE_SIZE, .backend = &pagepool_backend, .calls = calls_,           \
		.n_calls = n_, __VA_ARGS__                                                         \
	}

#define PAGEPOOL(id, name_, calls_, n_, ...)                                                       \
	PAGEPOOL_CHECKED(id, name_, PCP_CHECKS_OFF, calls_, n_, __VA_ARGS__),                      \
		PAGEPOOL_CHECKED(                                                                  \
			id, name_ "/deferred", PCP_CHECKS_DEFERRED, calls_, n_, __VA_ARGS__),      \
		PAGEPOOL_CHECKED(id, name_ "/full", PCP_CHECKS_FULL, calls_, n_, __VA_ARGS__)

/* Pages as a user touches them, with and without their addresses staggered. */
#define PAGEPOOL_TOUCH(name_, coloured_)                                                           \
	{                                                                                          \
		.name = "pagepool/" name_, .title = name_, .mode = PCP_MODE_BH,                    \
		.tests = TEST_TOUCH, .backend = &pagepool_backend, .calls = pagepool_calls,        \
		.n_calls = 1, .coloured = coloured_                                                \
	}

#define MEMPOOL(name_, ops_, cache, more)                                                          \
	{                                                                                          \
		.name = "rte_mempool/" name_ "/" #cache, .title = name_ "/" #cache, .mode = -1,    \
		.tests = ALLOCATOR_TESTS | (more), .max_size = 64, .backend = &mempool_backend,    \
		.n_calls = MEMPOOL_CALLS, .ops = ops_, .cache_size = cache, .calls = mempool_calls \
	}

#define MALLOC(name_, library_, package_)                                                          \
	{                                                                                          \
		.name = name_, .title = name_, .mode = -1, .tests = ALLOCATOR_TESTS | TEST_TOUCH,  \
		.max_order = ANY_ORDER, .backend = &heap_backend, .calls = malloc_calls,           \
		.n_calls = 1, .library = library_, .package = package_                             \
	}

#define OPERATION(id, name_)                                                                       \
	{                                                                                          \
		.name = name_, .title = name_, .mode = -1, .tests = TEST_TIME,                     \
		.backend = &heap_backend, .calls = &operation_calls[id], .n_calls = 1              \
	}

const struct subject subjects[] = {
	OPERATION(OPERATION_LOOP, "for_loop"),
	OPERATION(OPERATION_SPINLOCK, "spin_lock_unlock"),
	PCP_OPERATION(OPERATION_SPINLOCK_IRQ, "spin_lock_unlock_irqsave", PCP_MODE_IRQ),
	OPERATION(OPERATION_PP_LOCK, "pp_lock_unlock"),
	PCP_OPERATION(OPERATION_BH, "local_BH_disable_enable", PCP_MODE_BH),
	PCP_OPERATION(OPERATION_IRQ, "local_irq_save_restore", PCP_MODE_IRQ),
	OPERATION(OPERATION_SIGMASK, "sigmask_save_restore"),
	OPERATION(OPERATION_RSEQ, "rseq_section"),
	OPERATION(OPERATION_CALL, "function_call_cost"),
	OPERATION(OPERATION_POINTER, "func_ptr_call_cost"),
	{
		.name = "empty",
		.title = "empty",
		.mode = -1,
		.tests = TEST_PIPELINE,
		.max_order = ANY_ORDER,
		.backend = &array_backend,
		.calls = empty_calls,
		.n_calls = EMPTY_CALLS,
	},
	{
		.name = "floor",
		.title = "floor",
		.mode = -1,
		.tests = SINGLE_LCORE_TESTS | TEST_CONTEND | TEST_TOUCH,
		.max_order = ANY_ORDER,
		.backend = &array_backend,
		.calls = floor_calls,
		.n_calls = FLOOR_CALLS,
	},
	{
		.name = "delay",
		.title = "delay",
		.mode = -1,
		.tests = SINGLE_LCORE_TESTS | TEST_CONTEND,
		.max_order = ANY_ORDER,
		.backend = &array_backend,
		.calls = delay_calls,
		.n_calls = 1,
		.on_demand = true,
	},
	PAGEPOOL(PCP_MODE_BH, "bh", pagepool_calls, PAGEPOOL_CALLS),
	PAGEPOOL(PCP_MODE_SPIN, "spin", pagepool_calls, PAGEPOOL_CALLS),
	PAGEPOOL(PCP_MODE_BYPASS, "bypass", pagepool_calls, PAGEPOOL_CALLS),
	PAGEPOOL(PCP_MODE_IRQ, "irq", pagepool_irq_calls, PAGEPOOL_CALLS),
	PAGEPOOL(PCP_MODE_PREEMPT, "preempt", pagepool_cpu_calls, PAGEPOOL_CPU_CALLS),
	PAGEPOOL(PCP_MODE_NONE, "none", pagepool_calls, PAGEPOOL_CALLS, .one_lcore = true),
	PAGEPOOL_TOUCH("plain", false),
	PAGEPOOL_TOUCH("coloured", true),
	{
		.name = "zone",
		.title = "zone",
		.mode = -1,
		.tests = ALLOCATOR_TESTS,
		.max_order = 9,
		.min_size = PP_PAGE_SIZE,
		.backend = &zone_backend,
		.calls = zone_calls,
		.n_calls = ZONE_CALLS,
	},
	MEMPOOL("ring", "ring_mp_mc", 0, 0),
	MEMPOOL("ring", "ring_mp_mc", 512, TEST_TOUCH),
	MEMPOOL("stack", "stack", 0, 0),
	MEMPOOL("stack", "stack", 512, 0),
	MEMPOOL("lf_stack", "lf_stack", 0, 0),
	MEMPOOL("lf_stack", "lf_stack", 512, 0),
	{
		.name = "rte_mempool_stv",
		.title = "ring/512/stv",
		.mode = -1,
		.tests = ALLOCATOR_TESTS,
		.max_size = 64,
		.backend = &mempool_backend,
		.calls = mempool_stv_calls,
		.n_calls = MEMPOOL_CALLS,
		.ops = "ring_mp_mc",
		.cache_size = 512,
		.on_demand = true,
	},
	{
		.name = "rte_malloc",
		.title = "rte_malloc",
		.mode = -1,
		.tests = ALLOCATOR_TESTS | TEST_TOUCH,
		.max_order = ANY_ORDER,
		.backend = &heap_backend,
		.calls = rte_malloc_calls,
		.n_calls = 1,
	},
	MALLOC("glibc", "", NULL),
	MALLOC("jemalloc", "libjemalloc.so.2", "libjemalloc2"),
	MALLOC("tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
	MALLOC("mimalloc", "libmimalloc.so.2", "libmimalloc2.0"),
};

const uint32_t n_subjects = RTE_DIM(subjects);

const char *
subject_name(const struct subject *subject, char name[64])
{
	const bool has_mode = strcmp(subject->name, "pagepool") == 0;
	const bool has_checks = subject->checks != PCP_CHECKS_OFF;

	snprintf(name, 64, "%s%s%s%s%s", subject->name, has_mode ? "/" : "",
		has_mode ? pcp_mode_name(subject->mode) : "", has_checks ? "/" : "",
		has_checks ? pcp_checks_name(subject->checks) : "");
	return name;
}

bool
subject_matches(const struct subject *subject, const char *word)
{
	const size_t len = strlen(word);
	char name[64];

	subject_name(subject, name);
	return strncmp(name, word, len) == 0 && (name[len] == '\0' || name[len] == '/');
}

uint32_t
subject_find(const char *name)
{
	uint32_t i = 0;
	char other[64];

	while (strcmp(subject_name(&subjects[i], other), name) != 0)
		i++;
	return i;
}
