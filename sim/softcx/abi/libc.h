/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The C library's own calls, below those that interpose.c puts in front of them. */

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

struct libc_calls {
	int (*open)(const char *path, int flags, ...);
	int (*open64)(const char *path, int flags, ...);
	int (*stat)(const char *path, struct stat *st);
	int (*stat64)(const char *path, struct stat64 *st);
	int (*fstat)(int fd, struct stat *st);
	int (*fstat64)(int fd, struct stat64 *st);
	FILE *(*fopen)(const char *path, const char *mode);
	FILE *(*fopen64)(const char *path, const char *mode);
	ssize_t (*read)(int fd, void *buffer, size_t length);
	ssize_t (*write)(int fd, const void *buffer, size_t length);
	int (*ioctl)(int fd, unsigned long request, ...);
	int (*close)(int fd);
	int (*close_range)(unsigned int first, unsigned int last, int flags);
	void (*closefrom)(int first);
	int (*dup2)(int fd, int place);
	int (*dup3)(int fd, int place, int flags);
	void *(*mmap)(
		void *address, size_t length, int protection, int flags, int fd, off_t offset);
	int (*munmap)(void *address, size_t length);
	void *(*mremap)(void *address, size_t old_length, size_t length, int flags, ...);
	int (*socket)(int domain, int type, int protocol);
	int (*sigaction)(int number, const struct sigaction *action, struct sigaction *old);
	sighandler_t (*signal)(int number, sighandler_t handler);
};

const struct libc_calls *libc_calls(void);

/* "softcx: <message>" on stderr, in one write. */
void abi_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
