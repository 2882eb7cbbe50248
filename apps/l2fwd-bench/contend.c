/* SPDX-License-Identifier: BSD-3-Clause */
#include "contend.h"

void
contender_init(struct contender *contender, const struct options *options, const struct pool *pool)
{
	*contender = (struct contender){
		.pool = pool->mp,
		.cache = pool->cache,
		.n = options->contend,
	};
}

void
contender_round(struct contender *contender)
{
	struct pcp *const pcp = contender->cache != NULL ? pcp_this(contender->cache) : NULL;
	void *buffers[BURST_MAX];

	if (pcp != NULL)
		pcp_bh_disable(pcp);
	if (rte_mempool_get_bulk(contender->pool, buffers, contender->n) == 0) {
		rte_mempool_put_bulk(contender->pool, buffers, contender->n);
		contender->buffers += contender->n;
	}
	if (pcp != NULL)
		pcp_bh_enable(pcp);
}
