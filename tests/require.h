/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* For test programs of several processes: what is not so ends the one that finds it, in one line.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define require(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			require_failed(__FILE_NAME__, __LINE__, #condition);                       \
	} while (0)

static inline void __attribute__((noreturn))
require_failed(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: %d: not so: %s\n", file, line, getpid(), condition);
	abort();
}
