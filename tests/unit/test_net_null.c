/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets through DPDK's net_null: RX refill, forwarding, exhaustion and recovery. */

#include <errno.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "mempool_unit.h"
#include "worker.h"

#define BURST       32
#define DESCRIPTORS 512
#define MBUFS       2000u
#define FRAME       64 /* net_null's packets */

/* Ways to make a pool. */
struct kind {
	const char *name;
	unsigned int cache_size; /* of ops pagepool */
	bool pages;              /* a page pool */
	enum pcp_mode mode;
};

static const struct kind kinds[] = {
	{"pagepool", 0, false, PCP_MODE_BH},
	{"pagepool under a cache", 256, false, PCP_MODE_BH},
	{"pages bh", 0, true, PCP_MODE_BH},
	{"pages spin", 0, true, PCP_MODE_SPIN},
	{"pages bypass", 0, true, PCP_MODE_BYPASS},
};

static struct rte_mempool *mp;
static uint16_t port[2];
static unsigned int n_leaked; /* blocks of EAL's heap, by net_null: two for each port */

static void
open_pool(const struct kind *kind)
{
	if (kind->pages) {
		const struct pp_pktmbuf_config config = {
			.backend = PP_BACKEND_ANON, .pcp.mode = kind->mode};

		mp = pp_pktmbuf_pool_create(
			"mp", MBUFS, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY, &config);
	} else {
		mp = rte_pktmbuf_pool_create_by_ops("mp", MBUFS, kind->cache_size, 0,
			RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY, PP_MEMPOOL_OPS_NAME);
	}
	assert_non_null(mp);
}

/* Also what makes it a leak test: every buffer is back when the ports have stopped. */
static void
close_pool(void)
{
	assert_at_home(mp, MBUFS);
	exercise(mp, MBUFS);
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
}

/* copy=1: net_null writes into the buffers, and copies out of those it sends. */
static void
open_port(uint16_t i, const char *args)
{
	const struct rte_eth_conf conf = {0};
	char name[16];

	snprintf(name, sizeof(name), "net_null%u", i);
	assert_int_equal(rte_eal_hotplug_add("vdev", name, args), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(name, &port[i]), 0);
	assert_int_equal(rte_eth_dev_configure(port[i], 1, 1, &conf), 0);
	assert_int_equal(
		rte_eth_rx_queue_setup(port[i], 0, DESCRIPTORS, SOCKET_ID_ANY, NULL, mp), 0);
	assert_int_equal(rte_eth_tx_queue_setup(port[i], 0, DESCRIPTORS, SOCKET_ID_ANY, NULL), 0);
	assert_int_equal(rte_eth_dev_start(port[i]), 0);
}

static void
close_port(uint16_t i)
{
	char name[16];

	snprintf(name, sizeof(name), "net_null%u", i);
	assert_int_equal(rte_eth_dev_stop(port[i]), 0);
	assert_int_equal(rte_eal_hotplug_remove("vdev", name), 0);
	n_leaked += 2;
}

static struct rte_eth_stats
port_stats(uint16_t i)
{
	struct rte_eth_stats stats;

	assert_int_equal(rte_eth_stats_get(port[i], &stats), 0);
	return stats;
}

static void
assert_is_a_packet(const struct rte_mbuf *mbuf)
{
	const char *reason;

	assert_int_equal(rte_mbuf_check(mbuf, 1, &reason), 0);
	assert_ptr_equal(mbuf->pool, mp);
	assert_int_equal(rte_mbuf_refcnt_read(mbuf), 1);
	assert_int_equal(mbuf->nb_segs, 1);
	assert_int_equal(rte_pktmbuf_pkt_len(mbuf), FRAME);
	assert_int_equal(rte_pktmbuf_headroom(mbuf), RTE_PKTMBUF_HEADROOM);
}

