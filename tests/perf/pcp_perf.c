/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path against rte_mempool and a bare array: like with like.
 *
 *	handle	the caller has its cache in hand: pcp_*_nested() inside a section and pcp_*()
 *against rte_mempool_generic_get/put() with the cache pointer public	each call finds its cache:
 *pcp_cache_*() against rte_mempool_get/put()
 *
 * Both sides cache 512 objects and neither touches them. Subjects take turns in short samples, in
 * an order shuffled each time; ratios are of neighbours in time.
 *
 * Usage: pcp_perf [EAL options] -- [REPEATS [SEED]]
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include <pcp.h>
#include <samples.h>

#define PAGES        (1u << 15)
#define CAPACITY     512
#define BATCH_MAX    16384
#define OPS_A_SAMPLE (1u << 16)
#define BULK         32
#define PIPELINE_MS  10

static struct rte_mempool *mempool;
static struct rte_mempool_cache *mempool_cache;
static struct pcp_cache *cache;
static struct pcp *pcp;
static void *table[BATCH_MAX];
static void *array[PAGES];
static uint32_t array_top;

/* What the compiler may assume of an object after each operation: nothing. */
#define USE(object) __asm__ volatile("" : "+r"(object) : : "memory")

/* A subject: `rounds` times, allocate n and free n. Cycles per pair. */
typedef double subject_fn(uint32_t n, uint32_t rounds);

/* `pass` is what is done to the n objects of the table, `rounds` times. */
#define SUBJECT(name, pass)                                                                        \
	static __rte_noinline double name(uint32_t n, uint32_t rounds)                             \
	{                                                                                          \
		struct pcp *const p __rte_unused = pcp;                                            \
		struct pcp_cache *const c __rte_unused = cache;                                    \
		struct rte_mempool *const mp __rte_unused = mempool;                               \
		struct rte_mempool_cache *const mpc __rte_unused = mempool_cache;                  \
		const uint64_t start = rte_rdtsc_precise();                                        \
                                                                                                   \
		for (uint32_t r = 0; r < rounds; r++) {                                            \
			pass;                                                                      \
		}                                                                                  \
		return (double)(rte_rdtsc_precise() - start) / rounds / n;                         \
	}

#define SINGLE(alloc, free)                                                                        \
	for (uint32_t i = 0; i < n; i++) {                                                         \
		void *object = NULL;                                                               \
                                                                                                   \
		alloc;                                                                             \
		USE(object);                                                                       \
		table[i] = object;                                                                 \
	}                                                                                          \
	for (uint32_t i = 0; i < n; i++) {                                                         \
		void *object = table[i];                                                           \
                                                                                                   \
		free;                                                                              \
		USE(object);                                                                       \
	}

#define IN_BULK(call)                                                                              \
	for (uint32_t i = 0; i < n; i += BULK) {                                                   \
		void **const objects = &table[i];                                                  \
                                                                                                   \
		call;                                                                              \
		rte_compiler_barrier();                                                            \
	}

SUBJECT(array_single, SINGLE(object = array[--array_top], array[array_top++] = object))
SUBJECT(pcp_nested, pcp_bh_disable(p);
	SINGLE(object = pcp_alloc_nested(p), pcp_free_nested(p, object)) pcp_bh_enable(p))
SUBJECT(pcp_handle, SINGLE(object = pcp_alloc(p), pcp_free(p, object)))
SUBJECT(mempool_handle, SINGLE(rte_mempool_generic_get(mp, &object, 1, mpc),
				rte_mempool_generic_put(mp, &object, 1, mpc)))
SUBJECT(pcp_public, SINGLE(object = pcp_cache_alloc(c), pcp_cache_free(c, object)))
SUBJECT(mempool_public, SINGLE(rte_mempool_get(mp, &object), rte_mempool_put(mp, object)))
SUBJECT(pcp_handle_bulk,
	IN_BULK((void)pcp_alloc_bulk(p, objects, BULK)) IN_BULK(pcp_free_bulk(p, objects, BULK)))
SUBJECT(mempool_handle_bulk, IN_BULK((void)rte_mempool_generic_get(mp, objects, BULK, mpc))
				     IN_BULK(rte_mempool_generic_put(mp, objects, BULK, mpc)))
