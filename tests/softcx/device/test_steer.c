/* SPDX-License-Identifier: BSD-3-Clause */
/* Steering: the hash, its spread and symmetry, and which flow wins. */

#include <endian.h>

#include "device/steer.h"
#include "rig.h"

#define IPV4 (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4)
#define UDP  (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)

/* The key and the first pair of addresses that the inventors of the scheme published. */
static const uint8_t published_key[SOFTCX_RSS_KEY_LEN] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e,
	0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b,
	0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe,
	0xac, 0x01, 0xfa};

static uint32_t
hash_of(uint32_t src, uint32_t dst, uint16_t sport, uint16_t dport, uint64_t fields)
{
	struct cx_packet packet;
	uint8_t frame[64], type;
	uint32_t hash;

	rig_udp(frame, src, dst, sport, dport, 60);
	cx_packet_parse(&packet, frame, 60, 60);
	assert_true(cx_rss_hash(&packet, fields, published_key, &hash, &type));
	assert_true(type != 0);
	return hash;
}

static void
published_hash(void **state)
{
	(void)state;
	/* the smaller address and port come first in it already */
	assert_int_equal(hash_of(0x420995bb, 0xa18e6450, 1766, 2794, IPV4), 0x323e8fc2);
	assert_int_equal(hash_of(0x0c16cfb8, 0x8aca8f1c, 1, 2, IPV4),
		hash_of(0x8aca8f1c, 0x0c16cfb8, 1, 2, IPV4));
}

static void
symmetric(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		const uint32_t a = i * 2654435761u, b = i * 40503u + 77;
		const uint16_t p = (uint16_t)(i * 31), q = (uint16_t)(i * 57 + 1);

		assert_int_equal(hash_of(a, b, p, q, IPV4 | UDP), hash_of(b, a, q, p, IPV4 | UDP));
	}
	/* but only of what is asked for in pairs */
	assert_int_not_equal(hash_of(1, 2, 3, 4, IBV_RX_HASH_SRC_IPV4),
		hash_of(2, 1, 3, 4, IBV_RX_HASH_SRC_IPV4));
	assert_int_equal(hash_of(1, 2, 3, 4, IBV_RX_HASH_SRC_IPV4),
		hash_of(1, 9, 8, 7, IBV_RX_HASH_SRC_IPV4));
}

static void
nothing_to_hash(void **state)
{
	struct cx_packet packet;
	uint8_t frame[64], type;
	uint32_t hash = 1;

	(void)state;
	rig_udp(frame, 1, 2, 3, 4, 60);
	cx_packet_parse(&packet, frame, 60, 60);
	assert_false(cx_rss_hash(&packet, IBV_RX_HASH_SRC_IPV6, published_key, &hash, &type));
	assert_int_equal(hash, 0);
}

/* Many streams over 8 queues: each gets its part, and every CQE names the hash that led to it. */
static void
spread(void **state)
{
	enum { QUEUES = 8, STREAMS = 1024, ROUNDS = 4 };
	struct rig rig;
	struct rig_cq cq[QUEUES];
	struct rig_rq rq[QUEUES];
	struct rig_rss rss;
	unsigned int total = 0;

	(void)state;
	rig_init(&rig);
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.streams = STREAMS;
	rig.config.packets = STREAMS * ROUNDS;
	rig_start(&rig);
	for (int q = 0; q < QUEUES; q++) {
		rig_cq_create(&rig, &cq[q], 1024);
		rig_rq_create(&rig, &rq[q], &cq[q], 1024, 1);
		rig_rq_ready(&rig, &rq[q]);
		rig_rq_post(&rig, &rq[q], 1024);
	}
	rig_rss_create(&rig, &rss, rq, QUEUES, IPV4 | UDP);
	rig_run(&rig);
	for (int q = 0; q < QUEUES; q++) {
		const struct mlx5_cqe64 *cqe;
		unsigned int n = 0;

		while ((cqe = rig_poll(&cq[q])) != NULL) {
			const uint32_t hash = be32toh(((const uint32_t *)(const void *)cqe)[3]);

			assert_int_equal(hash % QUEUES, q);
			n++;
		}
		/* 1024 streams at random: 128 a queue, and hardly ever 40 off */
		assert_in_range(n, ROUNDS * 88, ROUNDS * 168);
		total += n;
	}
	assert_int_equal(total, STREAMS * ROUNDS);
	rig_rss_destroy(&rig, &rss);
	for (int q = 0; q < QUEUES; q++) {
		rig_rq_destroy(&rig, &rq[q]);
		rig_cq_destroy(&rig, &cq[q]);
	}
	rig_end(&rig);
}

/* ---- flows ---- */

struct fixture {
	struct rig rig;
	struct rig_rx rx[2];
	struct rig_cq tx_cq;
	struct rig_sq sq;
};

