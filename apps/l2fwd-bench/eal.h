/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdint.h>

/*
 * Start EAL with the user's arguments, those before "--", and --in-memory when they leave the
 * choice of memory to us: then nothing stays behind in a filesystem, and no hugetlbfs need be
 * mounted. 0, or an exit status after one line on stderr. Not to be tried again.
 */
int eal_start(int argc, char **argv);

/* Bytes of hugepages that nobody uses, of all sizes. */
uint64_t eal_free_hugepages(void);
