/* SPDX-License-Identifier: BSD-3-Clause */
#include "arena_unit.h"

static void *
create(void *config)
{
	return pp_arena_create(config);
}

static void
destroy(void *arena)
{
	pp_arena_destroy(arena);
}

unsigned int
arena_fail_each(const struct pp_arena_config *config)
{
	struct pp_arena_config copy = *config;

	return unit_fail_each(create, destroy, &copy);
}
