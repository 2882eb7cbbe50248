/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An application that treats received packets in every legal way, on the ports it finds:
 *	torture EAL-ARGUMENT... -- RECYCLE STARTS PACKETS [slow|broken]
 * It holds them, clones and chains them, sends them, and frees them here or on another lcore, in
 * random order and by every call that frees, while port 0 is stopped and started STARTS times, each
 * after PACKETS packets. A packet must not change while it is held, nor come twice; in the end all
 * buffers must be in their pool. With `slow` the first packet is held to the end, and all others
 * are freed at once, which blocks recycling from a FIFO and no other. With `broken` some frames
 * lie about their length, so that send queues fail, and have to start anew.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_hash_crc.h>
#include <rte_launch.h>
#include <rte_mbuf.h>
#include <rte_random.h>
#include <rte_ring.h>

#include <pp_mempool.h>
#include <pp_share.h>

#define QUEUES 2
#define BURST  32
#define HELD   512 /* packets that an lcore holds, at most */
#define DESC   256
#define POOL   8192
#define PRIV   16

/* For two frames, each with mbuf, private area and headroom: with recycle=reuse. */
#define PART                                                                                       \
	RTE_ALIGN(RTE_CACHE_LINE_SIZE + sizeof(struct rte_mbuf) + PRIV + RTE_PKTMBUF_HEADROOM +    \
			  RTE_ETHER_MAX_VLAN_FRAME_LEN,                                            \
		RTE_CACHE_LINE_SIZE)
#define SHARED_ROOM (uint16_t)(2 * PART - RTE_CACHE_LINE_SIZE - sizeof(struct rte_mbuf) - PRIV)

#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			rte_exit(EXIT_FAILURE, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
	} while (0)

/* In an mbuf's private area: whether the application has it, and what was in it then. */
struct note {
	uint32_t mine;
	uint32_t sum;
};

struct held {
	struct rte_mbuf *m[HELD];
	uint64_t freed;
};

static struct rte_mempool *pool, *clones;
static struct rte_ring *to_worker;
static bool worker_ends, broken, reuse;
static uint64_t shared;       /* packets beside another one of their page */
static struct rte_mbuf *last; /* waits for one to be chained with */

static struct note *
note_of(const struct rte_mbuf *m)
{
	return rte_mbuf_to_priv((struct rte_mbuf *)(uintptr_t)m);
}

static uint32_t
sum_of(const struct rte_mbuf *m)
{
	return rte_hash_crc(rte_pktmbuf_mtod(m, const void *), m->data_len, 0);
}

static void
receive(struct rte_mbuf *m)
{
	REQUIRE(m->pool == pool && RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1);
	REQUIRE(m->nb_segs == 1 && m->next == NULL && note_of(m)->mine == 0);
	REQUIRE(!reuse || m->buf_len < SHARED_ROOM);
	shared += reuse && pp_page_of(m) != m;
	note_of(m)->mine = 1;
	note_of(m)->sum = sum_of(m);
}

/* The last look before it goes, of every segment. */
static void
look(struct rte_mbuf *m)
{
	for (; m != NULL; m = m->next) {
		struct rte_mbuf *direct = RTE_MBUF_CLONED(m) ? rte_mbuf_from_indirect(m) : m;

		REQUIRE(note_of(direct)->mine == 1 && note_of(direct)->sum == sum_of(m));
		if (rte_mbuf_refcnt_read(direct) == 1)
			note_of(direct)->mine = 0;
	}
}

static bool
is_plain(const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1;
}

static void
let_go(struct held *held, struct rte_mbuf *m)
{
	const bool plain = is_plain(m);

	look(m);
	held->freed++;
	switch (rte_rand_max(4)) {
	case 0:
		rte_pktmbuf_free_bulk(&m, 1);
		return;
	case 1:
		if (plain) {
			rte_mbuf_raw_free(m);
			return;
		}
		break;
	case 2:
		if (plain) {
			rte_mempool_put(pool, m);
			return;
		}
		break;
	}
	rte_pktmbuf_free(m);
}

