/* SPDX-License-Identifier: BSD-3-Clause */

#include <sched.h>
#include <stdlib.h>

#include "gen.h"
#include "survey.h"
#include "watch.h"

#define PATIENCE       2     /* surveys in which a thread that is busy shows */
#define LOOK_NS        20000 /* between two looks of a device's thread */
#define TOLERANCE_NS   1000  /* between two kinds of clocks */
#define ABSENT_PERCENT 75    /* of that time: it is not running now either, most likely */

/* What a device's thread saw last. */
struct look {
	uint64_t at;    /* cycles */
	uint64_t ran;   /* cycles of its own */
	uint64_t slept; /* cycles since, of its own will */
	struct {
		pid_t tid;
		uint64_t ran;
	} thread[CX_MAX_THREADS];
	uint64_t stood; /* cycles since that the device's time stood still already */
	uint64_t debt;  /* cycles that passed for the device and not for the application */
	bool stalled;   /* until the next look time stands still */
} __attribute__((aligned(CX_LINE)));

struct cx_watch {
	struct cx_survey *survey; /* NULL: stepped */
	uint64_t look_cycles, tolerance;
	const struct softcx_card *card;
	uint32_t crowded; /* atomic; a thread was seen whose processor we have */
	struct look look[SOFTCX_MAX_PORTS];
};

/* ---- whether they run ---- */

/*
 * Whether the device or another busy thread of the application has the processor: then somebody
 * always waits, and if the device's time stood still meanwhile it would for ever.
 */
static bool
is_crowded(const struct look *last, unsigned int waiting, int cpu)
{
	int other;

	if (cpu == sched_getcpu())
		return true;
	for (unsigned int i = 0; i < CX_MAX_THREADS; i++)
		if (i != waiting && last->thread[i].tid != 0 &&
			cx_thread_is_runnable(last->thread[i].tid, &other) && other == cpu)
			return true;
	return false;
}

/* Said once, and not of threads that still set things up. */
static void
tell_of_crowd(struct cx_watch *watch, const struct look *last, int cpu)
{
	const struct softcx_port *port = watch->card->port[last - watch->look];

	if (port->n_ready == 0 || (port->gen != NULL && port->gen->state != CX_GEN_UP) ||
		__atomic_exchange_n(&watch->crowded, 1, __ATOMIC_RELAXED) != 0 ||
		watch->card->config.summary == NULL)
		return;
	fprintf(watch->card->config.summary,
		"softcx: busy threads share processor %d: the virtual clock does not wait for "
		"them\n",
		cpu);
}

/* Whether to wait for a thread that was absent. */
static bool
is_awaited(struct cx_watch *watch, const struct look *last, unsigned int i)
{
	int cpu;

	if (!cx_thread_is_runnable(last->thread[i].tid, &cpu))
		return false;
	if (!is_crowded(last, i, cpu))
		return true;
	tell_of_crowd(watch, last, cpu);
	return false;
}

/* For how long of the time since the last look threads that wanted to run did not. */
static uint64_t
look_at_threads(struct cx_watch *watch, struct look *last, uint64_t passed)
{
	uint64_t most = 0;

	for (unsigned int i = 0; i < CX_MAX_THREADS; i++) {
		const pid_t tid = watch->survey != NULL ? cx_survey_busy(watch->survey, i) : 0;

		if (tid == 0) {
			last->thread[i].tid = 0;
			continue;
		}
		const uint64_t ran = cx_ns_to_cycles(cx_thread_ns(tid), watch->card->hz);
		const uint64_t had = ran - last->thread[i].ran;
		const bool known = tid == last->thread[i].tid;

		last->thread[i].tid = tid;
		last->thread[i].ran = ran;
		if (known && passed > had + watch->tolerance && passed - had > most &&
			is_awaited(watch, last, i))
			most = passed - had;
	}
	return most;
}

/* The same of the device's own thread. */
static uint64_t
look_at_myself(struct cx_watch *watch, struct look *last, uint64_t passed)
{
	const uint64_t ran = cx_ns_to_cycles(cx_thread_ns(0), watch->card->hz);
	const uint64_t had = ran - last->ran;

	last->ran = ran;
	if (passed <= last->slept + had + watch->tolerance)
		return 0;
	return passed - last->slept - had;
}

uint64_t
cx_watch_still(
	struct cx_watch *watch, unsigned int port, uint64_t cycles, uint64_t took, uint64_t slept)
{
	struct look *last = &watch->look[port];
	uint64_t still = 0, more = 0;

	last->slept += slept;
	if (unlikely(cycles - last->at >= watch->look_cycles)) {
		const uint64_t passed = cycles - last->at;
		const uint64_t mine = look_at_myself(watch, last, passed);
		const uint64_t theirs = look_at_threads(watch, last, passed);

		still = mine < took ? mine : took;
		last->stood += still;
		if (theirs > last->stood)
			last->debt += theirs - last->stood;
		last->stalled = theirs > passed / 100 * ABSENT_PERCENT;
		last->at = cycles;
		last->stood = last->slept = 0;
	}
	if (last->stalled) {
		more = took - still;
		last->stood += more;
	} else if (last->debt > 0) {
		more = took - still < last->debt ? took - still : last->debt;
		last->debt -= more;
	}
	return still + more;
}

void
cx_watch_rested(struct cx_watch *watch, unsigned int port, uint64_t cycles)
{
	watch->look[port].slept += cycles;
	watch->look[port].stood += cycles;
}

uint32_t
cx_watch_surveys(const struct cx_watch *watch)
{
	return watch->survey != NULL ? cx_survey_count(watch->survey) : 0;
}

bool
cx_watch_is_ready(const struct cx_watch *watch, uint32_t since)
{
	return watch->survey == NULL || cx_watch_surveys(watch) - since > PATIENCE;
}

/* ---- birth and death ---- */

struct cx_watch *
cx_watch_create(const struct softcx_card *card)
{
	struct cx_watch *watch = cx_zalloc(sizeof(*watch));

	if (watch == NULL)
		return NULL;
	watch->card = card;
	watch->tolerance = cx_ns_to_cycles(TOLERANCE_NS, card->hz);
	watch->look_cycles = cx_ns_to_cycles(LOOK_NS, card->hz);
	if (card->config.stepped)
		return watch;
	watch->survey = cx_survey_create(card);
	if (watch->survey == NULL) {
		free(watch);
		return NULL;
	}
	return watch;
}

void
cx_watch_destroy(struct cx_watch *watch)
{
	if (watch != NULL && watch->survey != NULL)
		cx_survey_destroy(watch->survey);
	free(watch);
}
