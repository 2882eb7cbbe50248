/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's interface without libibverbs between: what it refuses, and with which errno. */

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_unit.h"

#define NODE "/dev/infiniband/uverbs0"

/* Without the flexible arrays at the end of the core's parts. */
struct get_context {
	struct ib_uverbs_cmd_hdr header;
	uint64_t response;
	struct mlx5_ib_alloc_ucontext_req_v2 driver;
};

struct get_context_response {
	uint32_t async_fd, num_comp_vectors;
	struct mlx5_ib_alloc_ucontext_resp driver;
};

static void
get_context(struct get_context *command, struct get_context_response *response)
{
	*command = (struct get_context){
		.header = {IB_USER_VERBS_CMD_GET_CONTEXT, sizeof(struct get_context) / 4,
			sizeof(*response) / 4},
		.response = (uintptr_t)response,
		.driver = {.total_num_bfregs = 16,
			.num_low_latency_bfregs = 4,
			.max_cqe_version = 1},
	};
}

/* A node with a context. */
static int
open_node(void)
{
	struct get_context_response response;
	struct get_context command;
	int fd = open(NODE, O_RDWR | O_CLOEXEC);

	get_context(&command, &response);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &command, sizeof(command)), sizeof(command));
	assert_int_equal(close((int)response.async_fd), 0);
	return fd;
}

/* write() must fail so. */
static void
fails(int fd, const void *command, size_t length, int error)
{
	errno = 0;
	assert_int_equal(write(fd, command, length), -1);
	assert_int_equal(errno, error);
}

static void
looks_like_a_node(void **state)
{
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(stat(NODE, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(major(st.st_rdev), 231);
	assert_int_equal(minor(st.st_rdev), 192);
	assert_int_equal(stat("/dev/infiniband/uverbs2", &st), -1);
	assert_int_equal(stat("/dev/infiniband/uverbs0x", &st), -1);
	assert_int_equal(open("/dev/infiniband/uverbs2", O_RDWR), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(open(NODE, O_RDONLY), -1);
	assert_int_equal(errno, EACCES);
	fd = open(NODE, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	memset(&st, 0, sizeof(st));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(minor(st.st_rdev), 192);
	assert_int_equal(ioctl(fd, _IOWR(0x1b, 1, struct ib_uverbs_cmd_hdr), NULL), -1);
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(fd), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
}

static void
checks_the_header(void **state)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_alloc_pd core;
	} command;
	struct ib_uverbs_alloc_pd_resp response;
	int fd = open_node();

	(void)state;
	memset(&command, 0, sizeof(command));
	command.header = (struct ib_uverbs_cmd_hdr){
		IB_USER_VERBS_CMD_ALLOC_PD, sizeof(command) / 4, sizeof(response) / 4};
	command.core.response = (uintptr_t)&response;
	fails(fd, &command, 4, EINVAL);
	fails(fd, &command, sizeof(command) - 4, EINVAL); /* in_words says more */
	command.header.in_words = 2;
	fails(fd, &command, 8, ENOSPC);
	command.header.in_words = sizeof(command) / 4;
	command.header.out_words = 0;
	fails(fd, &command, sizeof(command), ENOSPC);
	command.header.out_words = sizeof(response) / 4;
	command.header.command = IB_USER_VERBS_CMD_ALLOC_PD | 1u << 20;
	fails(fd, &command, sizeof(command), EINVAL);
	command.header.command = IB_USER_VERBS_CMD_ALLOC_MW;
	fails(fd, &command, sizeof(command), EOPNOTSUPP);
	command.header.command = 200;
	fails(fd, &command, sizeof(command), EOPNOTSUPP);
	command.core.response = 0;
	command.header.command = IB_USER_VERBS_CMD_ALLOC_PD;
	fails(fd, &command, sizeof(command), EFAULT);
	assert_int_equal(close(fd), 0);
}

static void
checks_an_extended_header(void **state)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_ex_cmd_hdr ex;
		struct ib_uverbs_ex_query_device core;
		uint8_t rest[8];
	} command;
	struct ib_uverbs_ex_query_device_resp response;
	const size_t length = sizeof(command) - sizeof(command.rest);
	int fd = open_node();

	(void)state;
	memset(&command, 0, sizeof(command));
	command.header = (struct ib_uverbs_cmd_hdr){
		IB_USER_VERBS_EX_CMD_QUERY_DEVICE | IB_USER_VERBS_CMD_FLAG_EXTENDED, 1,
		sizeof(response) / 8};
	command.ex.response = (uintptr_t)&response;
	assert_int_equal(write(fd, &command, length), length);
	assert_int_equal(response.response_length, sizeof(response));
	assert_int_equal(response.base.phys_port_cnt, 1);

	/* Who knows less is answered less. */
	command.header.out_words =
		offsetof(struct ib_uverbs_ex_query_device_resp, timestamp_mask) / 8;
	memset(&response, 0xee, sizeof(response));
	assert_int_equal(write(fd, &command, length), length);
	assert_int_equal(response.response_length,
		offsetof(struct ib_uverbs_ex_query_device_resp, timestamp_mask));
	assert_int_equal(response.timestamp_mask, 0xeeeeeeeeeeeeeeee);
	/* Who knows more must not ask for it. */
	command.header.in_words = 2;
	assert_int_equal(write(fd, &command, sizeof(command)), sizeof(command));
	command.rest[3] = 1;
	fails(fd, &command, sizeof(command), EOPNOTSUPP);
	command.header.in_words = 1;

	fails(fd, &command, length + 8, EINVAL);
	fails(fd, &command, 16, EINVAL);
	command.core.comp_mask = 1;
	fails(fd, &command, length, EINVAL);
	command.core.comp_mask = 0;
	command.ex.cmd_hdr_reserved = 1;
	fails(fd, &command, length, EINVAL);
	command.ex.cmd_hdr_reserved = 0;
	command.header.out_words = 1;
	fails(fd, &command, length, ENOSPC);
	command.header.out_words = 0;
	fails(fd, &command, length, EINVAL); /* room for an answer, of no words */
	assert_int_equal(close(fd), 0);
}

