/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The control interface of the software ConnectX's device half: what a driver in the kernel would
 * tell the card. A card has ports; as on a ConnectX each port is a PCI function of its own, with
 * objects (memory regions, queues, flows) of its own and, here, a thread of its own.
 *
 * Every call may come from any thread but the device's own (a callback must not call back), and
 * returns 0 or -errno. What changes or removes an object happens at the device's quiescent point:
 * when the call returns, the device touches the object, its rings and its memory no more, and none
 * of its callbacks runs or will run. Numbers (cqn, qpn, wqn, lkey) are unique per port and not
 * zero; a freed number is not given again soon, so that late users are told, not served.
 *
 * Buffers and doorbell records stay the caller's. The device reads and writes them at any time
 * between the create and the destroy call; should they vanish nevertheless, the queue fails, not
 * the process.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#define SOFTCX_MAX_PORTS    8
#define SOFTCX_MAX_FRAMES   16   /* entries of a list of frame sizes */
#define SOFTCX_MIN_FRAME    64   /* on the wire, with FCS */
#define SOFTCX_MAX_FRAME    9978 /* the same; longer ones are not sent */
#define SOFTCX_MAX_STREAMS  65535
#define SOFTCX_MAX_QUEUES   1024  /* WQs, and as many QPs with a send queue, of a port */
#define SOFTCX_MAX_CQE      32768 /* doorbells are compared in 16 bits */
#define SOFTCX_MAX_WQE      32768 /* of a receive queue, and basic blocks of a send queue */
#define SOFTCX_MAX_SGE      30    /* of a receive WQE */
#define SOFTCX_MAX_SQ_DESC  1008  /* bytes of a send WQE */
#define SOFTCX_MAX_RSS_SIZE 2048  /* entries of an indirection table */
#define SOFTCX_RSS_KEY_LEN  40
#define SOFTCX_MAX_PRIORITY 0xffffu /* of a flow */

/* ---- the card and its wire ---- */

enum softcx_wire {
	SOFTCX_WIRE_GEN,  /* receives what a generator offers; what is sent is checked */
	SOFTCX_WIRE_LOOP, /* receives what it sends */
	SOFTCX_WIRE_SINK, /* receives nothing; what is sent is counted */
	SOFTCX_WIRE_PAIR, /* ports 0 and 1, 2 and 3, ... back to back */
};

enum softcx_payload {
	SOFTCX_PAYLOAD_NONE,   /* lengths only: buffers are neither written nor read */
	SOFTCX_PAYLOAD_HEADER, /* the first 64 bytes of a frame */
	SOFTCX_PAYLOAD_FULL,
};

enum softcx_clock {
	SOFTCX_CLOCK_REAL,
	SOFTCX_CLOCK_VIRTUAL, /* stands still while device or application are descheduled */
};

/* Errors that are made up, to see how software recovers. */
struct softcx_inject {
	uint64_t every; /* WQE of a port that gets as far as being used; 0: none */
	uint8_t syndrome;
};

/* Commands that are refused, to see what software does then. */
enum softcx_refusal {
	SOFTCX_REFUSE_RQ_RESET, /* a receive queue becomes reset, */
	SOFTCX_REFUSE_RQ_READY, /* ready to receive, */
	SOFTCX_REFUSE_RQ_DESTROY,
	SOFTCX_REFUSE_SQ_RESET, /* a queue pair becomes reset, */
	SOFTCX_REFUSE_SQ_READY, /* ready to send, */
	SOFTCX_REFUSE_SQ_DESTROY,
	SOFTCX_REFUSALS,
};

