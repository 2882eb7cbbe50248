/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * mlx5pp: an Ethernet driver for ConnectX cards that a reader understands in an evening.
 *
 * - probe.c: a virtual device becomes a port: arguments, the verbs device, its protection domain
 * - ethdev.c: what ethdev asks of a port: configuration, start, stop, link, addresses
 * - rxq.c, txq.c: life of a queue: its completion queue, its ring, its buffers
 * - control.c: which packets come to which queue: RSS and flow rules
 * - mr.c: memory that the card may touch
 * - rx.c, tx.c: the data path: rings that the card reads and writes
 * - recycle.c, reuse.c: where RX buffers come from, and the pages that come back
 * - recycle_mbufs.c: DPDK's own way for buffers from a send queue to a receive queue
 * - stats.c: counters
 *
 * The data path owns its queue: one thread at a time, and none while the queue is stopped. All the
 * rest runs on whatever thread controls the port. Structures that the card sees are those of
 * mlx5dv.h, in network byte order; indices of rings run freely and are masked when used.
 */

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <ethdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_mbuf.h>
#include <rte_spinlock.h>
#include <rte_version.h>

#include <pcp.h>
#include <pp_recycle.h>
#include <pp_share.h>

/* What the installed DPDK has. */
#define MLX5PP_HAS_RECYCLE_MBUFS (RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0))
#define MLX5PP_COUNTS_PTYPES     (RTE_VERSION >= RTE_VERSION_NUM(24, 3, 0, 0))

extern int mlx5pp_logtype;

