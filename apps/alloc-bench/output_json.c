/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>

#include <machine.h>

#include "output.h"

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
		json_set_count(object, "lcore", lcore_id);
		json_set(object, "cpus", cpus);
		json_set_flag(object, "main", lcore_id == rte_get_main_lcore());
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *
machine(const struct bench *bench)
{
	json_t *object = machine_facts();

	json_set(object, "lcores", lcores());
	json_set_flag(object, "hugepages", rte_eal_has_hugepages());
	json_set_real(object, "tsc_per_core_cycle", bench->tsc_per_core_cycle[0]);
	json_set_real(object, "tsc_per_core_cycle_after", bench->tsc_per_core_cycle[1]);
	json_set_real(object, "clock_cycles", bench->clock_cycles);
	json_set_count(object, "clock_step", bench->clock_step);
	json_set_real(object, "steal_ms", bench->steal_ms);
	return object;
}

static json_t *
config(const struct bench *bench)
{
	const struct options *options = bench->options;
	json_t *object = json_object();

	json_set_text(object, "test", bench->test->name);
	json_set_text(object, "subjects", options->subjects);
	json_set_text(object, "pcp", options->pcp);
	json_set_text(object, "checks", options->checks);
	json_set_text(object, "order", options_order_name(options->order));
	json_set_count(object, "seed", bench->seed);
	json_set_count(object, "rounds", options->rounds);
	json_set_count(object, "sample_us",
		options->sample_us != 0 ? options->sample_us : bench->test->sample_us);
	json_set_count(object, "warm_up", options->warm_up);
	json_set_count(object, "burst", options->burst);
	json_set_count(object, "cache_size", CACHE_SIZE);
	json_set_count(object, "memory", options->memory);
	json_set_count(object, "delay", options->delay);
	json_set_real(object, "seconds", bench->seconds);
	return object;
}

static json_t *
percentiles(const struct row *row)
{
	static const char *const names[RESULT_PERCENTILES] = {
		"p50", "p90", "p99", "p99_9", "p99_99", "max"};
	json_t *object = json_object();

	for (uint32_t p = 0; p < RESULT_PERCENTILES; p++)
		json_set_real(object, names[p], result_ns(result_percentile(row, p)));
	json_set_count(object, "calls", row->histogram->n);
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

	json_set_text(object, "test", bench->test->name);
	json_set_text(object, "subject",
		strcmp(one->subject->name, "pagepool") == 0 ? one->subject->name
							    : subject_name(one->subject, name));
	json_set_text(
		object, "mode", one->subject->mode >= 0 ? pcp_mode_name(one->subject->mode) : NULL);
	json_set_text(object, "checks",
		one->subject->mode >= 0 ? pcp_checks_name(one->subject->checks) : NULL);
	json_set_text(object, "api", one->call->api);
	json_set_text(object, "call", one->call->call);
	json_set_text(object, "op", one->call->api != NULL ? row->op : NULL);
	json_set_text(object, "state",
		row->histogram == NULL ? NULL
		: request->fresh       ? "fresh"
				       : "warm");
	json_set_count(object, "order", request->order);
	json_set_count(object, "size", request->size);
	json_set_count(object, "batch", request->n);
	json_set_count(object, "burst", request->burst);
	json_set_count(object, "lcores", request->lcores);
	json_set_real(object, "ns", result_ns(row->cycles));
	json_set_real(object, "ns_low", result_ns(row->cycles_low));
	json_set_real(object, "ns_high", result_ns(row->cycles_high));
	json_set_real(object, "ns_min", result_ns(row->cycles_min));
	json_set_real(object, "cycles", row->cycles);
	json_set_real(object, "cycles_min", row->cycles_min);
	json_set_real(object, "overhead_ns", result_ns(row->overhead));
	json_set_real(object, "objects_per_second", result_rate(one, row));
	json_set_real(object, "spread", row->spread);
	json_set_flag(object, "trusted", row->doubt == NULL);
	json_set_text(object, "doubt", row->doubt);
	json_set_real(object, "order_p", row->p_order);
	json_set_real(object, "order_change", row->order_change);
	json_set_flag(object, "depends_on_order", result_depends_on_order(row));
	if (row->histogram != NULL)
		json_set(object, "percentiles", percentiles(row));
	json_set(object, "samples", samples(row));
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
		json_set_text(object, "subject", subject_name(one->subject, name));
		json_set_text(object, "api", one->call->api);
		json_set_count(object, "order", one->request.order);
		json_set_count(object, "size", one->request.size);
		json_set_count(object, "batch", one->request.n);
		json_set_text(object, "why", one->dropped);
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
		json_set_text(object, "subject", subject_name(&subjects[s], name));
		json_set_count(object, "given", seat->tally.given);
		json_set_count(object, "free", seat->tally.free);
		json_set_flag(object, "valid", !seat->lost);
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

	json_set_count(root, "schema", OUTPUT_SCHEMA);
	json_set_text(root, "program", PROGRAM);
	json_set_text(root, "version", PAGELANE_VERSION);
	json_set(root, "machine", machine(bench));
	json_set(root, "config", config(bench));
	json_set(root, "results", rows(bench));
	json_set(root, "left_out", left_out(bench));
	err = json_object_set_new(root, "conservation", conservation(bench)) < 0 ? -ENOMEM : 0;
	if (err == 0)
		err = json_save(root, path);
	json_decref(root);
	return err < 0 ? save_failed(path, "json", err) : 0;
}
