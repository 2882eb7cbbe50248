/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of contexts and modes. Each cell is tested, and the one in the internals compared. */

#include "pcp_contexts.h"

#define CACHE    PCP_OUTCOME_CACHE
#define TRYLOCK  PCP_OUTCOME_TRYLOCK
#define ZONE     PCP_OUTCOME_ZONE
#define DEPOT    PCP_OUTCOME_DEPOT
#define TRYZONE  PCP_OUTCOME_TRYZONE
#define DEFERRED PCP_OUTCOME_DEFERRED
#define DETECTED PCP_OUTCOME_DETECTED
#define CORRUPTS PCP_OUTCOME_CORRUPTS

/* clang-format off */
static const enum pcp_outcome outcomes[][PCP_CONTEXTS] = {
	/*                     call     section  thread handler   entered   signal */
	[PCP_MODE_BH] =      { CACHE,   CACHE,   DEPOT, TRYZONE,  DETECTED, DETECTED },
	[PCP_MODE_SPIN] =    { TRYLOCK, TRYLOCK, DEPOT, TRYZONE,  DETECTED, DETECTED },
	[PCP_MODE_BYPASS] =  { CACHE,   ZONE,    DEPOT, TRYZONE,  DETECTED, DETECTED },
	[PCP_MODE_IRQ] =     { CACHE,   CACHE,   DEPOT, DEFERRED, DEFERRED, DETECTED },
	[PCP_MODE_PREEMPT] = { CACHE,   CACHE,   CACHE, CACHE,    CACHE,    CACHE },
	[PCP_MODE_NONE] =    { CACHE,   CACHE,   DEPOT, TRYZONE,  CORRUPTS, CORRUPTS },
};
/* clang-format on */

static const char *const context_names[] = {
	[PCP_CONTEXT_CALL] = "call",
	[PCP_CONTEXT_SECTION] = "section",
	[PCP_CONTEXT_THREAD] = "thread",
	[PCP_CONTEXT_HANDLER] = "handler",
	[PCP_CONTEXT_ENTERED] = "entered",
	[PCP_CONTEXT_SIGNAL] = "signal",
};

static const char *const outcome_names[] = {
	[PCP_OUTCOME_CACHE] = "cache",
	[PCP_OUTCOME_TRYLOCK] = "cache by try-lock",
	[PCP_OUTCOME_ZONE] = "zone",
	[PCP_OUTCOME_DEPOT] = "depot",
	[PCP_OUTCOME_TRYZONE] = "zone by try-lock",
	[PCP_OUTCOME_DEFERRED] = "deferred",
	[PCP_OUTCOME_DETECTED] = "detected",
	[PCP_OUTCOME_CORRUPTS] = "corrupts",
};

enum pcp_outcome
pcp_mode_outcome(enum pcp_mode mode, enum pcp_context context)
{
	return outcomes[mode][context];
}

const char *
pcp_context_name(enum pcp_context context)
{
	return context_names[context];
}

const char *
pcp_outcome_name(enum pcp_outcome outcome)
{
	return outcome_names[outcome];
}
