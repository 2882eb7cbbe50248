/* SPDX-License-Identifier: BSD-3-Clause */
/* Subjects in a run: in this process, or as workers. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>

#include "bench.h"

static void
explain_missing(struct seat *seat, const struct subject *subject, int err)
{
	if (err == ENOENT && subject->package != NULL)
		snprintf(seat->missing, sizeof(seat->missing), "install package %s",
			subject->package);
	else
		snprintf(seat->missing, sizeof(seat->missing), "%s", strerror(err));
}

int
seat_open(struct bench *bench, uint32_t s)
{
	struct seat *seat = &bench->seats[s];
	int err = 0;

	if (subjects[s].library != NULL) {
		seat->worker = worker_start(s, &bench->need);
		if (seat->worker == NULL)
			err = -rte_errno;
	} else {
		err = measure_open(s, &bench->need);
	}
	seat->open = err == 0;
	return err;
}

void
seat_close(struct bench *bench, uint32_t s)
{
	struct seat *seat = &bench->seats[s];

	if (!seat->open)
		return;
	seat->open = false;
	if (seat->worker != NULL) {
		worker_stop(seat->worker);
		seat->worker = NULL;
		return;
	}
	measure_close(s, &seat->tally);
	seat->lost |= seat->tally.given != seat->tally.free || !seat->tally.valid;
}

int
seats_none_left(const struct bench *bench)
{
	for (uint32_t s = 0; s < n_subjects; s++) {
		if (bench->seats[s].missing[0] == '\0')
			continue;
		cli_error("%s cannot be measured: %s; choose another with --subjects, or give EAL "
			  "more memory",
			subjects[s].name, bench->seats[s].missing);
		return -ENOENT;
	}
	cli_error("no subject is left to measure; choose others with --subjects, see --list");
	return -ENOENT;
}

/* Those that cannot take part are left out, with their cases. */
int
seats_open(struct bench *bench)
{
	uint32_t open = 0;

	for (uint32_t s = 0; s < n_subjects; s++) {
		struct seat *seat = &bench->seats[s];

		if (!seat->used)
			continue;
		const int err = seat_open(bench, s);

		if (err != 0)
			explain_missing(seat, &subjects[s], -err);
		open += err == 0 && bench_wants(bench, &subjects[s]);
	}
	for (uint32_t i = 0; i < bench->n_cases; i++) {
		struct bench_case *one = &bench->cases[i];

		struct seat *seat = &bench->seats[one->request.subject];

		if (seat->missing[0] != '\0')
			one->dropped = seat->missing;
	}
	return open > 0 ? 0 : seats_none_left(bench);
}
