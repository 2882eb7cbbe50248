/* SPDX-License-Identifier: BSD-3-Clause */
/* Options by their names. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../device.h"

#define DIM(array) (sizeof(array) / sizeof((array)[0]))

/* The usual mix: 7 to 4 to 1, spread. */
static const uint16_t imix[] = {64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 594, 64};
_Static_assert(DIM(imix) <= SOFTCX_MAX_FRAMES, "the mix is a list");

void
softcx_config_init(struct softcx_config *config)
{
	*config = (struct softcx_config){
		.ports = 1,
		.rate = UINT64_C(100000000000),
		.n_frames = 1,
		.frame = {1518},
		.streams = 16,
		.payload = SOFTCX_PAYLOAD_HEADER,
		.device_cpu = -1,
		.seed = 1,
	};
}

static int
parse_number(const char *value, uint64_t min, uint64_t max, uint64_t *number, const char **end)
{
	char *after;

	if (*value < '0' || *value > '9')
		return -EINVAL;
	errno = 0;
	const unsigned long long n = strtoull(value, &after, 10);

	if (errno != 0 || n < min || n > max || (end == NULL && *after != '\0'))
		return -EINVAL;
	*number = n;
	if (end != NULL)
		*end = after;
	return 0;
}

static int
parse_unsigned(const char *value, unsigned int min, unsigned int max, unsigned int *to)
{
	uint64_t n;

	if (parse_number(value, min, max, &n, NULL) != 0)
		return -EINVAL;
	*to = (unsigned int)n;
	return 0;
}

