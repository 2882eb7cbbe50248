/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The C library's calls as the program sees them. All but those about the nodes and descriptors of
 * ours go on unchanged.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "card.h"
#include "context.h"
#include "libc.h"
#include "netdev.h"
#include "node.h"

#define PUBLIC __attribute__((visibility("default")))

/* What the wrapped calls return: a value, or -1 and errno. */
static long
result(long value)
{
	if (value >= 0)
		return value;
	errno = (int)-value;
	return -1;
}

static bool
needs_mode(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

static int
open_path(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode)
{
	int index = node_index(path);

	if (index >= 0)
		return (int)result(context_open(index, flags));
	card_refresh(path);
	return real(path, flags, mode);
}

#define DEFINE_OPEN(name)                                                                          \
	PUBLIC int name(const char *path, int flags, ...)                                          \
	{                                                                                          \
		mode_t mode = 0;                                                                   \
		va_list arguments;                                                                 \
                                                                                                   \
		if (needs_mode(flags)) {                                                           \
			va_start(arguments, flags);                                                \
			mode = va_arg(arguments, mode_t);                                          \
			va_end(arguments);                                                         \
		}                                                                                  \
		return open_path(libc_calls()->name, path, flags, mode);                           \
	}

DEFINE_OPEN(open)
DEFINE_OPEN(open64)

/* What programs call that were compiled with checks for a missing mode. */
PUBLIC int open_2(const char *path, int flags) __asm__("__open_2");
PUBLIC int open64_2(const char *path, int flags) __asm__("__open64_2");

PUBLIC int
open_2(const char *path, int flags)
{
	return open_path(libc_calls()->open, path, flags, 0);
}

PUBLIC int
open64_2(const char *path, int flags)
{
	return open_path(libc_calls()->open64, path, flags, 0);
}

PUBLIC FILE *
fopen(const char *path, const char *mode)
{
	card_refresh(path);
	return libc_calls()->fopen(path, mode);
}

PUBLIC FILE *
fopen64(const char *path, const char *mode)
{
	card_refresh(path);
	return libc_calls()->fopen64(path, mode);
}

/* The port whose open node a descriptor is, or -1. */
static int
descriptor_port(int fd)
{
	struct abi_file *file = file_get(fd);
	int index;

	if (file == NULL)
		return -1;
	index = context_port(file);
	file_put(file);
	return index;
}

/*
 * By the name of today, and by that before glibc 2.33, which old programs call, and a sanitizer
 * does for new ones. Neither goes through the other's symbol, which may be the sanitizer's.
 */
#define DEFINE_STAT(name, old_name, old_symbol, type, argument, index, real)                       \
	static int of_##name(argument, struct type *st)                                            \
	{                                                                                          \
		int port = index;                                                                  \
                                                                                                   \
		if (port < 0)                                                                      \
			return real;                                                               \
		NODE_STAT(st, port);                                                               \
		return 0;                                                                          \
	}                                                                                          \
	PUBLIC int name(argument, struct type *st)                                                 \
	{                                                                                          \
		return of_##name(of, st);                                                          \
	}                                                                                          \
	PUBLIC int old_name(int version, argument, struct type *st) __asm__(old_symbol);           \
	PUBLIC int old_name(int version, argument, struct type *st)                                \
	{                                                                                          \
		(void)version; /* there is one */                                                  \
		return of_##name(of, st);                                                          \
	}

DEFINE_STAT(
	stat, old_stat, "__xstat", stat, const char *of, node_index(of), libc_calls()->stat(of, st))
DEFINE_STAT(stat64, old_stat64, "__xstat64", stat64, const char *of, node_index(of),
	libc_calls()->stat64(of, st))
DEFINE_STAT(fstat, old_fstat, "__fxstat", stat, int of, descriptor_port(of),
	libc_calls()->fstat(of, st))
DEFINE_STAT(fstat64, old_fstat64, "__fxstat64", stat64, int of, descriptor_port(of),
	libc_calls()->fstat64(of, st))

static void
put(void *file)
{
	file_put(file);
}

PUBLIC ssize_t
read(int fd, void *buffer, size_t length)
{
	struct abi_file *file = file_get(fd);
	ssize_t value;

	if (file == NULL)
		return libc_calls()->read(fd, buffer, length);
	pthread_cleanup_push(put, file); /* it may wait, and be cancelled */
	value = result(file_is_orphaned() ? -EIO : file->ops->read(file, buffer, length));
	pthread_cleanup_pop(1);
	return value;
}

PUBLIC ssize_t
write(int fd, const void *buffer, size_t length)
{
	struct abi_file *file = file_get(fd);
	ssize_t value;

	if (file == NULL)
		return libc_calls()->write(fd, buffer, length);
	value = result(file_is_orphaned() ? -EIO : file->ops->write(file, buffer, length));
	file_put(file);
	return value;
}

PUBLIC int
close(int fd)
{
	return file_close(fd) ? 0 : libc_calls()->close(fd);
}

/* Other ways of closing; what fails closes nothing. */
static void
close_place(int fd, int place)
{
	if (fd != place && fcntl(fd, F_GETFD) >= 0)
		file_close(place);
}

PUBLIC int
dup2(int fd, int place)
{
	close_place(fd, place);
	return libc_calls()->dup2(fd, place);
}

PUBLIC int
dup3(int fd, int place, int flags)
{
	if ((flags & ~O_CLOEXEC) == 0)
		close_place(fd, place);
	return libc_calls()->dup3(fd, place, flags);
}

static void
close_ours(unsigned int first, unsigned int last)
{
	int fd;

	if (first > INT_MAX)
		return;
	for (fd = file_next((int)first); fd >= 0 && (unsigned int)fd <= last;
		fd = file_next(fd + 1))
		file_close(fd);
}

PUBLIC int
close_range(unsigned int first, unsigned int last, int flags)
{
	if (!(flags & CLOSE_RANGE_CLOEXEC))
		close_ours(first, last);
	return libc_calls()->close_range(first, last, flags);
}

PUBLIC void
closefrom(int first)
{
	close_ours(first < 0 ? 0 : (unsigned int)first, UINT_MAX);
	libc_calls()->closefrom(first);
}

PUBLIC int
ioctl(int fd, unsigned long request, ...)
{
	void *argument;
	va_list arguments;
	int value;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	/* libibverbs then falls back to commands by write(). */
	if (descriptor_port(fd) >= 0)
		return (int)result(-ENOTTY);
	if (request == SIOCETHTOOL && card_ports() > 0 && netdev_ethtool(argument, &value))
		return (int)result(value);
	return libc_calls()->ioctl(fd, request, argument);
}

static void *
map(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	struct abi_file *file = flags & MAP_ANONYMOUS ? NULL : file_get(fd);
	int error = 0;

	if (file != NULL) {
		error = file->ops->mmap(file, length, protection, flags, offset);
		file_put(file);
	}
	if (error < 0) {
		errno = -error;
		return MAP_FAILED;
	}
	if (flags & MAP_FIXED)
		card_memory_gone(address, length);
	return libc_calls()->mmap(address, length, protection, flags, fd, offset);
}

PUBLIC void *
mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return map(address, length, protection, flags, fd, offset);
}

