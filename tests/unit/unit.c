/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_memzone.h>

#include "unit.h"

/* ---- EAL ---- */

static FILE *log_stream;
static char *log_text;
static size_t log_len;

const char *
unit_log(void)
{
	fflush(log_stream);
	log_text[log_len] = '\0'; /* older, longer text may follow */
	return log_text;
}

void
unit_log_clear(void)
{
	rewind(log_stream);
}

void
unit_skip_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("SKIP: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

/* EAL leaves its runtime folder behind, even where it puts nothing there. */
static void
eal_end(void)
{
	char *dir = strdup(rte_eal_get_runtime_dir());

	rte_eal_cleanup();
	rmdir(dir);
	free(dir);
}

static int
eal_init(unsigned int n_extra, const char *const *extra)
{
	static char arg[16][64] = {"unit", "", "", "--no-pci", "--no-telemetry"};
	static char *argv[RTE_DIM(arg) + 1]; /* EAL reorders it */
	unsigned int n = 5;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--)
		if (CPU_ISSET(cpu, &cpus))
			snprintf(arg[1], sizeof(arg[1]), "--lcores=0@%d", cpu);
	snprintf(arg[2], sizeof(arg[2]), "--file-prefix=pagelane-unit-%d", getpid());
	for (unsigned int i = 0; i < n_extra; i++)
		snprintf(arg[n++], sizeof(arg[0]), "%s", extra[i]);
	for (unsigned int i = 0; i < n; i++)
		argv[i] = arg[i];
	log_stream = open_memstream(&log_text, &log_len);
	/* a buffer that grew later would look like a leak */
	fprintf(log_stream, "%65536s", "");
	fflush(log_stream);
	unit_log_clear();
	rte_openlog_stream(log_stream);
	atexit(eal_end);
	return rte_eal_init((int)n, argv);
}

void
unit_eal_init(unsigned int mib)
{
	char memory[16];

	snprintf(memory, sizeof(memory), "%u", mib);
	if (eal_init(4, (const char *[]){"--no-huge", "--no-shconf", "-m", memory}) < 0) {
		fputs(unit_log(), stderr);
		exit(1);
	}
	unit_log_clear();
}

bool
unit_eal_init_huge(unsigned int mib, const char *iova_mode)
{
	char memory[16], mode[32];

	if (getenv("PAGELANE_NO_HUGE") != NULL) {
		unit_skip_line("PAGELANE_NO_HUGE says to do without hugepages");
		return false;
	}
	unit_hugepages_turn();
	if (unit_hugepages_available(2048) * 2 < mib && !unit_hugepages_add(2048, mib / 2 + 1)) {
		unit_skip_line(
			"no hugepages for %u MiB of EAL memory, and no right to reserve any", mib);
		return false;
	}
	snprintf(memory, sizeof(memory), "%u", mib);
	snprintf(mode, sizeof(mode), "--iova-mode=%s", iova_mode);
	if (eal_init(4, (const char *[]){"--in-memory", "-m", memory, mode}) < 0) {
		unit_skip_line("EAL does not start on hugepages with %s:\n%s", mode, unit_log());
		return false;
	}
	if (strcmp(iova_mode, "pa") == 0 && rte_eal_iova_mode() != RTE_IOVA_PA) {
		unit_skip_line("physical addresses cannot be read here");
		return false;
	}
	unit_log_clear();
	return true;
}

/* ---- failing calls ---- */

static unsigned int fail_countdown;
static bool fail_reached;
static const char *fail_function;
static int fail_errno;

void
unit_fail_at(unsigned int k)
{
	fail_countdown = k;
	fail_reached = false;
}

bool
unit_fail_reached(void)
{
	fail_countdown = 0;
	return fail_reached;
}

void
unit_fail_calls(const char *function, int err)
{
	fail_function = function;
	fail_errno = err;
}

void
unit_limit_address_space(void)
{
	struct rlimit limit;
	FILE *f = fopen("/proc/self/statm", "r");
	rlim_t pages;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = RTE_MIN(limit.rlim_max, pages * 4096 + ((rlim_t)1 << 40));
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

static bool
fails(const char *function, bool allocates)
{
	if (fail_function != NULL && strcmp(function, fail_function) == 0) {
		errno = fail_errno;
		rte_errno = fail_errno;
		return true;
	}
	if (!allocates || fail_countdown == 0 || --fail_countdown > 0)
		return false;
	fail_reached = true;
	errno = ENOMEM;
	rte_errno = ENOMEM;
	return true;
}

#define WRAP(type, name, params, args, failure, allocates)                                         \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		return fails(#name, allocates) ? (failure) : __real_##name args;                   \
	}

