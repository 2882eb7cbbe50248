/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call that may fail does so in turn while a port lives through a life of it:
 *	port_faults EAL-ARGUMENT... -- DEVICE-ARGUMENTS [STEP]
 * The calls are those that the driver, its mempool driver and the verbs libraries make of the C
 * library's, EAL's and the kernel's allocators, and every verbs command that makes or changes
 * something. The step of the port's life (all, or the one named) in which one failed must say so,
 * by a code and in one line of the driver's, unless a library could do without. The same step must
 * succeed then, packets must flow, and in the end nothing may be left of the port: no memory, no
 * verbs object, no descriptor.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>
#include <rte_memzone.h>
#include <rte_ring.h>

#include <pp_mempool.h>

#include "../require.h"

#define DEVICE "net_mlx5pp0"
#define DESC   64
#define POOL   4096
#define ROOM   3520 /* two frames may share a buffer */
#define BLOCKS 65536

/* ---- whose calls count ---- */

static const char *const libraries[] = {
	"librte_net_mlx5pp", "librte_mempool_pagepool", "libmlx5", "libibverbs"};

static struct {
	uintptr_t start, end;
	bool driver;
} range[16];
static unsigned int n_ranges;

static int
add_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	for (unsigned int i = 0; i < RTE_DIM(libraries); i++) {
		if (strstr(info->dlpi_name, libraries[i]) == NULL)
			continue;
		for (int p = 0; p < info->dlpi_phnum; p++) {
			const uintptr_t at = info->dlpi_addr + info->dlpi_phdr[p].p_vaddr;

			if (info->dlpi_phdr[p].p_type != PT_LOAD ||
				!(info->dlpi_phdr[p].p_flags & PF_X))
				continue;
			require(n_ranges < RTE_DIM(range));
			range[n_ranges].start = at;
			range[n_ranges].end = at + info->dlpi_phdr[p].p_memsz;
			range[n_ranges++].driver = i == 0;
		}
	}
	return unused != NULL;
}

static unsigned int countdown; /* 0: none fails */
static bool failed, failed_in_driver;
static const char *failed_call;

/* Whether a caller is one of these libraries. */
static bool
is_ours(const void *caller, bool *driver)
{
	for (unsigned int i = 0; i < n_ranges; i++)
		if ((uintptr_t)caller >= range[i].start && (uintptr_t)caller < range[i].end) {
			*driver = range[i].driver;
			return true;
		}
	return false;
}

static bool
fails(const void *caller, const char *call)
{
	bool driver;

	if (countdown == 0 || !is_ours(caller, &driver) || --countdown != 0)
		return false;
	failed = true;
	failed_in_driver = driver;
	failed_call = call;
	errno = rte_errno = ENOMEM;
	return true;
}

#define FAILS() fails(__builtin_return_address(0), __func__)

/* ---- memory that those libraries have ---- */

static const void *block[BLOCKS];
static unsigned int n_blocks;

/* Entries are found by their address, and never move. */
static unsigned int
slot_of(const void *p)
{
	unsigned int i = (unsigned int)((uintptr_t)p >> 4) % BLOCKS;

	while (block[i] != NULL && block[i] != p)
		i = (i + 1) % BLOCKS;
	return i;
}

static const char gone; /* in place of a block that was freed */

static void *
remember(const void *caller, void *p)
{
	bool driver;

	if (p == NULL || n_ranges == 0 || !is_ours(caller, &driver))
		return p;
	unsigned int i = (unsigned int)((uintptr_t)p >> 4) % BLOCKS;

	while (block[i] != NULL && block[i] != &gone)
		i = (i + 1) % BLOCKS;
	block[i] = p;
	n_blocks++;
	return p;
}