/* Inside a section, as a poll loop is; the driver's own calls find the same cache. */
static uint16_t
rx_in_a_section(struct rte_mbuf **packet)
{
	struct pcp *pcp = pcp_this(pp_mempool_cache(mp));

	pcp_bh_disable(pcp);
	const uint16_t n = rte_eth_rx_burst(port[0], 0, packet, BURST);

	pcp_bh_enable(pcp);
	return n;
}

/* ---- tests, for each kind of pool ---- */

static void
rx_refills(const struct kind *kind)
{
	open_pool(kind);
	open_port(0, "copy=1");
	for (unsigned int round = 0; round < 500; round++) {
		struct rte_mbuf *packet[BURST];
		const uint16_t n = round % 2 == 0 ? rte_eth_rx_burst(port[0], 0, packet, BURST)
						  : rx_in_a_section(packet);

		assert_int_equal(n, BURST);
		for (unsigned int i = 0; i < n; i++) {
			assert_is_a_packet(packet[i]);
			memset(rte_pktmbuf_mtod(packet[i], void *), 0x5a, FRAME);
		}
		assert_int_equal(rte_mempool_in_use_count(mp), BURST);
		rte_pktmbuf_free_bulk(packet, n);
	}
	assert_int_equal(port_stats(0).ipackets, 500 * BURST);
	assert_int_equal(port_stats(0).rx_nombuf, 0);
	close_port(0);
	close_pool();
}

/* From one port to the other, and what does not go out is dropped by hand. */
static void
forwards(const struct kind *kind)
{
	uint64_t received = 0, sent = 0;

	open_pool(kind);
	open_port(0, "");
	open_port(1, "copy=1");
	for (unsigned int round = 0; round < 2000; round++) {
		struct rte_mbuf *packet[BURST];
		const uint16_t n = rte_eth_rx_burst(port[round % 2], 0, packet, BURST);
		const uint16_t k = rte_eth_tx_burst(port[1 - round % 2], 0, packet, n);

		received += n;
		sent += k;
		rte_pktmbuf_free_bulk(packet + k, n - k);
	}
	assert_int_equal(received, 2000 * BURST);
	assert_int_equal(sent, received);
	assert_int_equal(port_stats(0).ipackets + port_stats(1).ipackets, received);
	assert_int_equal(port_stats(0).opackets + port_stats(1).opackets, sent);
	close_port(0);
	close_port(1);
	close_pool();
}

static uint64_t
failed_calls(void)
{
	struct pcp_stats stats;

	pcp_cache_get_stats(pp_mempool_cache(mp), &stats);
	return stats.failed;
}

/* net_null does not count packets that found no buffer: rx_nombuf stays 0, our counter does not. */
static void
runs_dry_and_recovers(const struct kind *kind)
{
	struct rte_mbuf *held[MBUFS], *packet[BURST];

	open_pool(kind);
	open_port(0, "copy=1");
	for (unsigned int round = 0; round < 5; round++) {
		const uint64_t failed = failed_calls();
		unsigned int n = 0;

		while (n < MBUFS) {
			const uint16_t wanted = (uint16_t)RTE_MIN((unsigned int)BURST, MBUFS - n);

			assert_int_equal(rte_eth_rx_burst(port[0], 0, held + n, wanted), wanted);
			n += wanted;
		}
		assert_int_equal(rte_mempool_avail_count(mp), 0);
		assert_int_equal(rte_eth_rx_burst(port[0], 0, packet, BURST), 0);
		assert_int_equal(rx_in_a_section(packet), 0);
		assert_true(failed_calls() >= failed + 2);
		for (unsigned int i = 0; i < n; i++)
			assert_is_a_packet(held[i]);

		/* less than a burst is not enough, one more is */
		rte_pktmbuf_free_bulk(held, BURST - 1);
		assert_int_equal(rte_eth_rx_burst(port[0], 0, packet, BURST), 0);
		assert_int_equal(rte_mempool_avail_count(mp), BURST - 1);
		rte_pktmbuf_free(held[BURST - 1]);
		assert_int_equal(rte_eth_rx_burst(port[0], 0, packet, BURST), BURST);
		rte_pktmbuf_free_bulk(packet, BURST);
		rte_pktmbuf_free_bulk(held + BURST, MBUFS - BURST);
		assert_int_equal(rte_mempool_in_use_count(mp), 0);
	}
	close_port(0);
	close_pool();
}

