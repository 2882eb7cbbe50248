/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>

#include "gen.h"
#include "watch.h"
#include "wire.h"

#define BURST       64
#define MIN_BURST   16   /* where frames come so fast */
#define MAX_WAIT_NS 2000 /* of a frame that is due for others */

#define DROP_COST 8 /* of a burst at no rate: dropping shall not keep the device from its work */

#define UDP_AT   (CX_ETH_LEN + CX_IPV4_LEN)
#define STAMP_AT (UDP_AT + CX_UDP_LEN)
#define TAIL_AT  (STAMP_AT + (uint32_t)sizeof(struct cx_stamp))
#define HEADER   64u /* bytes of a frame in payload `header` */

#define DST_PORT 5000 /* and up */

static void
put16(uint8_t *p, uint16_t v)
{
	v = htobe16(v);
	memcpy(p, &v, sizeof(v));
}

static void
put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

/* ---- streams ---- */

static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Hosts of the range for benchmarks, each stream one of its own; ports at random. */
static void
make_header(const struct softcx_port *port, unsigned int index, struct cx_stream *stream)
{
	const uint64_t random =
		mix(port->card->config.seed + (uint64_t)port->index * 65536 + index + 1);
	uint8_t *eth = stream->header, *ip = eth + CX_ETH_LEN, *udp = eth + UDP_AT;

	memcpy(eth, port->mac, 6);
	memcpy(eth + 6, port->mac, 6);
	eth[6 + 4] = 0xff; /* the far end of the cable */
	put16(eth + 12, CX_ETHERTYPE_IPV4);
	ip[0] = 0x45;
	ip[8] = 64;
	ip[9] = CX_IPPROTO_UDP;
	put32(ip + 12, 0xc6120000u + index);              /* 198.18.0.0/16 */
	put32(ip + 16, 0xc6130001u + (port->index << 8)); /* 198.19.PORT.1 */
	put16(udp, (uint16_t)(1024 + random % 60000));
	put16(udp + 2, (uint16_t)(DST_PORT + (random >> 32) % 1000));
	memcpy(eth + TAIL_AT, cx_pattern(), HEADER - TAIL_AT);
	stream->ip_sum = cx_csum_fold(cx_csum_add(0, ip, CX_IPV4_LEN));
	stream->udp_sum = cx_csum_fold(
		cx_csum_add(cx_csum_add(0, ip + 12, 8), udp, CX_UDP_LEN) + htobe16(CX_IPPROTO_UDP));
}

/* ---- a frame ---- */

/* Make the header one of frames of `len`; most are as long as the one before. */
CX_COLD static void
set_length(
	const struct softcx_port *port, unsigned int index, struct cx_stream *stream, uint32_t len)
{
	const struct cx_stamp stamp = {
		.magic = CX_STAMP_MAGIC,
		.port = (uint8_t)port->index,
		.stream = htobe16((uint16_t)index),
		.tail = htobe16((uint16_t)len),
	};
	uint8_t *frame = stream->header;

	put16(frame + CX_ETH_LEN + 2, (uint16_t)(len - CX_ETH_LEN));
	put16(frame + UDP_AT + 4, (uint16_t)(len - UDP_AT));
	const uint64_t sum = stream->ip_sum + (uint64_t)htobe16((uint16_t)(len - CX_ETH_LEN));
	const uint16_t csum = (uint16_t)~cx_csum_fold(sum);

	memcpy(frame + CX_ETH_LEN + 10, &csum, sizeof(csum));
	memcpy(frame + STAMP_AT, &stamp, sizeof(stamp));
	stream->key = cx_stamp_key((uint8_t)port->index, (uint16_t)index, len);
	stream->len = len;
}

/* The first `have` bytes of a frame, of 60 at least. */
static inline void
put_header(const struct softcx_port *port, unsigned int index, struct cx_stream *stream,
	uint8_t *frame, uint32_t have, uint32_t len)
{
	struct cx_stamp *stamp = (void *)(frame + STAMP_AT);

	if (unlikely(stream->len != len))
		set_length(port, index, stream, len);
	if (likely(have >= HEADER)) {
		memcpy(frame, stream->header, HEADER);
	} else {
		memcpy(frame, stream->header, 32);
		memcpy(frame + 28, stream->header + 28, 32);
	}
	stamp->seq = htobe32(stream->seq);
	stamp->dropped = htobe32(stream->dropped);
	stamp->check = htobe32(cx_stamp_check(stream->key, stream->seq, stream->dropped));
}

