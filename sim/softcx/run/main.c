/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "run.h"

#define LIBRARY       "libsoftcx.so"
#define REAL_DEVICES  "/sys/class/infiniband"
#define EXIT_USAGE    2
#define OPTIONS_MAX   64
#define OPTIONS_BYTES 4096

/* Options of the card, as softcx_config_set() knows them. */
static const struct {
	const char *name, *argument, *help;
} options[] = {
	{"ports", "N", "ports, each a PCI function and a netdev (1)"},
	{"queues", "N", "most receive queues, and send queues, of a port"},
	{"rate", "RATE", "bits per second of a port, as 100G; max: no limit (100G)"},
	{"frame", "SIZES", "bytes with FCS: one size, imix, or a list as 64,512,1518 (1518)"},
	{"streams", "N", "5-tuples that a port's generator offers (16)"},
	{"packets", "N", "the generator ends after so many; 0: never (0)"},
	{"wire", "KIND", "gen, loop, sink or pair (gen)"},
	{"payload", "KIND", "what is copied of a frame: none, header or full (header)"},
	{"clock", "KIND", "real, or virtual: stands still while either side is descheduled (real)"},
	{"device-cpu", "N", "processor of the first port's thread; the next has the next (any)"},
	{"stats", "FILE", "write counters there as JSON when the command ends"},
	{"probe", NULL, "offer the full rate only once a first packet was taken"},
	{"pause", NULL, "flow control: the generator waits while there is no buffer"},
	{"yield", NULL, "let the processor go after each turn, to whom the device shares it with"},
	{"strict", NULL, "report what hardware would punish"},
	{"delay", "US", "the device sleeps at random up to so long (0)"},
	{"inject", "KIND:N",
		"fail each Nth WQE: rq- or sq-, with length, op or prot; or command: with reset, "
		"ready or destroy (none)"},
	{"seed", "N", "of all that is random"},
};
#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

void
say(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, PROGRAM ": ");
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static void
usage(FILE *f)
{
	char option[64];
	size_t i;

	fprintf(f, "usage: " PROGRAM " [OPTION...] -- COMMAND [ARGUMENT...]\n"
		   "Run a command on a software ConnectX.\n");
	for (i = 0; i < N_OPTIONS; i++) {
		snprintf(option, sizeof(option), "--%s %s", options[i].name,
			options[i].argument == NULL ? "" : options[i].argument);
		fprintf(f, "  %-18s %s\n", option, options[i].help);
	}
	fprintf(f, "  %-18s %s\n  %-18s %s\n", "--help", "this text", "--version", "the version");
}

/* The card that the command line describes, checked, and as text for the library. */
struct request {
	struct softcx_config config;
	char text[OPTIONS_BYTES];
	char stats[PATH_MAX];
	char **command;
};

/* The command may change its folder. */
static int
absolute(const char *path, char *full, size_t size)
{
	char folder[PATH_MAX];
	int length;

	if (path[0] == '/' || getcwd(folder, sizeof(folder)) == NULL)
		length = snprintf(full, size, "%s", path);
	else
		length = snprintf(full, size, "%s/%s", folder, path);
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

static int
set_option(struct request *request, const char *name, const char *value)
{
	size_t used = strlen(request->text);
	const char *why = "not a value of it";
	int error;

	if (strcmp(name, "stats") == 0) {
		if (absolute(value, request->stats, sizeof(request->stats)) < 0) {
			say("--stats %s: the name is too long", value);
			return -EINVAL;
		}
		value = request->stats;
	}
	error = softcx_config_set(&request->config, name, value, &why);
	if (error < 0) {
		say("--%s %s: %s", name, value, why);
		return error;
	}
	if (strchr(value, '\n') != NULL ||
		snprintf(request->text + used, sizeof(request->text) - used, "%s=%s\n", name,
			value) >= (int)(sizeof(request->text) - used)) {
		say("--%s: the value is too long", name);
		return -EINVAL;
	}
	return 0;
}

/* The option that a word names, and where its value begins if it is in the same word. */
static int
find_option(const char *word, const char **value)
{
	size_t i;

	for (i = 0; i < N_OPTIONS; i++) {
		size_t length = strlen(options[i].name);

		if (strncmp(word, options[i].name, length) != 0)
			continue;
		*value = word[length] == '=' ? word + length + 1 : NULL;
		if (word[length] == '\0' || *value != NULL)
			return (int)i;
	}
	return -1;
}

static int
parse(int argc, char **argv, struct request *request)
{
	int i, option;

	softcx_config_init(&request->config);
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *value = NULL;

		if (strcmp(argv[i], "--help") == 0) {
			usage(stdout);
			exit(0);
		}
		if (strcmp(argv[i], "--version") == 0) {
			printf(PROGRAM " " PAGELANE_VERSION "\n");
			exit(0);
		}
		option = strncmp(argv[i], "--", 2) == 0 ? find_option(argv[i] + 2, &value) : -1;
		if (option < 0) {
			say("unknown option %s; see --help, and put -- before the command",
				argv[i]);
			return -EINVAL;
		}
		if (options[option].argument == NULL) {
			if (value != NULL) {
				say("--%s takes no value", options[option].name);
				return -EINVAL;
			}
			value = "yes";
		} else if (value == NULL) {
			if (i + 1 == argc) {
				say("--%s needs a value", options[option].name);
				return -EINVAL;
			}
			value = argv[++i];
		}
		if (set_option(request, options[option].name, value) < 0)
			return -EINVAL;
	}
	if (i + 1 >= argc) {
		say("no command; usage: " PROGRAM " [OPTION...] -- COMMAND [ARGUMENT...]");
		return -EINVAL;
	}
	request->command = argv + i + 1;
	return 0;
}

