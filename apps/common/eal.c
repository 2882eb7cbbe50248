/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_version.h>

#include "capture.h"
#include "cli.h"
#include "eal.h"

#define HUGEPAGES   "/sys/kernel/mm/hugepages"
#define ADDED_MAX   6
#define FILES_MIN   64 /* with fewer EAL dies, or says that memory is missing */
#define DPDK_SERIES RTE_STR(RTE_VER_YEAR) "." RTE_STR(RTE_VER_MONTH)
#define HUGE_REMEDY "reserve some (sysctl vm.nr_hugepages=512), or run with --no-huge -m 512"

/* Whether EAL option `name` is given, as "name" or "name=value". */
static bool
has_option(int argc, char **argv, const char *name)
{
	const size_t len = strlen(name);
	int i;

	for (i = 1; i < argc; i++)
		if (strncmp(argv[i], name, len) == 0 &&
			(argv[i][len] == '\0' || argv[i][len] == '='))
			return true;
	return false;
}

static bool
has_any(int argc, char **argv, const char *const *names, unsigned int n)
{
	while (n > 0)
		if (has_option(argc, argv, names[--n]))
			return true;
	return false;
}

uint64_t
eal_free_hugepages(void)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	uint64_t total = 0, kib, pages;
	DIR *dir = opendir(HUGEPAGES);
	FILE *f;

	if (dir == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL) {
		if (sscanf(entry->d_name, "hugepages-%" SCNu64 "kB", &kib) != 1)
			continue;
		snprintf(path, sizeof(path), HUGEPAGES "/%s/free_hugepages", entry->d_name);
		f = fopen(path, "re");
		if (f == NULL)
			continue;
		if (fscanf(f, "%" SCNu64, &pages) == 1)
			total += pages * kib * 1024;
		fclose(f);
	}
	closedir(dir);
	return total;
}

/* Without a primary process EAL would wait for one, and with one its ports and memory are not ours.
 */
static int
refuse_secondary(void)
{
	cli_error("it must be a primary process; leave out --proc-type, or give a --file-prefix of "
		  "its "
		  "own");
	return CLI_EXIT_FAILURE;
}

static bool
wants_secondary(int argc, char **argv)
{
	const int i = cli_find_word(argc, argv, "--proc-type");

	return cli_has_word(argc, argv, "--proc-type=secondary") ||
	       (i + 1 < argc && strcmp(argv[i + 1], "secondary") == 0);
}

/* What EAL says in a page, otherwise or not at all, is found here before it starts. */
static int
check_arguments(int argc, char **argv, eal_own_option *is_own)
{
	struct rlimit files;
	int i;

	for (i = 1; i < argc; i++) {
		if (is_own(argv[i])) {
			cli_error("%s is an option of %s, not of EAL; put it after '--'", argv[i],
				program_invocation_short_name);
			return CLI_EXIT_USAGE;
		}
	}
	if (wants_secondary(argc, argv))
		return refuse_secondary();
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max < FILES_MIN) {
		cli_error("this process may open %u files only; raise the limit (ulimit -n 1024)",
			(unsigned int)files.rlim_max);
		return CLI_EXIT_FAILURE;
	}
	if (!has_option(argc, argv, "--no-huge") && eal_free_hugepages() == 0) {
		cli_error("no free hugepages; " HUGE_REMEDY);
		return CLI_EXIT_FAILURE;
	}
	return 0;
}

static int
add_defaults(int argc, char **argv, bool devices, char **added)
{
	static const char *const memory_options[] = {"--in-memory", "--no-huge", "--huge-dir",
		"--huge-unlink", "--file-prefix", "--proc-type", "--no-shconf", "--legacy-mem"};
	static const char *const sharing_options[] = {
		"--file-prefix", "--proc-type", "--no-shconf"};
	static char in_memory[] = "--in-memory", no_shconf[] = "--no-shconf";
	static char no_pci[] = "--no-pci", no_telemetry[] = "--no-telemetry";
	static char eal_level[] = "--log-level=lib.eal:error";
	static char telemetry_level[] = "--log-level=lib.telemetry:error";
	int n = 0;

	if (!has_any(argc, argv, memory_options, RTE_DIM(memory_options)))
		added[n++] = in_memory;
	else if (has_option(argc, argv, "--no-huge") &&
		 !has_any(argc, argv, sharing_options, RTE_DIM(sharing_options)))
		added[n++] = no_shconf;
	if (!devices) {
		added[n++] = no_pci;
		added[n++] = no_telemetry;
	}
	if (!has_option(argc, argv, "--log-level")) {
		added[n++] = eal_level;
		added[n++] = telemetry_level;
	}
	return n;
}

