/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <machine.h>

#include "bench.h"
#include "loops.h"

#define PASSES_MAX  (1u << 24)
#define CLOCK_READS 10000

static uint64_t
greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		const uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void
measure_clock(struct bench *bench)
{
	uint64_t last = clock_read(), least = UINT64_MAX;

	for (uint32_t i = 0; i < CLOCK_READS; i++) {
		const uint64_t now = clock_read();

		least = RTE_MIN(least, now - last);
		bench->clock_step = greatest_common_divisor(bench->clock_step, now - last);
		last = now;
	}
	bench->clock_cycles = least;
}

/* False when the case must be dropped. */
static bool
sample(struct bench *bench, struct bench_case *one, struct reply *reply)
{
	struct seat *seat = &bench->seats[one->request.subject];

	if (one->request.fresh != 0) {
		seat_close(bench, one->request.subject);
		if (seat_open(bench, one->request.subject) != 0) {
			one->dropped = "could not be opened again";
			return false;
		}
	}
	if (!seat->open) {
		one->dropped = "its process died";
		return false;
	}
	if (seat->worker == NULL) {
		measure(&one->request, reply);
	} else if (worker_measure(seat->worker, &one->request, reply) != 0) {
		seat_close(bench, one->request.subject);
		one->dropped = "its process died";
		return false;
	}
	if (reply->failed > 0)
		one->dropped = "it had not enough memory";
	return reply->failed == 0;
}

/* As many passes as a sample's least time takes. */
static void
calibrate(struct bench *bench, struct bench_case *one)
{
	static struct reply reply;
	const uint32_t us =
		bench->options->sample_us != 0 ? bench->options->sample_us : bench->test->sample_us;
	const double target = (double)rte_get_tsc_hz() / 1e6 * us;

	/* The first one may be slow in many ways. */
	for (uint32_t i = 0; i < 3 && one->request.fresh == 0; i++) {
		if (!sample(bench, one, &reply))
			return;
		const double passes =
			one->request.passes * target / RTE_MAX(reply.elapsed, UINT64_C(1));

		one->request.passes = passes < 1 ? 1 : passes > PASSES_MAX ? PASSES_MAX : passes;
	}
}

static int
keep(struct bench_case *one, const struct reply *reply, bool counts, uint32_t group)
{
	int err = 0;

	for (uint32_t i = 0; i < one->n_rows && err == 0; i++) {
		struct row *row = &one->row[i];
		double cycles = reply->cycles[i];

		if (row->histogram != NULL) {
			histogram_merge(row->histogram, &reply->histogram[i]);
			cycles = histogram_quantile(&reply->histogram[i], 0.5);
		}
		if (counts)
			err = samples_add(&row->samples, cycles);
		if (err == 0)
			err = samples_add(&row->group[group], cycles);
	}
	return err;
}

static void
show_progress(const struct bench *bench, uint32_t round, uint32_t rounds, uint64_t start)
{
	const double seconds = (double)(rte_rdtsc() - start) / (double)rte_get_tsc_hz();

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%s: round %u of %u", bench->test->name, round + 1, rounds);
	if (round > 0)
		fprintf(stderr, ", %.0f s left", seconds / round * (rounds - round));
	fprintf(stderr, "\033[K");
	if (round == rounds)
		fprintf(stderr, "\r\033[K");
}

/*
 * One sample of each case. With an order that the user chose, every other round is shuffled all
 * the same, to be compared with.
 */
static int
run_round(struct bench *bench, uint32_t *order, bool shuffled, uint64_t *seed)
{
	static struct reply reply;
	const int asked = bench->options->order;
	int last = -1, err = 0;

	if (shuffled)
		shuffle(order, bench->n_cases, seed);
	for (uint32_t i = 0; i < bench->n_cases && err == 0; i++) {
		const uint32_t k = shuffled                    ? order[i]
				   : asked == ORDER_DESCENDING ? bench->n_cases - 1 - i
							       : i;
		struct bench_case *one = &bench->cases[k];

		if (one->dropped != NULL || !sample(bench, one, &reply))
			continue;
		if (asked == ORDER_SHUFFLE)
			err = keep(one, &reply, true, last > (int)k);
		else
			err = keep(one, &reply, !shuffled, shuffled);
		last = k;
	}
	return err;
}

static int
run_rounds(struct bench *bench)
{
	const bool chosen = bench->options->order != ORDER_SHUFFLE;
	const uint32_t rounds = bench->options->rounds * (chosen ? 2 : 1);
	uint32_t *order = calloc(bench->n_cases + 1, sizeof(*order));
	/* Any seed but 0, spread over 64 bits. */
	uint64_t seed = bench->seed * UINT64_C(0x9e3779b97f4a7c15);
	const uint64_t start = rte_rdtsc();
	int err = order == NULL ? -ENOMEM : 0;

	for (uint32_t round = 0; round < rounds && err == 0; round++) {
		show_progress(bench, round, rounds, start);
		err = run_round(bench, order, !chosen || round % 2 == 1, &seed);
	}
	show_progress(bench, rounds, rounds, start);
	bench->seconds = (double)(rte_rdtsc() - start) / (double)rte_get_tsc_hz();
	free(order);
	if (err != 0)
		cli_error("no memory for the samples; ask for fewer --rounds");
	return err;
}

int
bench_run(struct bench *bench)
{
	const double steal_ms = machine_steal_ms();
	int err;

	if (bench->n_cases == 0)
		return seats_none_left(bench);
	if (bench->need.objects == 0) {
		cli_error("objects take more than --memory %u in all cases; give more, or ask for "
			  "fewer or smaller ones",
			bench->options->memory);
		return -ENOMEM;
	}
	if (measure_init(bench->need.objects) != 0) {
		cli_error("no memory for %u objects; reserve more hugepages, or ask for smaller "
			  "--batches",
			bench->need.objects);
		return -ENOMEM;
	}
	err = seats_open(bench);
	if (err != 0)
		return err;
	measure_clock(bench);
	bench->tsc_per_core_cycle[0] = machine_tsc_per_core_cycle();
	for (uint32_t i = 0; i < bench->n_cases; i++)
		if (bench->cases[i].dropped == NULL)
			calibrate(bench, &bench->cases[i]);
	err = run_rounds(bench);
	bench->tsc_per_core_cycle[1] = machine_tsc_per_core_cycle();
	bench->steal_ms = machine_steal_ms() - steal_ms;
	for (uint32_t s = 0; s < n_subjects; s++)
		seat_close(bench, s);
	return err;
}

void
bench_close(struct bench *bench)
{
	for (uint32_t s = 0; s < n_subjects; s++)
		seat_close(bench, s);
	for (uint32_t i = 0; i < bench->n_cases; i++) {
		for (uint32_t k = 0; k < 2; k++) {
			struct row *row = &bench->cases[i].row[k];

			samples_free(&row->samples);
			samples_free(&row->group[0]);
			samples_free(&row->group[1]);
			free(row->histogram);
		}
	}
	free(bench->cases);
}

bool
bench_conserved(const struct bench *bench)
{
	for (uint32_t s = 0; s < n_subjects; s++)
		if (bench->seats[s].lost)
			return false;
	return true;
}
