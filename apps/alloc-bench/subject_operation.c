/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of the kernel's time_bench, as they exist in user space. Interrupts are signals
 * here: "irq" is a section of mode irq, which puts handlers off, and "sigmask" the system calls
 * that it saves.
 */

#include <signal.h>

#include <rte_spinlock.h>

#include <pcp_irq.h>

#include "loops.h"

#if defined(RTE_ARCH_X86_64) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAS_RSEQ 1
#endif

static rte_spinlock_t spinlock = RTE_SPINLOCK_INITIALIZER;
static struct pp_lock pp_lock_word;

static __rte_noinline void
callee(void)
{
	__asm__ volatile("");
}

static void (*volatile pointer)(void) = callee;

static __rte_always_inline void
sigmask_save_restore(void)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

#ifdef HAS_RSEQ
static uint64_t rseq_count;

/* A restartable sequence of one instruction, which is its commit. */
static __rte_always_inline void
rseq_section(void)
{
	struct rseq *rseq = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);

	__asm__ volatile(".pushsection __rseq_cs, \"aw\"\n\t"
			 ".balign 32\n"
			 "1:\t.long 0, 0\n\t"
			 ".quad 2f, 3f - 2f, 4f\n\t"
			 ".popsection\n"
			 "5:\tleaq 1b(%%rip), %%rax\n\t"
			 "movq %%rax, %[cs]\n"
			 "2:\tincq %[count]\n"
			 "3:\n\t"
			 ".pushsection .text.unlikely\n\t"
			 ".long %c[signature]\n"
			 "4:\tjmp 5b\n\t"
			 ".popsection"
			 : [cs] "=m"(rseq->rseq_cs), [count] "+m"(rseq_count)
			 : [signature] "i"(RSEQ_SIG)
			 : "rax", "memory", "cc");
}
#endif

/* `passes` times n operations. */
#define OPERATION(name, ...)                                                                       \
	static __rte_noinline void name##_pair(struct work *work, uint32_t passes)                 \
	{                                                                                          \
		const struct handles h __rte_unused = work->handles;                               \
                                                                                                   \
		for (uint64_t i = (uint64_t)passes * work->n; i > 0; i--) {                        \
			__VA_ARGS__;                                                               \
			rte_compiler_barrier();                                                    \
		}                                                                                  \
	}                                                                                          \
	static const struct loops name = {.pair = name##_pair}

OPERATION(for_loop, );
OPERATION(spin_lock_unlock, rte_spinlock_lock(&spinlock); rte_spinlock_unlock(&spinlock));
OPERATION(spin_lock_unlock_irqsave, pcp_irq_save(h.pcp); rte_spinlock_lock(&spinlock);
	  rte_spinlock_unlock(&spinlock); pcp_irq_restore(h.pcp));
OPERATION(pp_lock_unlock, pp_lock(&pp_lock_word); pp_unlock(&pp_lock_word));
OPERATION(bh_disable_enable, pcp_bh_disable(h.pcp); rte_compiler_barrier(); pcp_bh_enable(h.pcp));
OPERATION(irq_save_restore, pcp_irq_save(h.pcp); rte_compiler_barrier(); pcp_irq_restore(h.pcp));
OPERATION(sigmask, sigmask_save_restore());
#ifdef HAS_RSEQ
OPERATION(rseq, rseq_section());
#endif
OPERATION(function_call, callee());
OPERATION(pointer_call, pointer());

#define CALL(loops)                                                                                \
	{                                                                                          \
		NULL, NULL, loops, NULL                                                            \
	}

const struct call operation_calls[N_OPERATIONS] = {
	[OPERATION_LOOP] = CALL(&for_loop),
	[OPERATION_SPINLOCK] = CALL(&spin_lock_unlock),
	[OPERATION_SPINLOCK_IRQ] = CALL(&spin_lock_unlock_irqsave),
	[OPERATION_PP_LOCK] = CALL(&pp_lock_unlock),
	[OPERATION_BH] = CALL(&bh_disable_enable),
	[OPERATION_IRQ] = CALL(&irq_save_restore),
	[OPERATION_SIGMASK] = CALL(&sigmask),
#ifdef HAS_RSEQ
	[OPERATION_RSEQ] = CALL(&rseq),
#endif
	[OPERATION_CALL] = CALL(&function_call),
	[OPERATION_POINTER] = CALL(&pointer_call),
};
