/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process ends while other threads are inside of calls of ours: the card waits for them. The
 * library is linked in, so that its end can be called for.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "card.h"
#include "verbs_unit.h"

#define INSIDE_US 50000

static struct softcx_port *port;
static atomic_bool came_out;

/* As a command does, which is slow. */
static void *
use_port(void *arg)
{
	struct softcx_port_counters counters = {0};

	(void)arg;
	usleep(INSIDE_US);
	came_out = softcx_port_query(port, &counters) == 0;
	card_put();
	return NULL;
}

static void
waits_for_threads_inside(void **state)
{
	struct softcx_port_counters counters;
	pthread_t thread;

	(void)state;
	assert_int_equal(card_ports(), 1);
	assert_int_equal(card_get(0, &port), 0);
	assert_int_equal(pthread_create(&thread, NULL, use_port, NULL), 0);
	card_stop();
	assert_true(came_out);
	assert_int_equal(pthread_join(thread, NULL), 0);

	/* Who comes late finds nothing, and does no harm. */
	assert_false(card_is_made());
	card_memory_gone(&counters, sizeof(counters));
	card_counters(0, &counters);
	assert_int_equal(counters.offered, 0);
	card_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(waits_for_threads_inside)};

	setenv("SOFTCX_OPTIONS", "ports=1\nwire=sink\n", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
