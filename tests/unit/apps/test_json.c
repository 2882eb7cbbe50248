/* SPDX-License-Identifier: BSD-3-Clause */
/* Result files: whole, or not there, and never in place of something else. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json.h>

static char folder[64];

static const char *
in_folder(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static unsigned int
count_files(void)
{
	unsigned int n = 0;
	const struct dirent *entry;
	DIR *dir = opendir(folder);

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static int
make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_json.XXXXXX");
	return mkdtemp(folder) == NULL ? -1 : 0;
}

static int
remove_folder(void **state)
{
	(void)state;
	unlink(in_folder("result"));
	return rmdir(folder);
}

static void
test_save(void **state)
{
	json_t *value = json_pack("{s:i}", "a", 1), *read;

	(void)state;
	assert_int_equal(json_can_save(in_folder("result")), 0);
	assert_int_equal(count_files(), 0);
	assert_int_equal(json_save(value, in_folder("result")), 0);
	assert_int_equal(count_files(), 1);
	read = json_load_file(in_folder("result"), 0, NULL);
	assert_true(json_equal(value, read));
	json_decref(read);

	/* A second result replaces the first. */
	json_object_set_new(value, "a", json_integer(2));
	assert_int_equal(json_can_save(in_folder("result")), 0);
	assert_int_equal(json_save(value, in_folder("result")), 0);
	assert_int_equal(count_files(), 1);
	read = json_load_file(in_folder("result"), 0, NULL);
	assert_true(json_equal(value, read));
	json_decref(read);
	json_decref(value);
}

/* What cannot be written leaves the old file, and nothing beside it. */
static void
test_failure_keeps_the_old(void **state)
{
	json_t *good = json_pack("{s:i}", "a", 1), *bad = json_integer(5), *read;

	(void)state;
	assert_int_equal(json_save(good, in_folder("result")), 0);
	assert_true(json_save(bad, in_folder("result")) < 0); /* not an object or array */
	assert_int_equal(count_files(), 1);
	read = json_load_file(in_folder("result"), 0, NULL);
	assert_true(json_equal(good, read));
	json_decref(read);
	json_decref(good);
	json_decref(bad);
}

static void
test_refused(void **state)
{
	(void)state;
	assert_int_equal(json_can_save(in_folder("no/result")), -ENOENT);
	assert_int_equal(json_can_save(folder), -EISDIR);
	assert_int_equal(json_can_save("/dev/null"), -EEXIST);
	assert_string_equal(json_strerror(-EEXIST), "not a regular file");
	assert_int_equal(json_can_save("/proc/result"), -ENOENT);
	assert_int_equal(count_files(), 0);
}

static void
test_real_or_null(void **state)
{
	json_t *null = json_real_or_null(NAN), *real = json_real_or_null(1.5);

	(void)state;
	assert_true(json_is_null(null));
	assert_true(json_is_real(real));
	json_decref(real);
	real = json_real_or_null(INFINITY);
	assert_true(json_is_null(real));
}

static void
test_members(void **state)
{
	json_t *object = json_object(), *expected;

	(void)state;
	json_set_count(object, "count", 7);
	json_set_real(object, "real", 0.5);
	json_set_real(object, "not a number", NAN);
	json_set_flag(object, "flag", true);
	json_set_text(object, "text", "word");
	json_set_text(object, "nothing", NULL);
	json_set(object, "list", json_array());
	expected = json_pack("{s:i, s:f, s:n, s:b, s:s, s:n, s:[]}", "count", 7, "real", 0.5,
		"not a number", "flag", 1, "text", "word", "nothing", "list");
	assert_true(json_equal(object, expected));
	json_decref(expected);
	json_decref(object);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_save, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(
			test_failure_keeps_the_old, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_refused, make_folder, remove_folder),
		cmocka_unit_test(test_real_or_null),
		cmocka_unit_test(test_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
