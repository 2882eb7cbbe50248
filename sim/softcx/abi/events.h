/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Completion channels and asynchronous event files: queues that read() takes from, one event per
 * call, and poll() waits for. An object's unread events vanish with it; how many were read is
 * what its destruction reports, and libibverbs waits until the program has acknowledged as many.
 */

#include <stdbool.h>
#include <stdint.h>

#include "file.h"

struct event_queue;

/* An object that events are about, on one queue. */
struct event_source {
	struct event_queue *queue; /* with a reference, or NULL: its events are dropped */
	uint32_t reported;         /* by read(); under the queue's lock */
};

struct uverbs_context;

/*
 * A queue with a descriptor of its own. `size` is that of an event: 8 for completions, 16 for
 * asynchronous ones. `owner` is who may use it. Returns the descriptor or -errno.
 */
int event_queue_open(const struct uverbs_context *owner, uint32_t size);

/* The queue behind a descriptor with a reference for event_source_end(), or NULL. */
struct event_queue *event_queue_get(const struct uverbs_context *owner, int fd, uint32_t size);

/* Called from the device's thread; takes only the queue's lock. `source` may be NULL. */
void event_queue_add(struct event_queue *queue, struct event_source *source, const void *event);

/* Start with a reference of its own to the queue, which may be NULL. */
void event_source_start(struct event_source *source, struct event_queue *queue);

/* Forget what was not read; the number of events that were. Gives the queue's reference back. */
uint32_t event_source_end(struct event_source *source);
