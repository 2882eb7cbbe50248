/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include <json.h>
#include <machine.h>
#include <units.h>

#include "output.h"

static json_t *
port_config(const struct port *port, const struct ports *ports)
{
	json_t *object = json_object();
	char mac[RTE_ETHER_ADDR_FMT_SIZE];

	rte_ether_format_addr(mac, sizeof(mac), &port->mac);
	json_set_count(object, "port", port->id);
	json_set_text(object, "device", port->device);
	json_set_text(object, "driver", port->driver_name);
	json_set_text(object, "mac", mac);
	json_set_count(object, "peer", ports->port[port->peer].id);
	json_set(object, "node", json_integer(port->node));
	json_set_count(object, "rxd", port->rxd);
	json_set_count(object, "txd", port->txd);
	json_set_flag(object, "rss", port->rss);
	json_set(object, "link_mbps",
		port->link_mbps == 0 ? json_null() : json_integer(port->link_mbps));
	return object;
}

static json_t *
stream_config(const struct stream *stream)
{
	json_t *object = json_object();

	json_set_count(object, "port", stream->rx_port);
	json_set_count(object, "queue", stream->rx_queue);
	json_set_count(object, "lcore", stream->lcore_id);
	json_set_count(object, "node", rte_lcore_to_socket_id(stream->lcore_id));
	json_set_flag(object, "main", stream->lcore_id == rte_get_main_lcore());
	json_set_flag(object, "sections", stream->cache != NULL);
	return object;
}

/* pcp, checks, batch and high are null where the pool has no page caches. */
static void
set_pool_config(json_t *object, const struct pool *pool)
{
	const bool cached = pool->cache != NULL;

	json_set_text(object, "pool", pool_kind_name(pool->kind));
	json_set_count(object, "pool_size", pool->mp->size);
	json_set_count(object, "data_room", pool->room);
	json_set_count(object, "pool_needed", pool->needed);
	json_set_text(object, "pool_formula", pool->formula);
	json_set_count(object, "pool_node", pool->mp->socket_id);
	json_set_count(object, "mbcache", pool->mp->cache_size);
	json_set(object, "pcp", cached ? json_string(pcp_mode_name(pool->pcp.mode)) : json_null());
	json_set(object, "checks",
		cached ? json_string(pcp_checks_name(pool->pcp.checks)) : json_null());
	json_set(object, "batch", cached ? json_integer(pool->pcp.batch) : json_null());
	json_set(object, "high", cached ? json_integer(pool->pcp.high) : json_null());
}

static json_t *
config(const struct outcome *outcome)
{
	const struct options *options = outcome->options;
	json_t *object = json_object(), *ports = json_array(), *streams = json_array();
	uint16_t i;

	json_set_text(object, "mode", forward_mode_name(options->mode));
	set_pool_config(object, outcome->pool);
	json_set_count(object, "burst", options->burst);
	json_set_count(object, "frame_size", options->frame_size);
	json_set_count(object, "rxq", options->rxq);
	json_set_count(object, "duration", options->duration);
	json_set_count(object, "contend", options->contend);
	json_set_flag(object, "yield", options->yield);
	json_set_real(object, "seconds", outcome->seconds);
	json_set_count(object, "lcores", rte_lcore_count());
	json_set_text(object, "iova", rte_eal_iova_mode() == RTE_IOVA_PA ? "pa" : "va");
	json_set_flag(object, "hugepages", rte_eal_has_hugepages());
	for (i = 0; i < outcome->ports->n; i++)
		json_array_append_new(ports, port_config(&outcome->ports->port[i], outcome->ports));
	for (i = 0; i < outcome->streams->n; i++)
		json_array_append_new(streams, stream_config(&outcome->streams->stream[i]));
	json_set(object, "ports", ports);
	json_set(object, "streams", streams);
	return object;
}

static json_t *
device_stats(const struct rte_eth_stats *stats)
{
	json_t *object = json_object();

	json_set_count(object, "ipackets", stats->ipackets);
	json_set_count(object, "opackets", stats->opackets);
	json_set_count(object, "imissed", stats->imissed);
	json_set_count(object, "ierrors", stats->ierrors);
	json_set_count(object, "oerrors", stats->oerrors);
	json_set_count(object, "rx_nombuf", stats->rx_nombuf);
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
		json_set_count(object, "port", outcome->ports->port[i].id);
	else
		json_set_text(object, "port", "total");
	json_set_real(object, "mpps", units_mpps(packets, seconds));
	json_set_real(object, "gbps_l2", units_gbps_l2(packets, bytes, seconds));
	json_set_real(object, "gbps_l1", l1);
	json_set_real(object, "line_rate_percent", outcome_line_rate(outcome, i, l1));
	json_set_real(object, "cycles_per_packet",
		units_ratio(result->busy_cycles, result->busy_packets));
	json_set_real(
		object, "packets_per_burst", units_ratio(result->busy_packets, result->bursts));
	json_set_count(object, "rx_packets", result->rx_packets);
	json_set_count(object, "tx_packets", result->tx_packets);
	json_set_count(object, "rxonly", result->rxonly);
	json_set_count(object, "generated", result->generated);
	json_set_count(object, "in_flight", result->in_flight);
	json_set_count(drops, "no_buffer", result->no_buffer);
	json_set_count(drops, "ring_full", result->ring_full);
	json_set_count(drops, "driver", result->driver);
	json_set_count(drops, "app", result->app);
	json_set(object, "drops", drops);
	json_set_count(object, "unaccounted", result->unaccounted);
	json_set_flag(object, "device_checked", result->device_checked);
	if (i < outcome->ports->n)
		json_set(object, "device", device_stats(&result->device));
	return object;
}

static json_t *
pool_counters(const struct pool *pool)
{
	const struct pcp_stats *stats = &pool->stats;
	json_t *object = json_object();

	json_set_count(object, "size", pool->mp->size);
	json_set_count(object, "missing", pool->missing);
	json_set_count(object, "kept_by_drivers", pool->kept);
	if (pool->cache == NULL)
		return object;
	json_set_count(object, "allocs", stats->allocs);
	json_set_count(object, "frees", stats->frees);
	json_set_count(object, "failed", stats->failed);
	json_set_count(object, "exchanges", stats->exchanges);
	json_set_count(object, "refills", stats->refills);
	json_set_count(object, "drains", stats->drains);
	json_set_count(object, "reclaims", stats->reclaims);
	json_set_count(object, "membarriers", stats->membarriers);
	json_set_count(object, "zone_allocs", stats->zone_allocs);
	json_set_count(object, "zone_frees", stats->zone_frees);
	json_set_count(object, "depot_allocs", stats->depot_allocs);
	json_set_count(object, "depot_frees", stats->depot_frees);
	json_set_count(object, "bad_pages", stats->bad_pages);
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
	json_set_text(root, "program", PROGRAM);
	json_set_text(root, "version", PAGELANE_VERSION);
	json_set(root, "machine", machine_facts());
	json_set(root, "config", config(outcome));
	json_set(root, "results", results);
	json_set_real(
		root, "contender_mops", units_mpps(outcome->contender->buffers, outcome->seconds));
	err = json_object_set_new(root, "pool", pool_counters(outcome->pool)) < 0 ? -ENOMEM : 0;
	if (err == 0)
		err = json_save(root, path);
	json_decref(root);
	return err < 0 ? save_failed(path, "json", err) : 0;
}