SUBJECT(pcp_public_bulk, IN_BULK((void)pcp_cache_alloc_bulk(c, objects, BULK))
				 IN_BULK(pcp_cache_free_bulk(c, objects, BULK)))
SUBJECT(mempool_public_bulk, IN_BULK((void)rte_mempool_get_bulk(mp, objects, BULK))
				     IN_BULK(rte_mempool_put_bulk(mp, objects, BULK)))

static const struct {
	const char *name;
	subject_fn *ours, *peer;
	double bar; /* what README promises; 0: nothing */
	uint32_t smallest_batch;
} comparisons[] = {
	{"handle, in a section", pcp_nested, mempool_handle, 0.55, 1},
	{"handle, single call", pcp_handle, mempool_handle, 0, 1},
	{"public, single call", pcp_public, mempool_public, 0.75, 1},
	{"handle, bulk 32", pcp_handle_bulk, mempool_handle_bulk, 0, BULK},
	{"public, bulk 32", pcp_public_bulk, mempool_public_bulk, 0.75, BULK},
	{"array, single", array_single, mempool_handle, 0, 1},
};

static void
compare_singles(uint32_t batch, uint32_t repeats, uint64_t *seed)
{
	static struct samples ours[RTE_DIM(comparisons)], peer[RTE_DIM(comparisons)];
	const uint32_t rounds = RTE_MAX(OPS_A_SAMPLE / batch, 1u);
	uint32_t order[RTE_DIM(comparisons)];

	for (uint32_t k = 0; k < RTE_DIM(comparisons); k++)
		ours[k].n = peer[k].n = 0;
	for (uint32_t repeat = 0; repeat < repeats; repeat++) {
		shuffle(order, RTE_DIM(order), seed);
		for (uint32_t i = 0; i < RTE_DIM(order); i++) {
			const uint32_t k = order[i];

			if (batch < comparisons[k].smallest_batch)
				continue;
			/* Who goes first changes from repeat to repeat, too. */
			if (repeat % 2 == 0)
				samples_add(&ours[k], comparisons[k].ours(batch, rounds));
			samples_add(&peer[k], comparisons[k].peer(batch, rounds));
			if (repeat % 2 == 1)
				samples_add(&ours[k], comparisons[k].ours(batch, rounds));
		}
	}
	for (uint32_t k = 0; k < RTE_DIM(comparisons); k++) {
		if (batch < comparisons[k].smallest_batch)
			continue;
		const struct median a = samples_median(&ours[k]), b = samples_median(&peer[k]);
		const struct median ratio = samples_ratio(&ours[k], &peer[k]);

		printf("%-21s %6u  %6.2f [%5.2f %5.2f]  %6.2f [%5.2f %5.2f]  %5.3f [%5.3f %5.3f]",
			comparisons[k].name, batch, a.value, a.low, a.high, b.value, b.low, b.high,
			ratio.value, ratio.low, ratio.high);
		if (comparisons[k].bar > 0 && batch >= BULK)
			printf("  <= %.2f", comparisons[k].bar);
		printf("\n");
	}
}

/* ---- between two lcores: allocate here, free there ---- */

static struct rte_ring *ring;
static uint32_t consumer_stop, use_mempool;

static int
consumer(void *arg __rte_unused)
{
	void *burst[BULK];

	for (;;) {
		const unsigned int n = rte_ring_sc_dequeue_burst(ring, burst, BULK, NULL);

		if (n == 0) {
			if (pp_load_acquire(&consumer_stop) && rte_ring_empty(ring))
				return 0;
			rte_pause();
		} else if (use_mempool) {
			rte_mempool_put_bulk(mempool, burst, n);
		} else {
			pcp_cache_free_bulk(cache, burst, n);
		}
	}
}

static double
pipeline(bool with_mempool)
{
	void *burst[BULK];
	uint64_t objects = 0;

	use_mempool = with_mempool;
	pp_store_release(&consumer_stop, 0);
	rte_eal_mp_remote_launch(consumer, NULL, SKIP_MAIN);

	const uint64_t start = rte_rdtsc();
	const uint64_t end = start + rte_get_tsc_hz() / 1000 * PIPELINE_MS;

	while (rte_rdtsc() < end) {
		const int rc = with_mempool ? rte_mempool_get_bulk(mempool, burst, BULK)
					    : pcp_cache_alloc_bulk(cache, burst, BULK);

		if (rc != 0)
			continue;
		while (rte_ring_sp_enqueue_bulk(ring, burst, BULK, NULL) == 0)
			rte_pause();
		objects += BULK;
	}
	const double seconds = (double)(rte_rdtsc() - start) / (double)rte_get_tsc_hz();

	pp_store_release(&consumer_stop, 1);
	rte_eal_mp_wait_lcore();
	return (double)objects / seconds / 1e6;
}

