/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Signals that interrupt a thread at a high rate, and a record of who has which page. */

#include <stdbool.h>
#include <stdint.h>

struct storm;

/*
 * From now on the calling thread gets `signo` from a timer of its own, about every 20 us that it
 * runs, and `handler` is called. Threads take different signals.
 */
struct storm *storm_begin(int signo, void (*handler)(int signo));
void storm_end(struct storm *storm);

/* Of a clock that the sanitizers do not slow down. */
double storm_seconds(void);

/* ---- who has a page of the zone ---- */

enum storm_owner {
	STORM_NOBODY,
	STORM_MAIN,
	STORM_HANDLER,
	STORM_THREAD,
};

/* Nobody has any. */
void storm_record_reset(void);

/* A page was handed out; if somebody has it already, or it is none, something is corrupt. */
void storm_take(const void *page, enum storm_owner owner);

/* Before it goes back: false, and it must not, when somebody else has got it, too. */
bool storm_give(const void *page, enum storm_owner owner);

bool storm_corrupted(void);

/* Pages that somebody has. */
uint32_t storm_taken(void);
