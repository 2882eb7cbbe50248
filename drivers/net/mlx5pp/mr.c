/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the card may touch.
 *
 * A memory region pins a range and gives it a key. All that is received into is registered when a
 * queue is set up, one region per piece of contiguous memory of its pool. What is sent may lie in
 * pools that the driver has never seen: these are registered once, at first sight. Ranges go when
 * their pool or their memory goes.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_memory.h>

#include "mlx5pp.h"

/*
 * A range that holds all of [start, end); they are few, and may overlap: the hugepage of an
 * external buffer may be a pool's as well. Pools do not rely on pages, which have a life of their
 * own.
 */
static bool
find(const struct mlx5pp_mrs *mrs, uintptr_t start, uintptr_t end, bool pages,
	struct mlx5pp_mr *found)
{
	for (uint32_t i = 0; i < mrs->n; i++) {
		const struct mlx5pp_mr *range = &mrs->range[i];

		if (range->start <= start && end <= range->end && (pages || !range->page)) {
			*found = *range;
			return true;
		}
	}
	return false;
}

bool
mlx5pp_mr_find(struct mlx5pp_port *port, uintptr_t start, uintptr_t end, struct mlx5pp_mr *found)
{
	rte_spinlock_lock(&port->mrs.lock);
	const bool known = find(&port->mrs, start, end, false, found);

	rte_spinlock_unlock(&port->mrs.lock);
	return known;
}

/*
 * Pinned memory counts against a limit that many systems set low. What cannot be sent from is tried
 * with every packet, and told once a second.
 */
static void
explain(struct mlx5pp_port *port, size_t len, int err)
{
	const uint64_t now = rte_rdtsc();
	struct rlimit limit;

	if (now < port->mrs.tell_at)
		return;
	port->mrs.tell_at = now + rte_get_tsc_hz();
	if (err == ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
		limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < len)
		MLX5PP_LOG(ERR,
			"%s: cannot register %zu KiB, of which only %zu KiB may be pinned; raise "
			"the limit (ulimit -l unlimited)",
			port->args.ibdev, len >> 10, (size_t)limit.rlim_cur >> 10);
	else if (err == ENOMEM)
		MLX5PP_LOG(ERR,
			"%s: cannot register %zu KiB: %s; raise what may be pinned (ulimit -l) and "
			"mapped (sysctl vm.max_map_count)",
			port->args.ibdev, len >> 10, strerror(err));
	else
		MLX5PP_LOG(ERR, "%s: cannot register %zu KiB: %s", port->args.ibdev, len >> 10,
			strerror(err));
}

static int
add_range(struct mlx5pp_port *port, uintptr_t start, uintptr_t end, bool page)
{
	struct mlx5pp_mrs *mrs = &port->mrs;
	struct mlx5pp_mr known;

	if (find(mrs, start, end, page, &known))
		return 0;
	if (mrs->n == mrs->capacity) {
		const uint32_t capacity = mrs->capacity == 0 ? 16 : 2 * mrs->capacity;
		struct mlx5pp_mr *range = realloc(mrs->range, capacity * sizeof(*range));

		if (range == NULL) {
			MLX5PP_LOG(ERR, "%s: no memory for %u ranges", port->args.ibdev, capacity);
			return -ENOMEM;
		}
		mrs->range = range;
		mrs->capacity = capacity;
	}
	struct ibv_mr *mr =
		ibv_reg_mr(port->pd, (void *)start, end - start, IBV_ACCESS_LOCAL_WRITE);

	if (mr == NULL) {
		const int err = errno;

		explain(port, end - start, err);
		return -err;
	}
	mrs->range[mrs->n++] = (struct mlx5pp_mr){
		.start = start,
		.end = end,
		.lkey_be = htobe32(mr->lkey),
		.mr = mr,
		.page = page,
	};
	return 0;
}

static bool
overlaps(const struct mlx5pp_mr *range, uintptr_t start, uintptr_t end)
{
	return range->start < end && start < range->end;
}

static bool
is_of_pool(const struct mlx5pp_mr *range, uintptr_t start, uintptr_t end)
{
	return !range->page && start <= range->start && range->end <= end;
}

static void
forget(struct mlx5pp_port *port, uintptr_t start, uintptr_t end,
	bool (*goes)(const struct mlx5pp_mr *range, uintptr_t start, uintptr_t end))
{
	struct mlx5pp_mrs *mrs = &port->mrs;
	uint32_t kept = 0;

	rte_spinlock_lock(&mrs->lock);
	for (uint32_t i = 0; i < mrs->n; i++) {
		if (goes(&mrs->range[i], start, end))
			ibv_dereg_mr(mrs->range[i].mr);
		else
			mrs->range[kept++] = mrs->range[i];
	}
	if (kept < mrs->n)
		__atomic_store_n(&mrs->generation, mrs->generation + 1, __ATOMIC_RELEASE);
	mrs->n = kept;
	rte_spinlock_unlock(&mrs->lock);
}

/* ---- pools ---- */

/* The pieces of a pool's memory, those side by side in one. */
struct pieces {
	uintptr_t start, end;
	struct mlx5pp_port *port;
	void (*with)(struct pieces *pieces);
	uint32_t n;
	int err;
};

static void
end_piece(struct pieces *pieces)
{
	if (pieces->end == pieces->start)
		return;
	pieces->n++;
	if (pieces->with != NULL)
		pieces->with(pieces);
}

static void
add_piece(struct pieces *pieces)
{
	if (pieces->err == 0)
		pieces->err = add_range(pieces->port, pieces->start, pieces->end, false);
}

