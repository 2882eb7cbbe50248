/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Results as data. docs/man/alloc-bench.1 describes the fields. */

#include <json.h>

#include "result.h"

/* Raised whenever a field changes its meaning or goes away. */
#define OUTPUT_SCHEMA 1

/* One row's object; the caller owns it. */
json_t *output_row(const struct bench *bench, const struct bench_case *one, const struct row *row);
