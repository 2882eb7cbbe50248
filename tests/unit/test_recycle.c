/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits until nobody is in the middle of a free waits for the living, and not for the dead.
 *
 * EAL's memory without hugepages is a shared memfd, so a forked child works on the same pool. It
 * comes to its end, or to a halt, in enqueue, by objects whose addresses lie where it must not
 * read.
 */

#include <sched.h>
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
#define PLACES   16 /* for processes that are there at once */

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

/* What happens while this thread looks whether a process is dead. */
static __thread void (*at_kill)(void);

int __real_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo);

int
__wrap_kill(pid_t pid, int signo)
{
	void (*const f)(void) = at_kill;

	at_kill = NULL;
	if (f != NULL)
		f();
	return __real_kill(pid, signo);
}

/* How often somebody has made way. */
static uint32_t yields;

int __real_sched_yield(void);
int __wrap_sched_yield(void);

int
__wrap_sched_yield(void)
{
	pp_fetch_add(&yields, 1);
	return __real_sched_yield();
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

/* As many as there are places, all at once: each has its own. */
static void
fill_places(pid_t child[PLACES])
{
	for (unsigned int i = 0; i < PLACES; i++)
		child[i] = child_in_enqueue(LCORE_ID_ANY, halt);
}

static void
kill_those_in_places(const pid_t child[PLACES])
{
	for (unsigned int i = 0; i < PLACES; i++)
		kill_child(child[i]);
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

/* ---- threads of this process that are in the middle of it ---- */

static void **objects; /* where nobody may read for now */
static bool is_inside, may_go_on;

static void
stay(int signo __rte_unused)
{
	pp_store_release(&is_inside, true);
	while (!pp_load_acquire(&may_go_on))
		sched_yield();
	mprotect(objects, 4096, PROT_READ);
}

static void
put_slowly(void *unused __rte_unused)
{
	rte_mempool_put_bulk(mp, objects, 1);
}

/* The worker stops in the middle of freeing an object, until it may go on. */
static void
begin_slow_put(struct worker *worker, void *object)
{
	const struct sigaction action = {.sa_handler = stay};

	objects = mmap(NULL, 4096, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(objects, MAP_FAILED);
	objects[0] = object;
	assert_int_equal(mprotect(objects, 4096, PROT_NONE), 0);
	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	pp_store_release(&is_inside, false);
	pp_store_release(&may_go_on, false);
	worker_begin(worker, put_slowly, NULL);
	while (!pp_load_acquire(&is_inside))
		sched_yield();
}

static void
end_slow_put(struct worker *worker)
{
	worker_wait(worker);
	signal(SIGSEGV, SIG_DFL);
	assert_int_equal(munmap(objects, 4096), 0);
}

/* Another one, that calls f, does not come to its end before. */
static void
assert_waits_for_slow_put(struct worker *slow, void (*f)(void *unused))
{
	struct worker *waits = worker_start(true);

	pp_store_release(&quiet, false);
	worker_begin(waits, f, NULL);
	usleep(20000);
	assert_false(pp_load_acquire(&quiet));
	pp_store_release(&may_go_on, true);
	worker_wait(waits);
	assert_true(pp_load_acquire(&quiet));
	worker_end(waits, true);
	end_slow_put(slow);
}

static void
put_one(void)
{
	void *object;

	assert_int_equal(rte_mempool_get(mp, &object), 0);
	rte_mempool_put(mp, object);
}

static void
put_and_tell(void *unused __rte_unused)
{
	put_one();
	pp_store_release(&quiet, true);
}

/* Who finds no place waits for one, be it that its holder is killed. */
static void
one_more_than_there_are_places_for_waits(void **state __rte_unused)
{
	struct worker *more = worker_start(false);
	pid_t child[PLACES];

	fill_places(child);
	pp_store_release(&quiet, false);
	yields = 0;
	worker_begin(more, put_and_tell, NULL);
	while (pp_load_relaxed(&yields) == 0 && !pp_load_acquire(&quiet))
		rte_pause();
	assert_false(pp_load_acquire(&quiet));
	kill_child(child[PLACES / 2]);
	worker_wait(more);
	for (unsigned int i = 0; i < PLACES; i++)
		if (i != PLACES / 2)
			kill_child(child[i]);
	worker_end(more, false);
	pp_recycle_quiesce(recycler);
	assert_int_equal(pp_recycle_died(recycler), PLACES);
}

/* A place is for as long as somebody is there: any number of processes may live. */
static void
the_living_leave_their_places(void **state __rte_unused)
{
	pid_t child[CHILDREN];

	for (unsigned int i = 0; i < CHILDREN; i++) {
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (child[i] == 0) {
			RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
			put_one();
			raise(SIGSTOP);
		}
		assert_int_equal(waitpid(child[i], NULL, WUNTRACED), child[i]);
	}
	/* and one of many that dies there is not waited for */
	child_in_enqueue(LCORE_ID_ANY, SIG_DFL);
	pp_recycle_quiesce(recycler);
	for (unsigned int i = 0; i < CHILDREN; i++)
		kill_child(child[i]);
	assert_int_equal(pp_recycle_died(recycler), 1);
}

/* ---- who takes a queue over, or closes it, finds nobody at its cache ---- */

static struct pp_recycle_queue *queue;
static void *page;

static void
take(void *unused __rte_unused)
{
	assert_int_equal(pp_recycle_take(recycler, queue, &page, 1), 1);
	pp_store_release(&quiet, true);
}

static void
close_queue(void *unused __rte_unused)
{
	pp_recycle_queue_close(recycler, queue);
	pp_store_release(&quiet, true);
}

static void
the_owner_is_waited_for(void **state __rte_unused)
{
	void (*const ways[])(void *unused) = {take, close_queue};

	for (size_t i = 0; i < RTE_DIM(ways); i++) {
		struct worker *owner = worker_start(true);

		queue = pp_recycle_queue_get(recycler, SOCKET_ID_ANY);
		assert_non_null(queue);
		pp_recycle_queue_open(queue);
		worker_do(owner, take, NULL);
		begin_slow_put(owner, page);
		assert_waits_for_slow_put(owner, ways[i]);
		worker_end(owner, true);
		/* the next owner has it now */
		if (ways[i] == take)
			rte_mempool_put(mp, page);
		pp_recycle_queue_put(recycler, queue);
		assert_int_equal(pp_recycle_inflight(queue), 0);
	}
}

/* ---- two that find the same dead process ---- */

static void
quiesce_between(void)
{
	pp_recycle_quiesce(recycler);
}

static void
the_dead_count_once(void **state __rte_unused)
{
	static const unsigned int lcores[] = {LCORE, LCORE_ID_ANY};

	for (size_t i = 0; i < RTE_DIM(lcores); i++) {
		child_in_enqueue(lcores[i], SIG_DFL);
		at_kill = quiesce_between;
		pp_recycle_quiesce(recycler);
		assert_null(at_kill);
		assert_int_equal(pp_recycle_died(recycler), i + 1);
	}
}

/* One takes the place of the dead that another was looking at: that one takes the next. */
static void
their_places_are_taken_once(void **state __rte_unused)
{
	const unsigned int lcore = rte_lcore_id();
	pid_t child[PLACES];

	fill_places(child);
	kill_those_in_places(child);
	RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
	at_kill = put_one;
	put_one();
	assert_null(at_kill);
	RTE_PER_LCORE(_lcore_id) = lcore;
	assert_int_equal(pp_recycle_died(recycler), 2);
	pp_recycle_quiesce(recycler);
	assert_int_equal(pp_recycle_died(recycler), PLACES);
}

/* ---- and those that come and go ---- */

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
		cmocka_unit_test_setup_teardown(
			one_more_than_there_are_places_for_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(the_living_leave_their_places, setup, teardown),
		cmocka_unit_test_setup_teardown(the_owner_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(the_dead_count_once, setup, teardown),
		cmocka_unit_test_setup_teardown(their_places_are_taken_once, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(dumps_say_who_died, setup, teardown),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
