/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every allocation that a command makes fails in turn: the command then says so, and leaves nothing
 * behind. The library is linked in, so that its calls can be replaced; commands are written raw.
 */

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs_unit.h"

#define EX IB_USER_VERBS_CMD_FLAG_EXTENDED
#define N  64

/* ---- the call that fails ---- */

static unsigned int countdown; /* 0: none */
static bool failed;
static atomic_int blocks; /* of memory that is in use */

static void *
counted(void *block)
{
	if (block != NULL)
		blocks++;
	return block;
}

static bool
fails(void)
{
	if (countdown == 0 || --countdown != 0)
		return false;
	failed = true;
	errno = ENOMEM;
	return true;
}

void __real_free(void *block);
void __wrap_free(void *block);
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_eventfd(unsigned int count, int flags);
int __real_memfd_create(const char *name, unsigned int flags);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_eventfd(unsigned int count, int flags);
int __wrap_memfd_create(const char *name, unsigned int flags);

void
__wrap_free(void *block)
{
	if (block != NULL)
		blocks--;
	__real_free(block);
}

void *
__wrap_malloc(size_t size)
{
	return fails() ? NULL : counted(__real_malloc(size));
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : counted(__real_calloc(n, size));
}

void *
__wrap_realloc(void *old, size_t size)
{
	if (fails())
		return NULL;
	return old == NULL ? counted(__real_realloc(old, size)) : __real_realloc(old, size);
}

void *
__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : counted(__real_aligned_alloc(alignment, size));
}

int
__wrap_eventfd(unsigned int count, int flags)
{
	return fails() ? -1 : __real_eventfd(count, flags);
}

int
__wrap_memfd_create(const char *name, unsigned int flags)
{
	return fails() ? -1 : __real_memfd_create(name, flags);
}

/* ---- commands ---- */

static int node;

/* The core's and the driver's part, in and out. */
struct part {
	const void *in;
	size_t in_length;
	void *out;
	size_t out_length;
};

static int
issue(uint32_t number, struct part core, struct part driver)
{
	uint64_t buffer[128], answer[128] = {0};
	struct ib_uverbs_cmd_hdr header = {.command = number};
	struct ib_uverbs_ex_cmd_hdr ex = {.cmd_hdr_reserved = 0};
	const uint64_t response = (uintptr_t)answer;
	uint8_t *at = (uint8_t *)buffer + sizeof(header);
	uint8_t *answered = (uint8_t *)answer;

	if (number & EX) {
		header.in_words = core.in_length / 8;
		header.out_words = core.out_length / 8;
		ex.provider_in_words = driver.in_length / 8;
		ex.provider_out_words = driver.out_length / 8;
		ex.response = core.out_length == 0 ? 0 : response;
		memcpy(at, &ex, sizeof(ex));
		at += sizeof(ex);
	} else {
		header.in_words = (sizeof(header) + core.in_length + driver.in_length) / 4;
		header.out_words = (core.out_length + driver.out_length) / 4;
	}
	memcpy(at, core.in, core.in_length);
	if (!(number & EX) && core.out_length != 0)
		memcpy(at, &response, sizeof(response));
	at += core.in_length;
	if (driver.in_length != 0)
		memcpy(at, driver.in, driver.in_length);
	at += driver.in_length;
	memcpy(buffer, &header, sizeof(header));
	if (write(node, buffer, at - (uint8_t *)buffer) < 0)
		return -errno;
	if (core.out_length != 0)
		memcpy(core.out, answered, core.out_length);
	if (driver.out_length != 0)
		memcpy(driver.out, answered + core.out_length, driver.out_length);
	return 0;
}

/* A command whose parts are whole structures; NO for none. */
#define PART(in, out) ((struct part){&(in), sizeof(in), &(out), sizeof(out)})
#define IN(in)        ((struct part){&(in), sizeof(in), NULL, 0})
#define NO            ((struct part){NULL, 0, NULL, 0})

/* ---- objects, each made by a function that can be called again ---- */

static uint32_t pd, mr, cq, wq, table, rss, qp, flow;
static int channel, async;
static uint8_t rings[4][8192] __attribute__((aligned(4096)));
static uint64_t records[4] __attribute__((aligned(64)));

static int
make_node(void)
{
	node = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	return node < 0 ? -errno : 0;
}

