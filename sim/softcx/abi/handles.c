/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "handles.h"

#define SLOT_BITS   20
#define SLOTS_MAX   (1u << SLOT_BITS)
#define SLOTS_MIN   64
#define HANDLE_NONE UINT32_MAX

void
handle_table_init(struct handle_table *table)
{
	*table = (struct handle_table){.first_free = HANDLE_NONE, .last_free = HANDLE_NONE};
}

void
handle_table_free(struct handle_table *table)
{
	free(table->slots);
	handle_table_init(table);
}

static void
put_free(struct handle_table *table, uint32_t slot)
{
	table->slots[slot].next_free = HANDLE_NONE;
	if (table->last_free == HANDLE_NONE)
		table->first_free = slot;
	else
		table->slots[table->last_free].next_free = slot;
	table->last_free = slot;
}

static int
grow(struct handle_table *table)
{
	uint32_t n = table->n_slots == 0 ? SLOTS_MIN : 2 * table->n_slots, slot;
	struct handle_slot *slots;

	if (n > SLOTS_MAX)
		return -ENOMEM;
	slots = realloc(table->slots, n * sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	table->slots = slots;
	for (slot = table->n_slots; slot < n; slot++) {
		slots[slot] = (struct handle_slot){.object = NULL};
		put_free(table, slot);
	}
	table->n_slots = n;
	return 0;
}

int
handle_add(struct handle_table *table, struct object *object)
{
	struct handle_slot *slot;
	uint32_t index;

	if (table->first_free == HANDLE_NONE && grow(table) < 0)
		return -ENOMEM;
	index = table->first_free;
	slot = &table->slots[index];
	table->first_free = slot->next_free;
	if (table->first_free == HANDLE_NONE)
		table->last_free = HANDLE_NONE;
	slot->object = object;
	object->handle = slot->generation << SLOT_BITS | index;
	return 0;
}

void
handle_remove(struct handle_table *table, struct object *object)
{
	uint32_t index = object->handle & (SLOTS_MAX - 1);

	table->slots[index].object = NULL;
	table->slots[index].generation++;
	put_free(table, index);
}

struct object *
handle_find(const struct handle_table *table, enum object_type type, uint32_t handle, int *error)
{
	uint32_t index = handle & (SLOTS_MAX - 1);
	struct object *object = index < table->n_slots ? table->slots[index].object : NULL;

	if (object == NULL || object->handle != handle) {
		*error = -ENOENT;
		return NULL;
	}
	if (object->type != type) {
		*error = -EINVAL;
		return NULL;
	}
	return object;
}

struct object *
handle_next(const struct handle_table *table, enum object_type type, uint32_t *at)
{
	while (*at < table->n_slots) {
		struct object *object = table->slots[(*at)++].object;

		if (object != NULL && object->type == type)
			return object;
	}
	return NULL;
}

const char *
object_type_name(enum object_type type)
{
	static const char *const names[] = {
		[OBJECT_FLOW] = "flow",
		[OBJECT_QP] = "QP",
		[OBJECT_TABLE] = "indirection table",
		[OBJECT_WQ] = "WQ",
		[OBJECT_CQ] = "CQ",
		[OBJECT_MR] = "MR",
		[OBJECT_PD] = "PD",
	};

	return names[type];
}