/* clang-format off */
WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL, true)
WRAP(int, memfd_create, (const char *name, unsigned int flags), (name, flags), -1, true)
WRAP(int, ftruncate64, (int fd, off_t len), (fd, len), -1, true)
WRAP(int, fallocate64, (int fd, int mode, off_t from, off_t len), (fd, mode, from, len), -1, true)
WRAP(void *, mmap64, (void *addr, size_t len, int prot, int flags, int fd, off_t from),
     (addr, len, prot, flags, fd, from), (void *)-1, true)
WRAP(int, madvise, (void *addr, size_t len, int advice), (addr, len, advice), -1, true)
WRAP(long, mbind, (void *addr, unsigned long len, int mode, const unsigned long *mask,
		   unsigned long max, unsigned int flags),
     (addr, len, mode, mask, max, flags), -1, true)
WRAP(void *, malloc, (size_t size), (size), NULL, true)
WRAP(void *, rte_zmalloc_socket, (const char *type, size_t size, unsigned int align, int socket),
     (type, size, align, socket), NULL, true)
WRAP(void *, realloc, (void *p, size_t size), (p, size), NULL, true)
WRAP(void *, rte_lcore_callback_register, (const char *name, rte_lcore_init_cb init,
     rte_lcore_uninit_cb uninit, void *arg), (name, init, uninit, arg), NULL, true)
WRAP(void *, rte_malloc, (const char *type, size_t size, unsigned int align),
     (type, size, align), NULL, true)
WRAP(void *, rte_zmalloc, (const char *type, size_t size, unsigned int align),
     (type, size, align), NULL, true)
WRAP(const struct rte_memzone *, rte_memzone_reserve_aligned,
     (const char *name, size_t len, int socket, unsigned int flags, unsigned int align),
     (name, len, socket, flags, align), NULL, true)
WRAP(int, rte_extmem_register,
     (void *addr, size_t len, rte_iova_t *iova, unsigned int n, size_t page_size),
     (addr, len, iova, n, page_size), -1, true)
WRAP(int, rte_extmem_unregister, (void *addr, size_t len), (addr, len), -1, false)
WRAP(rte_iova_t, rte_mem_virt2iova, (const void *addr), (addr), RTE_BAD_IOVA, false)
/* clang-format on */

/* ---- chance ---- */

uint32_t
unit_random_below(uint64_t *state, uint32_t n)
{
	/* splitmix64 */
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)(((z ^ z >> 31) >> 32) * n >> 32);
}

/* ---- leaks ---- */

static void
count_memzone(const struct rte_memzone *memzone, void *n)
{
	(void)memzone;
	++*(unsigned int *)n;
}

static int
count_memseg_list(const struct rte_memseg_list *list, void *n)
{
	(void)list;
	++*(unsigned int *)n;
	return 0;
}

static unsigned int
count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static unsigned int
count_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int n = 0;

	assert_non_null(f);
	for (int c; (c = fgetc(f)) != EOF;)
		n += c == '\n';
	fclose(f);
	return n;
}

static size_t
hugetlb_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	size_t kib = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL && sscanf(line, "HugetlbPages: %zu", &kib) != 1)
		;
	fclose(f);
	return kib;
}

void
unit_resources_get(struct unit_resources *resources)
{
	memset(resources, 0, sizeof(*resources));
	for (unsigned int i = 0; i < rte_socket_count(); i++) {
		struct rte_malloc_socket_stats stats;

		if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) != 0)
			continue;
		resources->heap_blocks += stats.alloc_count;
		resources->heap_bytes += stats.heap_allocsz_bytes;
	}
	rte_memzone_walk(count_memzone, &resources->memzones);
	rte_memseg_list_walk(count_memseg_list, &resources->memseg_lists);
	/* AddressSanitizer maps more as it goes; it finds leaks by itself. */
	resources->mappings = UNIT_ASAN ? 0 : count_mappings();
	resources->files = count_files();
	resources->hugetlb_kib = hugetlb_kib();

	const struct mallinfo2 info = mallinfo2();

	resources->malloc_bytes = info.uordblks + info.hblkhd;
}

