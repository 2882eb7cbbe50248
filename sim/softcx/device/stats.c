/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "../wire/gen.h"
#include "stats.h"

#define DIM(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *name;
	size_t offset;
} fields[] =
	{
#define FIELD(name)                                                                                \
	{                                                                                          \
#name, offsetof(struct softcx_port_counters, name)                                 \
	}
		FIELD(offered),
		FIELD(rx_packets),
		FIELD(rx_bytes),
		FIELD(out_of_buffer),
		FIELD(rx_errors),
		FIELD(no_flow),
		FIELD(flow_drops),
		FIELD(queue_not_ready),
		FIELD(rx_copies),
		FIELD(tx_packets),
		FIELD(tx_bytes),
		FIELD(tx_errors),
		FIELD(flushed),
		FIELD(cq_overruns),
		FIELD(faults),
		FIELD(injected),
		FIELD(strict),
		FIELD(cqes),
		FIELD(events),
		FIELD(stall_ns),
		FIELD(run_ns),
		FIELD(idle_ns),
#undef FIELD
},
  checker_fields[] = {
#define FIELD(name)                                                                                \
	{                                                                                          \
#name, offsetof(struct softcx_checker_counters, name)                              \
	}
	  FIELD(packets),
	  FIELD(foreign),
	  FIELD(lost),
	  FIELD(reordered),
	  FIELD(duplicated),
	  FIELD(corrupted),
#undef FIELD
};

static uint64_t
value(const void *counters, size_t offset)
{
	return *(const uint64_t *)(const void *)((const uint8_t *)counters + offset);
}

static struct softcx_port_counters
counters_of(const struct softcx_port *port)
{
	struct softcx_port_counters c = port->counters;

	c.run_ns = cx_cycles_to_ns(port->run, port->card->hz);
	c.idle_ns = cx_cycles_to_ns(port->idle, port->card->hz);
	c.stall_ns = cx_cycles_to_ns(port->stall, port->card->hz);
	return c;
}

static bool
is_good(const struct softcx_checker_counters *c)
{
	return c->lost + c->reordered + c->duplicated + c->corrupted == 0;
}

static double
idle_share(const struct softcx_port_counters *c)
{
	return c->run_ns != 0 ? (double)c->idle_ns / (double)c->run_ns : 1;
}

/* Of device time that was work, for each packet in either direction. */
static double
cycles_per_packet(const struct softcx_port *port)
{
	const struct softcx_port_counters *c = &port->counters;
	const uint64_t packets = c->rx_packets + c->tx_packets;

	return packets != 0 ? (double)(port->run - port->idle) / (double)packets : 0;
}

/* Device time in which the generator was at its full rate. */
static uint64_t
offer_ns(const struct softcx_port *port)
{
	const struct cx_gen *gen = port->gen;

	return gen != NULL ? cx_cycles_to_ns(gen->up + gen->last - gen->since, port->card->hz) : 0;
}

static uint64_t
behind_ns(const struct softcx_port *port)
{
	return port->gen != NULL ? cx_cycles_to_ns(port->gen->most_late, port->card->hz) : 0;
}

/* Nothing ever happened there: as with a program that only lists what there is. */
static bool
is_unused(const struct softcx_port_counters *c)
{
	return c->offered + c->tx_packets + c->cqes + c->faults + c->strict == 0;
}

