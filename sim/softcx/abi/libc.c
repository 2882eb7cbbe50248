/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libc.h"

static struct libc_calls calls;
static atomic_bool found;

static void
find(const char *name, void *call)
{
	void *symbol = dlsym(RTLD_NEXT, name);

	/* Without the C library below nothing works, and nothing can be said. */
	if (symbol == NULL)
		abort();
	memcpy(call, &symbol, sizeof(symbol));
}

static void
find_all(void)
{
	find("open", &calls.open);
	find("open64", &calls.open64);
	find("stat", &calls.stat);
	find("stat64", &calls.stat64);
	find("fstat", &calls.fstat);
	find("fstat64", &calls.fstat64);
	find("fopen", &calls.fopen);
	find("fopen64", &calls.fopen64);
	find("read", &calls.read);
	find("write", &calls.write);
	find("ioctl", &calls.ioctl);
	find("close", &calls.close);
	find("close_range", &calls.close_range);
	find("closefrom", &calls.closefrom);
	find("dup2", &calls.dup2);
	find("dup3", &calls.dup3);
	find("mmap", &calls.mmap);
	find("munmap", &calls.munmap);
	find("mremap", &calls.mremap);
	find("socket", &calls.socket);
	find("sigaction", &calls.sigaction);
	find("signal", &calls.signal);
}

const struct libc_calls *
libc_calls(void)
{
	/*
	 * The first call comes before there are threads, and in a sanitizer's start before even
	 * pthread_once() works. Two at once would find the same.
	 */
	if (!atomic_load_explicit(&found, memory_order_acquire)) {
		find_all();
		atomic_store_explicit(&found, true, memory_order_release);
	}
	return &calls;
}

void
abi_say(const char *format, ...)
{
	char line[512];
	va_list arguments;
	size_t length;

	va_start(arguments, format);
	snprintf(line, sizeof(line) - 1, "softcx: ");
	vsnprintf(line + strlen(line), sizeof(line) - 1 - strlen(line), format, arguments);
	va_end(arguments);
	length = strlen(line);
	line[length] = '\n';
	if (libc_calls()->write(STDERR_FILENO, line, length + 1) < 0)
		return; /* nobody is there to be told */
}