/* Two queues; the flows that lead everything to them are gone. */
static void
start(struct fixture *f)
{
	rig_init(&f->rig);
	f->rig.config.wire = SOFTCX_WIRE_LOOP;
	rig_start(&f->rig);
	for (int i = 0; i < 2; i++) {
		rig_rx_create(&f->rig, &f->rx[i], 64, 1, 64);
		rig_rq_post(&f->rig, &f->rx[i].rq, 64);
		assert_int_equal(softcx_flow_destroy(f->rig.port, f->rx[i].rss.flow), 0);
	}
	rig_cq_create(&f->rig, &f->tx_cq, 64);
	rig_sq_create(&f->rig, &f->sq, &f->tx_cq, 64);
	rig_sq_ready(&f->rig, &f->sq);
}

static void
end(struct fixture *f)
{
	const struct softcx_flow_attr flow = {.type = IBV_FLOW_ATTR_NORMAL};

	for (int i = 0; i < 2; i++) {
		struct softcx_flow_attr attr = flow;

		attr.qpn = f->rx[i].rss.qpn;
		assert_int_equal(softcx_flow_create(f->rig.port, &attr, &f->rx[i].rss.flow), 0);
		rig_rx_destroy(&f->rig, &f->rx[i]);
	}
	rig_sq_destroy(&f->rig, &f->sq);
	rig_cq_destroy(&f->rig, &f->tx_cq);
	rig_end(&f->rig);
}

static uint32_t
add_flow(struct fixture *f, int queue, struct softcx_flow_attr attr)
{
	uint32_t flow;

	attr.qpn = queue >= 0 ? f->rx[queue].rss.qpn : 0;
	attr.drop = queue < 0;
	assert_int_equal(softcx_flow_create(f->rig.port, &attr, &flow), 0);
	return flow;
}

static void
remove_flow(struct fixture *f, uint32_t flow)
{
	assert_int_equal(softcx_flow_destroy(f->rig.port, flow), 0);
}

/* Which queue a frame comes to: a bit for each; 0: none. */
static unsigned int
where(struct fixture *f, const uint8_t *frame, uint32_t len)
{
	unsigned int queues = 0;
	uint8_t *out = rig_buf(&f->rig, RIG_BUFS - 1);

	memcpy(out, frame, len);
	rig_sq_send(&f->sq, out, len, f->rig.lkey, 0);
	rig_run(&f->rig);
	for (unsigned int i = 0; i < 2; i++) {
		if (rig_poll(&f->rx[i].cq) != NULL)
			queues |= 1u << i;
		rig_cq_ack(&f->rx[i].cq);
	}
	return queues;
}

static unsigned int
where_udp(struct fixture *f, uint32_t src, uint16_t dport)
{
	uint8_t frame[64];

	return where(f, frame, rig_udp(frame, src, 0x0a000002, 1000, dport, 60));
}

static void
priorities(void **state)
{
	const struct softcx_flow_attr low = {.priority = 5}, high = {.priority = 1};
	struct softcx_port_counters c;
	struct fixture f;
	uint32_t flow[3];

	(void)state;
	start(&f);
	assert_int_equal(where_udp(&f, 1, 1), 0);
	flow[0] = add_flow(&f, 0, low);
	assert_int_equal(where_udp(&f, 1, 1), 1);
	flow[1] = add_flow(&f, 1, high);
	assert_int_equal(where_udp(&f, 1, 1), 2);
	flow[2] = add_flow(&f, -1, (struct softcx_flow_attr){.priority = 0});
	assert_int_equal(where_udp(&f, 1, 1), 0);
	remove_flow(&f, flow[2]);
	assert_int_equal(where_udp(&f, 1, 1), 2);
	remove_flow(&f, flow[1]);
	assert_int_equal(where_udp(&f, 1, 1), 1);
	remove_flow(&f, flow[0]);
	rig_counters(&f.rig, &c);
	assert_int_equal(c.no_flow, 1);
	assert_int_equal(c.flow_drops, 1);
	end(&f);
}