void
unit_resources_assert(const struct unit_resources *before)
{
	struct unit_resources now;

	unit_resources_get(&now);
	assert_int_equal(now.heap_blocks, before->heap_blocks);
	assert_int_equal(now.heap_bytes, before->heap_bytes);
	/* malloc counts what its thread caches keep as in use; LeakSanitizer finds the small ones.
	 */
	assert_in_range(now.malloc_bytes, 0, before->malloc_bytes + 1024);
	assert_int_equal(now.memzones, before->memzones);
	assert_int_equal(now.memseg_lists, before->memseg_lists);
	assert_int_equal(now.mappings, before->mappings);
	assert_int_equal(now.files, before->files);
	assert_int_equal(now.hugetlb_kib, before->hugetlb_kib);
}

unsigned int
unit_fail_each(void *(*create)(void *arg), void (*destroy)(void *object), void *arg)
{
	return unit_fail_each_but(create, destroy, arg, unit_resources_assert);
}

unsigned int
unit_fail_each_but(void *(*create)(void *arg), void (*destroy)(void *object), void *arg,
	void (*assert_clean)(const struct unit_resources *before))
{
	struct unit_resources before;
	unsigned int k = 0;
	bool reached;

	/* the first use of a library may leave something for good */
	void *object = create(arg);

	assert_non_null(object);
	destroy(object);
	unit_resources_get(&before);
	do {
		unit_fail_at(++k);
		rte_errno = 0;
		object = create(arg);

		const int err = rte_errno;

		reached = unit_fail_reached();
		if (object != NULL) {
			destroy(object); /* none failed, or one that does not matter */
		} else {
			assert_true(reached);
			assert_int_equal(err, ENOMEM);
		}
		assert_clean(&before);
	} while (reached);
	return k - 1;
}

/* ---- hugepages ---- */

static size_t added_pages, added_kib;

static bool
hugepages_file(size_t kib, const char *file, const char *mode, size_t *count)
{
	char path[128];
	bool ok;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/%s", kib, file);

	FILE *f = fopen(path, mode);

	if (f == NULL)
		return false;
	ok = mode[0] == 'r' ? fscanf(f, "%zu", count) == 1 : fprintf(f, "%zu\n", *count) > 0;
	return fclose(f) == 0 && ok;
}

size_t
unit_hugepages_available(size_t kib)
{
	size_t free = 0, reserved = 0;

	if (!hugepages_file(kib, "free_hugepages", "r", &free) ||
		!hugepages_file(kib, "resv_hugepages", "r", &reserved))
		return 0;
	return free - RTE_MIN(free, reserved);
}

void
unit_hugepages_turn(void)
{
	static int fd = -1;

	if (fd < 0) {
		fd = open("/sys/kernel/mm/hugepages", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			flock(fd, LOCK_EX);
	}
}

/* Relative to what is there now: others reserve pages, too. */
static bool
change_pages(size_t kib, size_t add, size_t remove)
{
	size_t before, wanted, after;

	if (!hugepages_file(kib, "nr_hugepages", "r", &before))
		return false;
	wanted = before + add - RTE_MIN(remove, before);
	return hugepages_file(kib, "nr_hugepages", "w", &wanted) &&
	       hugepages_file(kib, "nr_hugepages", "r", &after) && after == wanted;
}

bool
unit_hugepages_add(size_t kib, size_t n)
{
	static bool registered;
	size_t before, after;

	unit_hugepages_turn();
	unit_hugepages_restore();
	if (!registered)
		registered = atexit(unit_hugepages_restore) == 0;
	if (!hugepages_file(kib, "nr_hugepages", "r", &before))
		return false;
	if (change_pages(kib, n, 0)) {
		added_pages = n;
		added_kib = kib;
		return true;
	}
	/* give back what came of it */
	if (hugepages_file(kib, "nr_hugepages", "r", &after) && after > before)
		hugepages_file(kib, "nr_hugepages", "w", &before);
	return false;
}

void
unit_hugepages_restore(void)
{
	if (added_pages > 0)
		change_pages(added_kib, 0, added_pages);
	added_pages = 0;
}
