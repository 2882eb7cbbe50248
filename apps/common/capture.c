/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"

static int held_fd = -1, stdout_fd = -1, stderr_fd = -1;
static struct sigaction before;

/* The library gave up, as rte_panic() does: its last words must not get lost. */
static void
show_last_words(int signal)
{
	char text[1024];
	off_t at = 0;
	ssize_t n;

	(void)signal;
	while ((n = pread(held_fd, text, sizeof(text), at)) > 0 && write(stderr_fd, text, n) == n)
		at += n;
}

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
	sigaction(SIGABRT, &(struct sigaction){.sa_handler = show_last_words}, &before);
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
	sigaction(SIGABRT, &before, NULL);
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
