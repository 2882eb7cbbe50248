/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Command lines of the programs: a table of long options, strict numbers, and one line per error.
 * No abbreviations and no guesses: a benchmark that misread its options measured something else.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum cli_exit {
	CLI_EXIT_FAILURE = 1, /* the machine, the run or its result */
	CLI_EXIT_USAGE = 2,   /* the command line */
};

enum cli_kind {
	CLI_FLAG,   /* no argument; value is a bool */
	CLI_NUMBER, /* min..max; value is a uint32_t */
	CLI_WORD,   /* one of `words`; value is an int, its index */
	CLI_TEXT,   /* anything but the empty string; value is a const char * into argv */
	CLI_LIST,   /* numbers and ranges within min..max, as 0,2-4; value is a struct cli_list */
};

#define CLI_LIST_MAX 64

struct cli_list {
	uint32_t n;
	uint32_t number[CLI_LIST_MAX]; /* as they were given; none twice */
};

struct cli_option {
	const char *name;     /* without dashes; NULL ends a table */
	const char *argument; /* how the help calls it */
	const char *help;
	enum cli_kind kind;
	uint32_t min, max;
	const char *const *words; /* NULL-terminated */
	void *value;              /* left alone when the option is not given */
};

/*
 * To be called first. The name starts every line of cli_error(); kept by reference. Standard files
 * that are closed become /dev/null, or a file of ours would take their place.
 */
void cli_start(const char *name);

/* To be called last: `status`, or after a line that what was printed did not arrive, a failure's.
 */
int cli_finish(int status);

/* "<program>: <message>" and a newline on stderr; by convention "<cause>; <remedy>". */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A decimal number within min..max, or one cli_error() line and -EINVAL. */
int cli_parse_number(
	const char *option, const char *text, uint32_t min, uint32_t max, uint32_t *value);

/* The index of `text` among `words`, or one cli_error() line and -EINVAL. */
int cli_parse_word(const char *option, const char *text, const char *const *words, int *value);

/* A comma-separated list of numbers and ranges, or one cli_error() line and -EINVAL. */
int cli_parse_list(
	const char *option, const char *text, uint32_t min, uint32_t max, struct cli_list *list);

/* Options from argv[0] on, as "--name value" or "--name=value". 0, or one line and -EINVAL. */
int cli_parse(const struct cli_option *options, int argc, char **argv);

/* The index of a word after argv[0], or one that is not below argc; and whether it is there. */
int cli_find_word(int argc, char **argv, const char *word);
bool cli_has_word(int argc, char **argv, const char *word);

/* The option that a command line's word names, or NULL. */
const struct cli_option *cli_find(const struct cli_option *options, const char *word);

/* A line or two per option. */
void cli_print_options(const struct cli_option *options, FILE *f);
