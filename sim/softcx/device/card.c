/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "../wire/watch.h"
#include "../wire/wire.h"
#include "fault.h"
#include "stats.h"
#include "turn.h"

static bool
is_valid(const struct softcx_config *config)
{
	if (config->ports == 0 || config->ports > SOFTCX_MAX_PORTS || config->streams == 0 ||
		config->streams > SOFTCX_MAX_STREAMS || config->n_frames == 0 ||
		config->n_frames > SOFTCX_MAX_FRAMES || config->queues > SOFTCX_MAX_QUEUES ||
		(config->wire == SOFTCX_WIRE_PAIR && config->ports % 2 != 0) ||
		config->device_cpu < -1 || config->device_cpu + (int)config->ports > CPU_SETSIZE)
		return false;
	for (unsigned int i = 0; i < config->n_frames; i++)
		if (config->frame[i] < SOFTCX_MIN_FRAME || config->frame[i] > SOFTCX_MAX_FRAME)
			return false;
	return true;
}

static void
stop(struct softcx_card *card)
{
	for (unsigned int i = 0; i < card->config.ports; i++)
		if (card->port[i] != NULL)
			cx_port_stop(card->port[i]);
	cx_watch_destroy(card->watch);
	card->watch = NULL;
}

static void
release(struct softcx_card *card)
{
	cx_wire_fini(card);
	for (unsigned int i = 0; i < card->config.ports; i++)
		free(card->port[i]);
	free(card);
}

static int
start(struct softcx_card *card)
{
	const struct softcx_config *config = &card->config;
	int err = 0;

	if (config->clock == SOFTCX_CLOCK_VIRTUAL) {
		card->watch = cx_watch_create(card);
		if (card->watch == NULL)
			return -ENOMEM;
	}
	for (unsigned int i = 0; i < config->ports && err == 0; i++) {
		card->port[i]->watch = card->watch;
		if (!config->stepped)
			err = cx_port_start(card->port[i]);
	}
	return err;
}

int
softcx_device_create(const struct softcx_config *config, struct softcx_card **result)
{
	int err = is_valid(config) ? cx_fault_install() : -EINVAL;

	if (err != 0)
		return err;

	struct softcx_card *card = cx_zalloc(sizeof(*card));

	if (card == NULL)
		return -ENOMEM;
	card->config = *config;
	card->hz = cx_clock_hz();
	for (unsigned int i = 0; i < config->ports && err == 0; i++) {
		card->port[i] = cx_zalloc(sizeof(*card->port[i]));
		err = card->port[i] != NULL ? cx_port_init(card->port[i], card, i) : -ENOMEM;
	}
	if (err == 0)
		err = cx_wire_init(card);
	if (err == 0)
		err = start(card);
	if (err == 0) {
		*result = card;
		return 0;
	}
	stop(card);
	for (unsigned int i = 0; i < config->ports; i++)
		if (card->port[i] != NULL)
			cx_port_fini(card->port[i]);
	release(card);
	return err;
}

int
softcx_device_destroy(struct softcx_card *card)
{
	int err = 0;

	stop(card);
	for (unsigned int i = 0; i < card->config.ports; i++)
		card->leaks += cx_port_fini(card->port[i]);
	if (card->config.summary != NULL)
		cx_stats_summary(card, card->config.summary);
	if (card->config.stats_file != NULL)
		err = cx_stats_json(card, card->config.stats_file);
	release(card);
	return err;
}

struct softcx_port *
softcx_device_port(struct softcx_card *card, unsigned int index)
{
	return index < card->config.ports ? card->port[index] : NULL;
}

uint64_t
softcx_device_clock_hz(const struct softcx_card *card)
{
	return card->hz;
}