/* The rest, and the checksum over it. */
static void
put_payload(const struct cx_gen *gen, unsigned int index, const struct cx_stream *stream,
	uint8_t *frame, uint32_t len)
{
	const uint32_t offset = cx_pattern_offset(stream->seq, (uint16_t)index);
	const uint32_t words = (len - TAIL_AT) / 2;
	uint64_t sum = stream->udp_sum;

	memcpy(frame + TAIL_AT, gen->pattern + offset, len - TAIL_AT);
	sum = cx_csum_add(sum, frame + STAMP_AT, sizeof(struct cx_stamp));
	sum += 2 * (uint64_t)htobe16((uint16_t)(len - UDP_AT)); /* in both headers */
	sum += gen->sums[offset / 2 + words] - gen->sums[offset / 2];
	if (len % 2 != 0)
		sum += frame[len - 1];
	const uint16_t csum = (uint16_t)~cx_csum_fold(sum), sent = csum == 0 ? 0xffff : csum;

	memcpy(frame + UDP_AT + 6, &sent, sizeof(sent));
}

/* All that is known of the frame, in memory of ours; how much that is. */
static uint32_t
build(const struct softcx_port *port, const struct cx_gen *gen, unsigned int index,
	struct cx_stream *stream, uint8_t *frame, uint32_t len)
{
	if (gen->payload == SOFTCX_PAYLOAD_FULL) {
		put_header(port, index, stream, frame, len < HEADER ? len : HEADER, len);
		put_payload(gen, index, stream, frame, len);
		return len;
	}
	const uint32_t have = len < HEADER ? len : HEADER;

	put_header(port, index, stream, frame, have, len);
	return have;
}

/* ---- where it goes ---- */

CX_COLD static void
resolve(struct softcx_port *port, const struct cx_gen *gen, unsigned int index,
	struct cx_stream *stream)
{
	static _Thread_local uint8_t frame[SOFTCX_MAX_FRAME];
	struct cx_steered copies[1];
	struct cx_packet packet;
	unsigned int n_copies;
	const uint32_t len = gen->size[0].len;

	cx_packet_parse(&packet, frame, build(port, gen, index, stream, frame, len), len);
	stream->fate = (uint8_t)cx_steer(port, &packet, &stream->to, copies, 1, &n_copies);
	stream->slow = n_copies > 0;
	/* its sum of the payload is another for each frame */
	stream->to.word[1] &= UINT32_MAX;
	stream->steering = port->steering;
}

/* ---- offering ---- */

CX_COLD static void
offer_slowly(struct softcx_port *port, struct cx_gen *gen, unsigned int index,
	struct cx_stream *stream, uint32_t len, uint64_t time)
{
	static _Thread_local uint8_t data[SOFTCX_MAX_FRAME];
	const uint64_t delivered = port->counters.rx_packets;
	const struct cx_frame frame = {
		.data = data,
		.have = build(port, gen, index, stream, data, len),
		.len = len,
		.time = time,
	};

	stream->seq++;
	cx_rx_frame(port, &frame);
	if (port->counters.rx_packets == delivered)
		stream->dropped++;
}

/* By the scatter list, in payload `none` nothing but the lengths. */
CX_COLD static void
offer_scattered(struct softcx_port *port, struct cx_gen *gen, unsigned int index,
	struct cx_stream *stream, uint32_t len, uint64_t time)
{
	static _Thread_local uint8_t data[SOFTCX_MAX_FRAME];
	const struct cx_frame frame = {
		.data = data,
		.have = gen->payload == SOFTCX_PAYLOAD_NONE
				? 0
				: build(port, gen, index, stream, data, len),
		.len = len,
		.time = time,
	};

	cx_rx_scatter(port, &stream->to, &frame, false);
}

/* To the queue that is known, straight into the first buffer where the frame fits it. */
static inline void
offer_to_queue(struct softcx_port *port, struct cx_gen *gen, unsigned int index,
	struct cx_stream *stream, uint32_t len, uint64_t time)
{
	struct cx_wq *wq = stream->to.wq;
	const uint64_t delivered = port->counters.rx_packets;

	if (!cx_rx_begin(port, wq)) {
		stream->seq++;
		stream->dropped++;
		return;
	}
	const struct mlx5_wqe_data_seg *seg = cx_rx_wqe(wq, wq->cons);
	enum cx_why why;
	uint8_t *host = NULL;

