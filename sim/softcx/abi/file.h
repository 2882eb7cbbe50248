/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * File descriptors that are ours: each is a real one, so that its number is taken, poll() works
 * and fcntl() flags are kept, and has a struct abi_file that answers read(), write() and close().
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct abi_file;

struct abi_file_ops {
	ssize_t (*read)(struct abi_file *file, void *buffer, size_t length);
	ssize_t (*write)(struct abi_file *file, const void *buffer, size_t length);
	/* -errno, or 0 when the real mmap() may go on */
	int (*mmap)(struct abi_file *file, size_t length, int protection, int flags, off_t offset);
	/* Nobody can reach it any more; the descriptor is about to go. May be NULL. */
	void (*closed)(struct abi_file *file);
	void (*release)(struct abi_file *file); /* the last reference is gone */
};

struct abi_file {
	const struct abi_file_ops *ops;
	int fd; /* only good until it is closed */
	unsigned int references;
};

/* Take over a real descriptor, with one reference that file_close() gives back. 0 or -EMFILE. */
int file_install(struct abi_file *file, const struct abi_file_ops *ops, int fd);

/* The file behind a descriptor, with a reference, or NULL if the descriptor is not ours. */
struct abi_file *file_get(int fd);

void file_ref(struct abi_file *file);
void file_put(struct abi_file *file);

/* Close a descriptor that is ours; false if it is not. */
bool file_close(int fd);

/* Any of our descriptors at or above fd, or -1. */
int file_next(int fd);

/* This process is a fork's child: the device and its memory stayed with the parent. */
bool file_is_orphaned(void);
