/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a lock's holder is dead, whatever the kernel answers. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "zone_unit.h"

#define PID 4242

static int kill_errno, open_errno;
static const char *stat_text;

int __wrap_kill(pid_t pid, int signal_number);
int __wrap_open64(const char *path, int flags, ...);
ssize_t __wrap_read(int fd, void *buf, size_t size);
ssize_t __real_read(int fd, void *buf, size_t size);

int
__wrap_kill(pid_t pid, int signal_number)
{
	assert_int_equal(pid, PID);
	assert_int_equal(signal_number, 0);
	errno = kill_errno;
	return kill_errno == 0 ? 0 : -1;
}

int
__wrap_open64(const char *path, int flags, ...)
{
	assert_string_equal(path, "/proc/4242/stat");
	assert_int_equal(flags, O_RDONLY | O_CLOEXEC);
	errno = open_errno;
	return open_errno == 0 ? dup(0) : -1;
}

ssize_t
__wrap_read(int fd, void *buf, size_t size)
{
	if (stat_text == NULL)
		return __real_read(fd, buf, size);

	const size_t n = strlen(stat_text);

	assert_true(n < size);
	memcpy(buf, stat_text, n);
	return (ssize_t)n;
}

/* Fields 4 to 19 of /proc/PID/stat; the next one is the number of threads. */
#define FIELDS " 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "

static void
dead_or_alive(void **state __rte_unused)
{
	static const struct {
		int kill_errno, open_errno;
		const char *stat;
		bool dead;
	} cases[] = {
		{ESRCH, 0, "", true},
		{0, 0, "4242 (name) S" FIELDS "1 0 99", false},
		{EPERM, 0, "4242 (name) R" FIELDS "1 0 99", false}, /* another user's */
		{0, 0, "4242 (name) Z" FIELDS "1 0 99", true},
		{0, 0, "4242 (name) X" FIELDS "0 0 99", true},
		{EPERM, 0, "4242 (name) Z" FIELDS "1 0 99", true},
		{0, 0, "4242 (name) Z" FIELDS "2 0 99", false},   /* its main thread has ended */
		{0, 0, "4242 (a) Z b) S" FIELDS "1 0 99", false}, /* names contain anything */
		{0, 0, "4242 (a) S b) Z" FIELDS "1 0 99", true},
		{0, ENOENT, "", false}, /* no /proc, or none for it any more: ask again */
		{0, 0, "", false},
		{0, 0, "nonsense", false},
		{0, 0, "4242 (name)", false},
		{0, 0, "4242 (name) Z 4 5", false},
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		kill_errno = cases[i].kill_errno;
		open_errno = cases[i].open_errno;
		stat_text = cases[i].stat;
		assert_int_equal(pp_process_is_dead(PID), cases[i].dead);
	}
	stat_text = NULL;
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(dead_or_alive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
