/* SPDX-License-Identifier: BSD-3-Clause */

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "pcp_unit.h"
#include "storm.h"

#define PERIOD_NS 20000
#define PAGES_MAX 4096u

struct storm {
	timer_t timer;
	int signo;
	struct sigaction before;
};

struct storm *
storm_begin(int signo, void (*handler)(int signo))
{
	const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	const struct itimerspec period = {{0, PERIOD_NS}, {0, PERIOD_NS}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signo};
	struct storm *storm = calloc(1, sizeof(*storm));

	assert_non_null(storm);
	storm->signo = signo;
	assert_int_equal(sigaction(signo, &action, &storm->before), 0);
	event._sigev_un._tid = gettid();
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &storm->timer), 0);
	assert_int_equal(timer_settime(storm->timer, 0, &period, NULL), 0);
	return storm;
}

void
storm_end(struct storm *storm)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	timer_delete(storm->timer);
	/* One may still be pending. */
	sigaction(storm->signo, &ignore, NULL);
	sigaction(storm->signo, &storm->before, NULL);
	free(storm);
}

double
storm_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static _Atomic uint8_t owner_of[PAGES_MAX];
static atomic_bool corrupted;

void
storm_record_reset(void)
{
	for (uint32_t i = 0; i < PAGES_MAX; i++)
		owner_of[i] = STORM_NOBODY;
	corrupted = false;
}

/* Corrupt lists hand out anything: no assertion here, and not in a handler. */
static _Atomic uint8_t *
owner_slot(const void *page)
{
	const uintptr_t n = ((uintptr_t)page - (uintptr_t)memory) / PP_PAGE_SIZE;

	return n < PAGES_MAX && n < pp_zone_pages(zone) ? &owner_of[n] : NULL;
}

void
storm_take(const void *page, enum storm_owner owner)
{
	_Atomic uint8_t *slot = owner_slot(page);
	uint8_t nobody = STORM_NOBODY;

	if (slot == NULL || !atomic_compare_exchange_strong(slot, &nobody, (uint8_t)owner))
		corrupted = true;
}

bool
storm_give(const void *page, enum storm_owner owner)
{
	_Atomic uint8_t *slot = owner_slot(page);
	uint8_t expected = (uint8_t)owner;

	if (slot != NULL && atomic_compare_exchange_strong(slot, &expected, STORM_NOBODY))
		return true;
	corrupted = true;
	return false;
}

bool
storm_corrupted(void)
{
	return corrupted;
}

uint32_t
storm_taken(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < PAGES_MAX; i++)
		n += owner_of[i] != STORM_NOBODY;
	return n;
}
