/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode preempt, one sequence at a time: each of its ends, and what its caller does then. */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pcp_cpu.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "preempt_unit.h"
#include "storm.h"
#include "worker.h"

#if PCP_HAS_RSEQ

/* What becomes of it when the thread is not preempted in the middle. */
#define UNDISTURBED(call)                                                                          \
	({                                                                                         \
		enum pcp_rseq_result result;                                                       \
		int tries = 0;                                                                     \
                                                                                                   \
		do                                                                                 \
			result = (call);                                                           \
		while (result == PCP_RSEQ_ABORTED && tries++ < 1000);                              \
		result;                                                                            \
	})

static void
each_sequence_has_three_ends(void **state __rte_unused)
{
	void *pages[16];
	uint32_t cpu;

	open_preempt((struct pcp_config){.batch = 16});
	pin_to(processor(0));
	use_one_page(NULL);
	struct pcp *pcp = pcp_this_cpu(cache, &cpu);
	struct pcp_list *list = &pcp->list[0];

	assert_int_equal(pcp_count(list), 16);
	/* done */
	assert_int_equal(UNDISTURBED(pcp_rseq_pop_1(pcp, cpu, list, &pages[0])), PCP_RSEQ_DONE);
	assert_int_equal(UNDISTURBED(pcp_rseq_pop_n(pcp, cpu, list, &pages[1], 15)), PCP_RSEQ_DONE);
	assert_int_equal(pcp_count(list), 0);
	/* there are none */
	assert_int_equal(UNDISTURBED(pcp_rseq_pop_1(pcp, cpu, list, &pages[0])), PCP_RSEQ_NOT_HERE);
	assert_int_equal(
		UNDISTURBED(pcp_rseq_pop_n(pcp, cpu, list, &pages[0], 2)), PCP_RSEQ_NOT_HERE);
	/* the thread is elsewhere */
	assert_int_equal(pcp_rseq_push_1(pcp, cpu + 1, list, pages[0]), PCP_RSEQ_ABORTED);
	assert_int_equal(pcp_rseq_push_n(pcp, cpu + 1, list, pages, 2), PCP_RSEQ_ABORTED);
	assert_int_equal(pcp_count(list), 0);
	assert_int_equal(UNDISTURBED(pcp_rseq_push_1(pcp, cpu, list, pages[0])), PCP_RSEQ_DONE);
	assert_int_equal(
		UNDISTURBED(pcp_rseq_push_n(pcp, cpu, list, &pages[1], 15)), PCP_RSEQ_DONE);
	assert_int_equal(pcp_rseq_pop_1(pcp, cpu + 1, list, &pages[0]), PCP_RSEQ_ABORTED);
	assert_int_equal(pcp_rseq_pop_n(pcp, cpu + 1, list, pages, 2), PCP_RSEQ_ABORTED);
	assert_int_equal(pcp_count(list), 16);
	/* there is no room */
	assert_int_equal(UNDISTURBED(pcp_rseq_push_1(pcp, cpu, list, pages[0])), PCP_RSEQ_NOT_HERE);
	assert_int_equal(UNDISTURBED(pcp_rseq_push_n(pcp, cpu, list, pages, 2)), PCP_RSEQ_NOT_HERE);
	/* somebody else has it */
	pp_fetch_or(&pcp->attention, PCP_ATTENTION_CLAIMED);
	assert_int_equal(UNDISTURBED(pcp_rseq_pop_1(pcp, cpu, list, &pages[0])), PCP_RSEQ_NOT_HERE);
	assert_int_equal(UNDISTURBED(pcp_rseq_pop_n(pcp, cpu, list, pages, 2)), PCP_RSEQ_NOT_HERE);
	pp_fetch_and(&pcp->attention, ~(uint32_t)PCP_ATTENTION_CLAIMED);
	assert_int_equal(pcp_count(list), 16);
	pcp_unit_close();
}

/* ---- a thread that is moved after it has seen where it is ---- */

static void *seen; /* the page that it looks at next */
static volatile sig_atomic_t moved;

static void
move(int signo __rte_unused)
{
	moved++;
	pin_to(processor(1));
	mprotect(seen, PP_PAGE_SIZE, PROT_READ | PROT_WRITE);
}

/* From the first processor to the second one, at its next look into the first one's cache. */
static void
move_at_next_look(void)
{
	pin_to(processor(0));
	seen = RTE_PTR_ALIGN_FLOOR(&cache->cpu[sched_getcpu()].owner_pid, PP_PAGE_SIZE);
	moved = 0;
	signal(SIGSEGV, move);
	assert_int_equal(mprotect(seen, PP_PAGE_SIZE, PROT_NONE), 0);
}

