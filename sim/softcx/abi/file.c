/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "file.h"
#include "libc.h"

#define FILES_MAX 65536

/* Read without the lock by every read() and write() of the program, most of which are not ours. */
static _Atomic(struct abi_file *) files[FILES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool orphaned; /* by fork() */
static pid_t owner;

static void
before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void
after_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void
after_fork_child(void)
{
	orphaned = true;
	pthread_mutex_unlock(&lock);
}

static void
watch_forks(void)
{
	owner = getpid();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

bool
file_is_orphaned(void)
{
	return orphaned || (owner != 0 && getpid() != owner);
}

int
file_install(struct abi_file *file, const struct abi_file_ops *ops, int fd)
{
	if (fd >= FILES_MAX)
		return -EMFILE;
	pthread_once(&once, watch_forks);
	file->ops = ops;
	file->fd = fd;
	file->references = 1;
	pthread_mutex_lock(&lock);
	atomic_store(&files[fd], file);
	pthread_mutex_unlock(&lock);
	return 0;
}

struct abi_file *
file_get(int fd)
{
	struct abi_file *file;

	if (fd < 0 || fd >= FILES_MAX ||
		atomic_load_explicit(&files[fd], memory_order_relaxed) == NULL)
		return NULL;
	pthread_mutex_lock(&lock);
	file = atomic_load(&files[fd]);
	if (file != NULL)
		file->references++;
	pthread_mutex_unlock(&lock);
	return file;
}

void
file_ref(struct abi_file *file)
{
	pthread_mutex_lock(&lock);
	file->references++;
	pthread_mutex_unlock(&lock);
}

void
file_put(struct abi_file *file)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = --file->references == 0;
	pthread_mutex_unlock(&lock);
	if (last)
		file->ops->release(file);
}

bool
file_close(int fd)
{
	struct abi_file *file;

	if (fd < 0 || fd >= FILES_MAX ||
		atomic_load_explicit(&files[fd], memory_order_relaxed) == NULL)
		return false;
	/* The child of a vfork() has descriptors of its own, but its parent's table. */
	if (!orphaned && getpid() != owner) {
		libc_calls()->close(fd);
		return true;
	}
	pthread_mutex_lock(&lock);
	file = atomic_exchange(&files[fd], NULL);
	pthread_mutex_unlock(&lock);
	if (file == NULL)
		return false;
	/* In a fork's child the objects are the parent's, and not to be destroyed. */
	if (!orphaned && file->ops->closed != NULL)
		file->ops->closed(file);
	libc_calls()->close(fd); /* from here on the number may be another file's */
	if (!orphaned)
		file_put(file);
	return true;
}

int
file_next(int fd)
{
	for (; fd < FILES_MAX; fd++) {
		if (atomic_load_explicit(&files[fd], memory_order_relaxed) != NULL)
			return fd;
	}
	return -1;
}
