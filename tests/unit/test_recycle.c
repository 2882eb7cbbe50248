/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits until nobody is in the middle of a free waits for the living, and not for the dead.
 *
 * EAL's memory without hugepages is a shared memfd, so a forked child works on the same pool. It
 * comes to its end, or to a halt, in enqueue, by objects whose addresses lie where it must not
 * read.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pp_recycle.h>

#include "mempool_unit.h"
#include "worker.h"

#define OBJECTS  64u
#define LCORE    5  /* the children's */
#define CHILDREN 20 /* more than there is room for at once */

static struct rte_mempool *mp;
static struct pp_recycler *recycler;

static int
setup(void **state __rte_unused)
{
	mp = mempool_empty(OBJECTS, 128, 0, 0);
	assert_int_equal(rte_mempool_populate_default(mp), OBJECTS);
	assert_int_equal(pp_recycle_attach(mp, &recycler), 0);
	return 0;
}

static int
teardown(void **state __rte_unused)
{
	assert_at_home(mp, OBJECTS);
	rte_mempool_free(mp);
	return 0;
}

static void
halt(int signo __rte_unused)
{
	raise(SIGSTOP);
}

/* A child that dies in enqueue or, with a handler, stops there. */
static pid_t
child_in_enqueue(unsigned int lcore, void (*handler)(int signo))
{
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		void **objects = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		RTE_PER_LCORE(_lcore_id) = lcore;
		signal(SIGSEGV, handler);
		rte_mempool_put_bulk(mp, objects, 1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(handler == SIG_DFL ? WIFSIGNALED(status) : WIFSTOPPED(status));
	return child;
}

static void
kill_child(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void
the_dead_are_not_waited_for(void **state __rte_unused)
{
	for (unsigned int i = 0; i < CHILDREN; i++) {
		child_in_enqueue(LCORE_ID_ANY, SIG_DFL);
		child_in_enqueue(LCORE, SIG_DFL);
		pp_recycle_quiesce(recycler);
		assert_int_equal(pp_recycle_died(recycler), 2 * (i + 1));
	}
}

/* Nor when many have died in between: each takes the room of one that died before. */
static void
the_dead_make_room(void **state __rte_unused)
{
	for (unsigned int i = 0; i < CHILDREN; i++)
		child_in_enqueue(LCORE_ID_ANY, SIG_DFL);
	pp_recycle_quiesce(recycler);
	assert_int_equal(pp_recycle_died(recycler), CHILDREN);
}

static bool quiet;

static void
quiesce(void *unused __rte_unused)
{
	pp_recycle_quiesce(recycler);
	pp_store_release(&quiet, true);
}

static void
the_living_are_waited_for(void **state __rte_unused)
{
	static const unsigned int lcores[] = {LCORE, LCORE_ID_ANY};

	for (size_t i = 0; i < RTE_DIM(lcores); i++) {
		struct worker *worker = worker_start(true);
		const pid_t child = child_in_enqueue(lcores[i], halt);

		pp_store_release(&quiet, false);
		worker_begin(worker, quiesce, NULL);
		usleep(20000);
		assert_false(pp_load_acquire(&quiet));
		kill_child(child);
		worker_wait(worker);
		assert_true(pp_load_acquire(&quiet));
		assert_int_equal(pp_recycle_died(recycler), i + 1);
		worker_end(worker, true);
	}
}

/* Threads of a process share a place, and leave it. */
static void
put_and_get(void *unused __rte_unused)
{
	void *object;

	for (unsigned int i = 0; i < 1000; i++) {
		if (rte_mempool_get(mp, &object) == 0)
			rte_mempool_put(mp, object);
		if (i % 16 == 0)
			pp_recycle_quiesce(recycler);
	}
}

static void
threads_come_and_go(void **state __rte_unused)
{
	struct worker *worker[4];

	for (size_t i = 0; i < RTE_DIM(worker); i++) {
		worker[i] = worker_start(false);
		worker_begin(worker[i], put_and_get, NULL);
	}
	for (size_t i = 0; i < RTE_DIM(worker); i++) {
		worker_wait(worker[i]);
		worker_end(worker[i], false);
	}
	pp_recycle_quiesce(recycler);
	assert_int_equal(pp_recycle_died(recycler), 0);
}

static void
dumps_say_who_died(void **state __rte_unused)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	child_in_enqueue(LCORE_ID_ANY, SIG_DFL);
	pp_recycle_quiesce(recycler);
	pp_mempool_dump(mp, f);
	fclose(f);
	assert_non_null(strstr(text, "1 threads died in the middle of a free"));
	free(text);
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_dead_are_not_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(the_dead_make_room, setup, teardown),
		cmocka_unit_test_setup_teardown(the_living_are_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(dumps_say_who_died, setup, teardown),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
