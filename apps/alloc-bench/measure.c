/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_malloc.h>

#include "loops.h"
#include "measure.h"

#define SUBJECTS_MAX 64
#define RING_SIZE    1024

/* What one lcore does for a sample. */
struct task {
	const struct request *request;
	struct work work;
	loop_fn *loop;
	uint64_t begin, end;
};

static void *state[SUBJECTS_MAX];
static struct task tasks[RTE_MAX_LCORE];
static struct rte_ring *ring;
static uint32_t ready; /* lcores at the start line */

int
measure_init(uint32_t objects)
{
	unsigned int lcore_id;

	ring = rte_ring_create("pipeline", RING_SIZE, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (ring == NULL)
		return -ENOMEM;
	RTE_LCORE_FOREACH (lcore_id) {
		struct work *work = &tasks[lcore_id].work;

		work->table = rte_zmalloc("table", objects * sizeof(void *), RTE_CACHE_LINE_SIZE);
		if (work->table == NULL)
			return -ENOMEM;
		work->ring = ring;
	}
	return 0;
}

int
measure_open(uint32_t subject, const struct need *need)
{
	static_assert(SUBJECTS_MAX >= N_OPERATIONS, "the table must fit");
	state[subject] = subjects[subject].backend->open(&subjects[subject], need);
	return state[subject] != NULL ? 0 : -rte_errno;
}

void
measure_close(uint32_t subject, struct tally *tally)
{
	*tally = (struct tally){.valid = true};
	subjects[subject].backend->close(state[subject], tally);
}

/* Waits for the others; whoever comes last starts them all. */
static void
line_up(uint32_t lcores)
{
	uint32_t spins = 0;

	pp_fetch_add(&ready, 1);
	while (pp_load_acquire(&ready) < lcores)
		wait_a_little(&spins);
}

/* Read and write the first word of each live object. */
static __rte_noinline void
loop_touch(struct work *work, uint32_t passes)
{
	void **const table = work->table;
	const uint32_t n = work->n;

	while (passes-- > 0) {
		for (uint32_t i = 0; i < n; i++) {
			uint64_t *word = table[i];

			__atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED) + 1,
				__ATOMIC_RELAXED);
			rte_compiler_barrier();
		}
	}
}

static int
run_task(void *arg)
{
	struct task *task = arg;
	const struct request *request = task->request;
	struct work *work = &task->work;

	subjects[request->subject].backend->lend(state[request->subject], &work->handles);
	if (request->warm_up > 0)
		task->loop(work, request->warm_up);
	work->cycles[0] = work->cycles[1] = 0;
	if (work->histogram != NULL)
		memset(work->histogram, 0, 2 * sizeof(*work->histogram));
	line_up(request->lcores);
	task->begin = clock_read();
	task->loop(work, request->passes);
	task->end = clock_read();
	return 0;
}

static const struct loops *
loops_of(const struct request *request)
{
	const struct call *call = &subjects[request->subject].calls[request->call];

	return request->order == 0 ? call->loops : call->loops_order;
}

static loop_fn *
choose_loop(const struct request *request, bool main_lcore)
{
	const struct loops *loops = loops_of(request);

	switch (request->kernel) {
	case KERNEL_PAIR:
		return loops->pair;
	case KERNEL_SPLIT:
		return loops->split;
	case KERNEL_LATENCY:
		return loops->latency;
	case KERNEL_PIPELINE:
		return main_lcore ? loops->produce : loops->consume;
	default:
		return loop_touch;
	}
}

static void
prepare(const struct request *request, struct reply *reply)
{
	unsigned int lcore_id;

	RTE_LCORE_FOREACH (lcore_id) {
		struct task *task = &tasks[lcore_id];

		task->request = request;
		task->loop = choose_loop(request, lcore_id == rte_get_main_lcore());
		task->work.n = request->n;
		task->work.burst = request->burst;
		task->work.failed = 0;
		task->work.handles = (struct handles){
			.order = request->order,
			.size = request->size,
		};
		task->work.histogram = request->kernel == KERNEL_LATENCY ? reply->histogram : NULL;
	}
	pp_store_relaxed(&ready, 0);
}

/* The main lcore and, with more than one, the next ones. */
static void
run_tasks(uint32_t lcores)
{
	unsigned int lcore_id;
	uint32_t launched = 1;

	RTE_LCORE_FOREACH_WORKER (lcore_id) {
		if (launched == lcores)
			break;
		rte_eal_remote_launch(run_task, &tasks[lcore_id], lcore_id);
		launched++;
	}
	run_task(&tasks[rte_get_main_lcore()]);
	if (lcores > 1)
		rte_eal_mp_wait_lcore();
}

/* From the first that started to the last that ended. */
static void
collect(const struct request *request, struct reply *reply)
{
	const struct task *main_task = &tasks[rte_get_main_lcore()];
	uint64_t begin = main_task->begin, end = main_task->end;
	uint32_t left = request->lcores - 1;
	unsigned int lcore_id;

	reply->failed = main_task->work.failed;
	RTE_LCORE_FOREACH_WORKER (lcore_id) {
		if (left-- == 0)
			break;
		begin = RTE_MIN(begin, tasks[lcore_id].begin);
		end = RTE_MAX(end, tasks[lcore_id].end);
		reply->failed += tasks[lcore_id].work.failed;
	}
	reply->elapsed = end - begin;

	const double objects = (double)request->passes * request->n;

	reply->cycles[0] = reply->elapsed / objects;
	reply->cycles[1] = 0;
	if (request->kernel == KERNEL_SPLIT) {
		reply->cycles[0] = main_task->work.cycles[0] / objects;
		reply->cycles[1] = main_task->work.cycles[1] / objects;
	}
}

void
measure(const struct request *request, struct reply *reply)
{
	const bool touch = request->kernel == KERNEL_TOUCH;
	struct work *work = &tasks[rte_get_main_lcore()].work;

	prepare(request, reply);
	if (touch) {
		subjects[request->subject].backend->lend(state[request->subject], &work->handles);
		loops_of(request)->take(work, 1);
	}
	run_tasks(request->lcores);
	if (touch)
		loops_of(request)->give(work, 1);
	collect(request, reply);
}