struct softcx_config {
	unsigned int ports;
	unsigned int queues; /* most receive (and send) queues of a port; 0: SOFTCX_MAX_QUEUES */
	uint64_t rate;       /* bit/s of each port; 0: as fast as the device's loop */
	unsigned int n_frames;
	uint16_t frame[SOFTCX_MAX_FRAMES]; /* sizes in turn, with FCS */
	unsigned int streams;              /* 5-tuples per port */
	uint64_t packets;                  /* the generator ends after; 0: never */
	enum softcx_wire wire;
	enum softcx_payload payload;
	enum softcx_clock clock;
	bool probe;            /* full rate only once software took a first packet */
	bool pause;            /* the generator waits while a frame's queue has no buffer */
	bool yield;            /* the processor is let go after each turn of the loop */
	bool strict;           /* report what hardware would punish */
	unsigned int delay_us; /* the device sleeps at random up to so long; 0: not */
	struct softcx_inject inject_rq, inject_sq;
	uint64_t refuse[SOFTCX_REFUSALS]; /* each Nth of the process; 0: none */
	uint64_t seed;                    /* of all that is random */
	int device_cpu;         /* of the first port's thread, the next's is the next; -1: any */
	const char *stats_file; /* JSON, written at destroy; NULL: none. Not copied */
	FILE *summary;          /* written at destroy, and where strict reports; NULL: none */
	bool stepped;           /* no threads: the caller runs softcx_port_step() */
};

/* One port, 100 Gbit/s, 1518 bytes, 16 streams, a generator, header, real time. */
void softcx_config_init(struct softcx_config *config);

/*
 * Set one option by its name as of softcx-run without the dashes ("rate", "100G"). -ENOENT: no such
 * option; -EINVAL: not a value of it, *why then says what it must be.
 * Options: ports queues rate frame (a size, imix or a list a,b,c) streams packets wire payload
 * clock device-cpu stats probe pause yield strict delay inject (KIND:N) seed. `value` must live as
 * long as the configuration.
 */
int softcx_config_set(
	struct softcx_config *config, const char *name, const char *value, const char **why);

struct softcx_card;
struct softcx_port;

/* Threads start here; they wait until there is a queue. -EINVAL: a configuration that cannot be. */
int softcx_device_create(const struct softcx_config *config, struct softcx_card **card);

/*
 * Stop the threads, write summary and statistics, free everything, objects that were not destroyed
 * too (they are counted: leaks). Returns 0, or -EIO: the statistics file could not be written.
 */
int softcx_device_destroy(struct softcx_card *card);

struct softcx_port *softcx_device_port(struct softcx_card *card, unsigned int index);

/* The MAC address of a port, which frames of the generator are for. */
static inline void
softcx_port_mac(unsigned int index, uint8_t mac[6])
{
	const uint8_t address[6] = {0x02, 0x02, 0xc9, 0x00, 0x00, (uint8_t)(index + 1)};

	for (unsigned int i = 0; i < sizeof(address); i++)
		mac[i] = address[i];
}

/* Frequency of CQE timestamps: the device's core clock. */
uint64_t softcx_device_clock_hz(const struct softcx_card *card);

/* The device's time now, in cycles of that clock. */
uint64_t softcx_port_clock(struct softcx_port *port);

/*
 * What the device could not say in a CQE: IBV_EVENT_CQ_ERR, _QP_FATAL, _WQ_FATAL, with the cookie
 * of the object. Runs on the device's thread or on that of a control call: it must not block, nor
 * call the device.
 */
typedef void (*softcx_event_fn)(void *arg, enum ibv_event_type type, void *cookie);
int softcx_port_set_events(struct softcx_port *port, softcx_event_fn fn, void *arg);

/* One turn of the device's loop, where there are no threads; whether there was anything to do. */
bool softcx_port_step(struct softcx_port *port);

/*
 * Memory is about to go (munmap, mremap, MAP_FIXED over it): regions, rings and doorbells that lie
 * in it become protection errors from here on. Cheap when nothing of ours lies there.
 */
void softcx_memory_gone(struct softcx_card *card, const void *addr, size_t length);

/*
 * The device's threads survive SIGSEGV and SIGBUS of theirs: a handler is put before the
 * application's. Whoever stands between the application and sigaction() hands those two signals to
 * this instead: it stores and returns the application's own and keeps ours in front.
 */
int softcx_guard_sigaction(int signum, const struct sigaction *act, struct sigaction *old);

/* ---- memory regions ---- */

struct softcx_mr_attr {
	uint32_t pd;
	const void *addr;
	uint64_t length;
	uint64_t iova;       /* address in work requests of `addr` */
	unsigned int access; /* enum ibv_access_flags; only IBV_ACCESS_LOCAL_WRITE counts */
};