static int
make_context(void)
{
	struct ib_uverbs_get_context core = {.response = 0};
	struct ib_uverbs_get_context_resp response = {0};
	struct mlx5_ib_alloc_ucontext_req_v2 driver = {
		.total_num_bfregs = 16, .num_low_latency_bfregs = 4, .max_cqe_version = 1};
	struct mlx5_ib_alloc_ucontext_resp driver_response;
	int error = issue(
		IB_USER_VERBS_CMD_GET_CONTEXT, PART(core, response), PART(driver, driver_response));

	async = (int)response.async_fd;
	return error;
}

static int
make_pd(void)
{
	struct ib_uverbs_alloc_pd core = {.response = 0};
	struct ib_uverbs_alloc_pd_resp response = {0};
	int error = issue(IB_USER_VERBS_CMD_ALLOC_PD, PART(core, response), NO);

	pd = response.pd_handle;
	return error;
}

static int
make_mr(void)
{
	struct ib_uverbs_reg_mr core = {
		.start = (uintptr_t)rings[3],
		.hca_va = (uintptr_t)rings[3],
		.length = sizeof(rings[3]),
		.pd_handle = pd,
		.access_flags = IBV_ACCESS_LOCAL_WRITE,
	};
	struct ib_uverbs_reg_mr_resp response = {0};
	int error = issue(IB_USER_VERBS_CMD_REG_MR, PART(core, response), NO);

	mr = response.mr_handle;
	return error;
}

static int
make_channel(void)
{
	struct ib_uverbs_create_comp_channel core = {.response = 0};
	struct ib_uverbs_create_comp_channel_resp response = {0};
	int error = issue(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, PART(core, response), NO);

	channel = (int)response.fd;
	return error;
}

static int
make_cq(void)
{
	struct ib_uverbs_ex_create_cq core = {.cqe = N - 1, .comp_channel = channel};
	struct ib_uverbs_ex_create_cq_resp response = {0};
	struct mlx5_ib_create_cq driver = {
		.buf_addr = (uintptr_t)rings[0], .db_addr = (uintptr_t)&records[0], .cqe_size = 64};
	int error = issue(IB_USER_VERBS_EX_CMD_CREATE_CQ | EX, PART(core, response), IN(driver));

	cq = response.base.cq_handle;
	return error;
}

static int
make_wq(void)
{
	struct ib_uverbs_ex_create_wq core = {
		.wq_type = IBV_WQT_RQ, .pd_handle = pd, .cq_handle = cq, .max_wr = N, .max_sge = 1};
	struct ib_uverbs_ex_create_wq_resp response = {0};
	struct mlx5_ib_create_wq driver = {.buf_addr = (uintptr_t)rings[1],
		.db_addr = (uintptr_t)&records[1],
		.rq_wqe_count = N,
		.rq_wqe_shift = 4};
	int error = issue(IB_USER_VERBS_EX_CMD_CREATE_WQ | EX, PART(core, response), IN(driver));

	wq = response.wq_handle;
	return error;
}

static int
make_table(void)
{
	/* comp_mask, log_ind_tbl_size, and two handles */
	const uint32_t core[4] = {0, 1, wq, wq};
	struct ib_uverbs_ex_create_rwq_ind_table_resp response = {0};
	int error = issue(IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL | EX, PART(core, response), NO);

	table = response.ind_tbl_handle;
	return error;
}

static int
make_rss(void)
{
	struct ib_uverbs_ex_create_qp core = {
		.pd_handle = pd,
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE,
		.rwq_ind_tbl_handle = table,
	};
	struct ib_uverbs_ex_create_qp_resp response = {0};
	struct mlx5_ib_create_qp_rss driver = {.rx_hash_fields_mask = MLX5_RX_HASH_SRC_IPV4,
		.rx_hash_function = MLX5_RX_HASH_FUNC_TOEPLITZ,
		.rx_key_len = 40};
	struct mlx5_ib_create_qp_resp driver_response;
	int error = issue(IB_USER_VERBS_EX_CMD_CREATE_QP | EX, PART(core, response),
		PART(driver, driver_response));

	rss = response.base.qp_handle;
	return error;
}

static int
make_qp(void)
{
	struct ib_uverbs_create_qp core = {
		.pd_handle = pd,
		.send_cq_handle = cq,
		.recv_cq_handle = cq,
		.max_send_wr = N,
		.max_recv_wr = N,
		.qp_type = IBV_QPT_RAW_PACKET,
	};
	struct ib_uverbs_create_qp_resp response = {0};
	struct mlx5_ib_create_qp driver = {
		.buf_addr = (uintptr_t)rings[3],
		.db_addr = (uintptr_t)&records[2],
		.sq_wqe_count = N,
		.rq_wqe_count = N,
		.rq_wqe_shift = 4,
		.sq_buf_addr = (uintptr_t)rings[2],
	};
	struct mlx5_ib_create_qp_resp driver_response;
	int error = issue(
		IB_USER_VERBS_CMD_CREATE_QP, PART(core, response), PART(driver, driver_response));

	qp = response.qp_handle;
	return error;
}