static void
assert_moved(void)
{
	signal(SIGSEGV, SIG_DFL);
	assert_int_equal(moved, 1);
}

static void
moved_threads_start_over(void **state __rte_unused)
{
	void *pages[2];

	open_preempt((struct pcp_config){.batch = 16});
	if (processor(0) == processor(1)) {
		pcp_unit_close();
		unit_skip("there is only one processor");
	}
	struct pcp *cpu[2];

	for (unsigned int i = 0; i < 2; i++) {
		pin_to(processor(i));
		use_one_page(NULL);
		cpu[i] = &cache->cpu[sched_getcpu()];
		assert_int_equal(pcp_count(&cpu[i]->list[0]), 16);
	}
	move_at_next_look();
	pages[0] = pcp_cpu_alloc(cache);
	assert_moved();
	assert_int_equal(pcp_count(&cpu[1]->list[0]), 15);
	move_at_next_look();
	pcp_cpu_free(cache, pages[0]);
	assert_moved();
	move_at_next_look();
	assert_int_equal(pcp_cpu_alloc_bulk(cache, pages, 2), 0);
	assert_moved();
	assert_int_equal(pcp_count(&cpu[1]->list[0]), 14);
	move_at_next_look();
	pcp_cpu_free_bulk(cache, pages, 2);
	assert_moved();
	assert_int_equal(pcp_count(&cpu[1]->list[0]), 16);
	/* under the first one's lock, that is let go */
	move_at_next_look();
	assert_int_equal(pcp_cache_drain_local(cache), 0);
	assert_moved();
	assert_int_equal(pcp_unit_stats().cached_pages, 16);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(pcp_count(&cpu[i]->list[0]), i == 0 ? 16 : 0);
		assert_int_equal(cpu[i]->lock.holder, 0);
		assert_int_equal(cpu[i]->attention, 0);
	}
	pin_to(processor(0));
	pcp_unit_close();
}

/* ---- a thread that the kernel does not know ---- */

static bool
unregister(void)
{
	const uint32_t lengths[] = {__rseq_size, sizeof(struct rseq)};

	for (size_t i = 0; i < RTE_DIM(lengths); i++)
		if (syscall(SYS_rseq, pcp_rseq(), lengths[i], RSEQ_FLAG_UNREGISTER, RSEQ_SIG) == 0)
			return true;
	return false;
}

static void
use_all_calls_unknown(void *known)
{
	const uint64_t passes = pcp_unit_stats().depot_allocs;
	struct pp_zone *known_zone = zone;
	struct pcp_cache *known_cache = cache;
	void *page;

	if (!unregister())
		return;
	use_all_calls(NULL);
	assert_int_equal(pcp_cache_drain_local(cache), -ENOENT);
	assert_true(pcp_unit_stats().depot_allocs > passes);
	assert_int_equal(pcp_unit_stats().cached_pages, 0);
	/* nobody changes these any more: as on a processor that there is no cache for */
	pcp_rseq()->cpu_id_start = RTE_MAX_LCORE;
	page = pcp_cpu_alloc(cache);
	assert_non_null(page);
	pcp_cpu_free(cache, page);

	unit_log_clear();
	pcp_unit_open(PREEMPT_PAGES, (struct pcp_config){.mode = PCP_MODE_PREEMPT, .batch = 16});
	assert_int_equal(mode_in_effect(), PCP_MODE_SPIN);
	unit_assert_logged("this thread is not registered");
	pcp_unit_close();
	zone = known_zone;
	cache = known_cache;
	*(bool *)known = false;
}

static void
unregistered_threads_work_past_the_caches(void **state __rte_unused)
{
	struct worker *worker = worker_start(false);
	bool known = true;

	open_preempt((struct pcp_config){.batch = 16});
	storm_record_reset();
	worker_do(worker, use_all_calls_unknown, &known);
	worker_end(worker, false);
	assert_false(storm_corrupted());
	pcp_unit_close();
	if (known)
		unit_skip("the C library's registration cannot be taken back");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sequence_has_three_ends),
		cmocka_unit_test(moved_threads_start_over),
		cmocka_unit_test(unregistered_threads_work_past_the_caches),
	};

	zone_unit_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int
main(void)
{
	unit_skip_line("no restartable sequences on this processor, or under this sanitizer");
	return 77;
}

#endif