/* Put it where another was, which goes. */
static void
hold(struct held *held, struct rte_mbuf *m)
{
	struct rte_mbuf **slot = &held->m[rte_rand_max(HELD)];

	if (*slot != NULL)
		let_go(held, *slot);
	*slot = m;
}

static void
let_all_go(struct held *held)
{
	for (unsigned int i = 0; i < HELD; i++)
		if (held->m[i] != NULL)
			let_go(held, held->m[i]);
	memset(held->m, 0, sizeof(held->m));
}

static int
worker(void *arg)
{
	struct held *held = arg;
	struct rte_mbuf *m;

	while (!__atomic_load_n(&worker_ends, __ATOMIC_ACQUIRE) || rte_ring_count(to_worker) > 0) {
		if (rte_ring_sc_dequeue(to_worker, (void **)&m) == 0)
			hold(held, m);
		else
			sched_yield();
	}
	let_all_go(held);
	return 0;
}

/* Sent packets are not looked at again: their note goes with them. */
static void
transmit(struct held *held, uint16_t port, uint16_t queue, struct rte_mbuf *m, bool fast_free)
{
	if (fast_free && !is_plain(m)) {
		let_go(held, m);
		return;
	}
	look(m);
	if (broken && m->nb_segs == 1 && rte_rand_max(50) == 0)
		m->data_len = 12000; /* the card sends no such frame */
	if (rte_eth_tx_burst(port, queue, &m, 1) != 1)
		rte_pktmbuf_free(m);
}

static void
share(struct held *held, struct rte_mbuf *m)
{
	struct rte_mbuf *clone = rte_pktmbuf_clone(m, rte_rand_max(2) ? clones : pool);

	if (clone != NULL)
		hold(held, clone);
	hold(held, m);
}

static void
treat(struct held *held, uint16_t port, uint16_t queue, struct rte_mbuf *m, bool fast_free)
{
	switch (rte_rand_max(8)) {
	case 0:
	case 1:
		hold(held, m);
		break;
	case 2:
	case 3:
		if (rte_ring_sp_enqueue(to_worker, m) != 0)
			let_go(held, m);
		break;
	case 4:
		share(held, m);
		break;
	case 5:
		if (last == NULL) {
			last = m;
		} else {
			REQUIRE(rte_pktmbuf_chain(last, m) == 0);
			if (rte_rand_max(2))
				hold(held, last);
			else
				transmit(held, port, queue, last, fast_free);
			last = NULL;
		}
		break;
	case 6:
		transmit(held, port, queue, m, fast_free);
		break;
	default:
		let_go(held, m);
	}
}

static void
start(uint16_t port, bool fast_free, bool setup)
{
	struct rte_eth_conf conf = {
		.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS,
		.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP,
		.txmode.offloads = fast_free ? RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE
					     : RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
	};

	if (setup) {
		REQUIRE(rte_eth_dev_configure(port, QUEUES, QUEUES, &conf) == 0);
		for (uint16_t q = 0; q < QUEUES; q++) {
			REQUIRE(rte_eth_rx_queue_setup(port, q, DESC, 0, NULL, pool) == 0);
			REQUIRE(rte_eth_tx_queue_setup(port, q, DESC, 0, NULL) == 0);
		}
	}
	REQUIRE(rte_eth_dev_start(port) == 0);
	REQUIRE(rte_eth_promiscuous_enable(port) == 0);
}

static uint64_t
xstat(uint16_t port, const char *name)
{
	uint64_t id, value;

	REQUIRE(rte_eth_xstats_get_id_by_name(port, name, &id) == 0);
	REQUIRE(rte_eth_xstats_get_by_id(port, &id, &value, 1) == 1);
	return value;
}