PUBLIC void *
mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset)
{
	return map(address, length, protection, flags, fd, offset);
}

PUBLIC int
munmap(void *address, size_t length)
{
	card_memory_gone(address, length);
	return libc_calls()->munmap(address, length);
}

/* Memory stays where it is if it can, as in the kernel: then only what it loses goes. */
PUBLIC void *
mremap(void *address, size_t old_length, size_t length, int flags, ...)
{
	void *place, *at;
	va_list arguments;

	va_start(arguments, flags);
	place = va_arg(arguments, void *);
	va_end(arguments);
	if ((flags & ~MREMAP_MAYMOVE) == 0) {
		if (length < old_length)
			card_memory_gone((uint8_t *)address + length, old_length - length);
		at = libc_calls()->mremap(address, old_length, length, 0);
		if (at != MAP_FAILED || flags == 0)
			return at;
	}
	card_memory_gone(address, old_length);
	if (flags & MREMAP_FIXED)
		card_memory_gone(place, length);
	return libc_calls()->mremap(address, old_length, length, flags, place);
}

PUBLIC int
socket(int domain, int type, int protocol)
{
	/* RDMA netlink would list the kernel's devices; without it sysfs is looked at, which is
	 * ours. */
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && card_ports() > 0)
		return (int)result(-EPROTONOSUPPORT);
	return libc_calls()->socket(domain, type, protocol);
}

PUBLIC int
sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	/* Before there is a card nothing is guarded; it then takes over what it finds. */
	if ((number == SIGSEGV || number == SIGBUS) && card_is_made())
		return softcx_guard_sigaction(number, action, old);
	return libc_calls()->sigaction(number, action, old);
}

/* The C library's goes to its sigaction() without passing by ours. */
PUBLIC sighandler_t
signal(int number, sighandler_t handler)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

	if (number != SIGSEGV && number != SIGBUS)
		return libc_calls()->signal(number, handler);
	sigemptyset(&action.sa_mask);
	return sigaction(number, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}
