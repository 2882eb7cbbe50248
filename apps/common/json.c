/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "json.h"

static int
open_beside(const char *path, char temporary[PATH_MAX])
{
	struct stat st;
	int fd;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EEXIST;
	if (snprintf(temporary, PATH_MAX, "%s.%d.tmp", path, getpid()) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	return fd < 0 ? -errno : fd;
}

int
json_can_save(const char *path)
{
	char temporary[PATH_MAX];
	const int fd = open_beside(path, temporary);

	if (fd < 0)
		return fd;
	close(fd);
	unlink(temporary);
	return 0;
}

int
save_by(const char *path, int (*write)(FILE *f, const void *arg), const void *arg)
{
	char temporary[PATH_MAX];
	const int fd = open_beside(path, temporary);
	FILE *f;
	int err;

	if (fd < 0)
		return fd;
	f = fdopen(fd, "w");
	if (f == NULL) {
		err = -errno;
		close(fd);
	} else {
		err = write(f, arg);
		if (fclose(f) != 0 && err == 0)
			err = -errno;
	}
	if (err == 0 && rename(temporary, path) < 0)
		err = -errno;
	if (err != 0)
		unlink(temporary);
	return err;
}

static int
write_json(FILE *f, const void *value)
{
	errno = 0;
	if (json_dumpf(value, f, JSON_INDENT(2) | JSON_REAL_PRECISION(10)) < 0 ||
		fputc('\n', f) == EOF)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

int
json_save(const json_t *value, const char *path)
{
	return save_by(path, write_json, value);
}

const char *
json_strerror(int err)
{
	return err == -EEXIST ? "not a regular file" : strerror(-err);
}

int
save_failed(const char *path, const char *option, int err)
{
	cli_error(
		"cannot write %s: %s; choose another --%s file", path, json_strerror(err), option);
	return err;
}

json_t *
json_real_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

void
json_set(json_t *object, const char *name, json_t *value)
{
	json_object_set_new(object, name, value);
}

void
json_set_count(json_t *object, const char *name, uint64_t count)
{
	json_set(object, name, json_integer(count));
}

void
json_set_real(json_t *object, const char *name, double value)
{
	json_set(object, name, json_real_or_null(value));
}

void
json_set_flag(json_t *object, const char *name, bool flag)
{
	json_set(object, name, json_boolean(flag));
}

void
json_set_text(json_t *object, const char *name, const char *text)
{
	json_set(object, name, text != NULL ? json_string(text) : json_null());
}