int softcx_mr_create(struct softcx_port *port, const struct softcx_mr_attr *attr, uint32_t *lkey);
int softcx_mr_destroy(struct softcx_port *port, uint32_t lkey);

/* ---- completion queues ---- */

#define SOFTCX_CQ_IGNORE_OVERRUN 0x1u

struct softcx_cq_attr {
	void *buf;
	uint32_t *dbrec;    /* [0] consumer index, [1] arm */
	void *uar;          /* page whose MLX5_CQ_DOORBELL arms it; NULL: the record alone does */
	uint32_t cqe_count; /* a power of two */
	uint32_t cqe_size;  /* 64 */
	unsigned int flags; /* SOFTCX_CQ_* */
	/* A completion that software had armed for; as softcx_event_fn. NULL: never armed. */
	void (*completion)(void *cookie);
	void *cookie;
};

int softcx_cq_create(struct softcx_port *port, const struct softcx_cq_attr *attr, uint32_t *cqn);

/* -EBUSY: a queue uses it. */
int softcx_cq_destroy(struct softcx_port *port, uint32_t cqn);

/* ---- receive queues ---- */

#define SOFTCX_WQ_VLAN_STRIP 0x1u

struct softcx_wq_attr {
	uint32_t pd;
	uint32_t cqn;
	void *buf;
	uint32_t *dbrec;     /* [MLX5_RCV_DBR] */
	uint32_t wqe_count;  /* a power of two */
	uint32_t log_stride; /* of bytes of a WQE; 4: one segment */
	uint32_t user_index; /* srqn_uidx of its CQEs */
	unsigned int flags;  /* SOFTCX_WQ_* */
	void *cookie;
};

/* In state RESET. -EINVAL: numbers or sizes that cannot be; -ENOMEM: no more queues, or memory. */
int softcx_wq_create(struct softcx_port *port, const struct softcx_wq_attr *attr, uint32_t *wqn);

/*
 * RESET to RDY; RDY to ERR, which flushes; any to RESET, which forgets all WQEs and counters; the
 * same again is fine. Else -EINVAL.
 */
int softcx_wq_modify(struct softcx_port *port, uint32_t wqn, enum ibv_wq_state state);
int softcx_wq_set_flags(struct softcx_port *port, uint32_t wqn, unsigned int flags);
int softcx_wq_query(struct softcx_port *port, uint32_t wqn, enum ibv_wq_state *state);

/* -EBUSY: an indirection table names it. */
int softcx_wq_destroy(struct softcx_port *port, uint32_t wqn);

/* A table of 2^n receive queues, of one protection domain or several. */
int softcx_rwq_table_create(
	struct softcx_port *port, const uint32_t *wqn, unsigned int count, uint32_t *table);

/* -EBUSY: a QP hashes over it. */
int softcx_rwq_table_destroy(struct softcx_port *port, uint32_t table);

/* ---- queue pairs ---- */

struct softcx_qp_attr { /* IBV_QPT_RAW_PACKET */
	uint32_t pd;
	uint32_t *dbrec; /* [MLX5_RCV_DBR], [MLX5_SND_DBR] */
	uint32_t user_index;
	void *uar;    /* page of its doorbell register; NULL: not looked at */
	void *cookie; /* of QP_FATAL */
	struct {
		uint32_t cqn;
		void *buf;
		uint32_t wqe_count; /* basic blocks of 64 bytes, a power of two; 0: no send queue */
	} sq;
	struct {
		uint32_t cqn;
		void *buf;
		uint32_t wqe_count; /* a power of two; 0: no receive queue */
		uint32_t log_stride;
		unsigned int flags; /* SOFTCX_WQ_* */
	} rq;
};

/* In state RESET. The qpn is the number of the send queue, too. */
int softcx_qp_create(struct softcx_port *port, const struct softcx_qp_attr *attr, uint32_t *qpn);

struct softcx_rss_attr {
	uint32_t pd;
	uint32_t table;
	uint64_t fields; /* enum ibv_rx_hash_fields; 0: only entry 0 */
	uint8_t key[SOFTCX_RSS_KEY_LEN];
};

/* Always ready, has no state to modify. -EINVAL: fields that the hardware does not hash together.
 */
int softcx_rss_qp_create(
	struct softcx_port *port, const struct softcx_rss_attr *attr, uint32_t *qpn);

