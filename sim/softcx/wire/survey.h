/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The application's threads: which are busy, by the processor time that they use and wait for. */

#include "../device/port.h"

#define CX_MAX_THREADS 64 /* of the application, looked at */

struct cx_survey;

/* A thread of its own looks every 20 ms. NULL: no memory, or thread. */
struct cx_survey *cx_survey_create(const struct softcx_card *card);
void cx_survey_destroy(struct cx_survey *survey);

/* The busy thread that has this place, below CX_MAX_THREADS, for as long as it lives; 0: none. */
pid_t cx_survey_busy(const struct cx_survey *survey, unsigned int place);

/* How often it has looked. */
uint32_t cx_survey_count(const struct cx_survey *survey);

/* Processor time that a thread of this process had; 0: the calling one. */
uint64_t cx_thread_ns(pid_t tid);

/* Whether it wants a processor (one that sleeps does so of its own will), and which had it last. */
bool cx_thread_is_runnable(pid_t tid, int *cpu);
