/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"

static int held_fd = -1, stdout_fd = -1, stderr_fd = -1;

int
capture_begin(void)
{
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
	return text;
}
