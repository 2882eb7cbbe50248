/* SPDX-License-Identifier: BSD-3-Clause */
/* The device on a thread of its own: objects come, go and are asked while it runs. */

#include <sched.h>

#include "rig.h"

#define RING 256

static void
forwards(void **state)
{
	struct softcx_port_counters c;
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	rig_start_thread(&rig, SOFTCX_WIRE_GEN);
	rig_rx_create(&rig, &rx, RING, 1, RING);
	rig_rq_post(&rig, &rx.rq, RING);
	rig_take_many(&rig, &rx, 100000);
	rig_rx_destroy(&rig, &rx);
	rig_counters(&rig, &c);
	assert_true(c.rx_packets >= 100000);
	assert_true(c.run_ns > 0);
	rig_end(&rig);
}

/* Everything goes and comes again while frames come in: what was freed is not touched any more. */
static void
destroyed_while_running(void **state)
{
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	rig_start_thread(&rig, SOFTCX_WIRE_GEN);
	for (int i = 0; i < 50; i++) {
		rig_rx_create(&rig, &rx, RING, 1, RING);
		rig_rq_post(&rig, &rx.rq, RING);
		rig_take_many(&rig, &rx, 100);
		rig_rx_destroy(&rig, &rx);
	}
	rig_end(&rig);
}

static void
reset_while_running(void **state)
{
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	rig_start_thread(&rig, SOFTCX_WIRE_GEN);
	rig_rx_create(&rig, &rx, RING, 1, RING);
	rig_rq_post(&rig, &rx.rq, RING);
	for (int i = 0; i < 50; i++) {
		rig_take_many(&rig, &rx, 100);
		assert_int_equal(softcx_wq_modify(rig.port, rx.rq.wqn, IBV_WQS_RESET), 0);
		/* at rest: nothing comes from here on */
		while (rig_poll(&rx.cq) != NULL)
			;
		rig_cq_ack(&rx.cq);
		rig_rq_ready(&rig, &rx.rq);
		rig_rq_post(&rig, &rx.rq, RING);
	}
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* Queries are consistent at any moment. */
static void *
ask(void *arg)
{
	struct rig *rig = arg;
	struct softcx_port_counters c;

	for (int i = 0; i < 2000; i++) {
		rig_counters(rig, &c);
		rig_assert_conserved(&c);
	}
	return NULL;
}

static void
queried_while_running(void **state)
{
	struct rig rig;
	struct rig_rx rx;
	pthread_t thread[2];

	(void)state;
	rig_start_thread(&rig, SOFTCX_WIRE_GEN);
	rig.config.clock = SOFTCX_CLOCK_VIRTUAL;
	rig_rx_create(&rig, &rx, RING, 1, RING);
	rig_rq_post(&rig, &rx.rq, RING);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, &rig), 0);
	rig_take_many(&rig, &rx, 2000);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* The device comes late now and then; nothing is lost that is not counted. */
static void
random_delays(void **state)
{
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	rig_init(&rig);
	rig.config.stepped = false;
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.delay_us = 500;
	rig.config.clock = SOFTCX_CLOCK_VIRTUAL;
	rig_start(&rig);
	rig_rx_create(&rig, &rx, RING, 1, RING);
	rig_rq_post(&rig, &rx.rq, RING);
	rig_take_many(&rig, &rx, 50000);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forwards),
		cmocka_unit_test(destroyed_while_running),
		cmocka_unit_test(reset_while_running),
		cmocka_unit_test(queried_while_running),
		cmocka_unit_test(random_delays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