/* ---- RX here, TX there ---- */

static struct rte_mbuf *moving[MBUFS];
static unsigned int n_moving;

static void
receive_all(void *arg)
{
	(void)arg;
	for (n_moving = 0; n_moving + BURST <= MBUFS; n_moving += BURST)
		assert_int_equal(rte_eth_rx_burst(port[0], 0, moving + n_moving, BURST), BURST);
}

static void
send_all(void *arg)
{
	(void)arg;
	while (n_moving > 0) {
		n_moving -= BURST;
		assert_int_equal(rte_eth_tx_burst(port[0], 0, moving + n_moving, BURST), BURST);
	}
}

/* The whole pool, every time: what TX has freed on the other lcore must come back to RX. */
static void
receives_here_and_sends_there(const struct kind *kind)
{
	struct worker *other = worker_start(true);

	open_pool(kind);
	if (kind->cache_size == 0) { /* objects in another lcore's mempool cache cannot */
		open_port(0, "");
		for (unsigned int round = 0; round < 20; round++) {
			receive_all(NULL);
			worker_do(other, send_all, NULL);
			worker_do(other, receive_all, NULL);
			send_all(NULL);
		}
		close_port(0);
	}
	close_pool();
	worker_end(other, true);
}

static struct unit_resources before;

static void
remember_resources(void)
{
	unit_resources_get(&before);
	n_leaked = 0;
}

static void
assert_ports_and_pools_are_gone(void)
{
	before.heap_blocks += n_leaked;
	assert_nothing_left(&before);
}

static void
each_kind(void (*test)(const struct kind *kind))
{
	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		remember_resources();
		test(&kinds[i]);
		assert_ports_and_pools_are_gone();
	}
}

static void
rx_refills_from_every_kind_of_pool(void **state)
{
	(void)state;
	each_kind(rx_refills);
}

static void
every_kind_of_pool_forwards(void **state)
{
	(void)state;
	each_kind(forwards);
}

static void
every_kind_of_pool_runs_dry_and_recovers(void **state)
{
	(void)state;
	each_kind(runs_dry_and_recovers);
}

static void
rx_gets_back_what_another_lcore_sent(void **state)
{
	(void)state;
	each_kind(receives_here_and_sends_there);
}

static void
open_and_close(const struct kind *kind)
{
	struct rte_mbuf *packet[BURST];

	open_pool(kind);
	open_port(0, "");
	assert_int_equal(rte_eth_rx_burst(port[0], 0, packet, BURST), BURST);
	close_port(0);
	assert_int_equal(pp_pktmbuf_pool_free(mp), -EBUSY);
	rte_pktmbuf_free_bulk(packet, BURST);
	assert_int_equal(pp_pktmbuf_pool_free(mp), 0);
}

static void
ports_come_and_go(void **state)
{
	(void)state;
	remember_resources();
	for (unsigned int i = 0; i < 200; i++)
		open_and_close(&kinds[i % RTE_DIM(kinds)]);
	assert_ports_and_pools_are_gone();
}

/* What the first port, pool and thread leave for those to come. */
static int
warm_up(void **state)
{
	(void)state;
	open_and_close(&kinds[0]);
	worker_end(worker_start(true), true);
	return 0;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rx_refills_from_every_kind_of_pool),
		cmocka_unit_test(every_kind_of_pool_forwards),
		cmocka_unit_test(every_kind_of_pool_runs_dry_and_recovers),
		cmocka_unit_test(rx_gets_back_what_another_lcore_sent),
		cmocka_unit_test(ports_come_and_go),
	};

	if (!mempool_unit_init(argc, argv))
		return 77;
	return cmocka_run_group_tests(tests, warm_up, NULL);
}
