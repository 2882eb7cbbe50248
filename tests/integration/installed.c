/* SPDX-License-Identifier: BSD-3-Clause */

/* What a user's program looks like; scripts/check builds it against an installation. */

#include <stdio.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include <pcp.h>
#include <pp_mempool.h>

int
main(int argc, char **argv)
{
	struct pp_pktmbuf_config config = {.backend = PP_BACKEND_ANON};
	struct rte_mempool *mp;
	struct rte_mbuf *mbuf;

	if (rte_eal_init(argc, argv) < 0)
		return 1;
	mp = pp_pktmbuf_pool_create(
		"installed", 1024, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY, &config);
	if (mp == NULL) {
		fprintf(stderr, "no pool: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	mbuf = rte_pktmbuf_alloc(mp);
	pcp_cache_dump(pp_mempool_cache(mp), stdout);
	pp_zone_dump(pcp_cache_zone(pp_mempool_cache(mp)), stdout);
	rte_pktmbuf_free(mbuf);
	return mbuf == NULL || pcp_cache_free_pages(pp_mempool_cache(mp)) != 1024;
}
