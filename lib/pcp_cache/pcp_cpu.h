/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Caches of mode preempt: one per CPU, for threads that are not pinned. A call is a restartable
 * sequence (rseq(2), which glibc registers): the kernel restarts it if its thread was preempted,
 * migrated or interrupted by a signal before the last instruction, the store of the list's state
 * word. So no lock is taken, and whoever runs on the CPU owns its lists.
 *
 * Any thread, and signal handlers below pcp_handler_enter(): one that has not entered might
 * interrupt EAL's heap, or the zone, and want them for a refill. In other modes, and where the
 * sequence has nothing to take from or to put to, the calls do what pcp_cache_*() do. A library
 * with such calls must not be unloaded while a thread that made one lives: the kernel may look at
 * the last sequence once more.
 */

#include "pcp.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PCP_RSEQ_IS_HIDDEN 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define PCP_RSEQ_IS_HIDDEN 1 /* it would not see the accesses, and report the others */
#endif

#if defined(__x86_64__) && __has_include(<sys/rseq.h>) && !defined(PCP_RSEQ_IS_HIDDEN)
#include <sys/rseq.h>
#define PCP_HAS_RSEQ 1
#else
#define PCP_HAS_RSEQ 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* All n blocks, or -ENOMEM; in a handler that interrupted a slow path also -EBUSY. */
int pcp_cpu_alloc_slow(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n);
void pcp_cpu_free_slow(struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n);

#if PCP_HAS_RSEQ

