/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <rte_cycles.h>

#include "result.h"

#define NAMES_MAX 20 /* of one kind; JSON has them all */

static void
print_machine(const struct bench *bench, FILE *f)
{
	fprintf(f,
		"\nseed %u, order %s, %u rounds in %.1f s; TSC %.3f GHz, %.3f to %.3f of its "
		"cycles per core cycle; reading the clock costs %.1f cycles, its step is "
		"%" PRIu64 "\n",
		bench->seed, options_order_name(bench->options->order), bench->options->rounds,
		bench->seconds, (double)rte_get_tsc_hz() / 1e9, bench->tsc_per_core_cycle[0],
		bench->tsc_per_core_cycle[1], bench->clock_cycles, bench->clock_step);
	if (bench->steal_ms > 0)
		fprintf(f, "steal: the hypervisor took %.0f ms meanwhile\n", bench->steal_ms);
}

/* Cases of one subject left out for one reason, in one line. */
static void
print_dropped(const struct bench *bench, uint32_t first, FILE *f)
{
	const struct bench_case *one = &bench->cases[first], *other;
	uint32_t n = 0;
	char name[64];

	for (uint32_t i = 0; i < bench->n_cases; i++) {
		other = &bench->cases[i];
		if (other->dropped == NULL || other->subject != one->subject ||
			strcmp(other->dropped, one->dropped) != 0)
			continue;
		if (i < first)
			return;
		n++;
	}
	fprintf(f, "left out: %u of %s, as of %u objects of %u bytes: %s\n", n,
		subject_name(one->subject, name), one->request.n, one->request.size, one->dropped);
}

static void
print_missing(const struct bench *bench, FILE *f)
{
	for (uint32_t s = 0; s < n_subjects; s++)
		if (bench->seats[s].missing[0] != '\0')
			fprintf(f, "left out: %s; %s\n", subjects[s].name, bench->seats[s].missing);
	for (uint32_t i = 0; i < bench->n_cases; i++)
		if (bench->cases[i].dropped != NULL &&
			bench->seats[bench->cases[i].request.subject].missing[0] == '\0')
			print_dropped(bench, i, f);
}

/* The rows of one kind, each named once. */
static void
print_rows(const struct bench *bench, FILE *f, const char *heading,
	bool (*is_one)(const struct row *), bool with_change)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < bench->n_cases; i++) {
		const struct bench_case *one = &bench->cases[i];

		for (uint32_t k = 0; k < one->n_rows; k++) {
			const struct row *row = &one->row[k];
			char name[192];

			if (!result_is_shown(bench, one) || !is_one(row) || n++ > NAMES_MAX)
				continue;
			if (n == 1)
				fprintf(f, "%s\n", heading);
			result_name(bench, one, row, name);
			if (n > NAMES_MAX)
				fprintf(f, "  and more: see --json\n");
			else if (with_change)
				fprintf(f, "  %s: %+.0f%%, p %.2g\n", name, 100 * row->order_change,
					row->p_order);
			else
				fprintf(f, "  %s: %s\n", name, row->doubt);
		}
	}
}

static bool
is_doubtful(const struct row *row)
{
	return row->doubt != NULL;
}

static void
print_conservation(const struct bench *bench, FILE *f)
{
	uint64_t given = 0, free = 0;
	bool valid = true, any = false;

	for (uint32_t s = 0; s < n_subjects; s++) {
		const struct seat *seat = &bench->seats[s];
		char name[64];

		if (!seat->used || !subjects[s].backend->counts || seat->missing[0] != '\0')
			continue;
		if (seat->lost)
			fprintf(f, "LOST by %s: %" PRIu64 " given, %" PRIu64 " free%s\n",
				subject_name(&subjects[s], name), seat->tally.given,
				seat->tally.free, seat->tally.valid ? "" : ", and broken lists");
		if (subjects[s].mode < 0)
			continue;
		given += seat->tally.given;
		free += seat->tally.free;
		valid &= seat->tally.valid;
		any = true;
	}
	if (any)
		fprintf(f, "pages: %" PRIu64 " given, %" PRIu64 " free at the end, lists %s\n",
			given, free, valid ? "valid" : "BROKEN");
}

void
print_notes(const struct bench *bench, FILE *f)
{
	const bool chosen = bench->options->order != ORDER_SHUFFLE;

	print_machine(bench, f);
	print_missing(bench, f);
	print_rows(bench, f, "* not to be trusted:", is_doubtful, false);
	print_rows(bench, f,
		chosen ? "dependent on order beyond noise; shuffled rounds against these:"
		       : "dependent on order beyond noise; after a later case against after an "
			 "earlier one:",
		result_depends_on_order, true);
	print_conservation(bench, f);
}
