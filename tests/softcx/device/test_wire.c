/* SPDX-License-Identifier: BSD-3-Clause */
/* The generator's arithmetic, and whether the checker tells what was done to its frames. */

#include <time.h>

#include "rig.h"
#include "wire/check.h"
#include "wire/gen.h"
#include "wire/link.h"
#include "wire/pace.h"

/* ---- pacing ---- */

/* In a second of an exact clock, as many frames as the line's rate has room for. */
static uint64_t
frames_per_second(uint32_t size, uint64_t rate, uint64_t hz)
{
	const struct cx_pace step = cx_pace_of(size, rate, hz);
	struct cx_pace at = {0, 0};
	uint64_t n = 0;

	while (at.cycles < hz) {
		cx_pace_add(&at, &step);
		n++;
	}
	return n;
}

static void
pacing(void **state)
{
	static const uint64_t clocks[] = {1000000000, 2095990000, 3393600123};

	(void)state;
	for (unsigned int i = 0; i < RIG_DIM(clocks); i++) {
		/* 100e9 / ((1518 + 20) * 8) = 8127438.2; 10e9 / (84 * 8) = 14880952.4 */
		assert_int_equal(frames_per_second(1518, 100000000000, clocks[i]), 8127439);
		assert_int_equal(frames_per_second(64, 10000000000, clocks[i]), 14880953);
		assert_int_equal(frames_per_second(9978, 1000000, clocks[i]), 13);
	}
	const struct cx_pace none = cx_pace_of(64, 0, clocks[0]);

	assert_true(none.cycles == 0 && none.fraction == 0);
}