static void
wants_a_context_first_and_once(void **state)
{
	struct get_context_response response;
	struct get_context command;
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_dealloc_pd core;
	} dealloc = {.header = {IB_USER_VERBS_CMD_DEALLOC_PD, sizeof(dealloc) / 4, 0}};
	int fd = open(NODE, O_RDWR | O_CLOEXEC);

	(void)state;
	get_context(&command, &response);
	assert_true(fd >= 0);
	fails(fd, &dealloc, sizeof(dealloc), EINVAL);
	command.driver.flags = MLX5_IB_ALLOC_UCTX_DEVX;
	fails(fd, &command, sizeof(command), EINVAL);
	command.driver.flags = 1 << 5;
	fails(fd, &command, sizeof(command), EOPNOTSUPP);
	command.driver.flags = 0;
	command.driver.comp_mask = 1;
	fails(fd, &command, sizeof(command), EOPNOTSUPP);
	command.driver.comp_mask = 0;
	command.driver.num_low_latency_bfregs = 16;
	fails(fd, &command, sizeof(command), EINVAL);
	command.driver.num_low_latency_bfregs = 4;
	command.driver.total_num_bfregs = 1 << 20;
	fails(fd, &command, sizeof(command), ENOMEM);
	command.driver.total_num_bfregs = 15;
	assert_int_equal(write(fd, &command, sizeof(command)), sizeof(command));
	assert_int_equal(response.driver.tot_bfregs, 16);
	assert_int_equal(response.driver.cqe_version, 1);
	assert_int_equal(response.driver.eth_min_inline, MLX5_USER_INLINE_MODE_NONE);
	fails(fd, &command, sizeof(command), EINVAL);
	assert_int_equal(close((int)response.async_fd), 0);
	assert_int_equal(close(fd), 0);
}

static uint32_t
alloc_pd(int fd)
{
	struct ib_uverbs_alloc_pd_resp response;
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_alloc_pd core;
	} command = {
		.header = {IB_USER_VERBS_CMD_ALLOC_PD, sizeof(command) / 4, sizeof(response) / 4},
		.core.response = (uintptr_t)&response,
	};

	assert_int_equal(write(fd, &command, sizeof(command)), sizeof(command));
	return response.pd_handle;
}

static void
tells_dead_objects_from_others(void **state)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		uint32_t handle;
	} dealloc = {.header = {IB_USER_VERBS_CMD_DEALLOC_PD, sizeof(dealloc) / 4, 0}};
	int fd = open_node(), other = open_node();
	unsigned int i;
	uint32_t again;

	(void)state;
	dealloc.handle = alloc_pd(fd);
	dealloc.header.command = IB_USER_VERBS_CMD_DEREG_MR;
	fails(fd, &dealloc, sizeof(dealloc), EINVAL); /* of another type */
	dealloc.header.command = IB_USER_VERBS_CMD_DEALLOC_PD;
	fails(other, &dealloc, sizeof(dealloc), ENOENT); /* of another context */
	assert_int_equal(write(fd, &dealloc, sizeof(dealloc)), sizeof(dealloc));
	fails(fd, &dealloc, sizeof(dealloc), ENOENT);
	/* A handle is not given again soon. */
	for (i = 0; i < 1000; i++) {
		struct {
			struct ib_uverbs_cmd_hdr header;
			uint32_t handle;
		} next = {dealloc.header, alloc_pd(fd)};

		again = next.handle;
		assert_int_not_equal(again, dealloc.handle);
		assert_int_equal(write(fd, &next, sizeof(next)), sizeof(next));
	}
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(other), 0);
}

