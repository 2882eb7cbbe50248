/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include <json.h>
#include <machine.h>
#include <units.h>

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
	json_object_set_new(object, name, json_string(text));
}

static json_t *
port_config(const struct port *port, const struct ports *ports)
{
	json_t *object = json_object();
	char mac[RTE_ETHER_ADDR_FMT_SIZE];

	rte_ether_format_addr(mac, sizeof(mac), &port->mac);
	set_count(object, "port", port->id);
	set_text(object, "device", port->device);
	set_text(object, "driver", port->driver_name);
	set_text(object, "mac", mac);
	set_count(object, "peer", ports->port[port->peer].id);
	json_object_set_new(object, "node", json_integer(port->node));
	set_count(object, "rxd", port->rxd);
	set_count(object, "txd", port->txd);
	json_object_set_new(object, "rss", json_boolean(port->rss));
	json_object_set_new(object, "link_mbps",
		port->link_mbps == 0 ? json_null() : json_integer(port->link_mbps));
	return object;
}

static json_t *
stream_config(const struct stream *stream)
{
	json_t *object = json_object();

	set_count(object, "port", stream->rx_port);
	set_count(object, "queue", stream->rx_queue);
	set_count(object, "lcore", stream->lcore_id);
	set_count(object, "node", rte_lcore_to_socket_id(stream->lcore_id));
	json_object_set_new(object, "main", json_boolean(stream->lcore_id == rte_get_main_lcore()));
	json_object_set_new(object, "sections", json_boolean(stream->cache != NULL));
	return object;
}

/* pcp, batch and high are null where the pool has no page caches. */
static void
set_pool_config(json_t *object, const struct pool *pool)
{
	const bool cached = pool->cache != NULL;

	set_text(object, "pool", pool_kind_name(pool->kind));
	set_count(object, "pool_size", pool->mp->size);
	set_count(object, "data_room", pool->room);
	set_count(object, "pool_needed", pool->needed);
	set_text(object, "pool_formula", pool->formula);
	set_count(object, "pool_node", pool->mp->socket_id);
	set_count(object, "mbcache", pool->mp->cache_size);
	json_object_set_new(
		object, "pcp", cached ? json_string(pcp_mode_name(pool->pcp.mode)) : json_null());
	json_object_set_new(object, "batch", cached ? json_integer(pool->pcp.batch) : json_null());
	json_object_set_new(object, "high", cached ? json_integer(pool->pcp.high) : json_null());
}

static json_t *
config(const struct outcome *outcome)
{
	const struct options *options = outcome->options;
	json_t *object = json_object(), *ports = json_array(), *streams = json_array();
	uint16_t i;

	set_text(object, "mode", forward_mode_name(options->mode));
	set_pool_config(object, outcome->pool);
	set_count(object, "burst", options->burst);
	set_count(object, "frame_size", options->frame_size);
	set_count(object, "rxq", options->rxq);
	set_count(object, "duration", options->duration);
	set_real(object, "seconds", outcome->seconds);
	set_count(object, "lcores", rte_lcore_count());
	set_text(object, "iova", rte_eal_iova_mode() == RTE_IOVA_PA ? "pa" : "va");
	json_object_set_new(object, "hugepages", json_boolean(rte_eal_has_hugepages()));
	for (i = 0; i < outcome->ports->n; i++)
		json_array_append_new(ports, port_config(&outcome->ports->port[i], outcome->ports));
	for (i = 0; i < outcome->streams->n; i++)
		json_array_append_new(streams, stream_config(&outcome->streams->stream[i]));
	json_object_set_new(object, "ports", ports);
	json_object_set_new(object, "streams", streams);
	return object;
}

static json_t *
device_stats(const struct rte_eth_stats *stats)
{
	json_t *object = json_object();

	set_count(object, "ipackets", stats->ipackets);
	set_count(object, "opackets", stats->opackets);
	set_count(object, "imissed", stats->imissed);
	set_count(object, "ierrors", stats->ierrors);
	set_count(object, "oerrors", stats->oerrors);
	set_count(object, "rx_nombuf", stats->rx_nombuf);
	return object;
}

