/* SPDX-License-Identifier: BSD-3-Clause */
/* Each kind of report comes, once, and only where strict. */

#include <endian.h>
#include <time.h>

#include "rig.h"

struct fixture {
	struct rig rig;
	struct rig_rx rx;
	struct rig_cq cq;
	struct rig_sq sq;
	char *text;
	size_t size;
};

static void
start(struct fixture *f, bool strict)
{
	rig_init(&f->rig);
	f->rig.config.wire = SOFTCX_WIRE_LOOP;
	f->rig.config.strict = strict;
	f->rig.config.summary = open_memstream(&f->text, &f->size);
	assert_non_null(f->rig.config.summary);
	rig_start(&f->rig);
	rig_rx_create(&f->rig, &f->rx, 8, 1, 8);
	rig_cq_create(&f->rig, &f->cq, 8);
	rig_sq_create(&f->rig, &f->sq, &f->cq, 8);
	rig_sq_ready(&f->rig, &f->sq);
}

/* There were `n` reports, and the last says so. */
static void
end(struct fixture *f, unsigned int n, const char *says)
{
	struct softcx_port_counters c;

	rig_counters(&f->rig, &c);
	fflush(f->rig.config.summary);
	assert_int_equal(c.strict, n);
	if (n > 0)
		assert_non_null(strstr(f->text, says));
	else
		assert_int_equal(f->size, 0);
	rig_sq_destroy(&f->rig, &f->sq);
	rig_cq_destroy(&f->rig, &f->cq);
	rig_rx_destroy(&f->rig, &f->rx);

	FILE *summary = f->rig.config.summary;

	rig_end(&f->rig);
	fclose(summary);
	free(f->text);
}

static void
send_one(struct fixture *f)
{
	uint8_t *frame = rig_buf(&f->rig, 63);

	rig_sq_send(&f->sq, frame, rig_udp(frame, 1, 2, 3, 4, 60), f->rig.lkey, RIG_CE_ALWAYS);
	rig_run(&f->rig);
}

static void
complete_one(struct fixture *f)
{
	rig_sq_write(&f->sq, MLX5_OPCODE_NOP, RIG_CE_ALWAYS, NULL, 0, NULL, 0, 0);
	rig_sq_ring(&f->sq);
	rig_run(&f->rig);
	assert_non_null(rig_poll(&f->cq));
}

/* Longer than software may take from the record to the register. */
static void
wait_long(void)
{
	const struct timespec ts = {1, 100000000};

	nanosleep(&ts, NULL);
}

/* A good driver is not reported, round the rings several times. */
static void
good(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, true);
	for (int i = 0; i < 40; i++) {
		rig_rq_post(&f.rig, &f.rx.rq, 1);
		send_one(&f);
		assert_non_null(rig_poll(&f.rx.cq));
		assert_non_null(rig_poll(&f.cq));
		rig_cq_ack(&f.rx.cq);
		rig_cq_ack(&f.cq);
	}
	wait_long();
	rig_run(&f.rig);
	end(&f, 0, "");
}

static void
rq_doorbell_back(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, true);
	rig_rq_post(&f.rig, &f.rx.rq, 4);
	send_one(&f);
	f.rx.rq.pi = 2;
	rig_rq_ring(&f.rx.rq);
	send_one(&f);
	end(&f, 1, "doorbell went from 4 back to 2");
}

static void
rq_overfull(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, true);
	rig_rq_post(&f.rig, &f.rx.rq, 8);
	send_one(&f);
	rig_rq_post(&f.rig, &f.rx.rq, 2); /* one more than has been used */
	send_one(&f);
	end(&f, 1, "9 WQEs are posted to a ring of 8");
}

static void
sq_doorbell_back(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, true);
	rig_rq_post(&f.rig, &f.rx.rq, 8);
	send_one(&f);
	send_one(&f);
	f.sq.pi = 1;
	rig_sq_ring(&f.sq);
	softcx_port_step(f.rig.port);
	end(&f, 1, "doorbell went from 2 back to 1");
}

