/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines: what is understood, and the one line about what is not. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_common.h>

#include <cli.h>

static bool flag;
static uint32_t number;
static int word;
static const char *text;
static struct cli_list list;

static const char *const words[] = {"red", "green", NULL};
static const struct cli_option options[] = {
	{"flag", NULL, "a flag", CLI_FLAG, .value = &flag},
	{"number", "N", "a number", CLI_NUMBER, 1, 100, .value = &number},
	{"word", "WORD", "a word", CLI_WORD, .words = words, .value = &word},
	{"text", "TEXT", "a text", CLI_TEXT, .value = &text},
	{"list", "LIST", "a list", CLI_LIST, 0, 100, .value = &list},
	{.name = NULL},
};

/* What stderr got during the last parse(). */
static char said[1024];

/* Parse words separated by spaces; '_' stands for an empty one. */
static int
parse(const char *line)
{
	static char copy[256];
	char *argv[16], *rest = copy, *one;
	FILE *f = tmpfile();
	const int saved = dup(STDERR_FILENO);
	int argc = 0, result;
	size_t len;

	snprintf(copy, sizeof(copy), "%s", line);
	while ((one = strsep(&rest, " ")) != NULL && argc < (int)RTE_DIM(argv))
		argv[argc++] = strcmp(one, "_") == 0 ? &one[1] : one;
	flag = false;
	number = 7;
	word = -1;
	text = NULL;
	list.n = 0;

	assert_non_null(f);
	fflush(stderr);
	dup2(fileno(f), STDERR_FILENO);
	result = cli_parse(options, line[0] == '\0' ? 0 : argc, argv);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(f);
	len = fread(said, 1, sizeof(said) - 1, f);
	said[len] = '\0';
	fclose(f);
	return result;
}

static void
test_accepted(void **state)
{
	(void)state;
	assert_int_equal(parse(""), 0);
	assert_int_equal(number, 7);
	assert_int_equal(parse("--flag --number 100 --word green --text x=y"), 0);
	assert_true(flag);
	assert_int_equal(number, 100);
	assert_int_equal(word, 1);
	assert_string_equal(text, "x=y");
	assert_int_equal(parse("--number=1 --word=red --text=--flag"), 0);
	assert_false(flag);
	assert_int_equal(number, 1);
	assert_int_equal(word, 0);
	assert_string_equal(text, "--flag");
	assert_string_equal(said, "");
}

static void
test_list(void **state)
{
	(void)state;
	assert_int_equal(parse("--list 5"), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.number[0], 5);
	assert_int_equal(parse("--list 7,0-2,100-100"), 0);
	assert_int_equal(list.n, 5);
	assert_int_equal(list.number[0], 7);
	assert_int_equal(list.number[3], 2);
	assert_int_equal(list.number[4], 100);
	assert_int_equal(parse("--list 1 --list 0-63"), 0);
	assert_int_equal(list.n, 64);
}

static void
test_last_one_counts(void **state)
{
	(void)state;
	assert_int_equal(parse("--number 1 --number 2"), 0);
	assert_int_equal(number, 2);
}

static void
test_refused(void **state)
{
	static const struct {
		const char *line, *message;
	} cases[] = {
		{"--nothing", "test: unknown option '--nothing'; see --help\n"},
		{"-f", "test: unknown option '-f'; see --help\n"},
		{"--fla", "test: unknown option '--fla'; see --help\n"},
		{"--flagged", "test: unknown option '--flagged'; see --help\n"},
		{"--", "test: unknown option '--'; see --help\n"},
		{"word", "test: unexpected argument 'word'; see --help\n"},
		{"--flag=yes", "test: --flag takes no argument; leave out '=yes'\n"},
		{"--number", "test: --number lacks its argument; give N\n"},
		{"--number _", "test: --number  is not a number; give one from 1 to 100\n"},
		{"--number x", "test: --number x is not a number; give one from 1 to 100\n"},
		{"--number 5x", "test: --number 5x is not a number; give one from 1 to 100\n"},
		{"--number 1.5", "test: --number 1.5 is not a number; give one from 1 to 100\n"},
		{"--number -5", "test: --number -5 is not a number; give one from 1 to 100\n"},
		{"--number +5", "test: --number +5 is not a number; give one from 1 to 100\n"},
		{"--number 0x5", "test: --number 0x5 is not a number; give one from 1 to 100\n"},
		{"--number 0", "test: --number 0 is out of range; give 1 to 100\n"},
		{"--number 101", "test: --number 101 is out of range; give 1 to 100\n"},
		{"--number 4294967297", /* 1, were it cut to 32 bits */
			"test: --number 4294967297 is out of range; give 1 to 100\n"},
		{"--number 18446744073709551617", /* and to 64 */
			"test: --number 18446744073709551617 is out of range; give 1 to 100\n"},
		{"--word blue", "test: --word blue is unknown; give one of red, green\n"},
		{"--word re", "test: --word re is unknown; give one of red, green\n"},
		{"--text=", "test: --text is empty; give TEXT\n"},
		{"--list 1,", "test: --list  is not a number; give one from 0 to 100\n"},
		{"--list 1-", "test: --list  is not a number; give one from 0 to 100\n"},
		{"--list -1", "test: --list -1 is not a number; give one from 0 to 100\n"},
		{"--list 1-2-3", "test: --list 2-3 is not a number; give one from 0 to 100\n"},
		{"--list 99-101", "test: --list 101 is out of range; give 0 to 100\n"},
		{"--list 3-2", "test: --list 3-2 runs backwards; give 2-3\n"},
		{"--list 1-3,2", "test: --list names 2 twice; name it once\n"},
		{"--list 0-64", "test: --list has more than 64 numbers; give fewer\n"},
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(cases); i++) {
		assert_int_equal(parse(cases[i].line), -EINVAL);
		assert_string_equal(said, cases[i].message);
	}
}

static void
test_find(void **state)
{
	(void)state;
	assert_ptr_equal(cli_find(options, "--number"), &options[1]);
	assert_ptr_equal(cli_find(options, "--number=5"), &options[1]);
	assert_null(cli_find(options, "number"));
	assert_null(cli_find(options, "--"));
	assert_null(cli_find(options, "--="));
}

static void
test_find_word(void **state)
{
	char *argv[] = {"--help", "-l", "0", "--", "--help"};

	(void)state;
	assert_int_equal(cli_find_word(5, argv, "--"), 3);
	assert_int_equal(cli_find_word(5, argv, "--help"), 4); /* argv[0] is no word */
	assert_false(cli_has_word(4, argv, "--help"));
	assert_true(cli_has_word(5, argv, "--help"));
	assert_true(cli_find_word(0, argv, "--") >= 0);
	assert_false(cli_has_word(0, argv, "--help"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_last_one_counts),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_find_word),
	};

	cli_start("test");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