static void
compare_pipelines(uint32_t repeats)
{
	static struct samples ours, peer;

	for (uint32_t repeat = 0; repeat < repeats; repeat++) {
		if (repeat % 2 == 0)
			samples_add(&ours, pipeline(false));
		samples_add(&peer, pipeline(true));
		if (repeat % 2 == 1)
			samples_add(&ours, pipeline(false));
	}
	const struct median a = samples_median(&ours), b = samples_median(&peer);
	const struct median ratio = samples_ratio(&ours, &peer);

	printf("\ntwo lcores, bulk 32, million objects/s\n%-21s %6u  %6.1f [%5.1f %5.1f]  %6.1f "
	       "[%5.1f "
	       "%5.1f]  %5.3f [%5.3f %5.3f]  >= 0.95\n",
		"public, pipeline", BULK, a.value, a.low, a.high, b.value, b.low, b.high,
		ratio.value, ratio.low, ratio.high);
}

static struct pp_zone *
make_zone(void)
{
	/* Only addresses move; nothing is behind them. */
	const struct pp_run run = {
		.addr = (char *)(uintptr_t)(UINT64_C(1) << 40),
		.stride = PP_PAGE_SIZE,
		.count = PAGES,
	};
	struct pp_zone *zone = pp_zone_create("perf", PP_NODE_ANY, 9);

	return zone != NULL && pp_zone_add_runs(zone, &run, 1) == 0 ? zone : NULL;
}

int
main(int argc, char **argv)
{
	static const uint32_t batches[] = {1, 32, 512, 16384};
	const struct pcp_config config = {.mode = PCP_MODE_BH, .batch = CAPACITY / 2};
	const int eal_args = rte_eal_init(argc, argv);

	if (eal_args < 0)
		return EXIT_FAILURE;
	argc -= eal_args;
	argv += eal_args;
	const uint32_t repeats = argc > 1 ? (uint32_t)atoi(argv[1]) : 101;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : rte_rdtsc() | 1;

	if (repeats < 1 || repeats > SAMPLES_MAX || seed == 0) {
		fprintf(stderr, "pcp_perf: 1..%u repeats and a seed that is not 0\n", SAMPLES_MAX);
		return EXIT_FAILURE;
	}
	struct pp_zone *zone = make_zone();

	if (zone != NULL)
		cache = pcp_cache_create(zone, &config);
	mempool = rte_mempool_create(
		"peer", PAGES - 1, 64, CAPACITY, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
	ring = rte_ring_create("pipe", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (cache == NULL || mempool == NULL || ring == NULL) {
		fprintf(stderr, "pcp_perf: no memory: %s\n", rte_strerror(rte_errno));
		return EXIT_FAILURE;
	}
	pcp = pcp_this(cache);
	mempool_cache = rte_mempool_default_cache(mempool, rte_lcore_id());
	array_top = PAGES;

	printf("seed %#" PRIx64 ", %u repeats, TSC %.3f GHz; medians with their 95%% interval\n",
		seed, repeats, (double)rte_get_tsc_hz() / 1e9);
	printf("cycles per alloc+free  batch  pagelane              rte_mempool           ratio\n");
	for (uint32_t i = 0; i < RTE_DIM(batches); i++)
		compare_singles(batches[i], repeats, &seed);
	if (rte_lcore_count() >= 2)
		compare_pipelines(repeats);
	else
		printf("one lcore: no pipeline between two; give -l 0,1\n");

	const uint64_t free_pages = pcp_cache_free_pages(cache);
	const bool conserved = free_pages == PAGES && pcp_cache_is_valid(cache);

	printf("pages: %u given, %" PRIu64 " free at the end\n", PAGES, free_pages);
	pcp_cache_destroy(cache);
	rte_mempool_free(mempool);
	rte_ring_free(ring);
	return pp_zone_destroy(zone) == 0 && conserved && rte_eal_cleanup() == 0 ? EXIT_SUCCESS
										 : EXIT_FAILURE;
}
