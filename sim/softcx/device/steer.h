/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Which receive queue a packet goes to. */

#include "packet.h"
#include "port.h"

/* Words 1 to 3 and the low half of 7 of a receive CQE, and the queue. */
struct cx_steered {
	struct cx_wq *wq;
	uint64_t word[3];
	uint32_t tag_be;
};

enum cx_fate {
	CX_FATE_QUEUE,
	CX_FATE_DROP,
	CX_FATE_NO_FLOW,
};

/*
 * Flows in order; the first that matches decides. `copies`, at most `max`, are where further QPs
 * with the very same rule and sniffers want one, *n_copies how many.
 */
enum cx_fate cx_steer(const struct softcx_port *port, const struct cx_packet *packet,
	struct cx_steered *to, struct cx_steered *copies, unsigned int max, unsigned int *n_copies);

/*
 * Toeplitz over the fields of `fields` that the packet has. Symmetric: where both of a pair are
 * asked for, the numerically smaller address, and the smaller port, each come first. False: the
 * packet has none of the fields.
 */
bool cx_rss_hash(const struct cx_packet *packet, uint64_t fields,
	const uint8_t key[SOFTCX_RSS_KEY_LEN], uint32_t *hash, uint8_t *type);

/* Whether the hardware hashes these fields together. */
bool cx_rss_fields_valid(uint64_t fields);
