/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation fails in turn: an error, nothing left behind, and the next try works. */

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "rig.h"

static unsigned int countdown;
static bool reached;

static bool
fails(void)
{
	if (countdown == 0 || --countdown > 0)
		return false;
	reached = true;
	errno = ENOMEM;
	return true;
}

static long in_use; /* allocations that were not freed */

static void *
counted(void *p)
{
	if (p != NULL)
		__atomic_fetch_add(&in_use, 1, __ATOMIC_RELAXED);
	return p;
}

#define WRAP(type, name, params, args, failure, of)                                                \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		return fails() ? (failure) : of(__real_##name args);                               \
	}

WRAP(void *, malloc, (size_t size), (size), NULL, counted)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL, counted)
WRAP(void *, aligned_alloc, (size_t align, size_t size), (align, size), NULL, counted)
WRAP(int, pthread_create,
	(pthread_t * thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg),
	(thread, attr, run, arg), EAGAIN, )

static size_t largest; /* size that realloc() was asked for */

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *
__wrap_realloc(void *p, size_t size)
{
	if (fails())
		return NULL;
	largest = size > largest ? size : largest;
	return p == NULL ? counted(__real_realloc(p, size)) : __real_realloc(p, size);
}

void __real_free(void *p);
void __wrap_free(void *p);
void
__wrap_free(void *p)
{
	if (p != NULL)
		__atomic_fetch_sub(&in_use, 1, __ATOMIC_RELAXED);
	__real_free(p);
}

/* Call `make` with each allocation failing, until there is none left to fail; how many there were.
 */
static unsigned int
fail_once_each(int (*make)(void *arg), void *arg)
{
	unsigned int k = 0;

	do {
		reached = false;
		countdown = ++k;
		const int err = make(arg);

		countdown = 0;
		if (reached)
			assert_true(err == -ENOMEM || err == -EAGAIN);
		else
			assert_int_equal(err, 0);
	} while (reached);
	return k - 1;
}

/* It undoes what it made, but for what the first round of all may set up for good. */
static unsigned int
fail_each(int (*make)(void *arg), void *arg)
{
	const unsigned int n = fail_once_each(make, arg);
	const long before = in_use;

	for (int i = 0; i < 4; i++)
		assert_int_equal(fail_once_each(make, arg), n);
	assert_int_equal(in_use, before);
	return n;
}

static int
make_card(void *arg)
{
	struct softcx_card *card;
	const int err = softcx_device_create(arg, &card);

	return err != 0 ? err : softcx_device_destroy(card);
}

static void
cards(void **state)
{
	static const enum softcx_wire wires[] = {
		SOFTCX_WIRE_GEN, SOFTCX_WIRE_LOOP, SOFTCX_WIRE_SINK, SOFTCX_WIRE_PAIR};
	struct softcx_config config;

	(void)state;
	softcx_config_init(&config);
	config.ports = 2;
	for (unsigned int i = 0; i < RIG_DIM(wires); i++) {
		config.wire = wires[i];
		config.clock = i % 2 == 0 ? SOFTCX_CLOCK_VIRTUAL : SOFTCX_CLOCK_REAL;
		/* two ports of three arrays and six tables each, and two threads */
		assert_true(fail_each(make_card, &config) >= 21);
	}
}

struct things {
	struct rig rig;
	struct rig_rx rx;
	struct rig_cq cq;
};

static int
make_mr(void *arg)
{
	struct things *t = arg;
	const struct softcx_mr_attr attr = {.addr = t->rig.memory, .length = 64};
	uint32_t lkey;
	const int err = softcx_mr_create(t->rig.port, &attr, &lkey);

	return err != 0 ? err : softcx_mr_destroy(t->rig.port, lkey);
}

static int
make_cq(void *arg)
{
	struct things *t = arg;
	const struct softcx_cq_attr attr = {
		.buf = t->cq.buf, .dbrec = t->cq.dbrec, .cqe_count = 4, .cqe_size = 64};
	uint32_t cqn;
	const int err = softcx_cq_create(t->rig.port, &attr, &cqn);

	return err != 0 ? err : softcx_cq_destroy(t->rig.port, cqn);
}

static int
make_wq(void *arg)
{
	struct things *t = arg;
	const struct softcx_wq_attr attr = {.cqn = t->cq.cqn,
		.buf = t->cq.buf,
		.dbrec = t->cq.dbrec,
		.wqe_count = 4,
		.log_stride = 4};
	uint32_t wqn;
	const int err = softcx_wq_create(t->rig.port, &attr, &wqn);

	return err != 0 ? err : softcx_wq_destroy(t->rig.port, wqn);
}

static int
make_table(void *arg)
{
	struct things *t = arg;
	uint32_t table;
	const int err = softcx_rwq_table_create(t->rig.port, &t->rx.rq.wqn, 1, &table);

	return err != 0 ? err : softcx_rwq_table_destroy(t->rig.port, table);
}

static int
make_qp(void *arg)
{
	struct things *t = arg;
	const struct softcx_qp_attr attr = {
		.dbrec = t->cq.dbrec,
		.sq = {.cqn = t->cq.cqn, .buf = t->cq.buf, .wqe_count = 4},
		.rq = {.cqn = t->cq.cqn, .buf = t->cq.buf, .wqe_count = 4, .log_stride = 4},
	};
	uint32_t qpn;
	const int err = softcx_qp_create(t->rig.port, &attr, &qpn);

	return err != 0 ? err : softcx_qp_destroy(t->rig.port, qpn);
}

