/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the user asked for, checked as far as it can be before EAL is up. */

#include <stdbool.h>
#include <stdint.h>

#include <cli.h>

#define PROGRAM "alloc-bench"

#define SIZE_MAX_KMALLOC (1u << 20)
#define WORDS_MAX        64

enum command {
	COMMAND_TIME,
	COMMAND_PAGES,
	COMMAND_KMALLOC,
	COMMAND_PIPELINE,
	COMMAND_CONTEND,
	COMMAND_LATENCY,
	COMMAND_TOUCH,
	COMMAND_COMPARE,
	N_COMMANDS,
};

enum case_order {
	ORDER_SHUFFLE,
	ORDER_ASCENDING,
	ORDER_DESCENDING,
};

struct options {
	int command; /* enum command */
	struct cli_list orders, batches, sizes;
	uint32_t size;    /* touch */
	uint32_t colours; /* touch; 0: as many as an object leaves room for in its page */
	uint32_t count;   /* kmalloc: objects of the first pattern */
	uint32_t burst;
	uint32_t rounds;
	uint32_t sample_us; /* 0: the test's own */
	uint32_t seed;      /* 0: by the clock */
	uint32_t memory;    /* MiB that objects of one row may take */
	uint32_t delay;
	uint32_t warm_up;     /* passes */
	int order;            /* enum case_order */
	int cycles;           /* --unit: ns, cycles */
	const char *subjects; /* words separated by commas; NULL: all */
	const char *pcp;      /* modes, as above */
	const char *checks;   /* of page caches, as above, but never NULL */
	const char *json, *csv, *plot;
	const char *compare[2];
	bool list, help, version;
};

/* For what follows EAL's options. 0, or -EINVAL after one line on stderr. */
int options_parse(struct options *options, int argc, char **argv);

/* Whether this word is one of the program's options, wherever it stands. */
bool options_knows(const char *word);

/* Whether this word is a sub-command. */
bool options_is_command(const char *word);

const char *options_command_name(int command);
const char *options_order_name(int order);
void options_print_help(FILE *f);

/* Whether `word` is one of a comma-separated list. */
bool options_has_word(const char *list, const char *word);
