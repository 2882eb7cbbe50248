/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

static pid_t guardian = -1;
static int life = -1; /* a pipe whose other end the guardian reads until we are gone */

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)remove(path); /* the next one may still succeed */
	return 0;
}

static void
guard(int end, const char *folder)
{
	static const int deaf[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	unsigned int i;
	ssize_t n;
	char byte;

	/* Neither the terminal nor who kills our process group reaches it. */
	setsid();
	for (i = 0; i < sizeof(deaf) / sizeof(deaf[0]); i++)
		signal(deaf[i], SIG_IGN);
	/* Nobody may wait for the end of a pipe that only we hold open. */
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	do {
		n = read(end, &byte, 1);
	} while (n < 0 && errno == EINTR);
	nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	_exit(0);
}

int
guardian_start(char *folder, size_t size)
{
	const char *base = getenv("TMPDIR");
	int ends[2], error;

	snprintf(folder, size, "%s/softcx.XXXXXX", base == NULL || *base == '\0' ? "/tmp" : base);
	if (mkdtemp(folder) == NULL)
		return -errno;
	if (pipe2(ends, O_CLOEXEC) == 0) {
		guardian = fork();
		if (guardian == 0) {
			close(ends[1]);
			guard(ends[0], folder);
		}
		error = errno;
		close(ends[0]);
		life = ends[1];
		if (guardian > 0)
			return 0;
		close(life);
	} else {
		error = errno;
	}
	rmdir(folder);
	return -error;
}

void
guardian_stop(void)
{
	close(life);
	while (waitpid(guardian, NULL, 0) < 0 && errno == EINTR)
		;
}
