/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>

#include <machine.h>

#include "output.h"

/* Setting a member to NULL fails, and jansson then forgets it: shortage shows once, at the end. */
static void
set_count(json_t *object, const char *name, uint64_t count)
{
	json_object_set_new(object, name, json_integer(count));
}

static void
set_real(json_t *object, const char *name, double value)
{
	json_object_set_new(object, name, json_real_or_null(value));
}

static void
set_text(json_t *object, const char *name, const char *text)
{
	json_object_set_new(object, name, text != NULL ? json_string(text) : json_null());
}

/* Where each lcore may run. */
static json_t *
lcores(void)
{
	json_t *array = json_array();
	unsigned int lcore_id, cpu;

	RTE_LCORE_FOREACH (lcore_id) {
		const rte_cpuset_t set = rte_lcore_cpuset(lcore_id);
		json_t *object = json_object(), *cpus = json_array();

		for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &set))
				json_array_append_new(cpus, json_integer(cpu));
		set_count(object, "lcore", lcore_id);
		json_object_set_new(object, "cpus", cpus);
		json_object_set_new(object, "main", json_boolean(lcore_id == rte_get_main_lcore()));
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *
machine(const struct bench *bench)
{
	json_t *object = machine_facts();

	json_object_set_new(object, "lcores", lcores());
	json_object_set_new(object, "hugepages", json_boolean(rte_eal_has_hugepages()));
	set_real(object, "tsc_per_core_cycle", bench->tsc_per_core_cycle[0]);
	set_real(object, "tsc_per_core_cycle_after", bench->tsc_per_core_cycle[1]);
	set_real(object, "clock_cycles", bench->clock_cycles);
	set_count(object, "clock_step", bench->clock_step);
	set_real(object, "steal_ms", bench->steal_ms);
	return object;
}

static json_t *
config(const struct bench *bench)
{
	const struct options *options = bench->options;
	json_t *object = json_object();

	set_text(object, "test", bench->test->name);
	set_text(object, "subjects", options->subjects);
	set_text(object, "pcp", options->pcp);
	set_text(object, "order", options_order_name(options->order));
	set_count(object, "seed", bench->seed);
	set_count(object, "rounds", options->rounds);
	set_count(object, "sample_us",
		options->sample_us != 0 ? options->sample_us : bench->test->sample_us);
	set_count(object, "warm_up", options->warm_up);
	set_count(object, "burst", options->burst);
	set_count(object, "cache_size", CACHE_SIZE);
	set_count(object, "memory", options->memory);
	set_count(object, "delay", options->delay);
	set_real(object, "seconds", bench->seconds);
	return object;
}

static json_t *
percentiles(const struct row *row)
{
	static const char *const names[RESULT_PERCENTILES] = {
		"p50", "p90", "p99", "p99_9", "p99_99", "max"};
	json_t *object = json_object();

	for (uint32_t p = 0; p < RESULT_PERCENTILES; p++)
		set_real(object, names[p], result_ns(result_percentile(row, p)));
	set_count(object, "calls", row->histogram->n);
	return object;
}

/* Without the loop's own cost, as all else; in the order of the rounds. */
static json_t *
samples(const struct row *row)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < row->samples.n; i++)
		json_array_append_new(
			array, json_real_or_null(result_ns(row->samples.value[i] - row->overhead)));
	return array;
}

json_t *
output_row(const struct bench *bench, const struct bench_case *one, const struct row *row)
{
	const struct request *request = &one->request;
	json_t *object = json_object();
	char name[64];

	set_text(object, "test", bench->test->name);
	set_text(object, "subject",
		strcmp(one->subject->name, "pagepool") == 0 ? one->subject->name
							    : subject_name(one->subject, name));
	set_text(
		object, "mode", one->subject->mode >= 0 ? pcp_mode_name(one->subject->mode) : NULL);
	set_text(object, "checks", NULL);
	set_text(object, "api", one->call->api);
	set_text(object, "call", one->call->call);
	set_text(object, "op", one->call->api != NULL ? row->op : NULL);
	set_text(object, "state",
		row->histogram == NULL ? NULL
		: request->fresh       ? "fresh"
				       : "warm");
	set_count(object, "order", request->order);
	set_count(object, "size", request->size);
	set_count(object, "batch", request->n);
	set_count(object, "burst", request->burst);
	set_count(object, "lcores", request->lcores);
	set_real(object, "ns", result_ns(row->cycles));
	set_real(object, "ns_low", result_ns(row->cycles_low));
	set_real(object, "ns_high", result_ns(row->cycles_high));
	set_real(object, "ns_min", result_ns(row->cycles_min));
	set_real(object, "cycles", row->cycles);
	set_real(object, "cycles_min", row->cycles_min);
	set_real(object, "overhead_ns", result_ns(row->overhead));
	set_real(object, "objects_per_second", result_rate(one, row));
	set_real(object, "spread", row->spread);
	json_object_set_new(object, "trusted", json_boolean(row->doubt == NULL));
	set_text(object, "doubt", row->doubt);
	set_real(object, "order_p", row->p_order);
	set_real(object, "order_change", row->order_change);
	json_object_set_new(object, "depends_on_order", json_boolean(result_depends_on_order(row)));
	if (row->histogram != NULL)
		json_object_set_new(object, "percentiles", percentiles(row));
	json_object_set_new(object, "samples", samples(row));
	return object;
}

static json_t *
rows(const struct bench *bench)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];

		for (uint32_t k = 0; k < one->n_rows && one->dropped == NULL; k++)
			json_array_append_new(array, output_row(bench, one, &one->row[k]));
	}
	return array;
}

/* Subjects as a whole, and single cases. */
static json_t *
left_out(const struct bench *bench)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];
		json_t *object;
		char name[64];

		if (one->dropped == NULL)
			continue;
		object = json_object();
		set_text(object, "subject", subject_name(one->subject, name));
		set_text(object, "api", one->call->api);
		set_count(object, "order", one->request.order);
		set_count(object, "size", one->request.size);
		set_count(object, "batch", one->request.n);
		set_text(object, "why", one->dropped);
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *
conservation(const struct bench *bench)
{
	json_t *array = json_array();

	for (uint32_t s = 0; s < n_subjects; s++) {
		const struct seat *seat = &bench->seats[s];
		json_t *object;
		char name[64];

		if (!seat->used || !subjects[s].backend->counts || seat->missing[0] != '\0')
			continue;
		object = json_object();
		set_text(object, "subject", subject_name(&subjects[s], name));
		set_count(object, "given", seat->tally.given);
		set_count(object, "free", seat->tally.free);
		json_object_set_new(object, "valid", json_boolean(!seat->lost));
		json_array_append_new(array, object);
	}
	return array;
}

int
output_json(const struct bench *bench)
{
	const char *path = bench->options->json;
	json_t *root = json_object();
	int err;

	set_count(root, "schema", OUTPUT_SCHEMA);
	set_text(root, "program", PROGRAM);
	set_text(root, "version", PAGELANE_VERSION);
	json_object_set_new(root, "machine", machine(bench));
	json_object_set_new(root, "config", config(bench));
	json_object_set_new(root, "results", rows(bench));
	json_object_set_new(root, "left_out", left_out(bench));
	err = json_object_set_new(root, "conservation", conservation(bench)) < 0 ? -ENOMEM : 0;
	if (err == 0)
		err = json_save(root, path);
	json_decref(root);
	if (err < 0)
		cli_error("cannot write %s: %s; choose another --json file", path,
			json_strerror(err));
	return err;
}