/* What to do about a cause; the first that is found in EAL's output counts. */
static const struct {
	const char *text;
	const char *remedy;
	int status;
} remedies[] = {
	{"core list", "choose among the processors that 'nproc' and 'taskset -p $$' allow",
		CLI_EXIT_USAGE},
	{"Cannot init plugins",
		"build the plugin for DPDK " DPDK_SERIES ", and name it without a path, with its "
		"folder in LD_LIBRARY_PATH",
		CLI_EXIT_FAILURE},
	{"parse device", "see 'dpdk-pmdinfo' and the --vdev names of the drivers, as net_null0",
		CLI_EXIT_FAILURE},
	{"Invalid 'command line' arguments",
		"see EAL's options in DPDK's guide; the program's own come after '--'",
		CLI_EXIT_USAGE},
	{"hugepage information", "mount a hugetlbfs, use --in-memory, or run with --no-huge -m 512",
		CLI_EXIT_FAILURE},
	{"virtual area",
		"raise the limit of address space (ulimit -v unlimited), or run with --no-huge "
		"-m 512",
		CLI_EXIT_FAILURE},
	{"memory", HUGE_REMEDY, CLI_EXIT_FAILURE},
	{"allocat", HUGE_REMEDY, CLI_EXIT_FAILURE},
	{"hugepage", HUGE_REMEDY, CLI_EXIT_FAILURE},
	{"Cannot init config",
		"another DPDK process may hold it: use --in-memory, or a --file-prefix of its own",
		CLI_EXIT_FAILURE},
};

/* The line that names the cause: the first of EAL's or getopt's; the last ones are general. */
static const char *
find_cause(char *output)
{
	char *cause = NULL, *text, *line, *rest = output;

	while (cause == NULL && (line = strsep(&rest, "\n")) != NULL) {
		text = strstr(line, ": ");
		if (strncmp(line, "EAL: ", 5) == 0)
			cause = line + 5;
		else if (text != NULL && strstr(text, " option") != NULL)
			cause = text + 2;
	}
	if (cause == NULL || cause[0] == '\0')
		return NULL;
	if (strncmp(cause, "FATAL: ", 7) == 0)
		cause += 7;
	text = &cause[strlen(cause) - 1];
	if (*text == '.')
		*text = '\0';
	return cause;
}

/* One line out of all that EAL printed. */
static int
explain(char *output)
{
	const char *remedy = geteuid() != 0 ? "try as root" : "see what it says with --log-level=8";
	const char *cause;
	int status = CLI_EXIT_FAILURE;
	unsigned int i;

	for (i = 0; i < RTE_DIM(remedies); i++) {
		if (strstr(output, remedies[i].text) != NULL) {
			remedy = remedies[i].remedy;
			status = remedies[i].status;
			break;
		}
	}
	cause = find_cause(output);
	cli_error("EAL does not start: %s; %s", cause != NULL ? cause : rte_strerror(rte_errno),
		remedy);
	return status;
}

int
eal_start(int argc, char **argv, bool devices, eal_own_option *is_own)
{
	char **all;
	char *output;
	int status, n;

	status = check_arguments(argc, argv, is_own);
	if (status != 0)
		return status;
	all = calloc(argc + ADDED_MAX + 1, sizeof(*all));
	if (all == NULL) {
		cli_error("no memory for EAL's arguments; free some");
		return CLI_EXIT_FAILURE;
	}
	all[0] = argv[0];
	n = 1 + add_defaults(argc, argv, devices, &all[1]);
	memcpy(&all[n], &argv[1], (argc - 1) * sizeof(*all));
	n += argc - 1;

	if (capture_begin() < 0) {
		cli_error("cannot hold back EAL's output: %s; free some memory", strerror(errno));
		free(all);
		return CLI_EXIT_FAILURE;
	}
	status = rte_eal_init(n, all);
	output = capture_end();
	free(all);
	if (status < 0) {
		status = explain(output);
	} else if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		status = refuse_secondary(); /* which --proc-type auto came to */
	} else {
		fputs(output, stderr); /* warnings, or what --log-level asked for */
		status = 0;
	}
	free(output);
	return status;
}
