/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects by number. Numbers go round: one that was freed comes again only after all others. */

#include <errno.h>
#include <stdlib.h>

#include "port.h"

#define NUMBERS (1u << 24)

int
cx_table_init(struct cx_table *table, uint32_t max, uint32_t first)
{
	uint32_t slots = 1;

	while (slots < 2 * max)
		slots *= 2;
	table->slot = calloc(slots, sizeof(*table->slot));
	if (table->slot == NULL)
		return -ENOMEM;
	table->mask = slots - 1;
	table->last = first - 1;
	table->count = 0;
	table->max = max;
	return 0;
}

void
cx_table_fini(struct cx_table *table)
{
	free(table->slot);
	table->slot = NULL;
}

int
cx_table_add(struct cx_table *table, struct cx_object *object)
{
	if (table->count == table->max)
		return -ENOMEM;
	do
		table->last = (table->last + 1) % NUMBERS;
	while (table->last == 0 || table->slot[table->last & table->mask] != NULL);
	object->number = table->last;
	table->slot[table->last & table->mask] = object;
	table->count++;
	return 0;
}

void
cx_table_remove(struct cx_table *table, struct cx_object *object)
{
	table->slot[object->number & table->mask] = NULL;
	table->count--;
}