/* What must have happened for the test to have tested anything. */
static void
check_counters(uint16_t port, const char *recycle, bool slow)
{
	const uint64_t reused = xstat(port, "rx_cache_reuse"), busy = xstat(port, "rx_cache_busy");
	const uint64_t cached = xstat(port, "rx_pp_recycle_cached");
	const uint64_t fast = xstat(port, "rx_pp_alloc_fast");

	printf("recycle=%s: cache reuse %" PRIu64 " busy %" PRIu64 ", pool cached %" PRIu64
	       " ring %" PRIu64 " fast %" PRIu64 "\n",
		recycle, reused, busy, cached, xstat(port, "rx_pp_recycle_ring"), fast);
	if (strcmp(recycle, "cache") == 0 || strcmp(recycle, "reuse") == 0)
		REQUIRE(busy > 0 && (slow || reused > 0));
	if (strcmp(recycle, "pool") == 0)
		REQUIRE(cached > 0 && fast > 0);
	REQUIRE(!reuse || shared > 0);
	/* the second failure was after a recovery that worked */
	if (broken)
		REQUIRE(xstat(port, "tx_recoveries") > 1 && xstat(port, "tx_errors") > 1);
}

static uint64_t
poll(struct held *held, uint16_t port, bool fast_free, struct rte_mbuf **slow)
{
	struct rte_mbuf *pkts[BURST];
	uint64_t received = 0;

	for (uint16_t q = 0; q < QUEUES; q++) {
		const uint16_t n = rte_eth_rx_burst(port, q, pkts, BURST);

		for (uint16_t i = 0; i < n; i++) {
			receive(pkts[i]);
			if (slow == NULL)
				treat(held, port, q, pkts[i], fast_free);
			else if (slow[q] == NULL)
				slow[q] = pkts[i];
			else
				let_go(held, pkts[i]);
		}
		received += n;
	}
	return received;
}

static void
run(uint16_t port, const char *recycle, unsigned long starts, unsigned long packets, bool slow)
{
	static struct held here, there;
	struct rte_mbuf *slowest[QUEUES] = {NULL};
	const unsigned int lcore = rte_get_next_lcore(-1, 1, 0);

	REQUIRE(lcore < RTE_MAX_LCORE);
	REQUIRE(rte_eal_remote_launch(worker, &there, lcore) == 0);
	for (unsigned long i = 0; i < starts; i++) {
		/* FAST_FREE and what it forbids take turns */
		const bool fast_free = i / 2 % 2;
		uint64_t received = 0;

		start(port, fast_free, i % 2 == 0);
		while (received < packets)
			received += poll(&here, port, fast_free, slow ? slowest : NULL);
		if (i + 1 == starts)
			check_counters(port, recycle, slow);
		REQUIRE(rte_eth_dev_stop(port) == 0);
	}
	REQUIRE(rte_eth_dev_close(port) == 0);
	for (uint16_t q = 0; q < QUEUES; q++)
		if (slowest[q] != NULL)
			let_go(&here, slowest[q]);
	if (last != NULL)
		let_go(&here, last);
	let_all_go(&here);
	__atomic_store_n(&worker_ends, true, __ATOMIC_RELEASE);
	rte_eal_mp_wait_lcore();
	printf("freed %" PRIu64 " here and %" PRIu64 " there\n", here.freed, there.freed);
}

int
main(int argc, char **argv)
{
	const int skip = rte_eal_init(argc, argv);

	REQUIRE(skip >= 0 && argc - skip >= 4);
	argv += skip;
	reuse = strcmp(argv[1], "reuse") == 0;
	pool = rte_pktmbuf_pool_create_by_ops("packets", POOL, 0, PRIV,
		reuse ? SHARED_ROOM : RTE_MBUF_DEFAULT_BUF_SIZE, 0, PP_MEMPOOL_OPS_NAME);
	clones = rte_pktmbuf_pool_create("clones", POOL, 0, PRIV, 0, 0);
	to_worker = rte_ring_create("to_worker", 1024, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	REQUIRE(pool != NULL && clones != NULL && to_worker != NULL);
	broken = argc - skip > 4 && strcmp(argv[4], "broken") == 0;
	run(0, argv[1], strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10),
		argc - skip > 4 && strcmp(argv[4], "slow") == 0);
	if (rte_mempool_in_use_count(pool) != 0 || rte_mempool_in_use_count(clones) != 0)
		rte_exit(EXIT_FAILURE, "%u buffers and %u clones are away\n",
			rte_mempool_in_use_count(pool), rte_mempool_in_use_count(clones));
	rte_mempool_free(pool);
	rte_mempool_free(clones);
	rte_eal_cleanup();
	return 0;
}