	if (likely(be32toh(seg->byte_count) >= len))
		host = cx_mr_translate(
			port, wq->pd, be32toh(seg->lkey), be64toh(seg->addr), len, true, &why);
	if (unlikely(host == NULL || gen->payload == SOFTCX_PAYLOAD_NONE)) {
		offer_scattered(port, gen, index, stream, len, time);
	} else {
		cx_at(port, wq, CX_AT_RX_DATA);
		put_header(port, index, stream, host, len < HEADER ? len : HEADER, len);
		if (unlikely(gen->payload == SOFTCX_PAYLOAD_FULL))
			put_payload(gen, index, stream, host, len);
		cx_rx_complete(port, &stream->to, len, time, false);
	}
	stream->seq++;
	if (unlikely(port->counters.rx_packets == delivered))
		stream->dropped++;
}

static inline void
offer(struct softcx_port *port, struct cx_gen *gen, unsigned int index, uint32_t len, uint64_t time)
{
	struct cx_stream *stream = &gen->stream[index];

	if (unlikely(stream->steering != port->steering))
		resolve(port, gen, index, stream);
	if (unlikely(stream->slow)) {
		offer_slowly(port, gen, index, stream, len, time);
		return;
	}
	port->counters.offered++;
	if (likely(stream->fate == CX_FATE_QUEUE)) {
		offer_to_queue(port, gen, index, stream, len, time);
		return;
	}
	stream->seq++;
	stream->dropped++;
	if (stream->fate == CX_FATE_DROP)
		port->counters.flow_drops++;
	else
		port->counters.no_flow++;
}

static inline void
offer_next(struct softcx_port *port, struct cx_gen *gen, uint64_t time)
{
	const unsigned int stream = gen->next_stream, size = gen->next_size;

	gen->next_stream = stream + 1 == gen->n_streams ? 0 : stream + 1;
	gen->next_size = size + 1 == gen->n_sizes ? 0 : size + 1;
	gen->left--;
	if (gen->paced)
		cx_pace_add(&gen->due, &gen->size[size].pace);
	offer(port, gen, stream, gen->size[size].len, time);
}

/* With flow control a frame stays where it is while its queue has no buffer. */
static inline bool
may_offer(struct softcx_port *port, struct cx_gen *gen)
{
	const unsigned int index = gen->next_stream;
	struct cx_stream *stream = &gen->stream[index];

	if (gen->left == 0)
		return false;
	if (likely(!gen->pause))
		return true;
	if (stream->steering != port->steering)
		resolve(port, gen, index, stream);
	if (stream->slow || stream->fate != CX_FATE_QUEUE)
		return true;
	return stream->to.wq->state == IBV_WQS_RDY &&
	       (stream->to.wq->fetched != stream->to.wq->cons || cx_rx_fetch(port, stream->to.wq));
}

/* Whether software has taken all that was delivered. */
static bool
all_taken(struct softcx_port *port)
{
	struct cx_wq *wq;
	uint32_t i;

	CX_TABLE_FOREACH(&port->wqs, i, wq)
	{
		if (wq->state != IBV_WQS_RDY || wq->cq->error)
			continue;
		cx_cq_has_room(port, wq->cq);
		if (wq->cq->ci != (uint16_t)wq->cq->pi)
			return false;
	}
	return true;
}

/* A virtual clock knows by now which of the application's threads are busy. */
static bool
is_watched(const struct softcx_port *port, struct cx_gen *gen)
{
	if (port->watch == NULL)
		return true;
	if (!gen->taken) {
		gen->taken = true;
		gen->surveys = cx_watch_surveys(port->watch);
	}
	return cx_watch_is_ready(port->watch, gen->surveys);
}

/* One frame per stream. */
static unsigned int
send_probe(struct softcx_port *port, struct cx_gen *gen)
{
	const uint64_t delivered = port->counters.rx_packets;
	unsigned int n = 0;

	for (; n < gen->n_streams && n < BURST && may_offer(port, gen); n++)
		offer_next(port, gen, port->now);
	gen->probe_failed = port->counters.rx_packets - delivered != n;
	gen->steering = port->steering;
	gen->taken = false;
	return n;
}

/* Rules are made one by one: with a probe nothing is offered before one leads to a queue. */
static bool
leads_nowhere(struct softcx_port *port, struct cx_gen *gen)
{
	for (unsigned int i = 0; i < gen->n_streams; i++) {
		struct cx_stream *stream = &gen->stream[i];

		if (stream->steering != port->steering)
			resolve(port, gen, i, stream);
		if (stream->slow || stream->fate == CX_FATE_QUEUE)
			return false;
	}
	return true;
}