static void
forget(const void *p)
{
	if (p == NULL || n_ranges == 0)
		return;
	const unsigned int i = slot_of(p);

	if (block[i] == NULL)
		return;
	block[i] = &gone;
	n_blocks--;
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

/*
 * libibverbs keeps a tree of the pages that a fork must not share, as DPDK's mlx5 driver, which is
 * loaded too, asked it to. What is left in it does not come from its users.
 */
#define PAGE_NODE 56

void *
malloc(size_t size)
{
	if (FAILS())
		return NULL;
	void *p = __libc_malloc(size);

	return size == PAGE_NODE ? p : remember(__builtin_return_address(0), p);
}

void *
calloc(size_t n, size_t size)
{
	return FAILS() ? NULL : remember(__builtin_return_address(0), __libc_calloc(n, size));
}

void *
realloc(void *old, size_t size)
{
	if (FAILS())
		return NULL;
	forget(old);
	return remember(__builtin_return_address(0), __libc_realloc(old, size));
}

int
posix_memalign(void **p, size_t alignment, size_t size)
{
	if (FAILS())
		return ENOMEM;
	*p = remember(__builtin_return_address(0), __libc_memalign(alignment, size));
	return *p != NULL ? 0 : ENOMEM;
}

void *
aligned_alloc(size_t alignment, size_t size)
{
	return FAILS() ? NULL
		       : remember(__builtin_return_address(0), __libc_memalign(alignment, size));
}

void
free(void *p)
{
	const int error = errno;

	forget(p);
	__libc_free(p);
	errno = error;
}

/* ---- calls of others ---- */

/* The next one of that name: EAL's and the C library's, or that of a library of the plugin's. */
static void *
find(const char *name)
{
	void *real = dlsym(RTLD_NEXT, name);

	return real != NULL ? real : dlsym(dlopen("libmlx5.so.1", RTLD_LAZY | RTLD_NOLOAD), name);
}

#define REAL(name)                                                                                 \
	({                                                                                         \
		static __typeof__(&name) real;                                                     \
		if (real == NULL)                                                                  \
			real = (__typeof__(&name))find(#name);                                     \
		real;                                                                              \
	})

#define MAY_FAIL(type, name, failure, parameters, arguments)                                       \
	type name parameters                                                                       \
	{                                                                                          \
		return FAILS() ? (failure) : REAL(name) arguments;                                 \
	}

#undef ibv_reg_mr
#undef ibv_query_port

MAY_FAIL(void *, mmap, MAP_FAILED,
	(void *address, size_t length, int protection, int flags, int fd, off_t offset),
	(address, length, protection, flags, fd, offset))
MAY_FAIL(void *, rte_malloc, NULL, (const char *type, size_t size, unsigned int align),
	(type, size, align))
MAY_FAIL(void *, rte_zmalloc, NULL, (const char *type, size_t size, unsigned int align),
	(type, size, align))
MAY_FAIL(void *, rte_calloc, NULL, (const char *type, size_t n, size_t size, unsigned int align),
	(type, n, size, align))
MAY_FAIL(void *, rte_malloc_socket, NULL,
	(const char *type, size_t size, unsigned int align, int socket),
	(type, size, align, socket))
MAY_FAIL(void *, rte_zmalloc_socket, NULL,
	(const char *type, size_t size, unsigned int align, int socket),
	(type, size, align, socket))
MAY_FAIL(void *, rte_calloc_socket, NULL,
	(const char *type, size_t n, size_t size, unsigned int align, int socket),
	(type, n, size, align, socket))
MAY_FAIL(struct rte_ring *, rte_ring_create, NULL,
	(const char *name, unsigned int count, int socket, unsigned int flags),
	(name, count, socket, flags))
MAY_FAIL(const struct rte_memzone *, rte_memzone_reserve, NULL,
	(const char *name, size_t len, int socket, unsigned int flags), (name, len, socket, flags))
MAY_FAIL(int, rte_mempool_event_callback_register, -1,
	(rte_mempool_event_callback * fn, void *data), (fn, data))
MAY_FAIL(int, rte_mem_event_callback_register, -1,
	(const char *name, rte_mem_event_callback_t fn, void *data), (name, fn, data))
MAY_FAIL(int, rte_mbuf_dyn_rx_timestamp_register, -1, (int *offset, uint64_t *flag), (offset, flag))
MAY_FAIL(int, mlx5dv_init_obj, ENOMEM, (struct mlx5dv_obj * obj, uint64_t type), (obj, type))

/* ---- verbs commands ---- */

static int objects;          /* of the kernel's that there are */
static bool pinning_refused; /* no memory is registered */

/* What a command does to their number, if it succeeds; and whether it may fail. */
static bool
is_making(uint32_t command, int *change)
{
	*change = 0;
	switch (command & IB_USER_VERBS_CMD_COMMAND_MASK) {
	case IB_USER_VERBS_CMD_ALLOC_PD:
	case IB_USER_VERBS_CMD_REG_MR:
	case IB_USER_VERBS_CMD_CREATE_CQ:
	case IB_USER_VERBS_CMD_CREATE_QP:
	case IB_USER_VERBS_EX_CMD_CREATE_WQ:
	case IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL:
	case IB_USER_VERBS_EX_CMD_CREATE_FLOW:
		*change = 1;
		return true;
	case IB_USER_VERBS_CMD_DEALLOC_PD:
	case IB_USER_VERBS_CMD_DEREG_MR:
	case IB_USER_VERBS_CMD_DESTROY_CQ:
	case IB_USER_VERBS_CMD_DESTROY_QP:
	case IB_USER_VERBS_EX_CMD_DESTROY_WQ:
	case IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL:
	case IB_USER_VERBS_EX_CMD_DESTROY_FLOW:
		*change = -1;
		return false;
	default:
		return true;
	}
}

/* libibverbs writes nothing but commands. */
ssize_t
write(int fd, const void *buffer, size_t length)
{
	const struct ib_uverbs_cmd_hdr *header = buffer;
	bool driver, command = n_ranges > 0 && length >= sizeof(*header) &&
			       is_ours(__builtin_return_address(0), &driver);
	int change = 0;

	if (command && is_making(header->command, &change) && FAILS())
		return -1;
	if (command && pinning_refused && header->command == IB_USER_VERBS_CMD_REG_MR) {
		errno = ENOMEM;
		return -1;
	}
	const ssize_t written = REAL(write)(fd, buffer, length);

	if (written >= 0)
		objects += change;
	return written;
}

/* ---- what there is ---- */

struct state {
	unsigned int blocks, descriptors, zones;
	int objects;
	size_t heap;
};

static void
count_zone(const struct rte_memzone *zone, void *count)
{
	(void)zone;
	++*(unsigned int *)count;
}

static struct state
take_stock(void)
{
	struct state state = {.blocks = n_blocks, .objects = objects};
	struct rte_malloc_socket_stats heap;
	DIR *dir = opendir("/proc/self/fd");

	require(dir != NULL && rte_malloc_get_socket_stats(0, &heap) == 0);
	while (readdir(dir) != NULL)
		state.descriptors++;
	closedir(dir);
	rte_memzone_walk(count_zone, &state.zones);
	state.heap = heap.alloc_count;
	return state;
}

static void
require_alike(const struct state *before, const struct state *now)
{
	if (memcmp(before, now, sizeof(*now)) == 0)
		return;
	printf("left after %s() failed: blocks %u to %u, descriptors %u to %u, memzones %u to %u, "
	       "objects %d to %d, "
	       "EAL's heap %zu to %zu\n",
		failed_call, before->blocks, now->blocks, before->descriptors, now->descriptors,
		before->zones, now->zones, before->objects, now->objects, before->heap, now->heap);
	exit(EXIT_FAILURE);
}

/* ---- what the driver says ---- */

static char *said;
static size_t said_len;
static FILE *stream;

static unsigned int
lines_said(void)
{
	unsigned int n = 0;

	fflush(stream);
	said[said_len] = '\0'; /* behind it is what was said before hush() */
	for (const char *at = said; (at = strstr(at, "mlx5pp: ")) != NULL; at++)
		n += at == said || at[-1] == '\n';
	return n;
}

static void
hush(void)
{
	fflush(stream);
	rewind(stream);
	fflush(stream);
	if (said != NULL)
		said[0] = '\0';
}

/* ---- a port's life ---- */

static const char *arguments;
static struct rte_mempool *pool, *foreign;
static uint16_t port;

static int
probe(void)
{
	const int err = rte_eal_hotplug_add("vdev", DEVICE, arguments);

	if (err == 0)
		require(rte_eth_dev_get_port_by_name(DEVICE, &port) == 0);
	return err;
}

static const uint64_t rss_types = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP;

static int
configure(void)
{
	const struct rte_eth_conf conf = {
		.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS,
		.rxmode.offloads = RTE_ETH_RX_OFFLOAD_TIMESTAMP,
		.rx_adv_conf.rss_conf.rss_hf = rss_types,
	};

	return rte_eth_dev_configure(port, 2, 1, &conf);
}

static int
set_up_rx(void)
{
	int err = 0;

	for (uint16_t q = 0; err == 0 && q < 2; q++)
		err = rte_eth_rx_queue_setup(port, q, DESC, 0, NULL, pool);
	return err;
}

static int
set_up_tx(void)
{
	return rte_eth_tx_queue_setup(port, 0, DESC, 0, NULL);
}

static int
start(void)
{
	return rte_eth_dev_start(port);
}

static int
restart(void)
{
	const int err = rte_eth_dev_stop(port);

	require(err == 0);
	require(rte_mempool_in_use_count(pool) == 0);
	return rte_eth_dev_start(port);
}

static int
listen_to_all(void)
{
	rte_eth_promiscuous_disable(port);
	return rte_eth_promiscuous_enable(port);
}

static int
add_address(void)
{
	struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 5}};

	rte_eth_dev_mac_addr_remove(port, &mac);
	rte_eth_promiscuous_disable(port);
	return rte_eth_dev_mac_addr_add(port, &mac, 0);
}

