/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the tests of arenas share. */

#include <pagepool.h>

#include "unit.h"

/* unit_fail_each() for the creation of such an arena. */
unsigned int arena_fail_each(const struct pp_arena_config *config);
