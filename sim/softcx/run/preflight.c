/* SPDX-License-Identifier: BSD-3-Clause */
/* What would otherwise fail late, or in the command's hands, and with less to say. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

/* What parts the names in LD_PRELOAD. */
#define SEPARATORS ": \t\n"

void
preflight_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int
preflight_stats(const char *path)
{
	struct stat st;
	const bool is_new = stat(path, &st) < 0;
	/* A pipe may have no reader yet. */
	const int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);

	if (fd < 0 && errno != ENXIO) {
		const int error = errno;

		say("--stats %s: %s; choose another file", path, strerror(error));
		return -error;
	}
	if (fd >= 0)
		close(fd);
	if (is_new)
		unlink(path);
	return 0;
}

int
preflight_processors(int first, unsigned int n)
{
	cpu_set_t before, one;
	int cpu, error = 0;

	if (first < 0 || sched_getaffinity(0, sizeof(before), &before) < 0)
		return 0;
	for (cpu = first; cpu < first + (int)n && error == 0; cpu++) {
		CPU_ZERO(&one);
		if (cpu < CPU_SETSIZE)
			CPU_SET((size_t)cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one) < 0) {
			error = -errno;
			say("--device-cpu %d: port %d cannot have processor %d; see nproc, and "
			    "give "
			    "each port one",
				first, cpu - first, cpu);
		}
	}
	sched_setaffinity(0, sizeof(before), &before);
	return error;
}

int
preflight_preload(const char *library, const char *folder, char *path, size_t size)
{
	if (strpbrk(library, SEPARATORS) == NULL) {
		snprintf(path, size, "%s", library);
		return 0;
	}
	snprintf(path, size, "%s/%s", folder, strrchr(library, '/') + 1);
	if (strpbrk(path, SEPARATORS) == NULL)
		return 0;
	say("LD_PRELOAD takes no path with a blank or a colon, as %s; set TMPDIR to a folder "
	    "without",
		path);
	return -EINVAL;
}
