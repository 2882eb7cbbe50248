/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "bench.h"

/* By enum command, up to COMMAND_COMPARE. */
extern const struct test tests[];