/* The words of an enumeration, in its order. */
static int
parse_word(const char *value, const char *const *words, unsigned int n, unsigned int *to)
{
	for (unsigned int i = 0; i < n; i++) {
		if (strcmp(value, words[i]) == 0) {
			*to = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int
parse_bool(const char *value, bool *to)
{
	unsigned int n;

	/* without a value: yes */
	if (*value == '\0') {
		*to = true;
		return 0;
	}
	if (parse_word(value, (const char *const[]){"off", "on", "no", "yes"}, 4, &n) != 0)
		return -EINVAL;
	*to = n % 2 == 1;
	return 0;
}

/* bit/s, with a decimal fraction and a unit: 100G, 2.5g, 10M; 0 or "max": no pacing. */
static int
parse_rate(const char *value, uint64_t *rate)
{
	static const char units[] = "kKmMgGtT";
	char *end;

	if (strcmp(value, "max") == 0) {
		*rate = 0;
		return 0;
	}
	if (*value < '0' || *value > '9')
		return -EINVAL;
	double n = strtod(value, &end);

	if (*end != '\0') {
		const char *unit = strchr(units, *end);

		if (unit == NULL || end[1] != '\0')
			return -EINVAL;
		for (long i = 0; i <= (unit - units) / 2; i++)
			n *= 1000;
	}
	/* slower than a frame a second is no rate; faster than any wire neither */
	if ((n != 0 && n < 100000) || n > 1e13)
		return -EINVAL;
	*rate = (uint64_t)n;
	return 0;
}

static int
parse_frames(const char *value, struct softcx_config *config)
{
	unsigned int n = 0;
	uint64_t size;

	if (strcmp(value, "imix") == 0) {
		memcpy(config->frame, imix, sizeof(imix));
		config->n_frames = DIM(imix);
		return 0;
	}
	for (;; value++) {
		if (n == SOFTCX_MAX_FRAMES ||
			parse_number(value, SOFTCX_MIN_FRAME, SOFTCX_MAX_FRAME, &size, &value) != 0)
			return -EINVAL;
		config->frame[n++] = (uint16_t)size;
		if (*value == '\0')
			break;
		if (*value != ',')
			return -EINVAL;
	}
	config->n_frames = n;
	return 0;
}

static int
set_ports(struct softcx_config *config, const char *value)
{
	return parse_unsigned(value, 1, SOFTCX_MAX_PORTS, &config->ports);
}

static int
set_queues(struct softcx_config *config, const char *value)
{
	return parse_unsigned(value, 1, SOFTCX_MAX_QUEUES, &config->queues);
}

static int
set_rate(struct softcx_config *config, const char *value)
{
	return parse_rate(value, &config->rate);
}

static int
set_frame(struct softcx_config *config, const char *value)
{
	return parse_frames(value, config);
}

static int
set_streams(struct softcx_config *config, const char *value)
{
	return parse_unsigned(value, 1, SOFTCX_MAX_STREAMS, &config->streams);
}

static int
set_packets(struct softcx_config *config, const char *value)
{
	return parse_number(value, 0, UINT64_MAX - 1, &config->packets, NULL);
}

static int
set_wire(struct softcx_config *config, const char *value)
{
	static const char *const words[] = {"gen", "loop", "sink", "pair"};
	unsigned int n;

	if (parse_word(value, words, DIM(words), &n) != 0)
		return -EINVAL;
	config->wire = (enum softcx_wire)n;
	return 0;
}

static int
set_payload(struct softcx_config *config, const char *value)
{
	static const char *const words[] = {"none", "header", "full"};
	unsigned int n;

	if (parse_word(value, words, DIM(words), &n) != 0)
		return -EINVAL;
	config->payload = (enum softcx_payload)n;
	return 0;
}

static int
set_clock(struct softcx_config *config, const char *value)
{
	static const char *const words[] = {"real", "virtual"};
	unsigned int n;

	if (parse_word(value, words, DIM(words), &n) != 0)
		return -EINVAL;
	config->clock = (enum softcx_clock)n;
	return 0;
}

static int
set_device_cpu(struct softcx_config *config, const char *value)
{
	unsigned int n;

	if (parse_unsigned(value, 0, 4095, &n) != 0)
		return -EINVAL;
	config->device_cpu = (int)n;
	return 0;
}

static int
set_stats(struct softcx_config *config, const char *value)
{
	config->stats_file = value;
	return *value != '\0' ? 0 : -EINVAL;
}

static int
set_probe(struct softcx_config *config, const char *value)
{
	return parse_bool(value, &config->probe);
}

static int
set_pause(struct softcx_config *config, const char *value)
{
	return parse_bool(value, &config->pause);
}

static int
set_yield(struct softcx_config *config, const char *value)
{
	return parse_bool(value, &config->yield);
}

static int
set_strict(struct softcx_config *config, const char *value)
{
	return parse_bool(value, &config->strict);
}

static int
set_delay(struct softcx_config *config, const char *value)
{
	return parse_unsigned(value, 0, 1000000, &config->delay_us);
}

/*
 * KIND:N, which queue's and which error, on every Nth WQE, once for each kind of queue; or which
 * change of a queue, of which every Nth is refused.
 */
static int
set_inject(struct softcx_config *config, const char *value)
{
	static const char *const kinds[] = {"rq-", "sq-"};
	static const char *const errors[] = {"length", "op", "prot"};
	static const char *const changes[] = {"reset", "ready", "destroy"};
	static const uint8_t syndromes[] = {MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
		MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR};
	struct softcx_inject *const of[] = {&config->inject_rq, &config->inject_sq};
	const char *number = strchr(value, ':');
	char word[16] = "";
	unsigned int kind, n;
	uint64_t every;

	if (number == NULL || parse_number(number + 1, 1, UINT64_MAX, &every, NULL) != 0 ||
		number - value >= (ptrdiff_t)sizeof(word))
		return -EINVAL;
	memcpy(word, value, (size_t)(number - value));
	for (kind = 0; kind < DIM(kinds); kind++)
		if (strncmp(word, kinds[kind], 3) == 0)
			break;
	if (kind == DIM(kinds))
		return -EINVAL;
	if (parse_word(word + 3, changes, DIM(changes), &n) == 0) {
		config->refuse[DIM(changes) * kind + n] = every;
		return 0;
	}
	if (parse_word(word + 3, errors, DIM(errors), &n) != 0)
		return -EINVAL;
	*of[kind] = (struct softcx_inject){every, syndromes[n]};
	return 0;
}

static int
set_seed(struct softcx_config *config, const char *value)
{
	return parse_number(value, 0, UINT64_MAX, &config->seed, NULL);
}

static const struct {
	const char *name;
	int (*set)(struct softcx_config *config, const char *value);
	const char *what;
} options[] = {
	{"ports", set_ports, "a number from 1 to 8"},
	{"queues", set_queues, "a number from 1 to 1024"},
	{"rate", set_rate, "bit/s from 100k to 10T, like 100G, or max"},
	{"frame", set_frame, "a size from 64 to 9978, imix, or up to 16 sizes a,b,c"},
	{"streams", set_streams, "a number from 1 to 65535"},
	{"packets", set_packets, "a number; 0 for no end"},
	{"wire", set_wire, "gen, loop, sink or pair"},
	{"payload", set_payload, "none, header or full"},
	{"clock", set_clock, "real or virtual"},
	{"device-cpu", set_device_cpu, "the number of a processor"},
	{"stats", set_stats, "the name of a file"},
	{"probe", set_probe, "on or off"},
	{"pause", set_pause, "on or off"},
	{"yield", set_yield, "on or off"},
	{"strict", set_strict, "on or off"},
	{"delay", set_delay, "microseconds, up to 1000000"},
	{"inject", set_inject,
		"rq- or sq-, then length, op, prot, reset, ready or destroy, then :N, like "
		"rq-prot:10000"},
	{"seed", set_seed, "a number"},
};

int
softcx_config_set(
	struct softcx_config *config, const char *name, const char *value, const char **why)
{
	for (unsigned int i = 0; i < DIM(options); i++) {
		if (strcmp(name, options[i].name) != 0)
			continue;
		*why = options[i].what;
		return options[i].set(config, value);
	}
	*why = "no such option";
	return -ENOENT;
}
