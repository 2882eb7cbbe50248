/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an application may ask of a port that most do not, on port 0:
 *	port_calls EAL-ARGUMENT... -- CASE...
 * Each case sets the port up anew; all buffers must be in their pool when it ends.
 */

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include <pp_mempool.h>
#include <pp_share.h>

#include "../require.h"

#define BURST 32
#define DESC  64
#define POOL  4096

static struct rte_mempool *pool;

static struct rte_mempool *
make_pool_named(const char *name, uint16_t data_room)
{
	struct rte_mempool *mp = rte_pktmbuf_pool_create_by_ops(name, POOL, 0, 0,
		(uint16_t)(data_room + RTE_PKTMBUF_HEADROOM), 0, PP_MEMPOOL_OPS_NAME);

	require(mp != NULL);
	return mp;
}

static struct rte_mempool *
make_pool(uint16_t data_room)
{
	return make_pool_named("packets", data_room);
}

static void
configure(uint64_t rx_offloads)
{
	const struct rte_eth_conf conf = {.rxmode.offloads = rx_offloads};

	require(rte_eth_dev_configure(0, 1, 1, &conf) == 0);
}

static void
set_up(uint64_t rx_offloads)
{
	configure(rx_offloads);
	require(rte_eth_rx_queue_setup(0, 0, DESC, 0, NULL, pool) == 0);
	require(rte_eth_tx_queue_setup(0, 0, DESC, 0, NULL) == 0);
}

static void
start(void)
{
	require(rte_eth_dev_start(0) == 0);
	require(rte_eth_promiscuous_enable(0) == 0);
}

static uint64_t
xstat(const char *name)
{
	uint64_t id, value;

	require(rte_eth_xstats_get_id_by_name(0, name, &id) == 0);
	require(rte_eth_xstats_get_by_id(0, &id, &value, 1) == 1);
	return value;
}

/* Receive so many packets, and free them. */
static void
receive(uint64_t want)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t n;

	for (uint64_t got = 0; got < want; got += n) {
		n = rte_eth_rx_burst(0, 0, pkts, BURST);
		rte_pktmbuf_free_bulk(pkts, n);
	}
}

static void *
receive_1000(void *unused)
{
	receive(1000);
	return unused;
}

/* A thread that EAL does not know owns no cache, even if it polls: there may be several. */
static void
foreign_thread(void)
{
	pthread_t thread;

	set_up(0);
	start();
	const uint64_t cached = xstat("rx_pp_recycle_cached");

	require(pthread_create(&thread, NULL, receive_1000, NULL) == 0);
	require(pthread_join(thread, NULL) == 0);
	require(xstat("rx_pp_recycle_cached") == cached);
	require(xstat("rx_pp_recycle_ring") > 0);
	require(rte_eth_dev_stop(0) == 0);
}

/* The pool's buffers are not where those of others are. */
static void
pinned_buffers(void)
{
	const uint16_t size = 2048;
	struct rte_pktmbuf_extmem memory = {
		.buf_ptr = rte_malloc(NULL, (size_t)POOL * size, RTE_CACHE_LINE_SIZE),
		.buf_len = (size_t)POOL * size,
		.elt_size = size,
	};

	require(memory.buf_ptr != NULL);
	memory.buf_iova = rte_malloc_virt2iova(memory.buf_ptr);
	struct rte_mempool *mp =
		rte_pktmbuf_pool_create_extbuf("pinned", POOL / 2, 0, 0, size, 0, &memory, 1);

	require(mp != NULL);
	configure(0);
	require(rte_eth_rx_queue_setup(0, 0, DESC, 0, NULL, mp) == -ENOTSUP);
	rte_mempool_free(mp);
	rte_free(memory.buf_ptr);
}

static void
missing_queue(void)
{
	const struct rte_eth_conf conf = {.rxmode.offloads = 0};

	require(rte_eth_dev_configure(0, 2, 2, &conf) == 0);
	require(rte_eth_rx_queue_setup(0, 0, DESC, 0, NULL, pool) == 0);
	require(rte_eth_dev_start(0) == -EINVAL);
	require(rte_eth_rx_queue_setup(0, 1, DESC, 0, NULL, pool) == 0);
	require(rte_eth_tx_queue_setup(0, 1, DESC, 0, NULL) == 0);
	require(rte_eth_dev_start(0) == -EINVAL);
	require(rte_eth_tx_queue_setup(0, 0, DESC, 0, NULL) == 0);
	require(rte_eth_dev_start(0) == 0);
	require(rte_eth_dev_stop(0) == 0);
}

