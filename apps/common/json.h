/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Results as JSON files. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

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

/* One line on what kept any of those above from writing what --`option` names. Returns `err`. */
int save_failed(const char *path, const char *option, int err);

/* A number, or null for NAN and infinities, which JSON does not have. */
json_t *json_real_or_null(double value);

/*
 * Members of objects; the object owns them. Setting one to NULL, for want of memory, fails, and
 * jansson then forgets it: whoever must know of a shortage sets the last one by
 * json_object_set_new().
 */
void json_set(json_t *object, const char *name, json_t *value);
void json_set_count(json_t *object, const char *name, uint64_t count);
void json_set_real(json_t *object, const char *name, double value); /* as json_real_or_null() */
void json_set_flag(json_t *object, const char *name, bool flag);
void json_set_text(json_t *object, const char *name, const char *text); /* NULL: null */
