/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zones in DPDK's telemetry. Each process shows those that it created: others' may vanish without
 * its knowledge. Handlers run in telemetry's thread, under the same lock that destruction takes.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <rte_common.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include "pp_internal.h"

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define dict_add_count  rte_tel_data_add_dict_uint
#define array_add_count rte_tel_data_add_array_uint
#define ARRAY_OF_COUNTS RTE_TEL_UINT_VAL
#else
#define dict_add_count  rte_tel_data_add_dict_u64
#define array_add_count rte_tel_data_add_array_u64
#define ARRAY_OF_COUNTS RTE_TEL_U64_VAL
#endif

struct listed {
	TAILQ_ENTRY(listed) link;
	struct pp_zone *zone;
};

static TAILQ_HEAD(, listed) zones = TAILQ_HEAD_INITIALIZER(zones);
static struct pp_lock zones_lock;
static uint32_t next_id;

int
pp_zone_list(struct pp_zone *zone)
{
	struct listed *listed = malloc(sizeof(*listed));

	if (listed == NULL)
		return -ENOMEM;
	listed->zone = zone;
	pp_lock(&zones_lock);
	zone->id = next_id++;
	TAILQ_INSERT_TAIL(&zones, listed, link);
	pp_unlock(&zones_lock);
	return 0;
}

void
pp_zone_unlist(const struct pp_zone *zone)
{
	struct listed *listed;

	pp_lock(&zones_lock);
	TAILQ_FOREACH (listed, &zones, link)
		if (listed->zone == zone)
			break;
	if (listed != NULL)
		TAILQ_REMOVE(&zones, listed, link);
	pp_unlock(&zones_lock);
	free(listed);
}

uint32_t
pp_zone_id(const struct pp_zone *zone)
{
	return zone->id;
}

int
pp_telemetry_id(const char *params, uint32_t *id)
{
	unsigned long number;
	char *end;

	if (params == NULL || params[0] < '0' || params[0] > '9')
		return -EINVAL;
	errno = 0;
	number = strtoul(params, &end, 10);
	if (*end != '\0' || errno != 0 || number > UINT32_MAX)
		return -EINVAL;
	*id = (uint32_t)number;
	return 0;
}

int
pp_telemetry_counters(struct rte_tel_data *data, const struct pp_counter *counters, uint32_t n)
{
	int err = 0;

	for (uint32_t i = 0; i < n && err == 0; i++)
		err = dict_add_count(data, counters[i].name, counters[i].value);
	return err;
}

int
pp_telemetry_array(struct rte_tel_data *data, const char *name, const uint64_t *values, uint32_t n)
{
	struct rte_tel_data *array = rte_tel_data_alloc();
	int err = array == NULL ? -ENOMEM : rte_tel_data_start_array(array, ARRAY_OF_COUNTS);

	for (uint32_t i = 0; i < n && err == 0; i++)
		err = array_add_count(array, values[i]);
	if (err == 0)
		err = rte_tel_data_add_dict_container(data, name, array, 0);
	if (err != 0)
		rte_tel_data_free(array);
	return err;
}

static int
list_zones(const char *cmd __rte_unused, const char *params __rte_unused, struct rte_tel_data *data)
{
	int err = rte_tel_data_start_dict(data);
	const struct listed *listed;

	pp_lock(&zones_lock);
	TAILQ_FOREACH (listed, &zones, link) {
		char id[16];

		if (err != 0)
			break;
		snprintf(id, sizeof(id), "%u", listed->zone->id);
		err = rte_tel_data_add_dict_string(data, id, listed->zone->name);
	}
	pp_unlock(&zones_lock);
	return err == -ENOSPC ? 0 : err; /* the first ones, as many as an answer has room for */
}

static int
add_zone(struct rte_tel_data *data, struct pp_zone *zone)
{
	struct pp_zone_stats stats;

	pp_zone_get_stats(zone, &stats);
	const struct pp_counter counters[] = {
		{"pages", stats.pages},
		{"free", stats.free},
		{"padding", stats.padding},
		{"pressure", pp_zone_pressure(zone)},
		{"watermark_min", stats.watermark_min},
		{"watermark_low", stats.watermark_low},
		{"watermark_high", stats.watermark_high},
		{"splits", stats.splits},
		{"merges", stats.merges},
		{"failed", stats.failed},
		{"contended", stats.contended},
		{"bad_frees", stats.bad_frees},
		{"repairs", stats.repairs},
	};
	const uint32_t orders = zone->max_order + 1;
	int err = rte_tel_data_start_dict(data);

	if (err == 0)
		err = rte_tel_data_add_dict_string(data, "name", zone->name);
	if (err == 0)
		err = rte_tel_data_add_dict_string(data, "owner", zone->owner);
	if (err == 0)
		err = rte_tel_data_add_dict_int(data, "pid", (int)pp_self);
	if (err == 0)
		err = rte_tel_data_add_dict_int(data, "node", zone->node);
	if (err == 0)
		err = pp_telemetry_counters(data, counters, RTE_DIM(counters));
	if (err == 0)
		err = pp_telemetry_array(data, "free_blocks", stats.free_blocks, orders);
	if (err == 0)
		err = pp_telemetry_array(data, "allocs", stats.allocs, orders);
	return err != 0 ? err : pp_telemetry_array(data, "frees", stats.frees, orders);
}

static int
show_zone(const char *cmd __rte_unused, const char *params, struct rte_tel_data *data)
{
	const struct listed *listed;
	uint32_t id;
	int err = pp_telemetry_id(params, &id);

	if (err != 0)
		return err;
	pp_lock(&zones_lock);
	TAILQ_FOREACH (listed, &zones, link)
		if (listed->zone->id == id)
			break;
	err = listed != NULL ? add_zone(data, listed->zone) : -ENOENT;
	pp_unlock(&zones_lock);
	return err;
}

/* Without memory for them there are no commands; nothing else depends on it. */
RTE_INIT(register_commands)
{
	rte_telemetry_register_cmd("/pagepool/list", list_zones,
		"Zones of this process: numbers and names. Takes no parameters");
	rte_telemetry_register_cmd(
		"/pagepool/zone", show_zone, "A zone's state and counters. Parameters: its number");
}