static uint64_t
xstat(const char *name)
{
	uint64_t id, value;

	require(rte_eth_xstats_get_id_by_name(port, name, &id) == 0);
	require(rte_eth_xstats_get_by_id(port, &id, &value, 1) == 1);
	return value;
}

static void
receive_some(void)
{
	struct rte_mbuf *pkts[32];
	unsigned int got = 0;
	uint64_t start_at = rte_get_timer_cycles();

	while (got < 100) {
		for (uint16_t q = 0; q < 2; q++) {
			const uint16_t n = rte_eth_rx_burst(port, q, pkts, RTE_DIM(pkts));

			rte_pktmbuf_free_bulk(pkts, n);
			got += n;
		}
		require(rte_get_timer_cycles() - start_at < 5 * rte_get_timer_hz());
	}
}

/* What cannot be had leaves all as it was. */
static int
change_rss(void)
{
	struct rte_eth_rss_conf conf = {.rss_hf = RTE_ETH_RSS_IP};
	const int err = rte_eth_dev_rss_hash_update(port, &conf);

	if (err != 0) {
		require(rte_eth_promiscuous_enable(port) == 0);
		receive_some();
		require(rte_eth_dev_rss_hash_conf_get(port, &conf) == 0);
		require(conf.rss_hf == rss_types);
	}
	return err;
}