#define MLX5PP_LOG(level, fmt, ...)                                                                \
	rte_log(RTE_LOG_##level, mlx5pp_logtype, "mlx5pp: " fmt "\n", ##__VA_ARGS__)

#define MLX5PP_FRAME_MIN   14   /* bytes without FCS; the card sends no less */
#define MLX5PP_FRAME_MAX   9974 /* the same; more is not sent */
#define MLX5PP_OVERHEAD    (RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN)
#define MLX5PP_MTU_MAX     (MLX5PP_FRAME_MAX + RTE_ETHER_CRC_LEN - MLX5PP_OVERHEAD)
#define MLX5PP_QUEUES_MAX  256
#define MLX5PP_DESC_MIN    64
#define MLX5PP_DESC_MAX    32768
#define MLX5PP_RX_SEGS_MAX 16 /* buffers of a received frame */
#define MLX5PP_TX_SEGS_MAX 40 /* of a frame to send */
#define MLX5PP_MACS_MAX    16
#define MLX5PP_KEY_LEN     40
#define MLX5PP_REFILL      64  /* RX buffers posted at once, at most */
#define MLX5PP_SIGNAL      32  /* basic blocks of a send queue from one completion to the next */
#define MLX5PP_MRU         4   /* memory ranges that a send queue remembers */
#define MLX5PP_FIFO_MIN    128 /* by default; mlx5e's */
#define MLX5PP_FIFO_MAX    32768
#define MLX5PP_XSTATS_MAX  32
#define MLX5PP_RETRY_HZ    100 /* attempts to start a queue that did not start anew */

enum mlx5pp_recycle {
	MLX5PP_RECYCLE_OFF,
	MLX5PP_RECYCLE_CACHE, /* a FIFO of pages given away, whose head is looked at */
	MLX5PP_RECYCLE_REUSE, /* the same of pages that several packets share */
	MLX5PP_RECYCLE_POOL,  /* pages come back to an owner's cache, or a ring */
};

/* What --vdev says. */
struct mlx5pp_args {
	char ibdev[IBV_SYSFS_NAME_MAX];
	enum mlx5pp_recycle recycle;
	uint32_t cache_size; /* of modes cache and reuse; 0: by the ring's size */
	int pcp;             /* enum pcp_mode that pools must have; -1: any */
	int inline_len;      /* bytes of a frame in its send WQE: 0, 18; -1: what the card wants */
};

/* ---- memory ---- */

struct mlx5pp_mr {
	uintptr_t start, end;
	uint32_t lkey_be;
	struct ibv_mr *mr;
	bool page; /* EAL's hugepages, for external buffers; else a piece of a pool */
};

/* Ranges that the card may touch. Under the lock but for `generation`. */
struct mlx5pp_mrs {
	rte_spinlock_t lock;
	struct mlx5pp_mr *range;
	uint32_t n, capacity;
	uint32_t generation; /* changes when ranges go: what queues remember is void */
	uint64_t registered; /* at the sight of a packet to send, ever */
	uint64_t tell_at;    /* when a failure will be told of again, in TSC cycles */
};

/* ---- queues ---- */

/* Counters have one writer, the data path. */
struct mlx5pp_rxq_stats {
	uint64_t packets, bytes;
	uint64_t errors; /* frames that the card could not deliver here */
	uint64_t nombuf; /* buffers that a refill did not get */
	uint64_t recoveries;
	uint64_t cache_reuse, cache_full, cache_empty, cache_busy;
	uint64_t cache_behind_head; /* pages taken there as the pool was empty */
	uint64_t recycled_mbufs;    /* by rte_eth_recycle_mbufs() */
};

/* Mode cache: pages given to the application, oldest first. */
struct mlx5pp_fifo {
	uint32_t head, tail;
	uint32_t mask;
	uint32_t usable; /* one less than the size asked for, as the kernel's */
	struct rte_mbuf **page;
};

/* Mode reuse: pages, oldest first. */
struct mlx5pp_page_fifo {
	struct mlx5pp_page {
		struct rte_mbuf *page;
		uint32_t end; /* buffers posted, once the last of the page is */
	} * entry;
	uint32_t head, tail;
	uint32_t mask;
};

struct mlx5pp_pages {
	struct pp_share share;          /* how they are cut */
	struct mlx5pp_page_fifo posted; /* with buffers in the ring */
	struct mlx5pp_page_fifo given;  /* all of them given to the application, or back */
	uint32_t usable;                /* of `given`; one less than the size asked for */
	struct rte_mbuf *open;          /* the page whose mbufs are being posted, */
	uint32_t used;                  /* so many so far */
};

struct mlx5pp_rxq {
	/* The rings. */
	struct mlx5_cqe64 *cqes;
	struct mlx5_wqe_data_seg *wqes;
	struct rte_mbuf **bufs; /* of every segment of every WQE */
	__be32 *cq_db, *rq_db;
	uint32_t cq_mask, log_cqes;
	uint32_t wqe_mask;
	uint32_t log_segs;  /* segments of a WQE */
	uint32_t cq_ci;     /* completions seen */
	uint32_t consumed;  /* WQEs that have completed */
	uint32_t posted;    /* WQEs that the card has */
	uint32_t refill_at; /* refill when so many WQEs are missing; UINT32_MAX: stopped */
	bool failed;        /* and did not start anew: tried again, */
	uint64_t retry_at;  /* not before this time, in TSC cycles */
#if MLX5PP_HAS_RECYCLE_MBUFS
	uint16_t refill_head, receive_tail; /* places in the ring: see mlx5pp_rx_tell_room() */
#endif
	/* What received mbufs are made of. */
	uint64_t rearm; /* data_off, refcnt, nb_segs, port */
	uint64_t timestamp_flag;
	int timestamp_offset; /* -1: not wanted */
	/* Buffers. */
	struct rte_mempool *mp;  /* NULL: it is gone */
	struct pcp_cache *cache; /* below the pool; NULL: through the mempool API */
	struct pp_recycler *recycler;
	struct pp_recycle_queue *pool; /* mode pool */
	struct mlx5pp_fifo fifo;       /* mode cache */
	struct mlx5pp_pages pages;     /* mode reuse */
	enum mlx5pp_recycle recycle;
	uint32_t buf_offset; /* from mbuf to its buffer */
	uint16_t headroom;
	uint16_t room;    /* of a buffer behind the headroom */
	uint16_t buf_len; /* of a buffer, as the mbuf says */
	uint32_t lkey_be; /* of the whole pool; 0: each buffer is looked up */
	struct mlx5pp_rxq_stats stats;
	/* Control. */
	struct mlx5pp_port *port;
	struct ibv_cq *cq;
	struct ibv_wq *wq;
	bool armed; /* the card may have buffers: not reset since it was made ready */
	uint32_t n_wqes;
	uint64_t offloads;
	uint16_t index;
	uint16_t n_desc;
	bool deferred;
};

struct mlx5pp_txq_stats {
	uint64_t packets, bytes;
	uint64_t errors;    /* all that follows, and what a failed queue did not send */
	uint64_t no_mr;     /* in memory that cannot be registered */
	uint64_t bad_frame; /* too short, too long, too many segments */
	uint64_t recoveries;
};

struct mlx5pp_txq {
	uint8_t *wqes;
	struct rte_mbuf **bufs; /* by basic block: the packet that begins there, or NULL */
	struct mlx5_cqe64 *cqes;
	__be32 *cq_db, *sq_db;
	uint64_t *bf;
	uint32_t bb_mask, cq_mask, log_cqes;
	uint32_t pi, ci;   /* basic blocks posted, and completed */
	uint32_t signaled; /* pi behind the last WQE that will complete */
	uint32_t cq_ci;
	uint32_t signal_at; /* blocks without completion after which one is asked for */
	uint32_t sqn;
	uint32_t inline_len;
	uint32_t holes; /* blocks without a packet among those posted, at least */
	bool raw_free;  /* all mbufs have one reference, one segment, one pool */
	bool running;
	bool armed;  /* as of receive queues */
	bool failed; /* the same */
	uint64_t retry_at;
	uint32_t mr_generation;
	struct {
		uintptr_t start, end;
		uint32_t lkey_be;
	} mru[MLX5PP_MRU];
	struct mlx5pp_txq_stats stats;
	struct mlx5pp_port *port;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint64_t offloads;
	uint16_t index;
	uint16_t n_desc;
	bool deferred;
};

/* ---- a port ---- */

/* Classes of packets, in the order in which they are matched. */
enum mlx5pp_class {
	MLX5PP_IPV4_TCP,
	MLX5PP_IPV4_UDP,
	MLX5PP_IPV6_TCP,
	MLX5PP_IPV6_UDP,
	MLX5PP_IPV4,
	MLX5PP_IPV6,
	MLX5PP_ALL,
	MLX5PP_CLASSES,
};

struct mlx5pp_flow {
	enum mlx5pp_class kind;
	struct rte_ether_addr mac, mask;
	struct ibv_flow *flow;
	bool wanted;
};

#define MLX5PP_FLOWS_MAX ((MLX5PP_MACS_MAX + 2) * MLX5PP_CLASSES)

struct mlx5pp_steering {
	struct ibv_rwq_ind_table *table; /* of all queues */
	struct ibv_rwq_ind_table *first; /* of one entry, for what is not hashed */
	struct ibv_qp *qp[MLX5PP_CLASSES];
	struct mlx5pp_flow flow[MLX5PP_FLOWS_MAX];
	uint32_t n_flows;
};

struct mlx5pp_port {
	struct rte_eth_dev_data *data;
	struct mlx5pp_args args;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr_ex attr;
	char ifname[IF_NAMESIZE]; /* of the card's netdev; "": there is none */
	char sysfs[IBV_SYSFS_PATH_MAX];
	uint32_t inline_len;
	struct mlx5pp_mrs mrs;
	struct mlx5pp_steering steering;
	uint64_t rss_hf;
	uint8_t rss_key[MLX5PP_KEY_LEN];
	uint64_t missed_base;
	uint64_t xstats_base[MLX5PP_XSTATS_MAX]; /* modulo 2^64: sums of other queues, too */
};

static inline struct mlx5pp_port *
mlx5pp_port(const struct rte_eth_dev *dev)
{
	return dev->data->dev_private;
}

/* ---- between the files; all return 0 or -errno ---- */

/* probe.c */
const char *mlx5pp_recycle_name(enum mlx5pp_recycle mode);
/* Of the card's interface, if there is one: others may use it, too, and want more. */
int mlx5pp_netdev_set_mtu(const struct mlx5pp_port *port, uint16_t mtu);
int mlx5pp_netdev_raise_mtu(const struct mlx5pp_port *port, uint16_t mtu);

/* ethdev.c */
extern const struct eth_dev_ops mlx5pp_ops;
void mlx5pp_set_bursts(struct rte_eth_dev *dev);

/* rxq.c */
int mlx5pp_rxq_setup(struct rte_eth_dev *dev, uint16_t index, uint16_t n_desc, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *mp);
void mlx5pp_rxq_release(struct rte_eth_dev *dev, uint16_t index);
uint32_t mlx5pp_rxq_segs(const struct mlx5pp_rxq *rxq, uint16_t mtu);
void mlx5pp_rxq_pool_goes(struct mlx5pp_port *port, const struct rte_mempool *mp);
int mlx5pp_rxq_create(struct mlx5pp_rxq *rxq);   /* its objects, stopped */
void mlx5pp_rxq_destroy(struct mlx5pp_rxq *rxq); /* stopped or not; every buffer goes back */
int mlx5pp_rxq_start(struct mlx5pp_rxq *rxq);
/* Every buffer goes back; or the card does not let go of them, and the queue is as it was. */
int mlx5pp_rxq_stop(struct mlx5pp_rxq *rxq);
/* After an error. What fails is tried again by mlx5pp_rxq_retry(), which bursts call. */
int mlx5pp_rxq_recover(struct mlx5pp_rxq *rxq);
void mlx5pp_rxq_retry(struct mlx5pp_rxq *rxq);
int mlx5pp_rxq_set_strip(struct mlx5pp_rxq *rxq, bool on);

/* txq.c */
int mlx5pp_txq_setup(struct rte_eth_dev *dev, uint16_t index, uint16_t n_desc, unsigned int socket,
	const struct rte_eth_txconf *conf);
void mlx5pp_txq_release(struct rte_eth_dev *dev, uint16_t index);
int mlx5pp_txq_create(struct mlx5pp_txq *txq);
void mlx5pp_txq_destroy(struct mlx5pp_txq *txq);
int mlx5pp_txq_start(struct mlx5pp_txq *txq);
int mlx5pp_txq_stop(struct mlx5pp_txq *txq);
int mlx5pp_txq_recover(struct mlx5pp_txq *txq);
void mlx5pp_txq_retry(struct mlx5pp_txq *txq);

/* control.c */
/* Nothing, and no error, where there is no queue to receive. */
int mlx5pp_steering_create(struct mlx5pp_port *port);
void mlx5pp_steering_destroy(struct mlx5pp_port *port);
/* The rules that addresses and promiscuous modes ask for, of a port that has steering. */
int mlx5pp_steering_update(struct mlx5pp_port *port);

/* mr.c */
int mlx5pp_mr_init(struct mlx5pp_port *port);
void mlx5pp_mr_fini(struct mlx5pp_port *port);
int mlx5pp_mr_add_pool(struct mlx5pp_port *port, struct rte_mempool *mp);
/* The key of the one range that holds all of a pool; 0: there are several. */
uint32_t mlx5pp_mr_of_pool(struct mlx5pp_port *port, struct rte_mempool *mp);
/* The range of a pool that holds all of [start, end); false: there is none. */
bool mlx5pp_mr_find(
	struct mlx5pp_port *port, uintptr_t start, uintptr_t end, struct mlx5pp_mr *found);
/* The same for a buffer to send, registered if it can be. */
bool mlx5pp_mr_of_mbuf(struct mlx5pp_port *port, const struct rte_mbuf *m, struct mlx5pp_mr *found);

/* rx.c */
uint16_t mlx5pp_rx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t mlx5pp_rx_burst_cache(void *queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t mlx5pp_rx_burst_reuse(void *queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t mlx5pp_rx_burst_segs(void *queue, struct rte_mbuf **pkts, uint16_t n);
uint32_t mlx5pp_rx_refill(struct mlx5pp_rxq *rxq);
#if MLX5PP_COUNTS_PTYPES
const uint32_t *mlx5pp_rx_ptypes(struct rte_eth_dev *dev, size_t *n);
#else
const uint32_t *mlx5pp_rx_ptypes(struct rte_eth_dev *dev);
#endif

/* tx.c */
uint16_t mlx5pp_tx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t mlx5pp_tx_burst_segs(void *queue, struct rte_mbuf **pkts, uint16_t n);
int mlx5pp_tx_done_cleanup(void *queue, uint32_t n);
void mlx5pp_tx_free(struct mlx5pp_txq *txq, uint32_t to);
/* Whether completions have come: blocks up to *to are done, and are to be freed. */
bool mlx5pp_tx_completed(struct mlx5pp_txq *txq, uint32_t *to);

#if MLX5PP_HAS_RECYCLE_MBUFS
/* recycle_mbufs.c, and of rx.c what it hands buffers to */
uint16_t mlx5pp_recycle_tx_reuse(void *queue, struct rte_eth_recycle_rxq_info *info);
void mlx5pp_recycle_rx_refill(void *queue, uint16_t n);
void mlx5pp_recycle_rxq_info_get(
	struct rte_eth_dev *dev, uint16_t index, struct rte_eth_recycle_rxq_info *info);
#endif

/*
 * What rte_eth_recycle_mbufs() reads between bursts: where buffers go, and where the ring ends. The
 * same place says that there is no room, for a queue that is full, or empty and waits for its own
 * refill, or does not run.
 */
static __rte_always_inline void
mlx5pp_rx_tell_room(struct mlx5pp_rxq *rxq)
{
#if MLX5PP_HAS_RECYCLE_MBUFS
	const bool runs = !rxq->failed && rxq->refill_at != UINT32_MAX;

	rxq->refill_head = (uint16_t)(rxq->posted & rxq->wqe_mask);
	rxq->receive_tail = (uint16_t)((runs ? rxq->consumed : rxq->posted) & rxq->wqe_mask);
#else
	RTE_SET_USED(rxq);
#endif
}

/* recycle.c */
int mlx5pp_recycle_setup(struct mlx5pp_rxq *rxq, int socket);
void mlx5pp_recycle_release(struct mlx5pp_rxq *rxq);
/* What a buffer has room for, frames of `len` bytes being expected. */
void mlx5pp_recycle_choose_room(struct mlx5pp_rxq *rxq, uint32_t len);
/* The ring is empty, and will be filled. */
void mlx5pp_recycle_start(struct mlx5pp_rxq *rxq);
void mlx5pp_recycle_stop(struct mlx5pp_rxq *rxq);
/* Up to n buffers, n <= MLX5PP_REFILL; how many. */
uint32_t mlx5pp_recycle_take(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t n);
/* Buffers that were taken and not given to the application. */
void mlx5pp_recycle_give_back(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t n);

/* Mode cache: a page is about to be the application's. */
static __rte_always_inline void
mlx5pp_recycle_given(struct mlx5pp_rxq *rxq, struct rte_mbuf *m)
{
	struct mlx5pp_fifo *fifo = &rxq->fifo;

	if (unlikely(fifo->tail - fifo->head == fifo->usable)) {
		rxq->stats.cache_full++;
		return;
	}
	struct pp_page_mark *mark = pp_page_mark(m);

	mark->given = PP_MARK_GIVEN;
	fifo->page[fifo->tail++ & fifo->mask] = m;
}

/* reuse.c */
int mlx5pp_reuse_setup(struct mlx5pp_rxq *rxq, uint32_t size, int socket);
void mlx5pp_reuse_choose_room(struct mlx5pp_rxq *rxq, uint32_t len);
void mlx5pp_reuse_start(struct mlx5pp_rxq *rxq);
void mlx5pp_reuse_stop(struct mlx5pp_rxq *rxq);
uint32_t mlx5pp_reuse_take(struct mlx5pp_rxq *rxq, struct rte_mbuf **bufs, uint32_t n);

/* stats.c */
void mlx5pp_stats_init(struct mlx5pp_port *port);
void mlx5pp_xstats_rxq(struct mlx5pp_port *port, const struct mlx5pp_rxq *rxq, bool joins);
void mlx5pp_xstats_txq_leaves(struct mlx5pp_port *port, const struct mlx5pp_txq *txq);
int mlx5pp_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats);
int mlx5pp_stats_reset(struct rte_eth_dev *dev);
int mlx5pp_xstats_reset(struct rte_eth_dev *dev);
int mlx5pp_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned int n);
int mlx5pp_xstats_get_names(
	struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned int n);

/* ---- completions ---- */

/*
 * A completion is software's when its owner bit says this pass of the ring. The card writes that
 * byte last, so the rest is read after it. NULL: none yet.
 */
static __rte_always_inline struct mlx5_cqe64 *
mlx5pp_cqe(struct mlx5_cqe64 *cqes, uint32_t mask, uint32_t log_cqes, uint32_t ci)
{
	struct mlx5_cqe64 *cqe = &cqes[ci & mask];
	const uint8_t op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);

	if ((op_own & MLX5_CQE_OWNER_MASK) != (ci >> log_cqes & 1) ||
		op_own >> 4 == MLX5_CQE_INVALID)
		return NULL;
	return cqe;
}

/* Records in memory that the card reads at its leisure; what they promise must be there before. */
static __rte_always_inline void
mlx5pp_doorbell(__be32 *record, uint32_t value)
{
	rte_io_wmb();
	__atomic_store_n(record, htobe32(value), __ATOMIC_RELAXED);
}
