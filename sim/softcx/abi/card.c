/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "card.h"
#include "context.h"
#include "libc.h"

/* What softcx-run tells: options as "name=value" with newlines between, and where sysfs is. */
#define OPTIONS_VARIABLE "SOFTCX_OPTIONS"
#define SYSFS_VARIABLE   "SYSFS_PATH"

/* How long the end of the process waits for threads that are inside of calls of ours. */
#define PATIENCE_MS 2000

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct softcx_config config;
static char options[4096]; /* the configuration points into it */
static bool configured;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct softcx_card *) card;
static atomic_uint users; /* contexts, and calls that use the card just now */

static void
configure(void)
{
	const char *text = getenv(OPTIONS_VARIABLE), *why = NULL;
	char *option, *save = NULL;

	softcx_config_init(&config);
	config.summary = stderr;
	if (text == NULL)
		return;
	if (snprintf(options, sizeof(options), "%s", text) >= (int)sizeof(options)) {
		abi_say("%s is too long", OPTIONS_VARIABLE);
		return;
	}
	for (option = strtok_r(options, "\n", &save); option != NULL;
		option = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(option, '=');

		if (value == NULL)
			return;
		*value++ = '\0';
		if (softcx_config_set(&config, option, value, &why) < 0) {
			abi_say("%s %s: %s; use softcx-run of the same build", option, value,
				why == NULL ? "no such option" : why);
			return;
		}
	}
	configured = true;
}

bool
card_is_made(void)
{
	return atomic_load_explicit(&card, memory_order_acquire) != NULL && !file_is_orphaned();
}

unsigned int
card_ports(void)
{
	pthread_once(&once, configure);
	return configured ? config.ports : 0;
}

unsigned long
card_rate(void)
{
	return config.rate;
}

/* The card, until card_put(); NULL, and nothing to put: this process has none, or none any more. */
static struct softcx_card *
use_card(void)
{
	struct softcx_card *made;

	if (!card_is_made())
		return NULL;
	/* In this order: card_stop() takes the card away and then looks at users. */
	atomic_fetch_add(&users, 1);
	made = atomic_load(&card);
	if (made == NULL)
		card_put();
	return made;
}

int
card_get(unsigned int index, struct softcx_port **port)
{
	struct softcx_card *made = NULL;
	unsigned int i;
	int error = 0;

	pthread_mutex_lock(&lock);
	made = atomic_load(&card);
	if (made == NULL) {
		error = softcx_device_create(&config, &made);
		if (error == 0) {
			for (i = 0; i < config.ports; i++)
				softcx_port_set_events(
					softcx_device_port(made, i), context_event, NULL);
			atomic_store(&card, made);
		}
	}
	if (error == 0) {
		*port = softcx_device_port(made, index);
		atomic_fetch_add(&users, 1);
	}
	pthread_mutex_unlock(&lock);
	return error;
}

void
card_put(void)
{
	atomic_fetch_sub(&users, 1);
}

uint32_t
card_new_pdn(void)
{
	static _Atomic(uint32_t) last;

	return atomic_fetch_add(&last, 1) + 1;
}

bool
card_refuses(enum softcx_refusal change)
{
	static _Atomic(uint64_t) seen[SOFTCX_REFUSALS];
	const uint64_t every = config.refuse[change];

	return every != 0 && (atomic_fetch_add(&seen[change], 1) + 1) % every == 0;
}

void
card_memory_gone(const void *address, size_t length)
{
	struct softcx_card *made = use_card();

	if (made == NULL)
		return;
	softcx_memory_gone(made, address, length);
	card_put();
}

/* Other threads go on while the process ends; who is inside of a call of ours needs the card. */
static bool
is_left_alone(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	int i;

	for (i = 0; i < PATIENCE_MS && atomic_load(&users) > 0; i++)
		nanosleep(&ms, NULL);
	return atomic_load(&users) == 0;
}

void
card_stop(void)
{
	struct softcx_card *made;
	int error;

	pthread_mutex_lock(&lock);
	made = atomic_exchange(&card, NULL);
	configured = false;
	pthread_mutex_unlock(&lock);
	if (made == NULL)
		return;
	if (!is_left_alone()) {
		abi_say("a thread does not come out of the device: no statistics");
		return;
	}
	error = softcx_device_destroy(made);
	if (error < 0)
		abi_say("%s cannot be written: %s", config.stats_file, strerror(-error));
}

/* <sysfs>/class/infiniband/mlx5_<index>/ports/1/hw_counters/<name> */
static int
counter_port(const char *path)
{
	const char *sysfs = getenv(SYSFS_VARIABLE);
	unsigned int index;
	int end = 0;

	if (sysfs == NULL || strncmp(path, sysfs, strlen(sysfs)) != 0)
		return -1;
	if (sscanf(path + strlen(sysfs), "/class/infiniband/mlx5_%u/ports/1/hw_counters/%n", &index,
		    &end) != 1 ||
		end == 0 || index >= card_ports())
		return -1;
	return (int)index;
}

/* Never empty meanwhile: other threads read it, too. */
static void
put_counter(const char *path, size_t folder, const char *name, uint64_t value)
{
	char file[512], text[32];
	int fd;

	snprintf(file, sizeof(file), "%.*s%s", (int)folder, path, name);
	snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	fd = libc_calls()->open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (libc_calls()->write(fd, text, strlen(text)) < 0 || ftruncate(fd, strlen(text)) < 0)
		abi_say("%s cannot be written", file);
	libc_calls()->close(fd);
}

void
card_counters(unsigned int index, struct softcx_port_counters *counters)
{
	struct softcx_card *made = use_card();

	memset(counters, 0, sizeof(*counters));
	if (made == NULL)
		return;
	softcx_port_query(softcx_device_port(made, index), counters);
	card_put();
}

void
card_refresh(const char *path)
{
	struct softcx_port_counters counters;
	const char *name;
	int index;

	if (atomic_load_explicit(&card, memory_order_relaxed) == NULL ||
		strstr(path, "/hw_counters/") == NULL)
		return;
	index = counter_port(path);
	if (index < 0)
		return;
	card_counters(index, &counters);
	name = strrchr(path, '/') + 1;
	if (strcmp(name, "out_of_buffer") == 0)
		put_counter(path, name - path, name, counters.out_of_buffer);
}