/* Device time that stands in the test's hands: what is due comes, and no more. */
static void
open_loop(void **state)
{
	struct softcx_port_counters c;
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	rig_init(&rig);
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.rate = 1000000000; /* 1518 bytes: 12.3 us each */
	rig.config.frame[0] = 1518;
	rig.config.packets = 50;
	rig_start(&rig);
	rig_rx_create(&rig, &rx, 8, 1, 8);
	rig_rq_post(&rig, &rx.rq, 8);
	const uint64_t hz = softcx_device_clock_hz(rig.card);
	const struct cx_pace step = cx_pace_of(1518, rig.config.rate, hz);
	uint64_t first = 0, last = 0;

	/* nobody takes them: 8 fit, the others are lost, all of them are offered */
	do {
		softcx_port_step(rig.port);
		rig_counters(&rig, &c);
	} while (c.offered < 50);
	assert_int_equal(c.rx_packets, 8);
	assert_int_equal(c.out_of_buffer, 42);
	for (int i = 0; i < 8; i++) {
		last = be64toh(rig_poll(&rx.cq)->timestamp);
		if (i == 0)
			first = last;
	}
	assert_in_range(last - first, 7 * step.cycles, 7 * (step.cycles + 1));
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* With flow control all of them come, 8 at a time, and none is lost. */
static void
closed_loop(void **state)
{
	struct softcx_port_counters c;
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	rig_init(&rig);
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.rate = 0;
	rig.config.packets = 50;
	rig.config.pause = true;
	rig_start(&rig);
	rig_rx_create(&rig, &rx, 8, 1, 64);
	for (unsigned int posted = 0; posted < 56; posted += 8) {
		rig_rq_post(&rig, &rx.rq, 8);
		for (int i = 0; i < 10; i++)
			softcx_port_step(rig.port);
		rig_counters(&rig, &c);
		assert_int_equal(c.offered, posted < 48 ? posted + 8 : 50);
		assert_int_equal(c.rx_packets, c.offered);
	}
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* Checksums are right whatever the addresses and ports, which differ by stream. */
static void
right_checksums(void **state)
{
	const uint8_t ok = MLX5_CQE_L3_OK | MLX5_CQE_L4_OK;
	struct rig rig;
	struct rig_rx rx;
	unsigned int n = 0;

	(void)state;
	rig_init(&rig);
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.payload = SOFTCX_PAYLOAD_FULL;
	rig.config.streams = 512;
	rig.config.packets = 512;
	rig_start(&rig);
	rig_rx_create(&rig, &rx, 512, 1, 512);
	for (int i = 0; i < 8; i++)
		rig_rq_post(&rig, &rx.rq, 64);
	rig_run(&rig);
	for (const struct mlx5_cqe64 *cqe; (cqe = rig_poll(&rx.cq)) != NULL; n++)
		assert_int_equal(cqe->hds_ip_ext & ok, ok);
	assert_int_equal(n, 512);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* While time stands still nothing comes: not even what was due before. */
static void
stands_still(void **state)
{
	const struct timespec away = {0, 20000000};
	struct softcx_port_counters c;
	struct timespec ts;
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	rig_init(&rig);
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.rate = 1000000000;
	rig.config.clock = SOFTCX_CLOCK_VIRTUAL;
	rig_start(&rig);
	rig_rx_create(&rig, &rx, 8, 1, 8);
	rig_rq_post(&rig, &rx.rq, 8);
	softcx_port_step(rig.port);
	softcx_port_step(rig.port);
	rig_counters(&rig, &c);
	const uint64_t before = c.offered;
	uint64_t now;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
	const uint64_t until = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec + 1000000;

	do { /* frames of a millisecond are due by this */
		assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
		now = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	} while (now < until);
	nanosleep(&away, NULL);
	softcx_port_step(rig.port);
	rig_counters(&rig, &c);
	assert_int_equal(c.offered, before);
	while (c.offered < before + 80) {
		softcx_port_step(rig.port);
		rig_counters(&rig, &c);
	}
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

static void
imix(void **state)
{
	unsigned int n64 = 0, n594 = 0, n1518 = 0;
	struct rig rig;
	struct rig_rx rx;
	const char *why;

	(void)state;
	rig_init(&rig);
	rig.config.wire = SOFTCX_WIRE_GEN;
	assert_int_equal(softcx_config_set(&rig.config, "frame", "imix", &why), 0);
	rig.config.packets = 48;
	rig_start(&rig);
	rig_rx_create(&rig, &rx, 64, 1, 64);
	rig_rq_post(&rig, &rx.rq, 64);
	rig_run(&rig);
	for (const struct mlx5_cqe64 *cqe; (cqe = rig_poll(&rx.cq)) != NULL;) {
		n64 += be32toh(cqe->byte_cnt) == 60;
		n594 += be32toh(cqe->byte_cnt) == 590;
		n1518 += be32toh(cqe->byte_cnt) == 1514;
		/* lengths and checksums of all sizes are right */
		assert_int_equal(cqe->hds_ip_ext, MLX5_CQE_L2_OK | MLX5_CQE_L3_OK | MLX5_CQE_L4_OK);
		struct cx_packet packet;

		cx_packet_parse(&packet, rig_buf(&rig, be16toh(cqe->wqe_counter)),
			be32toh(cqe->byte_cnt) < 64 ? 60 : 64, be32toh(cqe->byte_cnt));
		assert_true(packet.l3_ok && packet.l4_ok && packet.is_udp);
	}
	assert_int_equal(n64, 28);
	assert_int_equal(n594, 16);
	assert_int_equal(n1518, 4);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* Nothing is offered before there is a flow, and the full rate comes after the first was taken. */
static void
probe(void **state)
{
	struct softcx_port_counters c;
	struct rig rig;
	struct rig_rx rx;

	(void)state;
	rig_init(&rig);
	rig.config.wire = SOFTCX_WIRE_GEN;
	rig.config.streams = 3;
	rig.config.probe = true;
	rig_start(&rig);
	softcx_port_step(rig.port);
	rig_counters(&rig, &c);
	assert_int_equal(c.offered, 0);
	rig_rx_create(&rig, &rx, 64, 1, 64);
	/* nothing is offered while the only rule is for others */
	const struct softcx_flow_attr others = {
		.qpn = rx.rss.qpn, .value.dst_mac = {1}, .mask.dst_mac = {0xff}};
	uint32_t flow;

	assert_int_equal(softcx_flow_create(rig.port, &others, &flow), 0);
	assert_int_equal(softcx_flow_destroy(rig.port, rx.rss.flow), 0);
	for (int i = 0; i < 10; i++)
		softcx_port_step(rig.port);
	rig_counters(&rig, &c);
	assert_int_equal(c.offered, 0);
	const struct softcx_flow_attr all = {.qpn = rx.rss.qpn};

	assert_int_equal(softcx_flow_create(rig.port, &all, &rx.rss.flow), 0);
	assert_int_equal(softcx_flow_destroy(rig.port, flow), 0);
	rig_rq_post(&rig, &rx.rq, 64);
	for (int i = 0; i < 10; i++)
		softcx_port_step(rig.port);
	rig_counters(&rig, &c);
	assert_int_equal(c.offered, 3);
	while (rig_poll(&rx.cq) != NULL)
		;
	rig_cq_ack(&rx.cq);
	for (int i = 0; i < 10; i++)
		softcx_port_step(rig.port);
	rig_counters(&rig, &c);
	assert_true(c.offered > 64);
	/* a queue that failed comes back before its buffers do: no new probe, which could fail */
	const uint64_t before = c.offered;

	assert_int_equal(softcx_wq_modify(rig.port, rx.rq.wqn, IBV_WQS_RESET), 0);
	softcx_port_step(rig.port);
	assert_int_equal(softcx_wq_modify(rig.port, rx.rq.wqn, IBV_WQS_RDY), 0);
	for (int i = 0; i < 10; i++)
		softcx_port_step(rig.port);
	rig_counters(&rig, &c);
	assert_true(c.offered > before + 3);
	rig_rx_destroy(&rig, &rx);
	rig_end(&rig);
}

/* ---- the checker ---- */

#define FRAMES 32

struct fixture {
	struct rig rig;
	struct rig_rx rx;
	struct rig_cq cq;
	struct rig_sq sq;
	uint32_t len;
};

/* 32 frames of one stream have been received, none has been sent back. */
static void
start(struct fixture *f, enum softcx_payload payload, uint16_t frame)
{
	rig_init(&f->rig);
	f->rig.config.wire = SOFTCX_WIRE_GEN;
	f->rig.config.payload = payload;
	f->rig.config.frame[0] = frame;
	f->rig.config.streams = 1;
	f->rig.config.packets = FRAMES;
	f->len = frame - CX_FCS_LEN;
	rig_start(&f->rig);
	rig_rx_create(&f->rig, &f->rx, FRAMES, 1, FRAMES);
	rig_rq_post(&f->rig, &f->rx.rq, FRAMES);
	rig_run(&f->rig);
	rig_cq_create(&f->rig, &f->cq, 16);
	rig_sq_create(&f->rig, &f->sq, &f->cq, 64);
	rig_sq_ready(&f->rig, &f->sq);
}

static void
send_back(struct fixture *f, unsigned int i)
{
	rig_sq_send(&f->sq, rig_buf(&f->rig, i), f->len, f->rig.lkey, 0);
	rig_run(&f->rig);
}

static void
assert_verdict(struct fixture *f, uint64_t packets, uint64_t lost, uint64_t reordered,
	uint64_t duplicated, uint64_t corrupted, uint64_t foreign)
{
	struct softcx_port_counters c;

	rig_counters(&f->rig, &c);
	assert_int_equal(c.checker.packets, packets);
	assert_int_equal(c.checker.lost, lost);
	assert_int_equal(c.checker.reordered, reordered);
	assert_int_equal(c.checker.duplicated, duplicated);
	assert_int_equal(c.checker.corrupted, corrupted);
	assert_int_equal(c.checker.foreign, foreign);
}

static void
end(struct fixture *f)
{
	rig_sq_destroy(&f->rig, &f->sq);
	rig_cq_destroy(&f->rig, &f->cq);
	rig_rx_destroy(&f->rig, &f->rx);
	rig_end(&f->rig);
}

static void
all_well(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, SOFTCX_PAYLOAD_FULL, 1518);
	for (unsigned int i = 0; i < FRAMES; i++)
		send_back(&f, i);
	assert_verdict(&f, FRAMES, 0, 0, 0, 0, 0);
	end(&f);
}

static void
loss(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, SOFTCX_PAYLOAD_HEADER, 1518);
	send_back(&f, 0);
	send_back(&f, 1);
	send_back(&f, 5);
	send_back(&f, 7);
	assert_verdict(&f, 4, 4, 0, 0, 0, 0);
	end(&f);
}

static void
reordering(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, SOFTCX_PAYLOAD_HEADER, 64);
	send_back(&f, 0);
	send_back(&f, 3);
	assert_verdict(&f, 2, 2, 0, 0, 0, 0);
	send_back(&f, 1);
	send_back(&f, 2);
	assert_verdict(&f, 4, 0, 2, 0, 0, 0);
	end(&f);
}

static void
duplication(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, SOFTCX_PAYLOAD_HEADER, 64);
	send_back(&f, 0);
	send_back(&f, 0);
	send_back(&f, 1);
	send_back(&f, 0);
	assert_verdict(&f, 4, 0, 0, 2, 0, 0);
	end(&f);
}

/* In full every byte of IPv4 and UDP, too, as their checksums say; 42 and on are the stamp's. */
static void
wrong_checksums(void **state)
{
	struct fixture f;
	uint64_t n = 0;

	(void)state;
	start(&f, SOFTCX_PAYLOAD_FULL, 200);
	for (uint32_t at = 26; at < 42; at++) {
		rig_buf(&f.rig, 0)[at] ^= 0x10;
		send_back(&f, 0);
		rig_buf(&f.rig, 0)[at] ^= 0x10;
		n++;
		assert_verdict(&f, n, 0, 0, 0, n, 0);
	}
	end(&f);
}

/* Every byte of the stamp in payload header, and every byte behind the UDP header in full. */
static void
corruption(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, SOFTCX_PAYLOAD_FULL, 200);
	for (uint32_t at = 43; at < f.len; at++) {
		rig_buf(&f.rig, 0)[at] ^= 0x10;
		send_back(&f, 0);
		rig_buf(&f.rig, 0)[at] ^= 0x10;
		assert_verdict(&f, at - 42, 0, 0, 0, at - 42, 0);
	}
	end(&f);
	/* a byte too few */
	start(&f, SOFTCX_PAYLOAD_HEADER, 200);
	f.len--;
	send_back(&f, 0);
	assert_verdict(&f, 1, 0, 0, 0, 1, 0);
	end(&f);
}