static void
send_frames(uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		require(m != NULL);
		memset(rte_pktmbuf_append(m, 64), 0xff, 64);
		while (rte_eth_tx_burst(0, 0, &m, 1) == 0)
			;
	}
}

/* The packets that were sent, whether a queue runs or not. */
static void
cleanup(void)
{
	const struct rte_eth_txconf deferred = {.tx_deferred_start = 1};
	int freed = 0;

	set_up(0);
	require(rte_eth_tx_queue_setup(0, 0, DESC, 0, &deferred) == 0);
	require(rte_eth_tx_done_cleanup(0, 0, 0) == 0);
	start();
	require(rte_eth_tx_done_cleanup(0, 0, 0) == 0);
	for (unsigned int i = 0; i < 2; i++) {
		require(rte_eth_dev_tx_queue_start(0, 0) == 0);
		send_frames(7);
		for (freed = 0; freed < 7;) {
			const int n = rte_eth_tx_done_cleanup(0, 0, 0);

			require(n >= 0);
			freed += n;
		}
		require(freed == 7);
		send_frames(7);
		require(rte_eth_dev_tx_queue_stop(0, 0) == 0);
		require(rte_eth_tx_done_cleanup(0, 0, 0) == 0);
	}
	require(rte_eth_dev_stop(0) == 0);
	require(rte_eth_tx_done_cleanup(0, 0, 0) == 0);
}

