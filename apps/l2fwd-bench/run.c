/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "run.h"

#define WAIT_US 10000 /* how late the main lcore may notice a signal */

/* What the main lcore looks after, between its own bursts or while others poll. */
static struct {
	const struct streams *streams;
	struct ports *ports;
	uint64_t start, deadline, line; /* in cycles: begin, end, last live line */
	bool live;
	struct result results[RTE_MAX_ETHPORTS + 1];
	struct result before; /* the total at the last line */
} watch;

static void
on_signal(int number)
{
	static bool signalled;

	if (__atomic_exchange_n(&signalled, true, __ATOMIC_RELAXED)) {
		signal(number, SIG_DFL);
		raise(number); /* delivered when the handler returns */
	}
	forward_quit();
}

void
run_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaddset(&action.sa_mask, SIGINT);
	sigaddset(&action.sa_mask, SIGTERM);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* Overwrites the one before. */
static void
print_line(uint64_t now)
{
	const struct result *total = &watch.results[watch.ports->n], *before = &watch.before;
	const double hz = rte_get_tsc_hz(), seconds = (now - watch.line) / hz;
	uint64_t tx_packets;

	stats_collect(watch.ports, watch.streams, watch.results);
	tx_packets = total->tx_packets - before->tx_packets;
	printf("\r%.0f s: RX %.3f Mpps, TX %.3f Mpps, L1 %.3f Gbit/s; drops: no_buffer %" PRIu64
	       ", ring_full %" PRIu64 ", driver %" PRIu64 ", app %" PRIu64 "\033[K",
		(now - watch.start) / hz,
		units_mpps(total->rx_packets - before->rx_packets, seconds),
		units_mpps(tx_packets, seconds),
		units_gbps_l1(tx_packets, total->tx_bytes - before->tx_bytes, seconds),
		total->no_buffer, total->ring_full, total->driver, total->app);
	fflush(stdout);
	watch.before = *total;
	watch.line = now;
}

/* A stream_tick: the deadline and the live line. */
static uint64_t
tick(uint64_t now)
{
	const uint64_t second = rte_get_tsc_hz();

	if (now >= watch.deadline)
		forward_quit();
	else if (watch.live && now >= watch.line + second)
		print_line(now);
	return watch.live ? RTE_MIN(watch.deadline, watch.line + second) : watch.deadline;
}

/* Free what the others pass on, and contend, if wanted; else rest. */
static void
serve_or_rest(const struct streams *streams, const struct options *options,
	struct contender *contender, uint64_t us)
{
	uint16_t i;

	if (options->free_on != FREE_ON_OTHER && contender->n == 0) {
		usleep(RTE_MIN(us, (uint64_t)WAIT_US));
		return;
	}
	for (i = 0; i < streams->n; i++)
		release_free(&streams->stream[i].release);
	if (contender->n > 0)
		contender_round(contender);
}

static void
wait_for_end(
	const struct streams *streams, const struct options *options, struct contender *contender)
{
	const uint64_t us = rte_get_tsc_hz() / 1000000;
	uint64_t now = rte_rdtsc(), next = tick(now);

	while (!forward_is_quitting()) {
		serve_or_rest(streams, options, contender, (next - now) / us + 1);
		now = rte_rdtsc();
		if (now >= next)
			next = tick(now);
	}
}

double
run(struct streams *streams, const struct options *options, struct ports *ports,
	struct contender *contender)
{
	const unsigned int main_lcore = rte_get_main_lcore();
	struct stream *own = NULL;
	double seconds;
	uint16_t i;

	memset(&watch, 0, sizeof(watch));
	watch.streams = streams;
	watch.ports = ports;
	watch.live = isatty(STDOUT_FILENO);
	watch.start = watch.line = rte_rdtsc();
	watch.deadline = options->duration == 0
				 ? UINT64_MAX
				 : watch.start + options->duration * rte_get_tsc_hz();
	for (i = 0; i < streams->n; i++) {
		if (streams->stream[i].lcore_id == main_lcore)
			own = &streams->stream[i];
		else
			rte_eal_remote_launch(
				forward_stream, &streams->stream[i], streams->stream[i].lcore_id);
	}
	if (own != NULL) {
		own->tick = tick;
		forward_stream(own);
	} else {
		wait_for_end(streams, options, contender);
	}
	seconds = (double)(rte_rdtsc() - watch.start) / rte_get_tsc_hz();
	rte_eal_mp_wait_lcore();
	if (watch.live)
		printf("\r\033[K");
	return seconds;
}
