/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"

static int held_fd = -1, stdout_fd = -1, stderr_fd = -1;

/* The library called exit(), as EAL does after --log-level=help: what it printed was the aim. */
static void
replay(void)
{
	char *text;

	if (held_fd < 0)
		return;
	text = capture_end();
	if (text != NULL)
		fputs(text, stdout);
	free(text);
}

int
capture_begin(void)
{
	static bool registered;

	if (!registered)
		registered = atexit(replay) == 0;
	fflush(stdout);
	fflush(stderr);
	held_fd = memfd_create("captured", MFD_CLOEXEC);
	stdout_fd = dup(STDOUT_FILENO);
	stderr_fd = dup(STDERR_FILENO);
	if (held_fd < 0 || stdout_fd < 0 || stderr_fd < 0)
		return -errno;
	dup2(held_fd, STDOUT_FILENO);
	dup2(held_fd, STDERR_FILENO);
	return 0;
}

char *
capture_end(void)
{
	struct stat st;
	char *text;
	ssize_t len = -1;

	fflush(stdout);
	fflush(stderr);
	dup2(stdout_fd, STDOUT_FILENO);
	dup2(stderr_fd, STDERR_FILENO);
	close(stdout_fd);
	close(stderr_fd);
	text = calloc(1, fstat(held_fd, &st) == 0 ? st.st_size + 1 : 1);
	if (text != NULL)
		len = pread(held_fd, text, st.st_size, 0);
	if (len >= 0)
		text[len] = '\0';
	close(held_fd);
	held_fd = -1;
	return text;
}
