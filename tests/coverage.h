/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Included first in builds for tests/coverage. Functions in headers are then functions, not copies
 * in each of their callers, whose branches would count separately.
 */

#include <rte_common.h>

#undef __rte_always_inline
#define __rte_always_inline inline

/* gcov numbers the calls and branches of a line: the same ones as in builds with stalls. */
#ifndef PP_STALLS
static inline void
pp_no_stall(void)
{
}
#define pp_stall() pp_no_stall()
#endif