/* All queues strip, or none. */
static int
strip_tags(void)
{
	const int err = rte_eth_dev_set_vlan_offload(port, RTE_ETH_VLAN_STRIP_OFFLOAD);
	struct rte_eth_rxq_info info;

	for (uint16_t q = 0; q < 2; q++) {
		require(rte_eth_rx_queue_info_get(port, q, &info) == 0);
		require(((info.conf.offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) != 0) == (err == 0));
	}
	return err;
}

/* A frame out of a pool that the driver has never seen: it is dropped, and counted. */
static int
send_foreign(void)
{
	const uint64_t before = xstat("tx_no_mr");
	struct rte_mbuf *m = rte_pktmbuf_alloc(foreign);

	require(m != NULL);
	memset(rte_pktmbuf_append(m, 64), 0xff, 64);
	require(rte_eth_tx_burst(port, 0, &m, 1) == 1);
	return xstat("tx_no_mr") == before ? 0 : -EFAULT;
}

static const struct {
	const char *name;
	int (*run)(void);
	unsigned int stride; /* of the calls that fail: some are those of other steps again */
} steps[] = {
	{"probe", probe, 1},
	{"configure", configure, 1},
	{"RX queues", set_up_rx, 1},
	{"TX queue", set_up_tx, 1},
	{"start", start, 1},
	{"stop and start", restart, 3},
	{"promiscuous mode", listen_to_all, 1},
	{"an address", add_address, 3},
	{"RSS", change_rss, 1},
	{"VLAN stripping", strip_tags, 1},
	{"a foreign pool", send_foreign, 1},
};