static int
make_flow(void)
{
	struct ib_uverbs_flow_spec_eth eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(eth)};
	struct ib_uverbs_create_flow rule = {
		.qp_handle = rss,
		.flow_attr = {.size = sizeof(eth), .num_of_specs = 1, .port = 1},
	};
	uint8_t core[sizeof(rule) + sizeof(eth)];
	struct ib_uverbs_create_flow_resp response = {0};
	int error;

	memcpy(core, &rule, sizeof(rule));
	memcpy(core + sizeof(rule), &eth, sizeof(eth));
	error = issue(IB_USER_VERBS_EX_CMD_CREATE_FLOW | EX, PART(core, response), NO);
	flow = response.flow_handle;
	return error;
}

static const struct {
	const char *name;
	int (*make)(void);
	bool lasting; /* what the first one makes stays: the card, tables that grow */
} makers[] = {
	{"node", make_node, true},
	{"context", make_context, false},
	{"PD", make_pd, true},
	{"MR", make_mr, false},
	{"channel", make_channel, false},
	{"CQ", make_cq, false},
	{"WQ", make_wq, false},
	{"table", make_table, false},
	{"RSS QP", make_rss, false},
	{"QP", make_qp, false},
	{"flow", make_flow, false},
};

static unsigned int
open_files(void)
{
	unsigned int n = 0;
	int fd;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void
destroy(uint32_t number, uint32_t handle)
{
	const uint32_t ex[2] = {0, handle};

	if (number & EX) {
		assert_int_equal(issue(number, IN(ex), NO), 0);
	} else {
		struct {
			uint64_t response;
			uint32_t handle, reserved;
		} with_response = {.handle = handle};
		uint64_t response;
		bool responds = number == IB_USER_VERBS_CMD_DESTROY_CQ ||
				number == IB_USER_VERBS_CMD_DESTROY_QP;

		assert_int_equal(
			responds ? issue(number,
					   (struct part){&with_response, sizeof(with_response),
						   &response,
						   number == IB_USER_VERBS_CMD_DESTROY_CQ ? 8 : 4},
					   NO)
				 : issue(number, IN(handle), NO),
			0);
	}
}

static void
every_allocation_may_fail(void **state)
{
	unsigned int i, k, files;
	int used, error;

	(void)state;
	for (i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		for (k = 1;; k++) {
			used = blocks;
			files = open_files();
			failed = false;
			countdown = k;
			error = makers[i].make();
			countdown = 0;
			if (!failed)
				break;
			if (error != -ENOMEM)
				fail_msg("%s, allocation %u: %d", makers[i].name, k, error);
			if (open_files() != files)
				fail_msg("%s, allocation %u: files", makers[i].name, k);
			if (!makers[i].lasting && blocks != used)
				fail_msg("%s, allocation %u: %d blocks stay", makers[i].name, k,
					blocks - used);
		}
		if (error != 0)
			fail_msg("%s: %d", makers[i].name, error);
	}
	destroy(IB_USER_VERBS_EX_CMD_DESTROY_FLOW | EX, flow);
	destroy(IB_USER_VERBS_CMD_DESTROY_QP, qp);
	destroy(IB_USER_VERBS_CMD_DESTROY_QP, rss);
	destroy(IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL | EX, table);
	{
		const uint32_t request[2] = {0, wq};
		struct ib_uverbs_ex_destroy_wq_resp response = {0};

		assert_int_equal(
			issue(IB_USER_VERBS_EX_CMD_DESTROY_WQ | EX, PART(request, response), NO),
			0);
	}
	destroy(IB_USER_VERBS_CMD_DESTROY_CQ, cq);
	destroy(IB_USER_VERBS_CMD_DEREG_MR, mr);
	destroy(IB_USER_VERBS_CMD_DEALLOC_PD, pd);
	assert_int_equal(close(channel), 0);
	assert_int_equal(close(async), 0);
	assert_int_equal(close(node), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};

	setenv("SOFTCX_OPTIONS", "ports=1\nwire=sink\n", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