static void
foreign(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, SOFTCX_PAYLOAD_HEADER, 200);
	rig_udp(rig_buf(&f.rig, 0), 1, 2, 3, 4, f.len);
	send_back(&f, 0);
	assert_verdict(&f, 0, 0, 0, 0, 0, 1);
	end(&f);
}

/* Frames that the card had no buffer for are nobody's loss. */
static void
drops_are_no_loss(void **state)
{
	struct softcx_port_counters c;
	struct fixture f;

	(void)state;
	rig_init(&f.rig);
	f.rig.config.wire = SOFTCX_WIRE_GEN;
	f.rig.config.streams = 2;
	f.rig.config.packets = 64;
	f.len = 60;
	rig_start(&f.rig);
	rig_rx_create(&f.rig, &f.rx, 8, 1, 64);
	rig_cq_create(&f.rig, &f.cq, 16);
	rig_sq_create(&f.rig, &f.sq, &f.cq, 64);
	rig_sq_ready(&f.rig, &f.sq);
	rig_rq_post(&f.rig, &f.rx.rq, 8);
	rig_run(&f.rig);
	rig_counters(&f.rig, &c);
	assert_int_equal(c.out_of_buffer, 56);
	for (unsigned int i = 0; i < 8; i++)
		send_back(&f, i);
	assert_verdict(&f, 8, 0, 0, 0, 0, 0);
	end(&f);
}

