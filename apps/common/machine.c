/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_memory.h>
#include <rte_version.h>

#include "machine.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#define VULNERABILITIES "/sys/devices/system/cpu/vulnerabilities"

/* The first line of a file without its newline, or NULL. */
static const char *
read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");
	const char *got;

	if (f == NULL)
		return NULL;
	got = fgets(line, size, f);
	fclose(f);
	if (got != NULL)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

static json_t *
string_or_null(const char *text)
{
	return text == NULL ? json_null() : json_string(text);
}

static json_t *
cpu_model(void)
{
	char line[256];
	const char *model = NULL;
	FILE *f = fopen("/proc/cpuinfo", "re");

	if (f == NULL)
		return json_null();
	while (model == NULL && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL)
			model = strchr(line, ':') + 1;
	}
	fclose(f);
	return string_or_null(model == NULL ? NULL : model + strspn(model, " "));
}

/* One entry per weakness that the kernel knows, with what it does about it. */
static json_t *
mitigations(void)
{
	char path[512], line[256];
	const struct dirent *entry;
	json_t *all;
	DIR *dir = opendir(VULNERABILITIES);

	if (dir == NULL)
		return json_null();
	all = json_object();
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), VULNERABILITIES "/%s", entry->d_name);
		json_object_set_new(
			all, entry->d_name, string_or_null(read_line(path, line, sizeof(line))));
	}
	closedir(dir);
	return all;
}

/* Where rte_eal_init() comes from: librte_eal.so, or the program itself. */
static const char *
linkage(void)
{
	void *symbol = dlsym(RTLD_DEFAULT, "rte_eal_init");
	Dl_info info;

	if (symbol != NULL && dladdr(symbol, &info) != 0 &&
		strstr(info.dli_fname, "librte_eal") != NULL)
		return "shared";
	return "static";
}

static int
smallest_page_size(const struct rte_memseg_list *list, void *arg)
{
	uint64_t *size = arg;

	if (!list->external && (*size == 0 || list->page_sz < *size))
		*size = list->page_sz;
	return 0;
}

uint64_t
machine_page_size(void)
{
	uint64_t size = 0;

	rte_memseg_list_walk(smallest_page_size, &size);
	return size;
}

#define ADDS 1000000
#define RUNS 21

/* ADDS additions, each waiting for the one before. */
static uint64_t
add_chain(void)
{
	const uint64_t start = rte_rdtsc_precise();
	uint64_t sum = start;

	for (uint32_t i = 0; i < ADDS / 20; i++) {
#pragma GCC unroll 20
		for (uint32_t k = 0; k < 20; k++) {
			sum += start;
			__asm__ volatile("" : "+r"(sum));
		}
	}
	return rte_rdtsc_precise() - start;
}

double
machine_tsc_per_core_cycle(void)
{
	uint64_t least = UINT64_MAX, cycles;

	for (uint32_t i = 0; i < RUNS; i++) {
		cycles = add_chain();
		if (cycles < least)
			least = cycles;
	}
	return (double)least / ADDS;
}

double
machine_steal_ms(void)
{
	uint64_t steal;
	FILE *f = fopen("/proc/stat", "re");
	int n;

	if (f == NULL)
		return NAN;
	/* user nice system idle iowait irq softirq steal */
	n = fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &steal);
	fclose(f);
	return n == 1 ? steal * 1000.0 / sysconf(_SC_CLK_TCK) : NAN;
}

json_t *
machine_facts(void)
{
	struct utsname kernel;
	char governor[64];

	uname(&kernel);
	return json_pack("{so sI sI ss sI ss ss ss ss so so}", "cpu", cpu_model(), "cores",
		(json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "tsc_hz", (json_int_t)rte_get_tsc_hz(),
		"kernel", kernel.release, "hugepage_size", (json_int_t)machine_page_size(), "dpdk",
		rte_version(), "compiler", COMPILER, "march", APPS_MARCH, "linkage", linkage(),
		"mitigations", mitigations(), "governor",
		string_or_null(read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
			governor, sizeof(governor))));
}
