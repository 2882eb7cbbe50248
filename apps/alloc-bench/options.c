/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include <pcp.h>
#include <samples.h>

#include "options.h"
#include "subject.h"

#define MEASURED ((1u << COMMAND_COMPARE) - 1) /* all sub-commands but compare */

static const char *const order_words[] = {"shuffle", "ascending", "descending", NULL};
static const char *const unit_words[] = {"ns", "cycles", NULL};

static const struct {
	const char *name, *help;
} commands[] = {
	[COMMAND_TIME] = {"time", "locks, sections and calls, as the kernel's time_bench"},
	[COMMAND_PAGES] = {"pages", "pages by order and batch, as the kernel's alloc-odr0-N"},
	[COMMAND_KMALLOC] = {"kmalloc", "objects by size, all at once and in pairs"},
	[COMMAND_PIPELINE] = {"pipeline", "allocate on one lcore, free on another"},
	[COMMAND_CONTEND] = {"contend", "all lcores at once, more live than caches hold"},
	[COMMAND_LATENCY] = {"latency", "percentiles of single calls, fresh and warm"},
	[COMMAND_TOUCH] = {"touch", "what an access to live objects costs their user"},
	[COMMAND_COMPARE] = {"compare", "A.json B.json: differences, and whether they are noise"},
};

static struct options parsed;

/* The options, and the sub-commands that have them. */
static const struct {
	uint32_t commands;
	struct cli_option option;
} table[] = {
	{1u << COMMAND_PAGES, {"orders", "LIST", "orders of the blocks, as 0-9 (0)", CLI_LIST, 0, 9,
				      .value = &parsed.orders}},
	{MEASURED & ~(1u << COMMAND_TIME | 1u << COMMAND_KMALLOC),
		{"batches", "LIST", "objects live at once, as 1,2,64 (by the test)", CLI_LIST, 1,
			1 << 20, .value = &parsed.batches}},
	{1u << COMMAND_KMALLOC, {"sizes", "LIST", "bytes (8,16,...,16384)", CLI_LIST, 1,
					SIZE_MAX_KMALLOC, .value = &parsed.sizes}},
	{1u << COMMAND_KMALLOC, {"count", "N", "objects of the first pattern (10000)", CLI_NUMBER,
					1, 1 << 20, .value = &parsed.count}},
	{1u << COMMAND_TOUCH, {"size", "N", "bytes of an object (2304, as an mbuf's)", CLI_NUMBER,
				      8, SIZE_MAX_KMALLOC, .value = &parsed.size}},
	{1u << COMMAND_TOUCH, {"colours", "N", "of staggered pages (as page pools do)", CLI_NUMBER,
				      2, 64, .value = &parsed.colours}},
	{MEASURED & ~(1u << COMMAND_TIME | 1u << COMMAND_TOUCH),
		{"burst", "N", "objects per bulk call, at most (32)", CLI_NUMBER, 1, 512,
			.value = &parsed.burst}},
	{MEASURED, {"subjects", "LIST", "names or families of --list (all)", CLI_TEXT,
			   .value = &parsed.subjects}},
	{MEASURED, {"pcp", "LIST", "modes of pagepool's caches (all)", CLI_TEXT,
			   .value = &parsed.pcp}},
	{MEASURED & ~(1u << COMMAND_TOUCH),
		{"checks", "LIST", "of pagepool: off, deferred, full (off)", CLI_TEXT,
			.value = &parsed.checks}},
	{MEASURED, {"rounds", "N", "samples per row (31)", CLI_NUMBER, 1, SAMPLES_MAX,
			   .value = &parsed.rounds}},
	{MEASURED, {"sample-us", "N", "microseconds per sample, at least (by the test)", CLI_NUMBER,
			   1, 1000000, .value = &parsed.sample_us}},
	{MEASURED, {"warm-up", "N", "passes of each sample that do not count (1)", CLI_NUMBER, 0,
			   1000, .value = &parsed.warm_up}},
	{MEASURED, {"order", "ORDER", "shuffle, ascending or descending (shuffle)", CLI_WORD,
			   .words = order_words, .value = &parsed.order}},
	{MEASURED, {"seed", "N", "of the shuffling (by the clock)", CLI_NUMBER, 1, UINT32_MAX,
			   .value = &parsed.seed}},
	{MEASURED, {"memory", "MIB", "leave out rows whose objects take more (256)", CLI_NUMBER, 1,
			   1 << 20, .value = &parsed.memory}},
	{MEASURED, {"delay", "N", "core cycles that subject delay adds (100)", CLI_NUMBER, 0,
			   1000000, .value = &parsed.delay}},
	{MEASURED | 1u << COMMAND_COMPARE,
		{"unit", "UNIT", "of tables: ns or cycles (ns)", CLI_WORD, .words = unit_words,
			.value = &parsed.cycles}},
	{MEASURED, {"json", "FILE", "write the results there", CLI_TEXT, .value = &parsed.json}},
	{MEASURED, {"csv", "FILE", "and there, as a table", CLI_TEXT, .value = &parsed.csv}},
	{MEASURED, {"plot", "FILE", "and there, as a picture: .svg or .png", CLI_TEXT,
			   .value = &parsed.plot}},
	{MEASURED, {"list", NULL, "the test's subjects", CLI_FLAG, .value = &parsed.list}},
	{MEASURED | 1u << COMMAND_COMPARE,
		{"help", NULL, "this text", CLI_FLAG, .value = &parsed.help}},
	{MEASURED | 1u << COMMAND_COMPARE, {"version", NULL, "the versions of " PROGRAM " and DPDK",
						   CLI_FLAG, .value = &parsed.version}},
};

