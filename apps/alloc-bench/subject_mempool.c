/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_mempool, by its ops and the library's cache. */

#include <rte_errno.h>
#include <rte_mempool.h>

#include "subject.h"

/* Get and put touch no object, so that its size is of no consequence but to `touch`. */
#define ELEMENT_SIZE 64

static void *
open_mempool(const struct subject *subject, const struct need *need)
{
	const uint32_t cached = subject->cache_size + subject->cache_size / 2;
	const uint32_t n = need->lcores * need->objects + rte_lcore_count() * cached + CACHE_SIZE;
	char name[RTE_MEMPOOL_NAMESIZE];
	int err;

	snprintf(name, sizeof(name), "%s", subject->title);
	struct rte_mempool *mempool =
		rte_mempool_create_empty(name, n, need->size != 0 ? need->size : ELEMENT_SIZE,
			subject->cache_size, 0, SOCKET_ID_ANY, 0);

	if (mempool == NULL)
		return NULL;
	err = rte_mempool_set_ops_byname(mempool, subject->ops, NULL);
	if (err == 0) {
		err = rte_mempool_populate_default(mempool);
		if (err >= 0)
			return mempool;
	}
	rte_mempool_free(mempool);
	rte_errno = -err;
	return NULL;
}

static void
lend(void *state, struct handles *handles)
{
	handles->mempool = state;
	handles->mempool_cache = rte_mempool_default_cache(state, rte_lcore_id());
}

static void
close_mempool(void *state, struct tally *tally)
{
	const struct rte_mempool *mempool = state;

	tally->given = mempool->size;
	tally->free = rte_mempool_avail_count(mempool);
	tally->valid = true;
	rte_mempool_free(state);
}

const struct backend mempool_backend = {open_mempool, lend, close_mempool, true};
