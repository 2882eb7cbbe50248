/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Threads that do what they are told, one thing at a time. */

#include <stdbool.h>

struct worker;

/* `registered`: it gets an lcore id from EAL. */
struct worker *worker_start(bool registered);

/* Have it call f(arg); return at once. */
void worker_begin(struct worker *worker, void (*f)(void *arg), void *arg);

/* Wait until it has returned. */
void worker_wait(struct worker *worker);

/* Both. */
void worker_do(struct worker *worker, void (*f)(void *arg), void *arg);

/* End the thread; with `unregister`, it gives its lcore id back before. */
void worker_end(struct worker *worker, bool unregister);

/* LCORE_ID_ANY for unregistered ones. */
unsigned int worker_lcore(const struct worker *worker);