static int
map_error(int fd, size_t length, int protection, int flags, off_t offset)
{
	void *page = mmap(NULL, length, protection, flags, fd, offset);

	if (page == MAP_FAILED)
		return errno;
	assert_int_equal(munmap(page, length), 0);
	return 0;
}

static void
maps_registers_only(void **state)
{
	const off_t command = 256 * 4096;
	int fd = open_node();

	(void)state;
	assert_int_equal(map_error(fd, 4096, PROT_WRITE, MAP_SHARED, 0), 0);
	assert_int_equal(map_error(fd, 4096, PROT_WRITE, MAP_SHARED, 7 * 4096), 0);
	assert_int_equal(map_error(fd, 4096, PROT_WRITE, MAP_SHARED, 8 * 4096), EINVAL);
	assert_int_equal(map_error(fd, 8192, PROT_WRITE, MAP_SHARED, 0), EINVAL);
	assert_int_equal(map_error(fd, 4096, PROT_WRITE, MAP_PRIVATE, 0), EINVAL);
	assert_int_equal(map_error(fd, 4096, PROT_READ, MAP_SHARED,
				 MLX5_IB_MMAP_GET_CONTIGUOUS_PAGES * command),
		ENOSYS);
	assert_int_equal(
		map_error(fd, 4096, PROT_READ, MAP_SHARED, MLX5_IB_MMAP_CLOCK_INFO * command),
		EOPNOTSUPP);
	assert_int_equal(
		map_error(fd, 4096, PROT_WRITE, MAP_SHARED, MLX5_IB_MMAP_ALLOC_WC * command),
		EINVAL);
	assert_int_equal(close(fd), 0);
}

/* A fork's child has the descriptors, but the device stayed with its parent. */
static void
survives_a_fork(void **state)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		uint32_t handle;
	} dealloc = {.header = {IB_USER_VERBS_CMD_DEALLOC_PD, sizeof(dealloc) / 4, 0}};
	int fd = open_node(), status;
	pid_t child;

	(void)state;
	dealloc.handle = alloc_pd(fd);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		bool refused = write(fd, &dealloc, sizeof(dealloc)) == -1 && errno == EIO;

		_exit(refused && close(fd) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(write(fd, &dealloc, sizeof(dealloc)), sizeof(dealloc));
	assert_int_equal(close(fd), 0);
}

/* However a descriptor is closed, its number is another file's then. */
static void
knows_every_way_of_closing(void **state)
{
	struct ib_uverbs_cmd_hdr header = {IB_USER_VERBS_CMD_QUERY_DEVICE, 2, 0};
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), fd = open_node(), status;
	pid_t child;

	(void)state;
	assert_true(null >= 0);
	fails(fd, &header, sizeof(header), ENOSPC);
	assert_int_equal(dup2(fd, fd), fd);
	assert_int_equal(dup2(-1, fd), -1);
	assert_int_equal(dup3(-1, fd, 0), -1);
	assert_int_equal(dup3(null, fd, O_TRUNC), -1);
	fails(fd, &header, sizeof(header), ENOSPC);
	assert_int_equal(dup2(null, fd), fd);
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(close(fd), 0);

	fd = open_node();
	assert_int_equal(close_range(fd, fd, 0), 0);
	assert_int_equal(dup3(null, fd, O_CLOEXEC), fd);
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(close(fd), 0);

	/* The child of a vfork() closes nothing of its parent's. */
	fd = open_node();
	child = vfork();
	assert_true(child >= 0);
	if (child == 0) {
		close(fd);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	fails(fd, &header, sizeof(header), ENOSPC);
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(null), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_like_a_node),
		cmocka_unit_test(checks_the_header),
		cmocka_unit_test(checks_an_extended_header),
		cmocka_unit_test(wants_a_context_first_and_once),
		cmocka_unit_test(tells_dead_objects_from_others),
		cmocka_unit_test(maps_registers_only),
		cmocka_unit_test(survives_a_fork),
		cmocka_unit_test(knows_every_way_of_closing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
