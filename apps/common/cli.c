/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define HELP_COLUMN 24

static const char *program = "?";

void
cli_start(const char *name)
{
	int fd;

	program = name;
	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int
cli_finish(int status)
{
	const bool failed = ferror(stdout) != 0;

	errno = 0;
	if (fflush(stdout) == 0 && !failed)
		return status;
	cli_error("cannot write to standard output: %s; give it more room, or another file",
		errno != 0 ? strerror(errno) : "Input/output error");
	return status == 0 ? CLI_EXIT_FAILURE : status;
}

void
cli_error(const char *format, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	fprintf(stderr, "%s: %s\n", program, line); /* at once: lcores may be printing, too */
}

int
cli_parse_number(const char *option, const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	char *end;
	unsigned long long number;

	if (text[0] < '0' || text[0] > '9') {
		cli_error(
			"--%s %s is not a number; give one from %u to %u", option, text, min, max);
		return -EINVAL;
	}
	errno = 0;
	number = strtoull(text, &end, 10);
	if (*end != '\0') {
		cli_error(
			"--%s %s is not a number; give one from %u to %u", option, text, min, max);
		return -EINVAL;
	}
	if (errno == ERANGE || number < min || number > max) {
		cli_error("--%s %s is out of range; give %u to %u", option, text, min, max);
		return -EINVAL;
	}
	*value = number;
	return 0;
}

int
cli_parse_word(const char *option, const char *text, const char *const *words, int *value)
{
	char list[256] = "";
	int i;

	for (i = 0; words[i] != NULL; i++) {
		if (strcmp(text, words[i]) == 0) {
			*value = i;
			return 0;
		}
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			i == 0 ? "" : ", ", words[i]);
	}
	cli_error("--%s %s is unknown; give one of %s", option, text, list);
	return -EINVAL;
}

static int
add_to_list(const char *option, struct cli_list *list, uint32_t number)
{
	for (uint32_t i = 0; i < list->n; i++) {
		if (list->number[i] == number) {
			cli_error("--%s names %u twice; name it once", option, number);
			return -EINVAL;
		}
	}
	if (list->n == CLI_LIST_MAX) {
		cli_error("--%s has more than %d numbers; give fewer", option, CLI_LIST_MAX);
		return -EINVAL;
	}
	list->number[list->n++] = number;
	return 0;
}

int
cli_parse_list(
	const char *option, const char *text, uint32_t min, uint32_t max, struct cli_list *list)
{
	char words[512];
	char *rest = words, *word, *dash;
	uint32_t first, last;

	if (snprintf(words, sizeof(words), "%s", text) >= (int)sizeof(words)) {
		cli_error("--%s is too long; give fewer numbers", option);
		return -EINVAL;
	}
	list->n = 0;
	while ((word = strsep(&rest, ",")) != NULL) {
		dash = word[0] == '-' ? NULL : strchr(word, '-');
		if (dash != NULL)
			*dash++ = '\0';
		if (cli_parse_number(option, word, min, max, &first) < 0 ||
			cli_parse_number(option, dash != NULL ? dash : word, min, max, &last) < 0)
			return -EINVAL;
		if (first > last) {
			cli_error("--%s %u-%u runs backwards; give %u-%u", option, first, last,
				last, first);
			return -EINVAL;
		}
		for (; first <= last; first++)
			if (add_to_list(option, list, first) < 0)
				return -EINVAL;
	}
	return 0;
}

int
cli_find_word(int argc, char **argv, const char *word)
{
	int i = 1;

	while (i < argc && strcmp(argv[i], word) != 0)
		i++;
	return i;
}

bool
cli_has_word(int argc, char **argv, const char *word)
{
	return cli_find_word(argc, argv, word) < argc;
}

const struct cli_option *
cli_find(const struct cli_option *options, const char *word)
{
	size_t len;

	if (strncmp(word, "--", 2) != 0)
		return NULL;
	word += 2;
	len = strcspn(word, "=");
	for (; options->name != NULL; options++)
		if (strlen(options->name) == len && strncmp(options->name, word, len) == 0)
			return options;
	return NULL;
}

static int
parse_value(const struct cli_option *option, const char *text)
{
	switch (option->kind) {
	case CLI_NUMBER:
		return cli_parse_number(
			option->name, text, option->min, option->max, option->value);
	case CLI_WORD:
		return cli_parse_word(option->name, text, option->words, option->value);
	case CLI_TEXT:
		if (text[0] == '\0') {
			cli_error("--%s is empty; give %s", option->name, option->argument);
			return -EINVAL;
		}
		*(const char **)option->value = text;
		return 0;
	case CLI_LIST:
		return cli_parse_list(option->name, text, option->min, option->max, option->value);
	case CLI_FLAG:
		break;
	}
	return -EINVAL;
}

int
cli_parse(const struct cli_option *options, int argc, char **argv)
{
	const struct cli_option *option;
	const char *text;
	int i;

	for (i = 0; i < argc; i++) {
		option = cli_find(options, argv[i]);
		if (option == NULL) {
			cli_error("%s '%s'; see --help",
				argv[i][0] == '-' ? "unknown option" : "unexpected argument",
				argv[i]);
			return -EINVAL;
		}
		text = strchr(argv[i], '=');
		if (option->kind == CLI_FLAG) {
			if (text != NULL) {
				cli_error("--%s takes no argument; leave out '%s'", option->name,
					text);
				return -EINVAL;
			}
			*(bool *)option->value = true;
			continue;
		}
		if (text != NULL) {
			text++;
		} else if (i + 1 < argc) {
			text = argv[++i];
		} else {
			cli_error(
				"--%s lacks its argument; give %s", option->name, option->argument);
			return -EINVAL;
		}
		if (parse_value(option, text) < 0)
			return -EINVAL;
	}
	return 0;
}

void
cli_print_options(const struct cli_option *options, FILE *f)
{
	for (; options->name != NULL; options++) {
		const int len = fprintf(f, "  --%s%s%s", options->name,
			options->argument == NULL ? "" : " ",
			options->argument == NULL ? "" : options->argument);

		if (len >= HELP_COLUMN)
			fprintf(f, "\n%*s%s\n", HELP_COLUMN, "", options->help);
		else
			fprintf(f, "%*s%s\n", HELP_COLUMN - len, "", options->help);
	}
}