/* Ports back to back: what one sends the other receives. */
static void
pair(void **state)
{
	struct softcx_port_counters c;
	struct rig rig;
	struct rig_rx rx;
	struct rig_cq cq;
	struct rig_sq sq;

	(void)state;
	rig_init(&rig);
	rig.config.wire = SOFTCX_WIRE_PAIR;
	rig.config.ports = 2;
	rig.config.payload = SOFTCX_PAYLOAD_FULL;
	rig_start(&rig);
	rig_cq_create(&rig, &cq, 16);
	rig_sq_create(&rig, &sq, &cq, 16);
	rig_sq_ready(&rig, &sq);
	/* the receiver's objects are the other function's */
	struct rig other = rig;

	other.port = softcx_device_port(rig.card, 1);
	const uint32_t lkey = rig_mr_create(
		other.port, rig.memory, RIG_BUFS * RIG_BUF_SIZE, (uintptr_t)rig.memory);

	other.lkey = lkey;
	rig_rx_create(&other, &rx, 8, 1, 8);
	rig_rq_post(&other, &rx.rq, 8);
	rig_sq_send(
		&sq, rig_buf(&rig, 63), rig_udp(rig_buf(&rig, 63), 1, 2, 3, 4, 1000), rig.lkey, 0);
	rig_run(&rig);
	assert_int_equal(be32toh(rig_expect(&rx.cq, MLX5_CQE_RESP_SEND, 0)->byte_cnt), 1000);
	assert_memory_equal(rig_buf(&rig, 0), rig_buf(&rig, 63), 1000);
	rig_counters(&rig, &c);
	assert_int_equal(c.tx_packets, 1);
	assert_int_equal(c.rx_packets, 0);
	rig_rx_destroy(&other, &rx);
	assert_int_equal(softcx_mr_destroy(other.port, lkey), 0);
	rig_sq_destroy(&rig, &sq);
	rig_cq_destroy(&rig, &cq);
	rig_end(&rig);
}

