/* SPDX-License-Identifier: BSD-3-Clause */
/* Options by name, good and bad, and what is written at the end. */

#include <unistd.h>

#include "rig.h"

static int
set(struct softcx_config *config, const char *name, const char *value)
{
	const char *why = NULL;
	const int err = softcx_config_set(config, name, value, &why);

	if (err != 0)
		assert_non_null(why);
	return err;
}

static void
good_values(void **state)
{
	struct softcx_config config;

	(void)state;
	softcx_config_init(&config);
	assert_int_equal(set(&config, "ports", "2"), 0);
	assert_int_equal(config.ports, 2);
	assert_int_equal(set(&config, "rate", "2.5G"), 0);
	assert_int_equal(config.rate, 2500000000);
	assert_int_equal(set(&config, "rate", "100g"), 0);
	assert_int_equal(config.rate, 100000000000);
	assert_int_equal(set(&config, "rate", "10M"), 0);
	assert_int_equal(config.rate, 10000000);
	assert_int_equal(set(&config, "rate", "max"), 0);
	assert_int_equal(config.rate, 0);
	assert_int_equal(set(&config, "frame", "64,128,9978"), 0);
	assert_int_equal(config.n_frames, 3);
	assert_int_equal(config.frame[2], 9978);
	assert_int_equal(set(&config, "frame", "imix"), 0);
	assert_int_equal(config.n_frames, 12);
	assert_int_equal(set(&config, "wire", "pair"), 0);
	assert_int_equal(config.wire, SOFTCX_WIRE_PAIR);
	assert_int_equal(set(&config, "payload", "none"), 0);
	assert_int_equal(config.payload, SOFTCX_PAYLOAD_NONE);
	assert_int_equal(set(&config, "clock", "virtual"), 0);
	assert_int_equal(config.clock, SOFTCX_CLOCK_VIRTUAL);
	assert_int_equal(set(&config, "strict", "on"), 0);
	assert_true(config.strict);
	assert_int_equal(set(&config, "strict", "off"), 0);
	assert_false(config.strict);
	assert_int_equal(set(&config, "probe", ""), 0);
	assert_true(config.probe);
	assert_int_equal(set(&config, "pause", ""), 0);
	assert_true(config.pause);
	assert_int_equal(set(&config, "yield", ""), 0);
	assert_true(config.yield);
	assert_int_equal(set(&config, "device-cpu", "3"), 0);
	assert_int_equal(config.device_cpu, 3);
	assert_int_equal(set(&config, "packets", "18446744073709551614"), 0);
	assert_int_equal(set(&config, "delay", "100"), 0);
	assert_int_equal(set(&config, "inject", "rq-prot:1"), 0);
	assert_int_equal(set(&config, "inject", "sq-length:10000"), 0);
	assert_int_equal(set(&config, "inject", "rq-ready:2"), 0);
	assert_int_equal(set(&config, "inject", "sq-reset:3"), 0);
	assert_int_equal(config.refuse[SOFTCX_REFUSE_RQ_READY], 2);
	assert_int_equal(config.refuse[SOFTCX_REFUSE_SQ_RESET], 3);
	assert_int_equal(config.refuse[SOFTCX_REFUSE_RQ_RESET], 0);
	assert_int_equal(config.inject_rq.every, 1);
	assert_int_equal(config.inject_rq.syndrome, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	assert_int_equal(config.inject_sq.every, 10000);
	assert_int_equal(config.inject_sq.syndrome, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
	assert_int_equal(set(&config, "seed", "7"), 0);
	assert_int_equal(set(&config, "queues", "8"), 0);
	assert_int_equal(set(&config, "streams", "65535"), 0);
	assert_int_equal(set(&config, "stats", "file"), 0);
}

static void
bad_values(void **state)
{
	static const char *const bad[][2] = {
		{"ports", "0"},
		{"ports", "9"},
		{"ports", ""},
		{"ports", "-1"},
		{"ports", "1x"},
		{"queues", "0"},
		{"queues", "1025"},
		{"rate", "fast"},
		{"rate", "10X"},
		{"rate", "1"},
		{"rate", "100GG"},
		{"rate", "1e99"},
		{"rate", ""},
		{"frame", "63"},
		{"frame", "9979"},
		{"frame", "64,"},
		{"frame", "64;65"},
		{"frame", ""},
		{"frame", "64,64,64,64,64,64,64,64,64,64,64,64,64,64,64,64,64"},
		{"streams", "65536"},
		{"wire", "tap"},
		{"payload", "all"},
		{"clock", ""},
		{"device-cpu", "x"},
		{"stats", ""},
		{"strict", "maybe"},
		{"delay", "1000001"},
		{"packets", "18446744073709551616"},
		{"inject", "rq-prot"},
		{"inject", "rq-prot:0"},
		{"inject", "rq-prot:1x"},
		{"inject", "cq-prot:1"},
		{"inject", "rq-:1"},
		{"inject", ":1"},
		{"inject", "rq-protection-of-memory:1"},
		{"seed", "+1"},
	};
	struct softcx_config config, before;

	(void)state;
	softcx_config_init(&config);
	config.stats_file = NULL;
	for (unsigned int i = 0; i < RIG_DIM(bad); i++) {
		before = config;
		assert_int_equal(set(&config, bad[i][0], bad[i][1]), -EINVAL);
		if (strcmp(bad[i][0], "stats") != 0)
			assert_int_equal(config.ports, before.ports);
		config = before;
	}
	assert_int_equal(set(&config, "colour", "red"), -ENOENT);
}

static void
impossible(void **state)
{
	struct softcx_config config;
	struct softcx_card *card = NULL;

	(void)state;
	softcx_config_init(&config);
	config.wire = SOFTCX_WIRE_PAIR; /* of one */
	assert_int_equal(softcx_device_create(&config, &card), -EINVAL);
	softcx_config_init(&config);
	config.frame[0] = 10;
	assert_int_equal(softcx_device_create(&config, &card), -EINVAL);
	softcx_config_init(&config);
	config.ports = 9;
	assert_int_equal(softcx_device_create(&config, &card), -EINVAL);
	assert_null(card);
}

/* Objects that software left are counted and freed; both forms of statistics name it. */
static void
statistics(void **state)
{
	char *text = NULL, name[] = "/tmp/softcx-stats-XXXXXX", json[8192];
	size_t size = 0;
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	const int fd = mkstemp(name);

	assert_true(fd >= 0);
	rig_init(&rig);
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.packets = 10;
	rig.config.stats_file = name;
	rig.config.summary = open_memstream(&text, &size);
	rig_start(&rig);
	rig_rx_create(&rig, &rx, 4, 1, 16);
	rig_rq_post(&rig, &rx.rq, 4);
	rig_run(&rig);
	assert_int_equal(softcx_device_destroy(rig.card), 0);
	fclose(rig.config.summary);
	assert_non_null(strstr(text, "offered 10 = delivered 4 + out_of_buffer 6 + other drops 0"));
	assert_non_null(strstr(text, "checker ok"));
	/* a region, a CQ, a WQ, a table, a QP and a flow */
	assert_non_null(strstr(text, "6 objects were never destroyed"));
	const ssize_t n = read(fd, json, sizeof(json) - 1);

	assert_true(n > 0);
	json[n] = '\0';
	assert_non_null(strstr(json, "\"offered\": 10,"));
	assert_non_null(strstr(json, "\"out_of_buffer\": 6,"));
	assert_non_null(strstr(json, "\"leaks\": 6,"));
	assert_non_null(strstr(json, "\"ok\": true"));
	close(fd);
	unlink(name);
	free(text);
	free(rx.cq.buf);
	free(rx.cq.dbrec);
	free(rx.rq.buf);
	free(rx.rq.dbrec);
	free(rig.memory);
}

/* Nothing is said of a port that nothing happened at, but its counters are there. */
static void
unused(void **state)
{
	char *text = NULL;
	size_t size = 0;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	rig.config.ports = 2;
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.summary = open_memstream(&text, &size);
	assert_non_null(rig.config.summary);
	rig_start(&rig);
	FILE *summary = rig.config.summary;

	rig_end(&rig);
	fclose(summary);
	assert_int_equal(size, 0);
	free(text);
}

static void
statistics_fail(void **state)
{
	struct softcx_config config;
	struct softcx_card *card;

	(void)state;
	softcx_config_init(&config);
	config.stepped = true;
	config.stats_file = "/dev/full";
	assert_int_equal(softcx_device_create(&config, &card), 0);
	assert_int_equal(softcx_device_destroy(card), -ENOSPC);
	config.stats_file = "/nonexistent/file";
	assert_int_equal(softcx_device_create(&config, &card), 0);
	assert_int_equal(softcx_device_destroy(card), -ENOENT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_values),
		cmocka_unit_test(bad_values),
		cmocka_unit_test(impossible),
		cmocka_unit_test(statistics),
		cmocka_unit_test(unused),
		cmocka_unit_test(statistics_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