static json_t *
one_result(const struct outcome *outcome, uint16_t i)
{
	const struct result *result = &outcome->results[i];
	const uint64_t packets = outcome_packets(outcome, result);
	const uint64_t bytes = outcome_bytes(outcome, result);
	const double seconds = outcome->seconds, l1 = units_gbps_l1(packets, bytes, seconds);
	json_t *object = json_object(), *drops = json_object();

	if (i < outcome->ports->n)
		set_count(object, "port", outcome->ports->port[i].id);
	else
		set_text(object, "port", "total");
	set_real(object, "mpps", units_mpps(packets, seconds));
	set_real(object, "gbps_l2", units_gbps_l2(packets, bytes, seconds));
	set_real(object, "gbps_l1", l1);
	set_real(object, "line_rate_percent", outcome_line_rate(outcome, i, l1));
	set_real(object, "cycles_per_packet",
		units_ratio(result->busy_cycles, result->busy_packets));
	set_real(object, "packets_per_burst", units_ratio(result->busy_packets, result->bursts));
	set_count(object, "rx_packets", result->rx_packets);
	set_count(object, "tx_packets", result->tx_packets);
	set_count(object, "rxonly", result->rxonly);
	set_count(object, "generated", result->generated);
	set_count(object, "in_flight", result->in_flight);
	set_count(drops, "no_buffer", result->no_buffer);
	set_count(drops, "ring_full", result->ring_full);
	set_count(drops, "driver", result->driver);
	set_count(drops, "app", result->app);
	json_object_set_new(object, "drops", drops);
	set_count(object, "unaccounted", result->unaccounted);
	json_object_set_new(object, "device_checked", json_boolean(result->device_checked));
	if (i < outcome->ports->n)
		json_object_set_new(object, "device", device_stats(&result->device));
	return object;
}

static json_t *
pool_counters(const struct pool *pool)
{
	const struct pcp_stats *stats = &pool->stats;
	json_t *object = json_object();

	set_count(object, "size", pool->mp->size);
	set_count(object, "missing", pool->missing);
	set_count(object, "kept_by_drivers", pool->kept);
	if (pool->cache == NULL)
		return object;
	set_count(object, "allocs", stats->allocs);
	set_count(object, "frees", stats->frees);
	set_count(object, "failed", stats->failed);
	set_count(object, "exchanges", stats->exchanges);
	set_count(object, "refills", stats->refills);
	set_count(object, "drains", stats->drains);
	set_count(object, "reclaims", stats->reclaims);
	set_count(object, "membarriers", stats->membarriers);
	set_count(object, "zone_allocs", stats->zone_allocs);
	set_count(object, "zone_frees", stats->zone_frees);
	set_count(object, "depot_allocs", stats->depot_allocs);
	set_count(object, "depot_frees", stats->depot_frees);
	return object;
}

int
output_json(const struct outcome *outcome)
{
	const char *path = outcome->options->json;
	json_t *root = json_object(), *results = json_array();
	uint16_t i;
	int err;

	for (i = 0; i <= outcome->ports->n; i++)
		json_array_append_new(results, one_result(outcome, i));
	set_text(root, "program", PROGRAM);
	set_text(root, "version", PAGELANE_VERSION);
	json_object_set_new(root, "machine", machine_facts());
	json_object_set_new(root, "config", config(outcome));
	json_object_set_new(root, "results", results);
	err = json_object_set_new(root, "pool", pool_counters(outcome->pool)) < 0 ? -ENOMEM : 0;
	if (err == 0)
		err = json_save(root, path);
	json_decref(root);
	if (err < 0)
		cli_error("cannot write %s: %s; choose another --json file", path,
			json_strerror(err));
	return err;
}
