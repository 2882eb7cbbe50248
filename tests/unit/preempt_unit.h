/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the tests of mode preempt share. */

#include "pcp_unit.h"

#define PREEMPT_PAGES 600u

/* Caches over so many pages; where there are no restartable sequences the test is skipped. */
void open_preempt(struct pcp_config config);

/* Of the caches that are open. */
enum pcp_mode mode_in_effect(void);

void pin_to(unsigned int cpu);

/* The second processor that this process may run on, or the first again. */
unsigned int processor(unsigned int n);

/* A page, over and over; and what can be called with one or some, on a storm's record. */
void use_one_page(void *unused);
void use_all_calls(void *unused);
