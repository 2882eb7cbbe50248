/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The generator: offers frames at their time, whether anybody wants them or not. */

#include "../device/steer.h"
#include "pace.h"
#include "stamp.h"

struct cx_stream {
	uint8_t header[64]; /* the frame's start, but for what put_header() writes */
	struct cx_steered to;
	uint64_t key; /* cx_stamp_key(), for frames of `len`, as the header has it */
	uint32_t len;
	uint32_t steering; /* port's, at the time */
	uint8_t fate;      /* enum cx_fate */
	bool slow;         /* with copies: by the general way */
	uint32_t seq, dropped;
	uint32_t ip_sum, udp_sum; /* of the header without lengths */
} __attribute__((aligned(CX_LINE)));

struct cx_gen_size {
	uint32_t len; /* without FCS */
	struct cx_pace pace;
};

enum cx_gen_state {
	CX_GEN_DOWN,  /* no flow: nobody is there */
	CX_GEN_PROBE, /* one frame of each stream is out; software has not taken all */
	CX_GEN_UP,
};

struct cx_gen {
	struct cx_stream *stream;
	unsigned int n_streams, n_sizes;
	unsigned int next_stream, next_size;
	struct cx_gen_size size[SOFTCX_MAX_FRAMES];
	enum softcx_payload payload;
	enum cx_gen_state state;
	bool paced, probe, pause;
	bool probe_failed;
	uint32_t steering; /* port's, when the probe was sent */
	bool taken;        /* the probe, when threads had been surveyed so often */
	uint32_t surveys;
	uint32_t settled; /* steering's, since a probe went through */
	uint64_t left;    /* frames; UINT64_MAX: no end */
	struct cx_pace due;
	uint64_t patience;        /* cycles that a frame may be late */
	uint64_t most_late;       /* cycles that the loop was behind */
	uint64_t up, since, last; /* device time at full rate: before, from, to */
	const uint8_t *pattern;   /* shared by all */
	const uint32_t *sums;     /* pattern's running sums of 16-bit words */
};

int cx_gen_init(struct softcx_port *port);
void cx_gen_fini(struct softcx_port *port);
unsigned int cx_gen_turn(struct softcx_port *port, struct cx_gen *gen);

/* The pattern that full payloads are cut from. */
const uint8_t *cx_pattern(void);
