/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether this word is an option of the program's own. */
typedef bool eal_own_option(const char *word);

/*
 * Start EAL with the user's arguments, those before "--", and --in-memory when they leave the
 * choice of memory to us: then nothing stays behind in a filesystem, and no hugetlbfs need be
 * mounted. Without `devices` also --no-pci and --no-telemetry. 0, or an exit status after one line
 * on stderr. Not to be tried again.
 */
int eal_start(int argc, char **argv, bool devices, eal_own_option *is_own);

/* Bytes of hugepages that nobody uses, of all sizes. */
uint64_t eal_free_hugepages(void);