/* Those of a sub-command, or all, ended by one without a name. */
static void
select_options(uint32_t wanted, struct cli_option options[RTE_DIM(table) + 1])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < RTE_DIM(table); i++)
		if ((table[i].commands & wanted) != 0)
			options[n++] = table[i].option;
	options[n] = (struct cli_option){.name = NULL};
}

static int
find_command(const char *word)
{
	for (int i = 0; i < N_COMMANDS; i++)
		if (strcmp(word, commands[i].name) == 0)
			return i;
	return -EINVAL;
}

bool
options_has_word(const char *list, const char *word)
{
	const size_t len = strlen(word);

	for (const char *start = list; start != NULL; start = strchr(start, ',')) {
		start += start != list;
		if (strncmp(start, word, len) == 0 && (start[len] == '\0' || start[len] == ','))
			return true;
	}
	return false;
}

/* Every word of a list must mean something. */
static int
check_words(const char *option, const char *list, bool (*is_known)(const char *), const char *see)
{
	char text[512];
	char *word, *rest = text;

	if (list == NULL)
		return 0;
	if (snprintf(text, sizeof(text), "%s", list) >= (int)sizeof(text)) {
		cli_error("--%s is too long; name fewer", option);
		return -EINVAL;
	}
	while ((word = strsep(&rest, ",")) != NULL) {
		if (!is_known(word)) {
			cli_error("--%s %s is unknown; see %s", option, word, see);
			return -EINVAL;
		}
	}
	return 0;
}

static bool
is_subject(const char *word)
{
	for (uint32_t i = 0; i < n_subjects; i++)
		if (subject_matches(&subjects[i], word))
			return true;
	return false;
}

static bool
is_mode(const char *word)
{
	enum pcp_mode mode;

	return pcp_mode_parse(word, &mode) == 0;
}

static bool
is_checks(const char *word)
{
	enum pcp_checks checks;

	return pcp_checks_parse(word, &checks) == 0;
}

static int
check(const struct options *options)
{
	const char *dot = options->plot == NULL ? NULL : strrchr(options->plot, '.');

	if (options->plot != NULL &&
		(dot == NULL || (strcmp(dot, ".svg") != 0 && strcmp(dot, ".png") != 0))) {
		cli_error(
			"--plot %s is no picture's name; end it with .svg or .png", options->plot);
		return -EINVAL;
	}
	if (options->plot != NULL && strpbrk(options->plot, "'\n") != NULL) {
		cli_error("--plot has a quote or a newline in its name; choose another");
		return -EINVAL;
	}
	if (check_words("subjects", options->subjects, is_subject, "--list") < 0)
		return -EINVAL;
	if (check_words("pcp", options->pcp, is_mode, "--help") < 0)
		return -EINVAL;
	return check_words("checks", options->checks, is_checks, "--help");
}

static int
parse_compare(int argc, char **argv)
{
	int files = 0;

	while (files < 2 && files < argc && argv[files][0] != '-') {
		parsed.compare[files] = argv[files];
		files++;
	}
	return files;
}

int
options_parse(struct options *options, int argc, char **argv)
{
	struct cli_option selected[RTE_DIM(table) + 1];
	int files = 0;

	parsed = (struct options){
		.checks = "off",
		.count = 10000,
		.size = 2304,
		.burst = 32,
		.rounds = 31,
		.memory = 256,
		.delay = 100,
		.warm_up = 1,
	};
	if (argc == 0) {
		cli_error("no sub-command; give one, see --help");
		return -EINVAL;
	}
	parsed.command = find_command(argv[0]);
	if (parsed.command < 0 && argv[0][0] != '-') {
		cli_error("unknown sub-command '%s'; see --help", argv[0]);
		return -EINVAL;
	}
	if (parsed.command == COMMAND_COMPARE)
		files = parse_compare(argc - 1, &argv[1]);
	const int skip = parsed.command < 0 ? 0 : 1 + files;

	select_options(parsed.command < 0 ? UINT32_MAX : 1u << parsed.command, selected);
	if (cli_parse(selected, argc - skip, &argv[skip]) < 0)
		return -EINVAL;
	if (parsed.help || parsed.version) {
		*options = parsed;
		return 0;
	}
	if (parsed.command < 0) {
		cli_error("no sub-command before %s; give one first, see --help", argv[0]);
		return -EINVAL;
	}
	if (parsed.command == COMMAND_COMPARE && files < 2) {
		cli_error("compare lacks a file; give two that --json wrote");
		return -EINVAL;
	}
	if (check(&parsed) < 0)
		return -EINVAL;
	*options = parsed;
	return 0;
}

bool
options_knows(const char *word)
{
	struct cli_option all[RTE_DIM(table) + 1];

	select_options(UINT32_MAX, all);
	return cli_find(all, word) != NULL;
}

bool
options_is_command(const char *word)
{
	return find_command(word) >= 0;
}

const char *
options_command_name(int command)
{
	return commands[command].name;
}

const char *
options_order_name(int order)
{
	return order_words[order];
}

void
options_print_help(FILE *f)
{
	struct cli_option all[RTE_DIM(table) + 1];

	fprintf(f, "usage: " PROGRAM " [EAL options] -- SUB-COMMAND [options]\n\n"
		   "Measure pagepool and its peers as the kernel measures its allocators.\n\n");
	for (int i = 0; i < N_COMMANDS; i++)
		fprintf(f, "  %-10s  %s\n", commands[i].name, commands[i].help);
	fprintf(f, "\n");
	select_options(UINT32_MAX, all);
	cli_print_options(all, f);
	fprintf(f, "\nWithout a choice among EAL's memory options, --in-memory is added.\n"
		   "Example: " PROGRAM " -l 0,1 -- pages --orders 0 --batches 1,32,16384\n");
}