static void
fields(void **state)
{
	struct softcx_flow_attr all = {.priority = 9}, attr;
	struct fixture f;
	uint8_t frame[128];
	uint32_t rest, flow;

	(void)state;
	start(&f);
	rest = add_flow(&f, 0, all);

	attr = (struct softcx_flow_attr){.headers = SOFTCX_MATCH_IPV4};
	attr.value.src_ipv4 = htobe32(0x0a000100);
	attr.mask.src_ipv4 = htobe32(0xffffff00);
	flow = add_flow(&f, 1, attr);
	assert_int_equal(where_udp(&f, 0x0a0001ff, 1), 2);
	assert_int_equal(where_udp(&f, 0x0a0002ff, 1), 1);
	remove_flow(&f, flow);

	attr = (struct softcx_flow_attr){.headers = SOFTCX_MATCH_IPV4 | SOFTCX_MATCH_UDP};
	attr.value.dst_port = htobe16(53);
	attr.mask.dst_port = 0xffff;
	flow = add_flow(&f, 1, attr);
	assert_int_equal(where_udp(&f, 1, 53), 2);
	assert_int_equal(where_udp(&f, 1, 54), 1);
	remove_flow(&f, flow);

	attr = (struct softcx_flow_attr){.headers = SOFTCX_MATCH_TCP};
	flow = add_flow(&f, 1, attr);
	assert_int_equal(where_udp(&f, 1, 53), 1);
	remove_flow(&f, flow);

	attr = (struct softcx_flow_attr){.headers = SOFTCX_MATCH_IPV6};
	flow = add_flow(&f, 1, attr);
	assert_int_equal(where_udp(&f, 1, 53), 1);
	rig_udp(frame, 1, 2, 3, 4, 100);
	memcpy(frame + 12, "\x86\xdd\x60\x00\x00\x00\x00\x2e\x11\x40", 10);
	assert_int_equal(where(&f, frame, 100), 2);
	remove_flow(&f, flow);

	attr = (struct softcx_flow_attr){.tag = 0};
	memcpy(attr.value.dst_mac, "\x02SCX\x00\x01", 6);
	memset(attr.mask.dst_mac, 0xff, 6);
	flow = add_flow(&f, 1, attr);
	assert_int_equal(where_udp(&f, 1, 53), 1); /* to ...00:00 */
	rig_udp(frame, 1, 2, 3, 4, 60);
	frame[5] = 1;
	assert_int_equal(where(&f, frame, 60), 2);
	remove_flow(&f, flow);

	attr = (struct softcx_flow_attr){.tag = 0};
	attr.value.vlan_tci = htobe16(10);
	attr.mask.vlan_tci = htobe16(0xfff);
	flow = add_flow(&f, 1, attr);
	assert_int_equal(where_udp(&f, 1, 53), 1);
	rig_udp(frame, 1, 2, 3, 4, 100);
	memcpy(frame + 12, "\x81\x00\x60\x0a\x08\x00", 6);
	assert_int_equal(where(&f, frame, 100), 2);
	frame[15] = 11;
	assert_int_equal(where(&f, frame, 100), 1);
	remove_flow(&f, flow);
	remove_flow(&f, rest);
	end(&f);
}

static void
kinds(void **state)
{
	struct softcx_port_counters c;
	struct fixture f;
	uint8_t frame[64];
	uint32_t flow[2];

	(void)state;
	start(&f);
	/* defaults come after any normal rule */
	flow[0] = add_flow(&f, 0, (struct softcx_flow_attr){.type = IBV_FLOW_ATTR_ALL_DEFAULT});
	assert_int_equal(where_udp(&f, 1, 1), 1);
	flow[1] = add_flow(&f, 1, (struct softcx_flow_attr){.priority = 100});
	assert_int_equal(where_udp(&f, 1, 1), 2);
	remove_flow(&f, flow[1]);
	flow[1] = add_flow(&f, 1, (struct softcx_flow_attr){.type = IBV_FLOW_ATTR_MC_DEFAULT});
	assert_int_equal(where_udp(&f, 1, 1), 1);
	rig_udp(frame, 1, 2, 3, 4, 60);
	frame[0] |= 1;
	assert_int_equal(where(&f, frame, 60), 2);
	remove_flow(&f, flow[1]);
	/* a sniffer gets a copy, and so does a second QP of the same rule */
	flow[1] = add_flow(&f, 1, (struct softcx_flow_attr){.type = IBV_FLOW_ATTR_SNIFFER});
	assert_int_equal(where_udp(&f, 1, 1), 3);
	remove_flow(&f, flow[1]);
	flow[1] = add_flow(&f, 1, (struct softcx_flow_attr){.type = IBV_FLOW_ATTR_ALL_DEFAULT});
	assert_int_equal(where_udp(&f, 1, 1), 3);
	rig_counters(&f.rig, &c);
	assert_int_equal(c.rx_copies, 2);
	remove_flow(&f, flow[1]);
	remove_flow(&f, flow[0]);
	end(&f);
}

static void
tags(void **state)
{
	struct fixture f;
	uint8_t *out;
	uint32_t flow;

	(void)state;
	start(&f);
	out = rig_buf(&f.rig, RIG_BUFS - 1);
	flow = add_flow(&f, 0, (struct softcx_flow_attr){.tag = 0xabcdef});
	rig_sq_send(&f.sq, out, rig_udp(out, 1, 2, 3, 4, 60), f.rig.lkey, 0);
	rig_run(&f.rig);
	assert_int_equal(
		be32toh(rig_expect(&f.rx[0].cq, MLX5_CQE_RESP_SEND, 0)->sop_drop_qpn), 0xabcdef);
	remove_flow(&f, flow);
	const struct softcx_flow_attr attr = {.qpn = f.rx[0].rss.qpn, .tag = 0x1000000};

	assert_int_equal(softcx_flow_create(f.rig.port, &attr, &flow), -EINVAL);
	end(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_hash),
		cmocka_unit_test(symmetric),
		cmocka_unit_test(nothing_to_hash),
		cmocka_unit_test(spread),
		cmocka_unit_test(priorities),
		cmocka_unit_test(fields),
		cmocka_unit_test(kinds),
		cmocka_unit_test(tags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
