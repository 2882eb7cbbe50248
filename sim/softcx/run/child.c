/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

#define STATUS_NOT_RUN   126 /* as of a shell */
#define STATUS_NOT_FOUND 127
#define STATUS_SIGNAL    128

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static void
execute(char **command, pid_t parent, const sigset_t *mask)
{
	/* Who kills us kills the command. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(STATUS_NOT_RUN);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(command[0], command);
	say("%s: %s", command[0], strerror(errno));
	_exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN);
}

static int
status_of(int status)
{
	return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

int
child_run(char **command)
{
	pid_t parent = getpid(), child;
	sigset_t watched, mask;
	siginfo_t signal;
	unsigned int i;
	int status;

	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	for (i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&watched, forwarded[i]);
	sigprocmask(SIG_BLOCK, &watched, &mask);
	child = fork();
	if (child == 0)
		execute(command, parent, &mask);
	if (child < 0) {
		say("cannot fork: %s", strerror(errno));
		return STATUS_NOT_RUN;
	}
	for (;;) {
		if (sigwaitinfo(&watched, &signal) < 0)
			continue; /* stopped and continued */
		if (signal.si_signo == SIGCHLD) {
			if (waitpid(child, &status, WNOHANG) == child)
				return status_of(status);
		} else if (signal.si_code != SI_KERNEL) {
			/* What comes from the terminal comes to the command, too. */
			kill(child, signal.si_signo);
		}
	}
}
