/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include <rte_lcore.h>

#include <report.h>
#include <units.h>

#include "output.h"

uint64_t
outcome_packets(const struct outcome *outcome, const struct result *result)
{
	return outcome->options->mode == FORWARD_RXONLY ? result->rx_packets : result->tx_packets;
}

uint64_t
outcome_bytes(const struct outcome *outcome, const struct result *result)
{
	return outcome->options->mode == FORWARD_RXONLY ? result->rx_bytes : result->tx_bytes;
}

double
outcome_line_rate(const struct outcome *outcome, uint16_t i, double gbps_l1)
{
	const struct ports *ports = outcome->ports;
	uint32_t mbps = 0;
	uint16_t port;

	if (i < ports->n)
		return units_line_rate_percent(gbps_l1, ports->port[i].link_mbps);
	for (port = 0; port < ports->n; port++) {
		if (ports->port[port].link_mbps == 0)
			return NAN;
		mbps += ports->port[port].link_mbps;
	}
	return units_line_rate_percent(gbps_l1, mbps);
}

static void
add_rates(struct report_table *table, const struct outcome *outcome, uint16_t i)
{
	const struct result *result = &outcome->results[i];
	const uint64_t packets = outcome_packets(outcome, result);
	const uint64_t bytes = outcome_bytes(outcome, result);
	const double l1 = units_gbps_l1(packets, bytes, outcome->seconds);

	report_real(table, units_mpps(packets, outcome->seconds), 3);
	report_real(table, units_gbps_l2(packets, bytes, outcome->seconds), 3);
	report_real(table, l1, 3);
	report_real(table, outcome_line_rate(outcome, i, l1), 1);
	report_real(table, units_ratio(result->busy_cycles, result->busy_packets), 1);
	report_real(table, units_ratio(result->busy_packets, result->bursts), 1);
}

static void
add_name(struct report_table *table, const struct ports *ports, uint16_t i)
{
	if (i < ports->n)
		report_count(table, ports->port[i].id);
	else
		report_text(table, "total");
}

static void
print_rates(const struct outcome *outcome)
{
	static const char *const titles[] = {"port", "driver", "Mpps", "Gbit/s L2", "Gbit/s L1",
		"% of line", "cycles/packet", "packets/burst"};
	const struct ports *ports = outcome->ports;
	struct report_table table;
	uint16_t i;

	if (report_init(&table, RTE_DIM(titles), titles) < 0)
		return;
	for (i = 0; i <= ports->n; i++) {
		add_name(&table, ports, i);
		report_text(&table, i < ports->n ? ports->port[i].driver_name : "");
		add_rates(&table, outcome, i);
	}
	report_print(&table, stdout);
	report_free(&table);
}

static void
print_counts(const struct outcome *outcome)
{
	static const char *const titles[] = {"port", "RX packets", "TX packets", "no_buffer",
		"ring_full", "driver", "app", "in flight", "unaccounted"};
	const struct result *result;
	struct report_table table;
	uint16_t i;

	if (report_init(&table, RTE_DIM(titles), titles) < 0)
		return;
	for (i = 0; i <= outcome->ports->n; i++) {
		result = &outcome->results[i];
		add_name(&table, outcome->ports, i);
		report_count(&table, result->rx_packets);
		report_count(&table, result->tx_packets);
		report_count(&table, result->no_buffer);
		report_count(&table, result->ring_full);
		report_count(&table, result->driver);
		report_count(&table, result->app);
		report_count(&table, result->in_flight);
		report_count(&table, result->unaccounted);
	}
	report_print(&table, stdout);
	report_free(&table);
}

static void
print_pool(const struct pool *pool)
{
	const struct pcp_stats *stats = &pool->stats;

	printf("pool %s: %u buffers, %u missing, %u kept by drivers\n", pool_kind_name(pool->kind),
		pool->mp->size, pool->missing, pool->kept);
	if (pool->cache == NULL)
		return;
	printf("page caches %s, checks %s, batch %u: allocs %" PRIu64 ", frees %" PRIu64
	       ", failed %" PRIu64 ", exchanges %" PRIu64 ", refills %" PRIu64 ", drains %" PRIu64
	       ", reclaims %" PRIu64 ", zone_allocs %" PRIu64 ", bad_pages %" PRIu64 "\n",
		pcp_mode_name(pool->pcp.mode), pcp_checks_name(pool->pcp.checks), pool->pcp.batch,
		stats->allocs, stats->frees, stats->failed, stats->exchanges, stats->refills,
		stats->drains, stats->reclaims, stats->zone_allocs, stats->bad_pages);
}

void
output_setup(const struct outcome *outcome)
{
	const struct ports *ports = outcome->ports;
	const struct stream *stream;
	const struct port *port;
	uint16_t i;

	printf("%s over %s, %u buffers; needed: queues x (RX + TX ring) of each port + lcores x "
	       "(cache + bursts): %s\n",
		forward_mode_name(outcome->options->mode), pool_kind_name(outcome->pool->kind),
		outcome->pool->mp->size, outcome->pool->formula);
	for (i = 0; i < outcome->streams->n; i++) {
		stream = &outcome->streams->stream[i];
		port = &ports->port[stream->rx_index];
		printf("lcore %u%s: port %u queue %u (%s) -> port %u\n", stream->lcore_id,
			stream->lcore_id == rte_get_main_lcore() ? " (main)" : "", port->id,
			stream->rx_queue, port->device, stream->tx_port);
	}
	fflush(stdout);
}

void
output_table(const struct outcome *outcome)
{
	printf("%.1f s:\n", outcome->seconds);
	print_rates(outcome);
	print_counts(outcome);
	print_pool(outcome->pool);
	if (outcome->contender->n > 0)
		printf("contender: %.3f million buffers a second taken and freed, %u at once\n",
			units_mpps(outcome->contender->buffers, outcome->seconds),
			outcome->contender->n);
}
