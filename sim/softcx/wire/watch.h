/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * For a virtual clock: whether the device and the application's busy threads are running. A survey
 * finds out which those are; the device's threads then read their clocks, and their own.
 */

#include "../device/port.h"

/* Where the card is stepped only the stepping thread is watched. NULL: no memory, or thread. */
struct cx_watch *cx_watch_create(const struct softcx_card *card);
void cx_watch_destroy(struct cx_watch *watch);

/*
 * At each turn, which `took` so many cycles and of which the device's thread `slept` some of its
 * own will: for how many of them the device's time stands still, because a thread that is wanted
 * on a processor has none, or had none when time passed.
 */
uint64_t cx_watch_still(
	struct cx_watch *watch, unsigned int port, uint64_t cycles, uint64_t took, uint64_t slept);

/* The device was at rest for so long, and its time stood still. */
void cx_watch_rested(struct cx_watch *watch, unsigned int port, uint64_t cycles);

/* How often the threads were surveyed. */
uint32_t cx_watch_surveys(const struct cx_watch *watch);

/* Whether threads that are busy since then are known by now. */
bool cx_watch_is_ready(const struct cx_watch *watch, uint32_t since);