/* Frames of two buffers, one slow consumer, and a pool that has but one. */
static void
starving(void)
{
	static struct rte_mbuf *kept[POOL];
	struct rte_mbuf *slow = NULL;
	unsigned int n = 0;

	rte_mempool_free(pool);
	pool = make_pool(1024);
	set_up(RTE_ETH_RX_OFFLOAD_SCATTER);
	start();
	while (slow == NULL)
		rte_eth_rx_burst(0, 0, &slow, 1);
	while (n < POOL && (kept[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	require(n > 0);
	rte_pktmbuf_free(kept[--n]);
	require(rte_eth_dev_set_mtu(0, 4000) == -EBUSY);
	receive(10 * DESC);
	require(xstat("rx_cache_behind_head") > 0);
	rte_pktmbuf_free(slow);
	rte_pktmbuf_free_bulk(kept, n);
	require(rte_eth_dev_stop(0) == 0);
}

/* Counters do not lose their base with the queue that counted. */
static void
counters(void)
{
	static const char *const names[] = {"rx_cache_empty", "rx_cache_reuse", "rx_pp_alloc_fast",
		"rx_pp_alloc_slow", "rx_pp_recycle_cached", "rx_pp_recycle_ring", "tx_bad_frame"};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint64_t before[RTE_DIM(names)];

	require(m != NULL);
	set_up(0);
	start();
	receive(1000);
	rte_pktmbuf_append(m, 1); /* too short */
	require(rte_eth_tx_burst(0, 0, &m, 1) == 1);
	require(xstat("tx_bad_frame") == 1);
	require(rte_eth_xstats_reset(0) == 0);
	receive(1000);
	require(rte_eth_dev_stop(0) == 0);
	for (unsigned int i = 0; i < RTE_DIM(names); i++)
		before[i] = xstat(names[i]);
	for (unsigned int turn = 0; turn < 3; turn++) {
		set_up(0);
		for (unsigned int i = 0; i < RTE_DIM(names); i++)
			require(xstat(names[i]) == before[i]);
	}
}

/* The pool goes before the port does. */
static void
pool_first(void)
{
	set_up(0);
	start();
	receive(1000);
	require(rte_eth_dev_stop(0) == 0);
	rte_mempool_free(pool);
	pool = make_pool(2048);
	require(rte_eth_dev_start(0) == -EINVAL);
	set_up(0);
	start();
	receive(1000);
	require(rte_eth_dev_stop(0) == 0);
	rte_mempool_free(pool);
	pool = NULL;
}

static void
keep(void *addr __rte_unused, void *unused __rte_unused)
{
}

/* Exchange a packet's buffer for another one, and free it. */
static void
attach_and_free(struct rte_mbuf *m)
{
	static uint8_t memory[256] __rte_cache_aligned;
	uint16_t len = sizeof(memory);
	struct rte_mbuf_ext_shared_info *shared =
		rte_pktmbuf_ext_shinfo_init_helper(memory, &len, keep, NULL);

	rte_pktmbuf_attach_extbuf(m, memory, 0, len, shared);
	rte_pktmbuf_free(m);
}

static void
receive_one(struct rte_mbuf **m)
{
	while (rte_eth_rx_burst(0, 0, m, 1) == 0)
		;
}

/* Two packets to a page: so the ring has half as many pages as packets, and one keeps its page. */
static void
shared(void)
{
	struct rte_mbuf *kept[4 * DESC], *m;
	unsigned int n_kept = 0, n_seconds = 0;

	rte_mempool_free(pool);
	pool = make_pool(3520 - RTE_PKTMBUF_HEADROOM);
	set_up(0);
	for (unsigned int turn = 0; turn < 2; turn++) {
		start();
		require(rte_mempool_in_use_count(pool) == DESC / 2 + n_kept);
		for (unsigned int i = 0; i < 20 * DESC; i++) {
			receive_one(&m);
			require(m->buf_len >= RTE_PKTMBUF_HEADROOM + 1522 && m->buf_len < 3520 / 2);
			n_seconds += pp_page_of(m) != m;
			attach_and_free(m);
		}
		require(n_seconds == (turn + 1) * 20 * DESC / 2);
		require(xstat("rx_cache_reuse") > 0);
		require(rte_mempool_in_use_count(pool) <= DESC / 2 + 256 + n_kept);
		/* one of each page, from a queue that lets go of them */
		while (n_kept < (turn + 1) * 2 * DESC) {
			receive_one(&m);
			if (pp_page_of(m) == m)
				kept[n_kept++] = m;
			else
				rte_pktmbuf_free(m);
		}
		require(rte_eth_dev_stop(0) == 0);
		require(rte_mempool_in_use_count(pool) == n_kept);
	}
	rte_pktmbuf_free_bulk(kept, n_kept);
	require(rte_mempool_in_use_count(pool) == 0);
	require(rte_pktmbuf_alloc_bulk(pool, kept, RTE_DIM(kept)) == 0);
	for (unsigned int i = 0; i < RTE_DIM(kept); i++)
		require(kept[i]->buf_len == 3520);
	rte_pktmbuf_free_bulk(kept, RTE_DIM(kept));
	/* two frames of this size do not fit */
	require(rte_eth_dev_set_mtu(0, 3000) == 0);
	start();
	require(rte_mempool_in_use_count(pool) == DESC);
	receive_one(&m);
	require(m->buf_len == 3520);
	rte_pktmbuf_free(m);
	require(rte_eth_dev_stop(0) == 0);
	require(rte_eth_dev_set_mtu(0, 1500) == 0);
}

/* From memory of no pool: a range of its own, which outlives that of a pool beside it. */
static void
external_buffer(void)
{
	const uint16_t size = 2048;
	uint8_t *memory = rte_zmalloc(NULL, size, RTE_CACHE_LINE_SIZE);

	require(memory != NULL);
	for (unsigned int turn = 0; turn < 3; turn++) {
		uint16_t len = size;
		struct rte_mbuf_ext_shared_info *shared =
			rte_pktmbuf_ext_shinfo_init_helper(memory, &len, keep, NULL);
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		require(shared != NULL && m != NULL);
		rte_pktmbuf_attach_extbuf(m, memory, rte_malloc_virt2iova(memory), len, shared);
		require(rte_pktmbuf_append(m, 64) != NULL);
		set_up(0);
		start();
		require(rte_eth_tx_burst(0, 0, &m, 1) == 1);
		send_frames(7);
		require(rte_eth_dev_stop(0) == 0);
		require(xstat("tx_no_mr") == 0);
		/* the page once; the pool's own is there as one to receive into */
		require(xstat("tx_mr_registered") == 1);
		require(rte_mempool_in_use_count(pool) == 0);
		rte_mempool_free(pool);
		pool = make_pool(2048);
	}
	rte_free(memory);
}

/* The card takes it. */
static void
send_one(struct rte_mbuf *m)
{
	require(rte_eth_tx_burst(0, 0, &m, 1) == 1);
	require(xstat("tx_errors") == 0);
	while (rte_eth_tx_done_cleanup(0, 0, 0) == 0)
		;
	require(xstat("tx_errors") == 0);
}

/* A buffer does not end where its hugepage does. */
static void
crossing_buffer(void)
{
	const size_t page = RTE_PGSIZE_2M;
	uint8_t *memory = rte_malloc(NULL, 2 * page, 0);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint16_t len = 2048;

	require(memory != NULL && m != NULL);
	uint8_t *begin = RTE_PTR_ALIGN_CEIL(memory + 256, page) - 256;
	struct rte_mbuf_ext_shared_info *shared =
		rte_pktmbuf_ext_shinfo_init_helper(begin, &len, keep, NULL);

	rte_pktmbuf_attach_extbuf(m, begin, rte_mem_virt2iova(begin), len, shared);
	memset(rte_pktmbuf_append(m, 1000), 0xff, 1000);
	set_up(0);
	start();
	send_one(m);
	require(rte_eth_dev_stop(0) == 0);
	rte_free(memory);
}

/* Without a queue to receive there is nothing to spread. */
static void
only_sending(void)
{
	const struct rte_eth_conf conf = {.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS};
	struct rte_eth_rss_conf rss = {.rss_hf = RTE_ETH_RSS_IP};

	require(rte_eth_dev_configure(0, 0, 1, &conf) == 0);
	require(rte_eth_tx_queue_setup(0, 0, DESC, 0, NULL) == 0);
	start();
	require(rte_eth_dev_rss_hash_update(0, &rss) == 0);
	send_frames(7);
	require(rte_eth_dev_stop(0) == 0);
}

/* Two frames share a buffer of one queue, and one takes two of the other: one function for both. */
static void
mixed_queues(void)
{
	const struct rte_eth_conf conf = {.rxmode.offloads = RTE_ETH_RX_OFFLOAD_SCATTER};
	struct rte_mempool *small = make_pool_named("small", 1024);
	struct rte_mbuf *m;

	rte_mempool_free(pool);
	pool = make_pool(3520 - RTE_PKTMBUF_HEADROOM);
	require(rte_eth_dev_configure(0, 2, 1, &conf) == 0);
	require(rte_eth_rx_queue_setup(0, 0, DESC, 0, NULL, pool) == 0);
	require(rte_eth_rx_queue_setup(0, 1, DESC, 0, NULL, small) == 0);
	require(rte_eth_tx_queue_setup(0, 0, DESC, 0, NULL) == 0);
	start();
	for (unsigned int i = 0; i < 20 * DESC; i++) {
		receive_one(&m);
		require(m->buf_len < 3520 / 2);
		attach_and_free(m);
	}
	require(rte_eth_dev_stop(0) == 0);
	rte_mempool_free(small);
}

/* A send queue whose start is refused half way starts the next time. */
static void
tx_start_refused(void)
{
	set_up(0);
	start();
	require(rte_eth_dev_tx_queue_stop(0, 0) == 0);
	require(rte_eth_dev_tx_queue_start(0, 0) == -EIO);
	require(rte_eth_dev_tx_queue_start(0, 0) == 0);
	send_frames(7);
	require(rte_eth_dev_stop(0) == 0);
}

/* What the card's interface says; false: there is none. */
static bool
ask_netdev(unsigned long what, struct ifreq *request)
{
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct rte_eth_dev_info info;

	require(fd >= 0 && rte_eth_dev_info_get(0, &info) == 0);
	if (info.if_index != 0) {
		require(if_indextoname(info.if_index, request->ifr_name) != NULL);
		require(ioctl(fd, what, request) == 0);
	}
	close(fd);
	return info.if_index != 0;
}

/* Its address is the port's, whatever the first GID is made of. */
static void
address(void)
{
	struct rte_ether_addr mac;
	struct ifreq request;

	require(ask_netdev(SIOCGIFHWADDR, &request));
	require(rte_eth_macaddr_get(0, &mac) == 0);
	require(memcmp(&mac, request.ifr_hwaddr.sa_data, sizeof(mac)) == 0);
}

/* It takes frames of the length that was configured. */
static void
long_frames(void)
{
	const struct rte_eth_conf conf = {
		.rxmode.mtu = 4000, .rxmode.offloads = RTE_ETH_RX_OFFLOAD_SCATTER};
	struct ifreq request;

	require(rte_eth_dev_configure(0, 1, 1, &conf) == 0);
	require(rte_eth_rx_queue_setup(0, 0, DESC, 0, NULL, pool) == 0);
	require(rte_eth_tx_queue_setup(0, 0, DESC, 0, NULL) == 0);
	start();
	require(!ask_netdev(SIOCGIFMTU, &request) || request.ifr_mtu == 4000);
	require(rte_eth_dev_stop(0) == 0);
}

/* The card does not reset a queue: its buffers are nobody else's before it is destroyed. */
static void
rx_reset_refused(void)
{
	static struct rte_mbuf *all[POOL];
	unsigned int n = 0;

	set_up(0);
	start();
	receive(1000);
	require(rte_eth_dev_rx_queue_stop(0, 0) == -EIO);
	while (n < POOL && (all[n] = rte_pktmbuf_alloc(pool)) != NULL) {
		memset(all[n]->buf_addr, 0x5a, all[n]->buf_len);
		n++;
	}
	require(n > 0 && n < POOL - DESC / 2);
	rte_delay_ms(20);
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int k = 0; k < all[i]->buf_len; k++)
			require(((uint8_t *)all[i]->buf_addr)[k] == 0x5a);
	rte_pktmbuf_free_bulk(all, n);
	/* and the queue is as it was */
	receive(1000);
	require(rte_eth_dev_stop(0) == 0);
}

static void
tx_reset_refused(void)
{
	set_up(0);
	start();
	for (unsigned int turn = 1; turn <= 2; turn++) {
		send_frames(4);
		require(rte_mempool_in_use_count(pool) == DESC + 4 * turn);
		require(rte_eth_dev_tx_queue_stop(0, 0) == -EIO);
		require(rte_mempool_in_use_count(pool) == DESC + 4 * turn);
	}
	require(rte_eth_dev_stop(0) == 0);
}

/* Nor is it destroyed: what the card may use for ever is lost, and nothing else. */
static void
destroy_refused(void)
{
	set_up(0);
	start();
	receive(1000);
	send_frames(4);
	require(rte_eth_dev_stop(0) == 0);
	const unsigned int lost = rte_mempool_in_use_count(pool);

	require(lost >= 4 + DESC / 2 && lost <= 4 + DESC);
	/* again, on new queues; the pool stays */
	set_up(0);
	start();
	receive(1000);
	require(rte_eth_dev_stop(0) == 0);
	require(rte_mempool_in_use_count(pool) > lost);
	pool = NULL;
}

/* Queues fail, and do not start anew at the first attempt. */
static void
recovery_refused(void)
{
	set_up(0);
	start();
	for (unsigned int turn = 0; turn < 5; turn++) {
		receive(1000);
		send_frames(200);
	}
	require(xstat("rx_recoveries") > 3 && xstat("tx_recoveries") > 3);
	require(rte_eth_dev_stop(0) == 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"foreign_thread", foreign_thread},
	{"pinned_buffers", pinned_buffers},
	{"missing_queue", missing_queue},
	{"cleanup", cleanup},
	{"starving", starving},
	{"shared", shared},
	{"counters", counters},
	{"external_buffer", external_buffer},
	{"crossing_buffer", crossing_buffer},
	{"only_sending", only_sending},
	{"mixed_queues", mixed_queues},
	{"tx_start_refused", tx_start_refused},
	{"long_frames", long_frames},
	{"address", address},
	{"pool_first", pool_first},
	{"rx_reset_refused", rx_reset_refused},
	{"tx_reset_refused", tx_reset_refused},
	{"recovery_refused", recovery_refused},
	{"destroy_refused", destroy_refused},
};

static void
run(const char *name)
{
	unsigned int i = 0;

	while (i < RTE_DIM(cases) && strcmp(name, cases[i].name) != 0)
		i++;
	require(i < RTE_DIM(cases));
	if (pool == NULL)
		pool = make_pool(2048);
	cases[i].run();
	require(pool == NULL || rte_mempool_in_use_count(pool) == 0);
	printf("%s: as it should be\n", name);
}

int
main(int argc, char **argv)
{
	const int skip = rte_eal_init(argc, argv);

	require(skip >= 0 && argc - skip > 1);
	for (int i = skip + 1; i < argc; i++)
		run(argv[i]);
	require(rte_eth_dev_close(0) == 0);
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return 0;
}