/* RESET, INIT, RTR, RTS in turn, any to RESET or ERR, the same again; else -EINVAL. */
int softcx_qp_modify(struct softcx_port *port, uint32_t qpn, enum ibv_qp_state state);
int softcx_qp_query(struct softcx_port *port, uint32_t qpn, enum ibv_qp_state *state);

/* Of both kinds. -EBUSY: a flow leads to it. */
int softcx_qp_destroy(struct softcx_port *port, uint32_t qpn);

/* ---- flows ---- */

/* The headers that a packet must have. */
#define SOFTCX_MATCH_IPV4 0x1u
#define SOFTCX_MATCH_IPV6 0x2u
#define SOFTCX_MATCH_TCP  0x4u
#define SOFTCX_MATCH_UDP  0x8u

/* Fields in network byte order; all of a value that its mask does not have is ignored. */
struct softcx_match {
	uint8_t dst_mac[6], src_mac[6];
	uint16_t ether_type;
	uint16_t vlan_tci; /* a mask that is not zero asks for a tag */
	uint32_t src_ipv4, dst_ipv4;
	uint8_t src_ipv6[16], dst_ipv6[16];
	uint32_t flow_label;
	uint16_t src_port, dst_port;
	uint8_t proto; /* IPv4 protocol or IPv6 next header */
	uint8_t tos;   /* or traffic class */
	uint8_t ttl;   /* or hop limit */
	uint8_t zero;  /* no hole: rules are compared as bytes */
};

struct softcx_flow_attr {
	uint32_t qpn; /* with a receive queue, or RSS; 0 with drop */
	enum ibv_flow_attr_type type;
	unsigned int priority; /* 0 first, then in the order of making */
	unsigned int headers;  /* SOFTCX_MATCH_* */
	struct softcx_match value, mask;
	uint32_t tag; /* of its CQEs, 24 bits */
	bool drop;    /* packets end here, counted */
};

int softcx_flow_create(
	struct softcx_port *port, const struct softcx_flow_attr *attr, uint32_t *flow);
int softcx_flow_destroy(struct softcx_port *port, uint32_t flow);

/* ---- counters ---- */

struct softcx_checker_counters {
	uint64_t packets;   /* that carried a stamp of ours */
	uint64_t foreign;   /* that did not */
	uint64_t lost;      /* delivered, passed by later ones, and not seen yet */
	uint64_t reordered; /* came after later ones of their stream */
	uint64_t duplicated;
	uint64_t corrupted;
};

/*
 * offered = rx_packets + out_of_buffer + rx_errors + no_flow + flow_drops + queue_not_ready, to the
 * packet, but for the copies that sniffers get.
 */
struct softcx_port_counters {
	uint64_t offered;         /* by the wire */
	uint64_t rx_packets;      /* delivered with a good CQE */
	uint64_t rx_bytes;        /* without FCS */
	uint64_t out_of_buffer;   /* no WQE was posted */
	uint64_t rx_errors;       /* a CQE with error, or none as the queue failed */
	uint64_t no_flow;         /* no flow matched */
	uint64_t flow_drops;      /* a flow said drop */
	uint64_t queue_not_ready; /* reset or in error */
	uint64_t rx_copies; /* to sniffers and further QPs of a flow; of rx_packets not part */
	uint64_t tx_packets, tx_bytes;
	uint64_t tx_errors;   /* send WQEs completed with an error, flushed ones not */
	uint64_t flushed;     /* WQEs of both kinds */
	uint64_t cq_overruns; /* CQs that went into error */
	uint64_t faults;      /* accesses to memory that was gone */
	uint64_t injected;    /* errors that were made up; rx_errors and tx_errors have them, too */
	uint64_t strict;      /* reports */
	uint64_t cqes;
	uint64_t events;   /* completions that were armed for */
	uint64_t stall_ns; /* time that a virtual clock left out */
	uint64_t run_ns;   /* the device's time with a queue ready */
	uint64_t idle_ns;  /* of it, in turns with nothing to do */
	struct softcx_checker_counters checker;
};

/* Consistent: taken at the quiescent point. */
int softcx_port_query(struct softcx_port *port, struct softcx_port_counters *counters);
