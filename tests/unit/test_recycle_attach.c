/* SPDX-License-Identifier: BSD-3-Clause */
/* Which pools become ones whose pages can be recycled, and what that takes. */

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include <rte_errno.h>

#include <pp_recycle.h>

#include "../../drivers/mempool/pagepool/mempool_internal.h"
#include "mempool_unit.h"

#define OBJECTS 64u
#define SIZE    128

/* ---- a kernel without membarriers ---- */

static bool refuse_membarrier;
static unsigned int membarriers; /* asked for */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long
__wrap_syscall(long number, ...)
{
	unsigned long arg[6];
	va_list ap;

	va_start(ap, number);
	for (size_t i = 0; i < RTE_DIM(arg); i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (number == SYS_membarrier) {
		membarriers++;
		if (refuse_membarrier) {
			errno = ENOSYS;
			return -1;
		}
	}
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

/* ---- refused ---- */

static struct pp_recycler *const untouched = (struct pp_recycler *)&membarriers;

static void
assert_refused(struct rte_mempool *mp, const char *why)
{
	struct pp_recycler *recycler = untouched;
	char line[256];

	snprintf(line, sizeof(line), "mempool pagepool: mp: its pages cannot be recycled: %s\n",
		why);
	unit_log_clear();
	assert_int_equal(pp_recycle_attach(mp, &recycler), -ENOTSUP);
	assert_string_equal(unit_log(), line);
	assert_ptr_equal(recycler, untouched);
}

static void
on_other_ops(void **state __rte_unused)
{
	struct rte_mempool *mp =
		rte_mempool_create_empty("mp", OBJECTS, SIZE, 0, 0, SOCKET_ID_ANY, 0);

	assert_non_null(mp);
	assert_int_equal(rte_mempool_set_ops_byname(mp, "ring_mp_mc", NULL), 0);
	assert_int_equal(rte_mempool_populate_default(mp), OBJECTS);
	assert_refused(mp, "its ops are not pagepool");
	rte_mempool_free(mp);
}

static void
assert_refused_and_whole(
	unsigned int cache_size, unsigned int flags, uint64_t layout, const char *why)
{
	struct rte_mempool *mp = mempool_empty(OBJECTS, SIZE, cache_size, flags);

	assert_int_equal(rte_mempool_populate_default(mp), OBJECTS);
	struct pp_mempool *pool = mp->pool_data;

	pool->layout ^= layout;
	assert_refused(mp, why);
	assert_int_equal(pool->layout, PP_MEMPOOL_LAYOUT ^ layout);
	pool->layout ^= layout;
	assert_null(pool->recycler);
	exercise(mp, OBJECTS);
	rte_mempool_free(mp);
}

static void
below_a_mempool_cache(void **state __rte_unused)
{
	assert_refused_and_whole(8, 0, 0,
		"its mempool cache would hide what is returned; create it with cache size 0");
}

static void
without_room_for_marks(void **state __rte_unused)
{
	assert_refused_and_whole(
		0, RTE_MEMPOOL_F_NO_CACHE_ALIGN, 0, "its objects are not aligned to cache lines");
}

static void
before_it_is_populated(void **state __rte_unused)
{
	struct rte_mempool *mp = mempool_empty(OBJECTS, SIZE, 0, 0);
	struct pp_recycler *recycler;

	assert_refused(mp, "it is not fully populated");
	assert_int_equal(rte_mempool_populate_default(mp), OBJECTS);
	assert_int_equal(pp_recycle_attach(mp, &recycler), 0);
	assert_at_home(mp, OBJECTS);
	rte_mempool_free(mp);
}

static void
of_another_build(void **state __rte_unused)
{
	assert_refused_and_whole(0, 0, 1, "it was made by another driver or build");
}

/* ---- attached ---- */

static struct rte_mempool *
populated(void)
{
	struct rte_mempool *mp = mempool_empty(OBJECTS, SIZE, 0, 0);

	assert_int_equal(rte_mempool_populate_default(mp), OBJECTS);
	return mp;
}

static void
again_it_is_the_same(void **state __rte_unused)
{
	struct rte_mempool *mp = populated();
	struct pp_recycler *first, *second = NULL;

	assert_int_equal(pp_recycle_attach(mp, &first), 0);
	assert_non_null(first);
	assert_int_equal(pp_recycle_attach(mp, &second), 0);
	assert_ptr_equal(first, second);
	exercise(mp, OBJECTS);
	rte_mempool_free(mp);
}

static void
scribble(struct rte_mempool *mp __rte_unused, void *arg __rte_unused, void *obj,
	unsigned int i __rte_unused)
{
	memset(pp_page_mark(obj), 0xff, sizeof(struct pp_page_mark));
}

/* Nobody looks at what lies there before, and all is clear after. */
static void
no_object_has_a_mark(void **state __rte_unused)
{
	struct rte_mempool *mp = populated();
	struct pp_recycler *recycler;

	assert_int_equal(rte_mempool_obj_iter(mp, scribble, NULL), OBJECTS);
	exercise(mp, OBJECTS);
	assert_int_equal(pp_recycle_attach(mp, &recycler), 0);
	assert_int_equal(rte_mempool_obj_iter(mp, assert_unmarked, NULL), OBJECTS);
	exercise(mp, OBJECTS);
	rte_mempool_free(mp);
}

static void
without_memory_it_stays_as_it_was(void **state __rte_unused)
{
	struct rte_mempool *mp = populated();
	struct pp_mempool *pool = mp->pool_data;
	struct pp_recycler *recycler = NULL;
	struct unit_resources before;

	unit_resources_get(&before);
	unit_fail_at(1);
	assert_int_equal(pp_recycle_attach(mp, &recycler), -ENOMEM);
	assert_true(unit_fail_reached());
	assert_null(recycler);
	assert_null(pool->recycler);
	assert_int_equal(pool->layout, PP_MEMPOOL_LAYOUT);
	unit_resources_assert(&before);
	exercise(mp, OBJECTS);

	/* one allocation is all it takes */
	unit_fail_at(2);
	assert_int_equal(pp_recycle_attach(mp, &recycler), 0);
	assert_false(unit_fail_reached());
	exercise(mp, OBJECTS);
	rte_mempool_free(mp);
}

/* Each allocation of a queue, in turn; then it has the number that it would have had. */
static void
queues_without_memory(void **state __rte_unused)
{
	struct rte_mempool *mp = populated();
	struct unit_resources before;
	struct pp_recycler *recycler;

	assert_int_equal(pp_recycle_attach(mp, &recycler), 0);
	unit_resources_get(&before);
	for (unsigned int k = 1; k <= 2; k++) {
		unit_fail_at(k);
		assert_null(pp_recycle_queue_get(recycler, SOCKET_ID_ANY));
		assert_true(unit_fail_reached());
		unit_resources_assert(&before);
	}
	unit_fail_at(3);
	struct pp_recycle_queue *queue = pp_recycle_queue_get(recycler, SOCKET_ID_ANY);

	assert_false(unit_fail_reached());
	assert_non_null(queue);
	assert_int_equal(queue->index, 1);
	pp_recycle_queue_put(recycler, queue);
	assert_at_home(mp, OBJECTS);
	rte_mempool_free(mp);
}

/* Who waits asks the kernel for a barrier on the others' behalf; without, they have their own. */
static void
without_membarriers_threads_fence(void **state __rte_unused)
{
	for (int refused = 0; refused < 2; refused++) {
		struct rte_mempool *mp = populated();
		struct pp_recycler *recycler;

		refuse_membarrier = refused != 0;
		membarriers = 0;
		assert_int_equal(pp_recycle_attach(mp, &recycler), 0);
		assert_int_equal(membarriers, 1);
		refuse_membarrier = false;
		pp_recycle_quiesce(recycler);
		assert_int_equal(membarriers, refused ? 1 : 2);
		exercise(mp, OBJECTS);
		rte_mempool_free(mp);
	}
}

/* What was there before is there after: queues of all kinds go with the pool. */
static void
nothing_is_left(void **state __rte_unused)
{
	struct unit_resources before;

	for (unsigned int round = 0; round < 2; round++) {
		struct rte_mempool *mp = populated();
		struct pp_recycler *recycler;

		assert_int_equal(pp_recycle_attach(mp, &recycler), 0);
		for (unsigned int i = 0; i < 3; i++) {
			struct pp_recycle_queue *queue =
				pp_recycle_queue_get(recycler, SOCKET_ID_ANY);

			assert_non_null(queue);
			if (i == 1)
				pp_recycle_queue_put(recycler, queue);
		}
		rte_mempool_free(mp);
		/* the first may leave something for good */
		if (round == 0)
			unit_resources_get(&before);
		else
			assert_nothing_left(&before);
	}
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_other_ops),
		cmocka_unit_test(below_a_mempool_cache),
		cmocka_unit_test(without_room_for_marks),
		cmocka_unit_test(before_it_is_populated),
		cmocka_unit_test(of_another_build),
		cmocka_unit_test(again_it_is_the_same),
		cmocka_unit_test(no_object_has_a_mark),
		cmocka_unit_test(without_memory_it_stays_as_it_was),
		cmocka_unit_test(queues_without_memory),
		cmocka_unit_test(without_membarriers_threads_fence),
		cmocka_unit_test(nothing_is_left),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