void
cx_stats_summary(const struct softcx_card *card, FILE *f)
{
	for (unsigned int i = 0; i < card->config.ports; i++) {
		const struct softcx_port_counters c = counters_of(card->port[i]);
		const double run = (double)c.run_ns / (double)CX_NS_PER_S;
		const double offer = (double)offer_ns(card->port[i]) / (double)CX_NS_PER_S;
		const double mega = offer > 0 ? 1e-6 / offer : run > 0 ? 1e-6 / run : 0;

		if (is_unused(&c))
			continue;
		const uint64_t other = c.rx_errors + c.no_flow + c.flow_drops + c.queue_not_ready;

		fprintf(f,
			"softcx: port %u: offered %" PRIu64 " = delivered %" PRIu64
			" + out_of_buffer %" PRIu64 " + other drops %" PRIu64 " (%.3f Mpps)\n",
			i, c.offered, c.rx_packets, c.out_of_buffer, other,
			(double)c.rx_packets * mega);
		fprintf(f,
			"softcx: port %u: sent %" PRIu64 " (%.3f Mpps), errors %" PRIu64
			", faults %" PRIu64 ", strict reports %" PRIu64 "\n",
			i, c.tx_packets, (double)c.tx_packets * mega, c.tx_errors, c.faults,
			c.strict);
		if (card->port[i]->check != NULL)
			fprintf(f,
				"softcx: port %u: checker %s: %" PRIu64 " packets, lost %" PRIu64
				", reordered %" PRIu64 ", duplicated %" PRIu64
				", corrupted %" PRIu64 ", foreign %" PRIu64 "\n",
				i, is_good(&c.checker) ? "ok" : "FAILED", c.checker.packets,
				c.checker.lost, c.checker.reordered, c.checker.duplicated,
				c.checker.corrupted, c.checker.foreign);
		fprintf(f,
			"softcx: port %u: offered for %.3f s; device ran %.3f s, idle %.1f%% of "
			"it, "
			"%.0f cycles per packet each way, stalled %.3f s, behind at most %.1f us\n",
			i, offer, run, 100 * idle_share(&c), cycles_per_packet(card->port[i]),
			(double)c.stall_ns / (double)CX_NS_PER_S,
			(double)behind_ns(card->port[i]) / 1000);
	}
	if (card->leaks > 0)
		fprintf(f, "softcx: %u objects were never destroyed\n", card->leaks);
}

static void
write_port(FILE *f, const struct softcx_port *port)
{
	const struct softcx_port_counters c = counters_of(port);

	fprintf(f, "    {\n      \"port\": %u,\n", port->index);
	for (unsigned int i = 0; i < DIM(fields); i++)
		fprintf(f, "      \"%s\": %" PRIu64 ",\n", fields[i].name,
			value(&c, fields[i].offset));
	fprintf(f, "      \"idle_share\": %.6f,\n", idle_share(&c));
	fprintf(f, "      \"cycles_per_packet\": %.1f,\n", cycles_per_packet(port));
	fprintf(f, "      \"offer_ns\": %" PRIu64 ",\n", offer_ns(port));
	fprintf(f, "      \"behind_ns\": %" PRIu64, behind_ns(port));
	if (port->check != NULL) {
		fprintf(f, ",\n      \"checker\": {\n");
		for (unsigned int i = 0; i < DIM(checker_fields); i++)
			fprintf(f, "        \"%s\": %" PRIu64 ",\n", checker_fields[i].name,
				value(&c.checker, checker_fields[i].offset));
		fprintf(f, "        \"ok\": %s\n      }", is_good(&c.checker) ? "true" : "false");
	}
	fprintf(f, "\n    }");
}

int
cx_stats_json(const struct softcx_card *card, const char *file)
{
	FILE *f = fopen(file, "we");

	if (f == NULL)
		return -errno;
	fprintf(f,
		"{\n  \"clock_hz\": %" PRIu64 ",\n  \"rate\": %" PRIu64
		",\n  \"leaks\": %u,\n  \"ports\": [\n",
		card->hz, card->config.rate, card->leaks);
	for (unsigned int i = 0; i < card->config.ports; i++) {
		if (i > 0)
			fprintf(f, ",\n");
		write_port(f, card->port[i]);
	}
	fprintf(f, "\n  ]\n}\n");

	const int error = ferror(f) != 0 ? -EIO : 0;

	return fclose(f) != 0 ? -errno : error;
}
