/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a chunk of memory becomes pages of the pool's zone.
 *
 * DPDK's own layout has no constant stride: no object crosses a page, where there are pages. So the
 * helper runs twice, first to learn where the objects fall and give the zone runs of equally spaced
 * ones, then, when nothing can fail any more, to make them objects of the mempool.
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_errno.h>

#include "mempool_internal.h"

struct layout {
	struct pp_run *runs;
	uint32_t n_runs;
	uint32_t capacity;
	size_t min_stride;
	bool failed;
};

static struct pp_run *
new_run(struct layout *layout)
{
	if (layout->n_runs == layout->capacity) {
		const uint32_t capacity = layout->capacity == 0 ? 64 : 2 * layout->capacity;
		struct pp_run *runs = realloc(layout->runs, capacity * sizeof(*runs));

		if (runs == NULL) {
			layout->failed = true;
			return NULL;
		}
		layout->runs = runs;
		layout->capacity = capacity;
	}
	return &layout->runs[layout->n_runs++];
}

static void
record_object(
	struct rte_mempool *mp __rte_unused, void *arg, void *obj, rte_iova_t iova __rte_unused)
{
	struct layout *layout = arg;
	struct pp_run *run = layout->n_runs > 0 ? &layout->runs[layout->n_runs - 1] : NULL;
	struct pp_run next = {.addr = obj, .stride = layout->min_stride, .count = 1};

	if (layout->failed)
		return;
	if (run != NULL) {
		char *const last = run->addr + (run->count - 1) * run->stride;
		const size_t distance = (size_t)((char *)obj - last);

		if (run->count == 1)
			run->stride = distance;
		if (distance == run->stride) {
			run->count++;
			return;
		}
		/* A run reaches one stride beyond its last object; this one belongs to the next. */
		if (distance < run->stride) {
			if (--run->count == 1)
				run->stride = layout->min_stride;
			next = (struct pp_run){.addr = last, .stride = distance, .count = 2};
		}
	}
	run = new_run(layout);
	if (run != NULL)
		*run = next;
}

/* Behind the chunk may come another one, so the last run must not reach beyond its last object. */
static void
end_layout(struct layout *layout)
{
	struct pp_run *run = layout->n_runs > 0 ? new_run(layout) : NULL;

	if (run == NULL)
		return;
	struct pp_run *before = run - 1;

	if (before->count == 1 || before->stride == layout->min_stride) {
		layout->n_runs--;
		return;
	}
	before->count--;
	*run = (struct pp_run){
		.addr = before->addr + before->count * before->stride,
		.stride = layout->min_stride,
		.count = 1,
	};
	if (before->count == 1)
		before->stride = layout->min_stride;
}

static int
populate_as_dpdk(struct rte_mempool *mp, unsigned int max_objs, void *vaddr, rte_iova_t iova,
	size_t len, rte_mempool_populate_obj_cb_t *obj_cb, void *obj_cb_arg)
{
	struct pp_mempool *pool = mp->pool_data;
	struct layout layout = {
		.min_stride = mp->header_size + mp->elt_size + mp->trailer_size,
	};
	int rc;

	pool->layout = PP_MEMPOOL_POPULATING;
	rte_mempool_op_populate_helper(mp, 0, max_objs, vaddr, iova, len, record_object, &layout);
	end_layout(&layout);
	rc = layout.failed ? -ENOMEM : pp_zone_add_runs(pool->zone, layout.runs, layout.n_runs);
	if (rc == 0)
		rc = rte_mempool_op_populate_helper(
			mp, 0, max_objs, vaddr, iova, len, obj_cb, obj_cb_arg);
	pool->layout = PP_MEMPOOL_LAYOUT;
	free(layout.runs);
	return rc;
}

/* Header, mbuf and data of neighbouring pages start on different lines: see struct pp_run. */
static int
populate_pages(struct rte_mempool *mp, unsigned int max_objs, void *vaddr, rte_iova_t iova,
	size_t len, rte_mempool_populate_obj_cb_t *obj_cb, void *obj_cb_arg)
{
	struct pp_mempool *pool = mp->pool_data;
	const size_t object = mp->header_size + mp->elt_size + mp->trailer_size;
	char *const page = RTE_PTR_ALIGN_CEIL(vaddr, PP_PAGE_SIZE);
	const size_t skipped = (size_t)(page - (char *)vaddr);

	if (object > PP_PAGE_SIZE)
		return -EINVAL;
	const size_t pages = len > skipped ? (len - skipped) / PP_PAGE_SIZE : 0;
	const uint32_t colours = (uint32_t)(PP_PAGE_SIZE - object) / RTE_CACHE_LINE_SIZE + 1;
	const struct pp_run run = {
		.addr = page + mp->header_size,
		.stride = PP_PAGE_SIZE,
		.count = (uint32_t)RTE_MIN(pages, (size_t)max_objs),
		.colours = colours,
		/* Where memory comes in single pages each is a run: they must differ, too. */
		.first_colour = (uint32_t)((uintptr_t)page / PP_PAGE_SIZE % colours),
	};
	const int rc = run.count > 0 ? pp_zone_add_runs(pool->zone, &run, 1) : 0;

	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < run.count; i++) {
		void *obj = pp_run_addr(&run, i);
		const size_t offset = (size_t)((char *)obj - (char *)vaddr);

		obj_cb(mp, obj_cb_arg, obj, iova == RTE_BAD_IOVA ? RTE_BAD_IOVA : iova + offset);
	}
	return (int)run.count;
}

int
pp_mempool_populate(struct rte_mempool *mp, unsigned int max_objs, void *vaddr, rte_iova_t iova,
	size_t len, rte_mempool_populate_obj_cb_t *obj_cb, void *obj_cb_arg)
{
	const struct pp_mempool *pool = mp->pool_data;

	/* An earlier populate failed, and the mempool gave all of its memory back. */
	if (mp->populated_size == 0 && pp_zone_pages(pool->zone) > 0) {
		const int rc = pp_mempool_reset(mp);

		if (rc != 0)
			return rc;
	}
	return (pool->page_per_object ? populate_pages : populate_as_dpdk)(
		mp, max_objs, vaddr, iova, len, obj_cb, obj_cb_arg);
}

ssize_t
pp_mempool_calc_mem_size(const struct rte_mempool *mp, uint32_t obj_num, uint32_t pg_shift,
	size_t *min_chunk_size, size_t *align)
{
	const struct pp_mempool *pool = mp->pool_data;

	if (pool == NULL || !pool->page_per_object)
		return rte_mempool_op_calc_mem_size_default(
			mp, obj_num, pg_shift, min_chunk_size, align);
	*min_chunk_size = PP_PAGE_SIZE;
	*align = PP_PAGE_SIZE;
	return (ssize_t)obj_num * PP_PAGE_SIZE;
}