static void
end(void)
{
	require(rte_eth_promiscuous_enable(port) == 0);
	receive_some();
	/* a port that runs */
	require(rte_eal_hotplug_remove("vdev", DEVICE) == 0);
	require(rte_mempool_in_use_count(pool) == 0 && rte_mempool_in_use_count(foreign) == 0);
}

static void
make_pools(void)
{
	pool = rte_pktmbuf_pool_create_by_ops("packets", POOL, 0, 0, ROOM, 0, PP_MEMPOOL_OPS_NAME);
	foreign = rte_pktmbuf_pool_create("foreign", 64, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	require(pool != NULL && foreign != NULL);
}

/* ---- failing ---- */

/* Whether a call failed, and what was said then is right. */
static bool
run_failing(unsigned int step, unsigned int nth)
{
	hush();
	failed = false;
	countdown = nth;
	const int err = steps[step].run();

	countdown = 0;
	if (!failed) {
		require(err == 0);
		return false;
	}
	const unsigned int lines = lines_said();

	if (err == 0 ? failed_in_driver : lines != 1) {
		printf("%s: %s() of the %s failed, call %u: result %d, %u lines:\n%s\n",
			steps[step].name, failed_call, failed_in_driver ? "driver" : "libraries",
			nth, err, lines, said);
		exit(EXIT_FAILURE);
	}
	if (err != 0 && steps[step].run() != 0) {
		printf("%s: the second time, after call %u (%s()): %s\n", steps[step].name, nth,
			failed_call, said);
		exit(EXIT_FAILURE);
	}
	return true;
}

/* One life, with a step in which the nth call fails; whether there was one. */
static bool
live(unsigned int step, unsigned int nth)
{
	bool more = false;

	for (unsigned int i = 0; i < RTE_DIM(steps); i++) {
		if (i == step)
			more = run_failing(i, nth);
		else
			require(steps[i].run() == 0);
	}
	end();
	return more;
}

static void
begin(void)
{
	for (unsigned int i = 0; steps[i].run != restart; i++)
		require(steps[i].run() == 0);
}

/* Each frame is counted, and not each is told of. */
static void
send_in_vain(void)
{
	begin();
	hush();
	pinning_refused = true;
	for (unsigned int i = 0; i < 100; i++)
		require(send_foreign() != 0);
	require(lines_said() < 10 && strstr(said, "ulimit -l") != NULL);
	pinning_refused = false;
	require(send_foreign() == 0);
	end();
}

/* The rules of an address that cannot be had go with it: they would add up. */
static void
add_addresses_in_vain(void)
{
	begin();
	for (uint8_t i = 0; i < 100; i++) {
		struct rte_ether_addr mac = {{2, 0, 0, 0, 1, i}};

		failed = false;
		countdown = 20; /* some rules of its are there by then */
		require(rte_eth_dev_mac_addr_add(port, &mac, 0) != 0 && failed);
	}
	require(add_address() == 0);
	end();
}

int
main(int argc, char **argv)
{
	const int skip = rte_eal_init(argc, argv);

	require(skip >= 0 && argc - skip >= 2);
	arguments = argv[skip + 1];
	const char *only = argc - skip > 2 ? argv[skip + 2] : NULL;
	require(dl_iterate_phdr(add_library, NULL) == 0 && n_ranges >= RTE_DIM(libraries));
	stream = open_memstream(&said, &said_len);
	require(stream != NULL && rte_openlog_stream(stream) == 0);
	make_pools();
	live(UINT32_MAX, 0);
	const struct state before = take_stock();

	for (unsigned int step = 0; step < RTE_DIM(steps); step++) {
		unsigned int nth = 1, n = 0;

		if (only != NULL && strcmp(steps[step].name, only) != 0)
			continue;
		for (; live(step, nth); nth += steps[step].stride, n++) {
			const struct state now = take_stock();

			require_alike(&before, &now);
		}
		printf("%s: %u calls failed in turn\n", steps[step].name, n);
	}
	if (only == NULL) {
		add_addresses_in_vain();
		send_in_vain();
	}
	rte_openlog_stream(NULL);
	fclose(stream);
	free(said);
	rte_mempool_free(pool);
	rte_mempool_free(foreign);
	rte_eal_cleanup();
	return 0;
}