static unsigned int
change_state(struct softcx_port *port, struct cx_gen *gen)
{
	unsigned int n = 0;

	if (port->flow_list == NULL || port->n_ready == 0 ||
		(gen->probe && gen->state == CX_GEN_DOWN && leads_nowhere(port, gen))) {
		gen->state = CX_GEN_DOWN;
		return 0;
	}
	/* no new probe when all queues had failed, and the flows are as they were */
	if (gen->state == CX_GEN_DOWN && gen->settled != port->steering) {
		gen->state = gen->probe ? CX_GEN_PROBE : CX_GEN_UP;
		n = gen->probe ? send_probe(port, gen) : 0;
	} else if (gen->probe_failed) {
		/* software was not done with its flows; again when they have changed */
		if (port->steering != gen->steering)
			n = send_probe(port, gen);
	} else if (gen->state == CX_GEN_DOWN || (all_taken(port) && is_watched(port, gen))) {
		gen->state = CX_GEN_UP;
	}
	if (gen->state == CX_GEN_UP) {
		gen->settled = port->steering;
		gen->up += gen->last - gen->since;
		gen->since = gen->last = port->now;
	}
	gen->due = (struct cx_pace){.cycles = port->now};
	return n;
}

/* No rate: as much as the loop takes. */
static unsigned int
offer_unpaced(struct softcx_port *port, struct cx_gen *gen)
{
	unsigned int n = 0;

	for (int budget = BURST; budget > 0 && may_offer(port, gen); n++) {
		const uint64_t delivered = port->counters.rx_packets;

		offer_next(port, gen, port->now);
		budget -= port->counters.rx_packets != delivered ? 1 : DROP_COST;
	}
	return n;
}

/* In bursts: what is due waits for more, for a moment. */
static unsigned int
offer_paced(struct softcx_port *port, struct cx_gen *gen)
{
	unsigned int n = 0;

	if ((int64_t)(port->now - gen->due.cycles) < (int64_t)gen->patience)
		return 0;
	for (; n < BURST && (int64_t)(port->now - gen->due.cycles) >= 0 && may_offer(port, gen);
		n++)
		offer_next(port, gen, gen->due.cycles);
	if (n > 0 && gen->left > 0 && (int64_t)(port->now - gen->due.cycles) > 0 &&
		port->now - gen->due.cycles > gen->most_late)
		gen->most_late = port->now - gen->due.cycles;
	return n;
}

unsigned int
cx_gen_turn(struct softcx_port *port, struct cx_gen *gen)
{
	unsigned int n;

	if (unlikely(gen->state != CX_GEN_UP || port->flow_list == NULL || port->n_ready == 0))
		return change_state(port, gen);
	/* while time stands still nothing comes, not even what is due already */
	if (unlikely(port->stalls))
		return 0;
	n = gen->paced ? offer_paced(port, gen) : offer_unpaced(port, gen);
	if (n > 0)
		gen->last = port->now;
	return n;
}

/* ---- birth and death ---- */

int
cx_gen_init(struct softcx_port *port)
{
	const struct softcx_config *config = &port->card->config;
	struct cx_gen *gen = cx_zalloc(sizeof(*gen));
	static uint32_t sums[(CX_PATTERN_LEN + CX_PATTERN_MAX) / 2 + 1];

	if (gen == NULL)
		return -ENOMEM;
	port->gen = gen;
	gen->stream = cx_zalloc(config->streams * sizeof(*gen->stream));
	if (gen->stream == NULL)
		return -ENOMEM;
	gen->n_streams = config->streams;
	gen->n_sizes = config->n_frames;
	gen->payload = config->payload;
	gen->paced = config->rate != 0;
	gen->probe = config->probe;
	gen->pause = config->pause;
	gen->left = config->packets != 0 ? config->packets : UINT64_MAX;
	gen->pattern = cx_pattern();
	for (unsigned int i = 0; i < (CX_PATTERN_LEN + CX_PATTERN_MAX) / 2; i++)
		sums[i + 1] =
			sums[i] + (gen->pattern[2 * i] | (uint32_t)gen->pattern[2 * i + 1] << 8);
	gen->sums = sums;
	for (unsigned int i = 0; i < gen->n_sizes; i++) {
		gen->size[i].len = config->frame[i] - CX_FCS_LEN;
		gen->size[i].pace = cx_pace_of(config->frame[i], config->rate, port->card->hz);
	}
	gen->patience = cx_ns_to_cycles(MAX_WAIT_NS, port->card->hz);
	if (gen->patience > (MIN_BURST - 1) * gen->size[0].pace.cycles)
		gen->patience = (MIN_BURST - 1) * gen->size[0].pace.cycles;
	for (unsigned int i = 0; i < gen->n_streams; i++) {
		make_header(port, i, &gen->stream[i]);
		gen->stream[i].steering = UINT32_MAX;
	}
	return 0;
}

void
cx_gen_fini(struct softcx_port *port)
{
	if (port->gen != NULL)
		free(port->gen->stream);
	free(port->gen);
	port->gen = NULL;
}
