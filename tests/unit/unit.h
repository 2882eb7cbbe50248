/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What unit tests share: cmocka, EAL, failing calls, and what a constructor may leave behind. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if defined(__has_feature)
#define UNIT_HAS_FEATURE(feature) __has_feature(feature)
#else
#define UNIT_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || UNIT_HAS_FEATURE(address_sanitizer)
#define UNIT_ASAN 1
#else
#define UNIT_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || UNIT_HAS_FEATURE(thread_sanitizer)
#define UNIT_TSAN 1
#else
#define UNIT_TSAN 0
#endif

#define UNIT_MIB (UINT64_C(1) << 20)

/*
 * Start EAL without hugepages and privileges, `mib` of memory. What EAL and the libraries log goes
 * to unit_log(); it is shown when the start fails, and then the program ends.
 */
void unit_eal_init(unsigned int mib);

/* The same on hugepages; false, with a line, where there are none or too few rights. */
bool unit_eal_init_huge(unsigned int mib, const char *iova_mode);

/* All that was logged since the last unit_log_clear(). */
const char *unit_log(void);
void unit_log_clear(void);
#define unit_assert_logged(text) assert_non_null(strstr(unit_log(), (text)))

/* Print why, and skip the test that runs. */
#define unit_skip(...)                                                                             \
	do {                                                                                       \
		unit_skip_line(__VA_ARGS__);                                                       \
		skip();                                                                            \
	} while (0)
void unit_skip_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- failing calls: those in unit_wraps of meson.build, made by the code under test ---- */

/* The k-th call from now on fails with ENOMEM; 0: none does. */
void unit_fail_at(unsigned int k);

/* Whether it has failed; no further call will. */
bool unit_fail_reached(void);

/* All calls of one function fail with `err`; NULL: none does. */
void unit_fail_calls(const char *function, int err);

/* A mapping of more than 1 TiB fails from now on, whatever the kernel's overcommitment allows. */
void unit_limit_address_space(void);

/* ---- chance ---- */

/* Below n, by a generator whose state may start as any number. */
uint32_t unit_random_below(uint64_t *state, uint32_t n);

/* ---- leaks ---- */

struct unit_resources {
	size_t heap_blocks, heap_bytes; /* of EAL */
	size_t malloc_bytes;
	unsigned int memzones;
	unsigned int memseg_lists;
	unsigned int mappings;
	unsigned int files;
	size_t hugetlb_kib;
};

void unit_resources_get(struct unit_resources *resources);

/* Fails the test unless nothing has been left behind, or lost, since. */
void unit_resources_assert(const struct unit_resources *before);

/*
 * Call `create` with its first, second, ... allocation failing, until none is left to fail. It
 * returns NULL or what `destroy` takes. Nothing may be left behind by either. Returns how many
 * allocations there were.
 */
unsigned int unit_fail_each(void *(*create)(void *arg), void (*destroy)(void *object), void *arg);

/* The same, where `assert_clean` says what may be left behind. */
unsigned int unit_fail_each_but(void *(*create)(void *arg), void (*destroy)(void *object),
	void *arg, void (*assert_clean)(const struct unit_resources *before));

/* ---- hugepages ---- */

/* Wait until no other unit test counts or reserves hugepages; until the program ends. */
void unit_hugepages_turn(void);

/* Free and not promised to anybody. */
size_t unit_hugepages_available(size_t kib);

/* Reserve n more pages; unit_hugepages_restore() and the end of the program give them back. */
bool unit_hugepages_add(size_t kib, size_t n);
void unit_hugepages_restore(void);
