/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Results as JSON files. */

#include <jansson.h>

/*
 * Whether json_save() can write `path`: 0, or -errno with nothing left behind. An existing file
 * must be a regular one (-EEXIST): rename() would replace a device.
 */
int json_can_save(const char *path);

/* Write beside `path`, then rename: readers see the old file or the whole new one. 0 or -errno. */
int json_save(const json_t *value, const char *path);

/* The same for a file of another kind: `write` returns 0 or -errno. */
int save_by(const char *path, int (*write)(FILE *f, const void *arg), const void *arg);

/* What an error of those above means. */
const char *json_strerror(int err);

/* A number, or null for NAN and infinities, which JSON does not have. */
json_t *json_real_or_null(double value);
