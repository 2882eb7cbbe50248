/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Included first in builds for tests/coverage. Functions in headers are then functions, not copies
 * in each of their callers, whose branches would count separately.
 */

#include <rte_common.h>

#undef __rte_always_inline
#define __rte_always_inline inline
