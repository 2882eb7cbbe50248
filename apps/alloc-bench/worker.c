/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include <cli.h>

#include "worker.h"

#define WORKER_FD    3
#define LCORES_LEN   4096
#define WORKER_EAL_M "64" /* MiB: tables and the ring; what is measured lies elsewhere */

struct worker {
	pid_t pid;
	int fd;
};

/* The first message. */
struct order {
	uint32_t subject;
	struct need need;
};

/* "0@0,1@1": the lcores of this process and the processors that they may run on. */
static void
describe_lcores(char text[LCORES_LEN])
{
	unsigned int lcore_id, cpu, len = 0;

	RTE_LCORE_FOREACH (lcore_id) {
		const rte_cpuset_t cpus = rte_lcore_cpuset(lcore_id);
		char separator = '(';

		len += snprintf(
			text + len, LCORES_LEN - len, "%s%u@", len > 0 ? "," : "", lcore_id);
		for (cpu = 0; cpu < CPU_SETSIZE && len < LCORES_LEN - 16; cpu++) {
			if (!CPU_ISSET(cpu, &cpus))
				continue;
			len += snprintf(text + len, LCORES_LEN - len, "%c%u", separator, cpu);
			separator = ',';
		}
		len += snprintf(text + len, LCORES_LEN - len, ")");
	}
}

/* The environment with LD_PRELOAD, which the caller frees. */
static char **
make_environment(const char *library, char preload[64])
{
	char **copy;
	size_t n = 0, kept = 0;

	while (environ[n] != NULL)
		n++;
	copy = calloc(n + 2, sizeof(*copy));
	if (copy == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (library[0] == '\0' || strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
			copy[kept++] = environ[i];
	snprintf(preload, 64, "LD_PRELOAD=%s", library);
	if (library[0] != '\0')
		copy[kept] = preload;
	return copy;
}

static int
spawn(struct worker *worker, const char *library, int fd)
{
	static char lcores[LCORES_LEN];
	char main_lcore[16], preload[64];
	char *argv[] = {program_invocation_name, (char[]){WORKER_WORD}, (char[]){"--lcores"},
		lcores, (char[]){"--main-lcore"}, main_lcore, NULL};
	char **environment = make_environment(library, preload);
	posix_spawn_file_actions_t actions;
	int err;

	if (environment == NULL)
		return -ENOMEM;
	describe_lcores(lcores);
	snprintf(main_lcore, sizeof(main_lcore), "%u", rte_get_main_lcore());
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, WORKER_FD);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawn(&worker->pid, "/proc/self/exe", &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	free(environment);
	return -err;
}

/* Whole messages; false when the other side is gone. */
static bool
send_message(int fd, const void *message, size_t len)
{
	return send(fd, message, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static bool
receive_message(int fd, void *message, size_t len)
{
	ssize_t got;

	do
		got = recv(fd, message, len, 0);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)len;
}

struct worker *
worker_start(uint32_t subject, const struct need *need)
{
	const struct order order = {subject, *need};
	struct worker *worker = calloc(1, sizeof(*worker));
	int fds[2], err = -ENOMEM;

	if (worker != NULL && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0) {
		worker->fd = fds[0];
		err = spawn(worker, subjects[subject].library, fds[1]);
		close(fds[1]);
		if (err != 0)
			close(fds[0]);
	}
	if (err != 0) {
		free(worker);
		rte_errno = -err;
		return NULL;
	}
	if (send_message(worker->fd, &order, sizeof(order)) &&
		receive_message(worker->fd, &err, sizeof(err)) && err == 0)
		return worker;
	worker_stop(worker);
	rte_errno = err != 0 ? -err : EPIPE;
	return NULL;
}

int
worker_measure(struct worker *worker, const struct request *request, struct reply *reply)
{
	return send_message(worker->fd, request, sizeof(*request)) &&
			       receive_message(worker->fd, reply, sizeof(*reply))
		       ? 0
		       : -EPIPE;
}

void
worker_stop(struct worker *worker)
{
	close(worker->fd);
	waitpid(worker->pid, NULL, 0);
	free(worker);
}

/* ---- the other side ---- */

/* Whether malloc() comes from the library; ld.so only warns of one that it does not find. */
static bool
has_library(const char *library)
{
	void *symbol = dlsym(RTLD_DEFAULT, "malloc");
	const char *name;
	Dl_info info;

	if (library[0] == '\0')
		return true;
	if (symbol == NULL || dladdr(symbol, &info) == 0)
		return false;
	name = strrchr(info.dli_fname, '/');
	return strcmp(name != NULL ? name + 1 : info.dli_fname, library) == 0;
}

static int
begin(const struct order *order)
{
	int err;

	if (order->subject >= n_subjects)
		return -EINVAL;
	if (!has_library(subjects[order->subject].library))
		return -ENOENT;
	err = measure_init(order->need.objects);
	return err != 0 ? err : measure_open(order->subject, &order->need);
}

static int
start_eal(int argc, char **argv)
{
	char *eal[] = {argv[0], (char[]){"--no-huge"}, (char[]){"--no-shconf"},
		(char[]){"--no-pci"}, (char[]){"--no-telemetry"}, (char[]){"-m"},
		(char[]){WORKER_EAL_M}, NULL, NULL, NULL, NULL, NULL};
	int n = 7;

	for (int i = 2; i < argc && n < (int)RTE_DIM(eal) - 1; i++)
		eal[n++] = argv[i];
	return rte_eal_init(n, eal);
}

int
worker_main(int argc, char **argv)
{
	static struct reply reply;
	struct request request;
	struct order order;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	closefrom(WORKER_FD + 1);
	if (!receive_message(WORKER_FD, &order, sizeof(order))) {
		cli_error(WORKER_WORD " is how the program starts itself; see --help");
		return CLI_EXIT_USAGE;
	}
	if (start_eal(argc, argv) < 0)
		return CLI_EXIT_FAILURE;
	err = begin(&order);
	if (!send_message(WORKER_FD, &err, sizeof(err)) || err != 0)
		return CLI_EXIT_FAILURE;
	while (receive_message(WORKER_FD, &request, sizeof(request))) {
		measure(&request, &reply);
		if (!send_message(WORKER_FD, &reply, sizeof(reply)))
			break;
	}
	return 0;
}
