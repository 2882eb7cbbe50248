/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "events.h"
#include "libc.h"

#define EVENT_SIZE_MAX 16

struct event {
	TAILQ_ENTRY(event) link;
	struct event_source *source;
	uint8_t bytes[EVENT_SIZE_MAX];
};

struct event_queue {
	struct abi_file file; /* first */
	const struct uverbs_context *owner;
	uint32_t size;
	pthread_mutex_t lock;
	TAILQ_HEAD(event_list, event) events;
	bool closed;
	unsigned int waiting; /* threads in read(), and those that were cancelled there */
	uint32_t arrivals;    /* of events; a futex */
};

/* The descriptor is an eventfd that is readable while there are events. */
static void
signal_readable(struct event_queue *queue, bool readable)
{
	uint64_t count = 1;

	if (queue->closed)
		return;
	if (readable)
		(void)!libc_calls()->write(queue->file.fd, &count, sizeof(count));
	else
		(void)!libc_calls()->read(queue->file.fd, &count, sizeof(count));
}

/* Under the lock, as the next one. */
static struct event *
take(struct event_queue *queue)
{
	struct event *event = TAILQ_FIRST(&queue->events);

	if (event == NULL)
		return NULL;
	TAILQ_REMOVE(&queue->events, event, link);
	if (event->source != NULL)
		event->source->reported++;
	if (TAILQ_EMPTY(&queue->events))
		signal_readable(queue, false);
	return event;
}

/*
 * By a futex, as signals end its wait like that of the kernel's read(): with EINTR, or not at all
 * where the handler has SA_RESTART. They end a poll() always. Threads can be cancelled here, too.
 */
static int
wait_for_arrival(struct event_queue *queue)
{
	const uint32_t seen = queue->arrivals;
	int error = 0, type;

	queue->waiting++;
	pthread_mutex_unlock(&queue->lock);
	/* with nothing but the system call inside */
	/* NOLINTNEXTLINE(concurrency-thread-canceltype-asynchronous) */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	if (syscall(SYS_futex, &queue->arrivals, FUTEX_WAIT_PRIVATE, seen, NULL) < 0 &&
		errno != EAGAIN)
		error = -errno;
	pthread_setcanceltype(type, NULL);
	pthread_mutex_lock(&queue->lock);
	queue->waiting--;
	return error;
}

static ssize_t
queue_read(struct abi_file *file, void *buffer, size_t length)
{
	struct event_queue *queue = (struct event_queue *)file;
	struct event *event;
	int error = 0;

	if (length < queue->size)
		return -EINVAL;
	pthread_mutex_lock(&queue->lock);
	while ((event = take(queue)) == NULL && error == 0)
		error = fcntl(file->fd, F_GETFL) & O_NONBLOCK ? -EAGAIN : wait_for_arrival(queue);
	pthread_mutex_unlock(&queue->lock);
	if (event == NULL)
		return error;
	memcpy(buffer, event->bytes, queue->size);
	free(event);
	return queue->size;
}

static ssize_t
queue_write(struct abi_file *file, const void *buffer, size_t length)
{
	(void)file;
	(void)buffer;
	(void)length;
	return -EINVAL;
}

static int
queue_mmap(struct abi_file *file, size_t length, int protection, int flags, off_t offset)
{
	(void)file;
	(void)length;
	(void)protection;
	(void)flags;
	(void)offset;
	return -ENODEV;
}

/* Those of one source, or all. */
static void
free_events(struct event_queue *queue, const struct event_source *source)
{
	struct event *event, *next;

	for (event = TAILQ_FIRST(&queue->events); event != NULL; event = next) {
		next = TAILQ_NEXT(event, link);
		if (source == NULL || event->source == source) {
			TAILQ_REMOVE(&queue->events, event, link);
			free(event);
		}
	}
}

static void
queue_closed(struct abi_file *file)
{
	struct event_queue *queue = (struct event_queue *)file;

	pthread_mutex_lock(&queue->lock);
	queue->closed = true;
	free_events(queue, NULL);
	pthread_mutex_unlock(&queue->lock);
}

static void
queue_release(struct abi_file *file)
{
	struct event_queue *queue = (struct event_queue *)file;

	free_events(queue, NULL);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

static const struct abi_file_ops queue_ops = {
	.read = queue_read,
	.write = queue_write,
	.mmap = queue_mmap,
	.closed = queue_closed,
	.release = queue_release,
};

int
event_queue_open(const struct uverbs_context *owner, uint32_t size)
{
	struct event_queue *queue = calloc(1, sizeof(*queue));
	int fd, error;

	if (queue == NULL)
		return -ENOMEM;
	fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0) {
		error = -errno;
		free(queue);
		return error;
	}
	queue->owner = owner;
	queue->size = size;
	pthread_mutex_init(&queue->lock, NULL);
	TAILQ_INIT(&queue->events);
	error = file_install(&queue->file, &queue_ops, fd);
	if (error < 0) {
		libc_calls()->close(fd);
		free(queue);
		return error;
	}
	return fd;
}

struct event_queue *
event_queue_get(const struct uverbs_context *owner, int fd, uint32_t size)
{
	struct abi_file *file = file_get(fd);
	struct event_queue *queue = (struct event_queue *)file;

	if (file == NULL)
		return NULL;
	if (file->ops != &queue_ops || queue->owner != owner || queue->size != size) {
		file_put(file);
		return NULL;
	}
	return queue;
}

void
event_queue_add(struct event_queue *queue, struct event_source *source, const void *bytes)
{
	struct event *event = malloc(sizeof(*event));

	/* The kernel, too, loses an event that it has no memory for. */
	if (event == NULL)
		return;
	event->source = source;
	memcpy(event->bytes, bytes, queue->size);
	pthread_mutex_lock(&queue->lock);
	if (queue->closed) {
		free(event);
	} else {
		if (TAILQ_EMPTY(&queue->events))
			signal_readable(queue, true);
		TAILQ_INSERT_TAIL(&queue->events, event, link);
		__atomic_store_n(&queue->arrivals, queue->arrivals + 1, __ATOMIC_RELAXED);
		if (queue->waiting > 0)
			syscall(SYS_futex, &queue->arrivals, FUTEX_WAKE_PRIVATE, 1);
	}
	pthread_mutex_unlock(&queue->lock);
}

void
event_source_start(struct event_source *source, struct event_queue *queue)
{
	source->queue = queue;
	source->reported = 0;
	if (queue != NULL)
		file_ref(&queue->file);
}

uint32_t
event_source_end(struct event_source *source)
{
	struct event_queue *queue = source->queue;
	bool had_events;

	if (queue == NULL)
		return 0;
	pthread_mutex_lock(&queue->lock);
	had_events = !TAILQ_EMPTY(&queue->events);
	free_events(queue, source);
	if (had_events && TAILQ_EMPTY(&queue->events))
		signal_readable(queue, false);
	pthread_mutex_unlock(&queue->lock);
	source->queue = NULL;
	file_put(&queue->file);
	return source->reported;
}