static void
forget_piece(struct pieces *pieces)
{
	forget(pieces->port, pieces->start, pieces->end, is_of_pool);
}

static void
add_chunk(struct rte_mempool *mp __rte_unused, void *arg, struct rte_mempool_memhdr *chunk,
	unsigned int i __rte_unused)
{
	struct pieces *pieces = arg;
	const uintptr_t start = (uintptr_t)chunk->addr;

	if (start == pieces->end && pieces->end != 0) {
		pieces->end += chunk->len;
		return;
	}
	end_piece(pieces);
	pieces->start = start;
	pieces->end = start + chunk->len;
}

static struct pieces
walk(struct mlx5pp_port *port, struct rte_mempool *mp, void (*with)(struct pieces *pieces))
{
	struct pieces pieces = {.port = port, .with = with};

	rte_mempool_mem_iter(mp, add_chunk, &pieces);
	end_piece(&pieces);
	return pieces;
}

static int
add_pool(struct mlx5pp_port *port, struct rte_mempool *mp)
{
	const struct pieces pieces = walk(port, mp, add_piece);

	return pieces.err;
}

int
mlx5pp_mr_add_pool(struct mlx5pp_port *port, struct rte_mempool *mp)
{
	rte_spinlock_lock(&port->mrs.lock);
	port->mrs.tell_at = 0;
	const int err = add_pool(port, mp);

	rte_spinlock_unlock(&port->mrs.lock);
	return err;
}

uint32_t
mlx5pp_mr_of_pool(struct mlx5pp_port *port, struct rte_mempool *mp)
{
	const struct pieces pieces = walk(port, mp, NULL);
	struct mlx5pp_mr mr;

	if (pieces.n != 1 || !mlx5pp_mr_find(port, pieces.start, pieces.end, &mr))
		return 0;
	return mr.lkey_be;
}

/* The pool whose memory holds the data of an mbuf; NULL: none does. */
static struct rte_mempool *
pool_of_data(const struct rte_mbuf *m)
{
	if (RTE_MBUF_HAS_EXTBUF(m))
		return NULL;
	return RTE_MBUF_CLONED(m) ? rte_mbuf_from_indirect((struct rte_mbuf *)(uintptr_t)m)->pool
				  : m->pool;
}

/* An external buffer in memory that EAL knows: its hugepage, or those that it lies across. */
static int
add_pages(struct mlx5pp_port *port, uintptr_t start, uintptr_t end)
{
	uintptr_t first = 0, at = start;

	while (at < end) {
		const struct rte_memseg *page = rte_mem_virt2memseg((const void *)at, NULL);

		if (page == NULL || page->len == 0)
			return -EFAULT;
		if (first == 0)
			first = page->addr_64;
		at = page->addr_64 + page->len;
	}
	return add_range(port, first, at, true);
}

bool
mlx5pp_mr_of_mbuf(struct mlx5pp_port *port, const struct rte_mbuf *m, struct mlx5pp_mr *found)
{
	const uintptr_t start = rte_pktmbuf_mtod(m, uintptr_t), end = start + m->data_len;
	struct rte_mempool *mp = pool_of_data(m);
	struct mlx5pp_mrs *mrs = &port->mrs;
	bool known;

	rte_spinlock_lock(&mrs->lock);
	known = find(mrs, start, end, true, found);
	if (!known) {
		const uint32_t before = mrs->n;

		if (mp != NULL)
			add_pool(port, mp);
		else
			add_pages(port, start, end);
		mrs->registered += mrs->n - before;
		known = find(mrs, start, end, true, found);
	}
	rte_spinlock_unlock(&mrs->lock);
	return known;
}

/* ---- memory that goes ---- */

static void
on_mempool(enum rte_mempool_event event, struct rte_mempool *mp, void *port)
{
	if (event != RTE_MEMPOOL_EVENT_DESTROY)
		return;
	mlx5pp_rxq_pool_goes(port, mp);
	walk(port, mp, forget_piece);
}

static void
on_memory(enum rte_mem_event event, const void *addr, size_t len, void *port)
{
	if (event == RTE_MEM_EVENT_FREE)
		forget(port, (uintptr_t)addr, (uintptr_t)addr + len, overlaps);
}

static void
memory_callback_name(const struct mlx5pp_port *port, char *name)
{
	snprintf(name, RTE_MEM_EVENT_CALLBACK_NAME_LEN, "mlx5pp_%u", port->data->port_id);
}

int
mlx5pp_mr_init(struct mlx5pp_port *port)
{
	char name[RTE_MEM_EVENT_CALLBACK_NAME_LEN];

	rte_spinlock_init(&port->mrs.lock);
	if (rte_mempool_event_callback_register(on_mempool, port) < 0)
		return -rte_errno;
	memory_callback_name(port, name);
	/* memory that is given at start, and stays, has no events */
	if (rte_mem_event_callback_register(name, on_memory, port) < 0 && rte_errno != ENOTSUP) {
		const int err = -rte_errno;

		rte_mempool_event_callback_unregister(on_mempool, port);
		return err;
	}
	return 0;
}

void
mlx5pp_mr_fini(struct mlx5pp_port *port)
{
	char name[RTE_MEM_EVENT_CALLBACK_NAME_LEN];

	memory_callback_name(port, name);
	rte_mem_event_callback_unregister(name, port);
	rte_mempool_event_callback_unregister(on_mempool, port);
	forget(port, 0, UINTPTR_MAX, overlaps);
	free(port->mrs.range);
}