static int
make_rss(void *arg)
{
	struct things *t = arg;
	const struct softcx_rss_attr attr = {.table = t->rx.rss.table};
	uint32_t qpn;
	const int err = softcx_rss_qp_create(t->rig.port, &attr, &qpn);

	return err != 0 ? err : softcx_qp_destroy(t->rig.port, qpn);
}

static int
make_flow(void *arg)
{
	struct things *t = arg;
	const struct softcx_flow_attr attr = {.qpn = t->rx.rss.qpn};
	uint32_t flow;
	const int err = softcx_flow_create(t->rig.port, &attr, &flow);

	return err != 0 ? err : softcx_flow_destroy(t->rig.port, flow);
}

static void
objects(void **state)
{
	struct things t;

	(void)state;
	rig_init(&t.rig);
	t.rig.config.strict = true;
	rig_start(&t.rig);
	rig_rx_create(&t.rig, &t.rx, 4, 1, 4);
	rig_cq_create(&t.rig, &t.cq, 4);
	assert_int_equal(fail_each(make_mr, &t), 1);
	assert_int_equal(fail_each(make_cq, &t), 2);
	assert_int_equal(fail_each(make_wq, &t), 2);
	assert_int_equal(fail_each(make_table, &t), 1);
	assert_int_equal(fail_each(make_qp, &t), 4);
	assert_int_equal(fail_each(make_rss, &t), 1);
	assert_int_equal(fail_each(make_flow, &t), 1);
	rig_cq_destroy(&t.rig, &t.cq);
	rig_rx_destroy(&t.rig, &t.rx);
	rig_end(&t.rig);
}

/* Where which part of a region has gone cannot be remembered, none of it is good. */
static void
memory_gone(void **state)
{
	struct things t;
	uint8_t *frame;

	(void)state;
	rig_init(&t.rig);
	t.rig.config.wire = SOFTCX_WIRE_LOOP;
	rig_start(&t.rig);
	rig_rx_create(&t.rig, &t.rx, 4, 1, 4);
	rig_rq_post(&t.rig, &t.rx.rq, 1);
	rig_cq_create(&t.rig, &t.cq, 4);
	struct rig_sq sq;

	rig_sq_create(&t.rig, &sq, &t.cq, 4);
	rig_sq_ready(&t.rig, &sq);
	countdown = 1;
	softcx_memory_gone(t.rig.card, rig_buf(&t.rig, 40), 1);
	countdown = 0;
	frame = rig_buf(&t.rig, 1);
	rig_sq_send(&sq, frame, rig_udp(frame, 1, 2, 3, 4, 60), t.rig.lkey, 0);
	rig_run(&t.rig);
	rig_expect_error(&t.cq, MLX5_CQE_REQ_ERR, 0, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	rig_sq_destroy(&t.rig, &sq);
	rig_cq_destroy(&t.rig, &t.cq);
	rig_rx_destroy(&t.rig, &t.rx);
	rig_end(&t.rig);
}

/* Others' memory comes and goes where the region's was: that is told, but takes no room. */
static void
memory_gone_often(void **state)
{
	struct rig_cq cq;
	struct rig_sq sq;
	struct rig rig;
	uint8_t *frame;

	(void)state;
	rig_init(&rig);
	rig.config.wire = SOFTCX_WIRE_SINK;
	rig_start(&rig);
	largest = 0;
	for (unsigned int i = 0; i < 100; i++) {
		softcx_memory_gone(rig.card, rig_buf(&rig, 50), 1);
		softcx_memory_gone(rig.card, rig_buf(&rig, 40 + i % 3), RIG_BUF_SIZE);
		softcx_memory_gone(rig.card, rig_buf(&rig, 41), RIG_BUF_SIZE / 2);
	}
	assert_in_range(largest, 1, 2 * 2 * sizeof(uint64_t)); /* two ranges */

	/* What lies between them is good, what went is not. */
	rig_cq_create(&rig, &cq, 4);
	rig_sq_create(&rig, &sq, &cq, 4);
	rig_sq_ready(&rig, &sq);
	frame = rig_buf(&rig, 43);
	rig_sq_send(&sq, frame, rig_udp(frame, 1, 2, 3, 4, 60), rig.lkey, RIG_CE_ALWAYS);
	rig_run(&rig);
	rig_expect(&cq, MLX5_CQE_REQ, 0);
	rig_sq_send(&sq, rig_buf(&rig, 42), 60, rig.lkey, 0);
	rig_run(&rig);
	rig_expect_error(&cq, MLX5_CQE_REQ_ERR, 1, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	rig_sq_destroy(&rig, &sq);
	rig_cq_destroy(&rig, &cq);
	rig_end(&rig);
}

int
main(int argc, char **argv)
{
	(void)argc;
	/* malloc counts what its threads' caches keep as in use: do without those */
	if (getenv("GLIBC_TUNABLES") == NULL) {
		setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cards),
		cmocka_unit_test(objects),
		cmocka_unit_test(memory_gone),
		cmocka_unit_test(memory_gone_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