/* Programs would see ours instead of them. */
static bool
real_devices(void)
{
	DIR *folder = opendir(REAL_DEVICES);
	const struct dirent *entry;
	bool found = false;

	if (folder == NULL)
		return false;
	while (!found && (entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] != '.') {
			say("this machine has an RDMA device, %s, which softcx would hide",
				entry->d_name);
			found = true;
		}
	}
	closedir(folder);
	return found;
}

/* The library lies beside this program where it was built, and in a folder of its own elsewhere. */
static int
find_library(char *path, size_t size)
{
	char folder[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	char *slash;

	if (length > 0) {
		folder[length] = '\0';
		slash = strrchr(folder, '/');
		*slash = '\0';
		if (snprintf(path, size, "%s/" LIBRARY, folder) < (int)size &&
			access(path, R_OK) == 0)
			return 0;
	}
	snprintf(path, size, "%s/" LIBRARY, SOFTCX_LIBRARY_FOLDER);
	if (access(path, R_OK) == 0)
		return 0;
	say("no " LIBRARY ", neither beside this program nor in %s", SOFTCX_LIBRARY_FOLDER);
	return -ENOENT;
}

/* Where LD_PRELOAD would not take the library's own path. */
static int
link_library(const char *library, const char *path)
{
	if (strcmp(library, path) == 0 || symlink(library, path) == 0)
		return 0;
	say("%s cannot be made: %s; set TMPDIR to another folder", path, strerror(errno));
	return -EIO;
}

static int
set_environment(const struct request *request, const char *library, const char *folder)
{
	const char *preload = getenv("LD_PRELOAD");
	char text[2 * PATH_MAX];

	/* A sanitizer's run-time must stay the first. */
	snprintf(text, sizeof(text), "%s%s%s", preload == NULL ? "" : preload,
		preload == NULL || *preload == '\0' ? "" : ":", library);
	if (setenv("LD_PRELOAD", text, 1) < 0 || setenv("SYSFS_PATH", folder, 1) < 0 ||
		setenv("SOFTCX_OPTIONS", request->text, 1) < 0)
		return -ENOMEM;
	snprintf(text, sizeof(text), "%s/bus/pci/devices", folder);
	return setenv("SYSFS_PCI_DEVICES", text, 1) < 0 ? -ENOMEM : 0;
}

/* Everything in `folder`, which goes with us. Returns an exit status. */
static int
run(const struct request *request, const char *library, const char *folder)
{
	char path[PATH_MAX];
	bool netdevs;

	if (preflight_preload(library, folder, path, sizeof(path)) < 0)
		return EXIT_FAILURE;
	if (!namespaces_enter(folder))
		say("no network namespace of its own (needs root)");
	netdevs = netdevs_create(request->config.ports) == 0;
	if (sysfs_create(folder, request->config.ports, netdevs) < 0 ||
		link_library(library, path) < 0)
		return EXIT_FAILURE;
	if (set_environment(request, path, folder) < 0) {
		say("no memory for the environment");
		return EXIT_FAILURE;
	}
	return child_run(request->command);
}

int
main(int argc, char **argv)
{
	static struct request request;
	char library[PATH_MAX], folder[PATH_MAX];
	int error, status;

	preflight_descriptors();
	if (parse(argc, argv, &request) < 0)
		return EXIT_USAGE;
	if (real_devices() || find_library(library, sizeof(library)) < 0 ||
		(request.stats[0] != '\0' && preflight_stats(request.stats) < 0) ||
		preflight_processors(request.config.device_cpu, request.config.ports) < 0)
		return EXIT_FAILURE;
	error = guardian_start(folder, sizeof(folder));
	if (error < 0) {
		say("no folder for the device files: %s; set TMPDIR to one that can be written",
			strerror(-error));
		return EXIT_FAILURE;
	}
	status = run(&request, library, folder);
	guardian_stop();
	return status;
}
