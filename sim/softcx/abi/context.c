/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "card.h"
#include "command.h"
#include "libc.h"

static ssize_t
context_read(struct abi_file *file, void *buffer, size_t length)
{
	(void)file;
	(void)buffer;
	(void)length;
	return -EINVAL;
}

static ssize_t
context_write(struct abi_file *file, const void *buffer, size_t length)
{
	return command_write((struct uverbs_context *)file, buffer, length);
}

static int
context_mmap(struct abi_file *file, size_t length, int protection, int flags, off_t offset)
{
	const struct uverbs_context *context = (struct uverbs_context *)file;

	(void)protection;
	return uar_check_mmap(&context->uar, length, flags, offset);
}

/* Nobody can reach the objects any more. What is left is reported, and destroyed in order. */
static void
context_release(struct abi_file *file)
{
	struct uverbs_context *context = (struct uverbs_context *)file;
	struct object *object;
	unsigned int type;
	uint32_t at;

	for (type = 0; type < OBJECT_TYPES; type++) {
		for (at = 0; (object = handle_next(&context->handles, type, &at)) != NULL;) {
			abi_say("mlx5_%u: closed with %s 0x%x not destroyed", context->index,
				object_type_name(type), object->number);
			if (context_destroy_object(context, object) < 0)
				abi_say("mlx5_%u: %s 0x%x cannot be destroyed", context->index,
					object_type_name(type), object->number);
		}
	}
	if (context->async != NULL)
		file_put((struct abi_file *)context->async);
	handle_table_free(&context->handles);
	uar_stop(&context->uar);
	pthread_mutex_destroy(&context->lock);
	free(context);
	card_put();
}

static const struct abi_file_ops context_ops = {
	.read = context_read,
	.write = context_write,
	.mmap = context_mmap,
	.release = context_release,
};

int
context_open(unsigned int index, int flags)
{
	struct uverbs_context *context;
	int fd, error;

	if ((flags & O_ACCMODE) != O_RDWR)
		return -EACCES;
	context = calloc(1, sizeof(*context));
	if (context == NULL)
		return -ENOMEM;
	error = card_get(index, &context->port);
	if (error < 0) {
		free(context);
		return error;
	}
	context->index = index;
	pthread_mutex_init(&context->lock, NULL);
	handle_table_init(&context->handles);
	fd = uar_open(index);
	if (fd < 0) {
		error = fd;
	} else {
		error = file_install(&context->file, &context_ops, fd);
		if (error < 0)
			libc_calls()->close(fd);
	}
	if (error < 0) {
		context_release(&context->file);
		return error;
	}
	return fd;
}

int
context_port(const struct abi_file *file)
{
	return file->ops == &context_ops ? (int)((const struct uverbs_context *)file)->index : -1;
}

void *
context_new_object(struct uverbs_context *context, enum object_type type, size_t size)
{
	struct object *object = calloc(1, size);

	if (object == NULL)
		return NULL;
	object->type = type;
	if (handle_add(&context->handles, object) < 0) {
		free(object);
		return NULL;
	}
	return object;
}

void
context_free_object(struct uverbs_context *context, struct object *object)
{
	handle_remove(&context->handles, object);
	free(object);
}

int
context_destroy_object(struct uverbs_context *context, struct object *object)
{
	uint32_t events;

	switch (object->type) {
	case OBJECT_FLOW:
		return destroy_flow(context, (struct flow_object *)object);
	case OBJECT_QP:
		return destroy_qp(context, (struct qp_object *)object, &events);
	case OBJECT_TABLE:
		return destroy_table(context, (struct table_object *)object);
	case OBJECT_WQ:
		return destroy_wq(context, (struct wq_object *)object, &events);
	case OBJECT_CQ:
		return destroy_cq(context, (struct cq_object *)object, &events, &events);
	case OBJECT_MR:
		return destroy_mr(context, (struct mr_object *)object);
	default:
		return destroy_pd(context, (struct pd_object *)object);
	}
}

int
context_destroy(struct uverbs_context *context, enum object_type type, uint32_t handle)
{
	int error;
	struct object *object = handle_find(&context->handles, type, handle, &error);

	return object == NULL ? error : context_destroy_object(context, object);
}

/*
 * The device knows one function per port, but several contexts may be open: an object's source
 * leads to its own context's queue.
 */
void
context_event(void *arg, enum ibv_event_type type, void *cookie)
{
	struct ib_uverbs_async_event_desc event = {.event_type = type};
	struct event_source *source;
	const struct object *object = cookie;

	(void)arg;
	switch (object->type) {
	case OBJECT_CQ:
		source = &((struct cq_object *)cookie)->async;
		break;
	case OBJECT_WQ:
		source = &((struct wq_object *)cookie)->async;
		break;
	case OBJECT_QP:
		source = &((struct qp_object *)cookie)->async;
		break;
	default:
		return;
	}
	event.element = object->user_handle;
	event_queue_add(source->queue, source, &event);
}