/* The receiver says that it took a frame, and then reads it: nobody may write there meanwhile. */
static void
full_link(void **state)
{
	static const struct cx_gather frame = {.len = 60};
	struct softcx_config config;

	(void)state;
	softcx_config_init(&config);
	struct cx_link *link = cx_link_create(&config, 1000000000);

	assert_non_null(link);
	for (; link->head < 2 * CX_LINK_SLOTS; link->head += 100) {
		while (cx_link_has_room(link)) {
			assert_int_not_equal(
				link->tail % CX_LINK_SLOTS, (link->head - 1) % CX_LINK_SLOTS);
			cx_link_send(link, &frame);
		}
	}
	cx_link_destroy(link);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pacing),
		cmocka_unit_test(open_loop),
		cmocka_unit_test(stands_still),
		cmocka_unit_test(closed_loop),
		cmocka_unit_test(right_checksums),
		cmocka_unit_test(imix),
		cmocka_unit_test(probe),
		cmocka_unit_test(all_well),
		cmocka_unit_test(loss),
		cmocka_unit_test(reordering),
		cmocka_unit_test(duplication),
		cmocka_unit_test(wrong_checksums),
		cmocka_unit_test(corruption),
		cmocka_unit_test(foreign),
		cmocka_unit_test(drops_are_no_loss),
		cmocka_unit_test(pair),
		cmocka_unit_test(full_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
