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

/* At each turn: whether a thread that is wanted on a processor has none. */
bool cx_watch_stalled(struct cx_watch *watch, unsigned int port, uint64_t cycles);
