/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What a call gets, by the mode of the caches and by who makes it where: the whole table. */

#include "pcp.h"

#ifdef __cplusplus
extern "C" {
#endif

enum pcp_context {
	PCP_CONTEXT_CALL,    /* a single call by a thread with an lcore id, outside of sections */
	PCP_CONTEXT_SECTION, /* a nested call */
	PCP_CONTEXT_THREAD,  /* a thread without an lcore id, on an lcore's CPU */
	PCP_CONTEXT_HANDLER, /* pcp_handler_alloc() and _free() below pcp_handler_enter() */
	PCP_CONTEXT_ENTERED, /* a single call below pcp_handler_enter() */
	PCP_CONTEXT_SIGNAL,  /* a single call in another signal handler, that interrupted a call */
	PCP_CONTEXTS,
};

enum pcp_outcome {
	PCP_OUTCOME_CACHE,
	PCP_OUTCOME_TRYLOCK, /* the cache if its lock is free, else the zone */
	PCP_OUTCOME_ZONE,
	PCP_OUTCOME_DEPOT,
	PCP_OUTCOME_TRYZONE,  /* the zone by try-lock: an allocation may fail with EBUSY */
	PCP_OUTCOME_DEFERRED, /* the whole handler waits for the end; then the cache */
	PCP_OUTCOME_DETECTED, /* forbidden, and counted as reentered; the zone by try-lock */
	PCP_OUTCOME_CORRUPTS,
};

enum pcp_outcome pcp_mode_outcome(enum pcp_mode mode, enum pcp_context context);

/* As in the table of docs/internals.md. */
const char *pcp_context_name(enum pcp_context context);
const char *pcp_outcome_name(enum pcp_outcome outcome);

#ifdef __cplusplus
}
#endif