static __rte_always_inline struct rseq *
pcp_rseq(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/*
 * The cache of the CPU that the thread runs on, or NULL: none for that CPU, or it is another
 * process's. What follows is only good if the thread is still there: the sequence looks.
 */
static __rte_always_inline struct pcp *
pcp_this_cpu(struct pcp_cache *cache, uint32_t *cpu)
{
	*cpu = *(volatile uint32_t *)&pcp_rseq()->cpu_id_start;
	if (unlikely(cache->cpu == NULL || *cpu >= RTE_MAX_LCORE))
		return NULL;
	struct pcp *pcp = &cache->cpu[*cpu];

	return likely(pcp->owner_pid == pp_self) ? pcp : NULL;
}

/* After an abort: worth to try again, unless the kernel does not know the thread. */
static __rte_always_inline bool
pcp_rseq_is_registered(void)
{
	return *(volatile int32_t *)&pcp_rseq()->cpu_id >= 0;
}

/*
 * From 1 to 2 the sequence may be aborted; it goes on at 4, which the signature precedes. The
 * descriptor is announced by the instruction before 1.
 */
#define PCP_RSEQ_BEGIN                                                                             \
	".pushsection __rseq_cs, \"aw\"\n\t"                                                       \
	".balign 32\n"                                                                             \
	"3:\t.long 0, 0\n\t"                                                                       \
	".quad 1f, 2f - 1f, 4f\n\t"                                                                \
	".popsection\n\t"                                                                          \
	"leaq 3b(%%rip), %%rax\n\t"                                                                \
	"movq %%rax, %c[rseq_cs](%[rseq])\n"                                                       \
	"1:\tcmpl %[cpu], %c[cpu_id](%[rseq])\n\t"                                                 \
	"jne 4f\n\t"
#define PCP_RSEQ_END                                                                               \
	"2:\n\t"                                                                                   \
	".pushsection __rseq_failure, \"ax\"\n\t"                                                  \
	".byte 0x0f, 0xb9, 0x3d\n\t" /* makes an undefined instruction of the signature */         \
	".long %c[signature]\n"                                                                    \
	"4:\tjmp %l[aborted]\n\t"                                                                  \
	".popsection"
#define PCP_RSEQ_INPUTS(cpu_)                                                                      \
	[rseq] "r"(pcp_rseq()), [rseq_cs] "i"(offsetof(struct rseq, rseq_cs)),                     \
		[cpu_id] "i"(offsetof(struct rseq, cpu_id)), [signature] "i"(RSEQ_SIG),            \
		[cpu] "r"(cpu_)

/* Nobody has claimed the cache; its state word to rax, the count in it to ecx. */
#define PCP_RSEQ_LIST                                                                              \
	"cmpl $0, %c[attention](%[pcp])\n\t"                                                       \
	"jne %l[not_here]\n\t"                                                                     \
	"movq %c[state](%[list]), %%rax\n\t"                                                       \
	"movzwl %%ax, %%ecx\n\t"
#define PCP_RSEQ_LIST_INPUTS(pcp_, list_)                                                          \
	[pcp] "r"(pcp_), [list] "r"(list_), [attention] "i"(offsetof(struct pcp, attention)),      \
		[state] "i"(offsetof(struct pcp_list, state)),                                     \
		[loaded] "i"(offsetof(struct pcp_list, loaded)),                                   \
		[capacity] "i"(offsetof(struct pcp_list, capacity)),                               \
		[page] "i"(offsetof(struct pcp_magazine, page))
#define PCP_RSEQ_CLOBBERS "memory", "cc", "rax", "rcx", "rdx"

/* What became of one attempt. */
enum pcp_rseq_result {
	PCP_RSEQ_DONE,
	PCP_RSEQ_NOT_HERE, /* claimed, or too few blocks or too little room */
	PCP_RSEQ_ABORTED,
};

#define PCP_RSEQ_RESULT                                                                            \
	return PCP_RSEQ_DONE;                                                                      \
	not_here:                                                                                  \
	return PCP_RSEQ_NOT_HERE;                                                                  \
	aborted:                                                                                   \
	return PCP_RSEQ_ABORTED

/* From rdx the first of the n slots concerned, in ecx their number. */
#define PCP_RSEQ_SLOTS                                                                             \
	"movq %c[loaded](%[list]), %%rdx\n\t"                                                      \
	"leaq %c[page](%%rdx,%%rcx,8), %%rdx\n\t"                                                  \
	"movl %[n], %%ecx\n"

static __rte_always_inline enum pcp_rseq_result
pcp_rseq_pop_n(struct pcp *pcp, uint32_t cpu, struct pcp_list *list, void **pages, uint32_t n)
{
	__asm__ goto(PCP_RSEQ_BEGIN PCP_RSEQ_LIST "subl %[n], %%ecx\n\t"
						  "jb %l[not_here]\n\t" PCP_RSEQ_SLOTS
						  "5:\tmovq -8(%%rdx,%%rcx,8), %%r8\n\t"
						  "movq %%r8, -8(%[pages],%%rcx,8)\n\t"
						  "decl %%ecx\n\t"
						  "jnz 5b\n\t"
						  "addq %[taken], %%rax\n\t"
						  "movq %%rax, %c[state](%[list])\n" PCP_RSEQ_END
		     :
		     : PCP_RSEQ_INPUTS(cpu), PCP_RSEQ_LIST_INPUTS(pcp, list), [n] "r"(n),
		     [pages] "r"(pages), [taken] "r"(n * (PCP_STATE_ALLOC - 1))
		     : PCP_RSEQ_CLOBBERS, "r8"
		     : aborted, not_here);
	PCP_RSEQ_RESULT;
}

static __rte_always_inline enum pcp_rseq_result
pcp_rseq_push_n(
	struct pcp *pcp, uint32_t cpu, struct pcp_list *list, void *const *pages, uint32_t n)
{
	__asm__ goto(PCP_RSEQ_BEGIN PCP_RSEQ_LIST "movl %c[capacity](%[list]), %%edx\n\t"
						  "subl %%ecx, %%edx\n\t" /* never below 0 */
						  "cmpl %[n], %%edx\n\t"
						  "jb %l[not_here]\n\t" PCP_RSEQ_SLOTS
						  "5:\tmovq -8(%[pages],%%rcx,8), %%r8\n\t"
						  "movq %%r8, -8(%%rdx,%%rcx,8)\n\t"
						  "decl %%ecx\n\t"
						  "jnz 5b\n\t"
						  "addq %[given], %%rax\n\t"
						  "movq %%rax, %c[state](%[list])\n" PCP_RSEQ_END
		     :
		     : PCP_RSEQ_INPUTS(cpu), PCP_RSEQ_LIST_INPUTS(pcp, list), [n] "r"(n),
		     [pages] "r"(pages), [given] "r"((uint64_t)n)
		     : PCP_RSEQ_CLOBBERS, "r8"
		     : aborted, not_here);
	PCP_RSEQ_RESULT;
}

/* One block, without the loop. */
static __rte_always_inline enum pcp_rseq_result
pcp_rseq_pop_1(struct pcp *pcp, uint32_t cpu, struct pcp_list *list, void **page)
{
	__asm__ goto(
		PCP_RSEQ_BEGIN PCP_RSEQ_LIST "decl %%ecx\n\t"
					     "js %l[not_here]\n\t"
					     "movq %c[loaded](%[list]), %%rdx\n\t"
					     "movq %c[page](%%rdx,%%rcx,8), %%rdx\n\t"
					     "movq %%rdx, (%[to])\n\t"
					     "addq %[taken], %%rax\n\t"
					     "movq %%rax, %c[state](%[list])\n" PCP_RSEQ_END
		:
		: PCP_RSEQ_INPUTS(cpu),
		PCP_RSEQ_LIST_INPUTS(pcp, list), [to] "r"(page), [taken] "r"(PCP_STATE_ALLOC - 1)
		: PCP_RSEQ_CLOBBERS
		: aborted, not_here);
	PCP_RSEQ_RESULT;
}

static __rte_always_inline enum pcp_rseq_result
pcp_rseq_push_1(struct pcp *pcp, uint32_t cpu, struct pcp_list *list, void *page)
{
	__asm__ goto(PCP_RSEQ_BEGIN PCP_RSEQ_LIST "cmpl %c[capacity](%[list]), %%ecx\n\t"
						  "jae %l[not_here]\n\t"
						  "movq %c[loaded](%[list]), %%rdx\n\t"
						  "movq %[given], %c[page](%%rdx,%%rcx,8)\n\t"
						  "incq %%rax\n\t"
						  "movq %%rax, %c[state](%[list])\n" PCP_RSEQ_END
		     :
		     : PCP_RSEQ_INPUTS(cpu), PCP_RSEQ_LIST_INPUTS(pcp, list), [given] "r"(page)
		     : PCP_RSEQ_CLOBBERS
		     : aborted, not_here);
	PCP_RSEQ_RESULT;
}

/* Attempts, until one is not aborted: n > 0 blocks taken to `to`, or given from `from`. */
static __rte_always_inline bool
pcp_rseq_move(struct pcp_cache *cache, unsigned int order, void **to, void *const *from, uint32_t n)
{
	const bool one = __builtin_constant_p(n) && n == 1;
	enum pcp_rseq_result result;
	uint32_t cpu;

	do {
		struct pcp *pcp = pcp_this_cpu(cache, &cpu);

		if (unlikely(pcp == NULL))
			return false;
		struct pcp_list *list = &pcp->list[order];

		if (to != NULL)
			result = one ? pcp_rseq_pop_1(pcp, cpu, list, to)
				     : pcp_rseq_pop_n(pcp, cpu, list, to, n);
		else
			result = one ? pcp_rseq_push_1(pcp, cpu, list, *from)
				     : pcp_rseq_push_n(pcp, cpu, list, from, n);
	} while (unlikely(result == PCP_RSEQ_ABORTED) && pcp_rseq_is_registered());
	return result == PCP_RSEQ_DONE;
}

#else /* !PCP_HAS_RSEQ: the library may still have it */

static __rte_always_inline bool
pcp_rseq_move(struct pcp_cache *cache __rte_unused, unsigned int order __rte_unused,
	void **to __rte_unused, void *const *from __rte_unused, uint32_t n __rte_unused)
{
	return false;
}

#endif

/* n > 0 blocks, all or none, out of the CPU's loaded magazine or into it. */
static __rte_always_inline bool
pcp_rseq_pop(struct pcp_cache *cache, unsigned int order, void **pages, uint32_t n)
{
	return pcp_rseq_move(cache, order, pages, NULL, n);
}

static __rte_always_inline bool
pcp_rseq_push(struct pcp_cache *cache, unsigned int order, void *const *pages, uint32_t n)
{
	return pcp_rseq_move(cache, order, NULL, pages, n);
}

static __rte_always_inline void *
pcp_cpu_alloc(struct pcp_cache *cache)
{
	void *page;

	if (likely(pcp_rseq_pop(cache, 0, &page, 1)))
		return page;
	return pcp_cpu_alloc_slow(cache, 0, &page, 1) == 0 ? page : NULL;
}

static __rte_always_inline void
pcp_cpu_free(struct pcp_cache *cache, void *page)
{
	if (unlikely(!pcp_rseq_push(cache, 0, &page, 1)))
		pcp_cpu_free_slow(cache, 0, &page, 1);
}

/* n order-0 pages or none: 0 or -ENOMEM. */
static __rte_always_inline int
pcp_cpu_alloc_bulk(struct pcp_cache *cache, void **pages, uint32_t n)
{
	if (likely(n > 0 && pcp_rseq_pop(cache, 0, pages, n)))
		return 0;
	return pcp_cpu_alloc_slow(cache, 0, pages, n);
}

static __rte_always_inline void
pcp_cpu_free_bulk(struct pcp_cache *cache, void *const *pages, uint32_t n)
{
	if (unlikely(n == 0 || !pcp_rseq_push(cache, 0, pages, n)))
		pcp_cpu_free_slow(cache, 0, pages, n);
}

#ifdef __cplusplus
}
#endif
