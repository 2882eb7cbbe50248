/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Sections of mode irq, the counterpart of the kernel's local_irq_save() and restore: a handler
 * that finds one open is put off as a whole (pcp_handler_enter()), and runs at its end. In the
 * other modes they are sections that nobody takes the cache from, no more.
 *
 * A flag set by a store is what keeps handlers off; masking signals would cost two system calls.
 * Owner and handler are one thread, so no barrier but the compiler's is needed between them.
 */

#include "pcp.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PCP_NEST_IRQ UINT32_C(0x10000) /* what an irq section adds to pcp.nest */

void pcp_irq_save_slow(struct pcp *pcp);
void pcp_irq_restore_slow(struct pcp *pcp);

/* Enter a section; nests strictly, also with pcp_bh_disable(): last in, first out. Owner only; the
 * nested calls may be used. */
static inline void
pcp_irq_save(struct pcp *pcp)
{
	const uint32_t nest = pp_load_relaxed(&pcp->nest);

	pp_store_relaxed(&pcp->nest, nest + PCP_NEST_IRQ);
	pp_compiler_barrier(); /* pairs with the claimer's membarrier */
	if (unlikely((pp_load_acquire(&pcp->attention) & ~(uint32_t)PCP_ATTENTION_MODE) != 0) &&
		nest == 0)
		pcp_irq_save_slow(pcp);
}

/*
 * Leave the section; after the outermost one the handlers that waited run. The look at attention
 * comes after the store: a handler in between runs at once.
 */
static inline void
pcp_irq_restore(struct pcp *pcp)
{
	const uint32_t nest = pp_load_relaxed(&pcp->nest) - PCP_NEST_IRQ;

	pp_store_release(&pcp->nest, nest);
	pp_compiler_barrier();
	if (unlikely(pp_load_relaxed(&pcp->attention) &
		     (PCP_ATTENTION_DRAIN | PCP_ATTENTION_PENDING)) &&
		nest == 0)
		pcp_irq_restore_slow(pcp);
}

/* As pcp_alloc() and pcp_free(), which in mode irq go past the inline path. */
static __rte_always_inline void *
pcp_irq_alloc(struct pcp *pcp)
{
	pcp_irq_save(pcp);
	void *page = pcp_alloc_nested(pcp);

	pcp_irq_restore(pcp);
	return page;
}

static __rte_always_inline void
pcp_irq_free(struct pcp *pcp, void *page)
{
	pcp_irq_save(pcp);
	pcp_free_nested(pcp, page);
	pcp_irq_restore(pcp);
}

#ifdef __cplusplus
}
#endif
