/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What the user asked for, checked as far as it can be before EAL is up. */

#include <stdbool.h>
#include <stdint.h>

#include <rte_config.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include <cli.h>
#include <pcp.h>
#include <units.h>

#define PROGRAM "l2fwd-bench"

#define BURST_MAX 512

/* Frames as RFC 2544 counts them, with the FCS; DPDK's data length is 4 less. */
#define FRAME_SIZE_MIN RTE_ETHER_MIN_LEN
#define FRAME_SIZE_MAX (RTE_MBUF_DEFAULT_DATAROOM + UNITS_FCS_LEN)

enum forward_mode {
	FORWARD_IO,
	FORWARD_MAC,
	FORWARD_MACSWAP,
	FORWARD_RXONLY,
	FORWARD_TXONLY,
};

enum pool_kind {
	POOL_PAGES,    /* pp_pktmbuf_pool_create(): one mbuf per page */
	POOL_PAGEPOOL, /* ops "pagepool" on DPDK's memory */
	POOL_RING_MP_MC,
	POOL_STACK,
	POOL_LF_STACK,
};

/* Of mlx5pp, in the order in which options.c names them. */
enum recycle {
	RECYCLE_OFF,
	RECYCLE_CACHE,
	RECYCLE_REUSE,
	RECYCLE_POOL,
};

enum free_on {
	FREE_ON_SAME,
	FREE_ON_OTHER, /* the main lcore, which does not poll then */
};

struct options {
	uint16_t ports[RTE_MAX_ETHPORTS];
	uint16_t n_ports; /* 0: all */
	int mode;         /* enum forward_mode */
	int pool;         /* enum pool_kind */
	int pcp;          /* enum pcp_mode */
	int checks;       /* enum pcp_checks */
	int recycle;      /* enum recycle; -1: not given */
	int free_on;      /* enum free_on */
	uint32_t hold;    /* packets held by rxonly before they are freed */
	uint32_t contend; /* buffers that the main lcore takes and frees at once; 0: none */
	uint32_t batch;   /* 0: the cache's own choice */
	uint32_t high;    /* 0: as above */
	uint32_t mbcache; /* of the mempool library */
	uint32_t burst;
	uint32_t frame_size;
	uint32_t duration; /* seconds; 0: until a signal */
	uint32_t rxq, rxd, txd;
	uint32_t pool_size; /* 0: computed */
	const char *json;   /* NULL: none */
	bool yield;         /* the processor, after a poll without packets */
	bool help, version;
};

/* For the program's options, those after "--". 0, or -EINVAL after one line on stderr. */
int options_parse(struct options *options, int argc, char **argv);

/* Whether this word is an option of the program, wherever it stands. */
bool options_knows(const char *word);

void options_print_help(FILE *f);

const char *forward_mode_name(int mode);
const char *pool_kind_name(int kind);
const char *recycle_name(int recycle);

/* Whether the pool's caches are ours, so that --pcp, --checks, --batch and --high mean something.
 */
static inline bool
pool_kind_is_paged(int kind)
{
	return kind == POOL_PAGES || kind == POOL_PAGEPOOL;
}
