/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Objects of a context by handle. As in the kernel an unknown handle is -ENOENT, one of another
 * type -EINVAL, and an object that others use is not destroyed (-EBUSY). Unlike there a handle is
 * not given again soon, so that late users are told, not served.
 */

#include <stdbool.h>
#include <stdint.h>

enum object_type { /* in the order of destruction: users before what they use */
	OBJECT_FLOW,
	OBJECT_QP,
	OBJECT_TABLE,
	OBJECT_WQ,
	OBJECT_CQ,
	OBJECT_MR,
	OBJECT_PD,
	OBJECT_TYPES,
};

struct object {
	enum object_type type;
	uint32_t handle;
	uint32_t number;      /* the device's, for messages */
	uint32_t uses;        /* by other objects */
	uint64_t user_handle; /* libibverbs's name for it, which events carry */
};

struct handle_slot {
	struct object *object;
	uint32_t generation;
	uint32_t next_free;
};

struct handle_table {
	struct handle_slot *slots;
	uint32_t n_slots;
	uint32_t first_free, last_free; /* first in, first out; HANDLE_NONE: no slot */
};

void handle_table_init(struct handle_table *table);
void handle_table_free(struct handle_table *table);

/* Give an object its handle. 0 or -ENOMEM. */
int handle_add(struct handle_table *table, struct object *object);

void handle_remove(struct handle_table *table, struct object *object);

/* The object with that handle; NULL and *error set to -ENOENT or -EINVAL. */
struct object *handle_find(
	const struct handle_table *table, enum object_type type, uint32_t handle, int *error);

/* The first object of a type from slot *at on; *at is then the next slot. NULL: no more. */
struct object *handle_next(const struct handle_table *table, enum object_type type, uint32_t *at);

const char *object_type_name(enum object_type type);
