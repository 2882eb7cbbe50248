/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * For a virtual clock: whether the application's busy threads are running. A thread of its own
 * finds out which those are, by their use of processor time; the device's threads then read their
 * clocks.
 */

#include "../device/port.h"

struct cx_watch *cx_watch_create(struct softcx_card *card);
void cx_watch_destroy(struct cx_watch *watch);

/*
 * At each turn, which `took` so long and for which the device's time stood still for `stood` of
 * that: for how much more it has to, because a thread that is wanted on a processor has none, or
 * had none when time passed.
 */
uint64_t cx_watch_absent(
	struct cx_watch *watch, unsigned int port, uint64_t cycles, uint64_t took, uint64_t stood);

/* Whether it has found a busy thread. */
bool cx_watch_is_ready(const struct cx_watch *watch);
