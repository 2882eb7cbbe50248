/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Hold back what a library prints, to be shown only if it matters. */

/* From now on stdout and stderr go to memory. 0 or -errno. */
int capture_begin(void);

/* Restores both. What was printed; the caller frees it. Never NULL, unless there is no memory. */
char *capture_end(void);