static void
stale_index(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, true);
	rig_sq_write(&f.sq, MLX5_OPCODE_NOP, 0, NULL, 0, NULL, 0, 0);
	((struct mlx5_wqe_ctrl_seg *)(void *)f.sq.buf)->opmod_idx_opcode ^= htobe32(8 << 8);
	rig_sq_ring(&f.sq);
	rig_run(&f.rig);
	end(&f, 1, "a WQE of index 8 where 0 is due");
}

static void
cq_index_back(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, true);
	for (int i = 0; i < 9; i++) {
		complete_one(&f);
		if (i == 6)
			rig_cq_ack(&f.cq);
	}
	/* the device has read 7 */
	f.cq.ci = 6;
	rig_cq_ack(&f.cq);
	for (int i = 0; i < 7; i++)
		rig_sq_write(&f.sq, MLX5_OPCODE_NOP, RIG_CE_ALWAYS, NULL, 0, NULL, 0, 0);
	rig_sq_ring(&f.sq);
	rig_run(&f.rig);
	end(&f, 1, "consumer index went from 7 back to 6");
}

static void
cqe_written(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, true);
	for (int i = 0; i < 9; i++) {
		complete_one(&f);
		rig_cq_ack(&f.cq);
		if (i == 0)
			f.cq.buf[17] ^= 1;
	}
	end(&f, 1, "CQE 0 was written by software");
}

/* An error CQE that was seen may be written to, and any may be taken back. */
static void
cqe_noted(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, true);
	for (int i = 0; i < 9; i++) {
		complete_one(&f);
		rig_cq_ack(&f.cq);
		if (i == 0)
			f.cq.buf[63] = MLX5_CQE_INVALID << 4;
	}
	rig_sq_write(&f.sq, MLX5_OPCODE_NOP + 1, RIG_CE_ALWAYS, NULL, 0, NULL, 0, 0);
	rig_sq_ring(&f.sq);
	rig_run(&f.rig);
	rig_expect_error(&f.cq, MLX5_CQE_REQ_ERR, 9, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
	rig_cq_ack(&f.cq);
	f.cq.buf[64 + 17] ^= 1;
	rig_sq_ready(&f.rig, &f.sq);
	for (int i = 0; i < 8; i++) {
		complete_one(&f);
		rig_cq_ack(&f.cq);
	}
	end(&f, 0, "");
}

/* WQEs that were flushed had their doorbell, too. */
static void
register_of_flushed(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, true);
	rig_sq_write(&f.sq, MLX5_OPCODE_NOP + 1, RIG_CE_ALWAYS, NULL, 0, NULL, 0, 0);
	rig_sq_write(&f.sq, MLX5_OPCODE_NOP, RIG_CE_ALWAYS, NULL, 0, NULL, 0, 0);
	rig_sq_ring(&f.sq);
	rig_run(&f.rig);
	wait_long();
	rig_run(&f.rig);
	end(&f, 0, "");
}

static void
no_register(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, true);
	rig_rq_post(&f.rig, &f.rx.rq, 8);
	send_one(&f);
	memset(f.sq.uar, 0, 4096); /* as if it had not been rung */
	rig_sq_write(&f.sq, MLX5_OPCODE_NOP, 0, NULL, 0, NULL, 0, 0);
	memset(f.sq.uar, 0, 4096);
	rig_sq_ring(&f.sq);
	rig_run(&f.rig);
	wait_long();
	rig_run(&f.rig);
	rig_run(&f.rig);
	end(&f, 1, "register does not have the last WQE, 1");
}

/* The same as above, and nobody says a word. */
static void
not_strict(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, false);
	rig_rq_post(&f.rig, &f.rx.rq, 4);
	send_one(&f);
	f.rx.rq.pi = 2;
	rig_rq_ring(&f.rx.rq);
	send_one(&f);
	end(&f, 0, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(rq_doorbell_back),
		cmocka_unit_test(rq_overfull),
		cmocka_unit_test(sq_doorbell_back),
		cmocka_unit_test(stale_index),
		cmocka_unit_test(cq_index_back),
		cmocka_unit_test(cqe_written),
		cmocka_unit_test(cqe_noted),
		cmocka_unit_test(register_of_flushed),
		cmocka_unit_test(no_register),
		cmocka_unit_test(not_strict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
