/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Page caches for as long as one likes: pcp_soak [SECONDS [SEED]], 600 seconds unless told.
 *
 * Threads with and without lcore ids allocate, free, sit in sections and drain, while a process
 * that shares the caches does the same on an lcore of its own and is killed, over and over. Every
 * page has a word that says who holds it: nobody gets one that somebody has. At the end of each
 * generation, of a mode at a time, all stop: every free page can be had, once, and the counts add
 * up. Without hugepages EAL's memory is a shared memfd, so that a forked child sees it, too.
 */

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include "../../lib/pcp_cache/pcp_internal.h"
#include "../require.h"

#define PAGES      1280u
#define HELD       300u /* by one thread; all together now and then want more than there is */
#define BURST      48u
#define WORKERS    4u /* the last one without an lcore id */
#define LCORE      7u /* the child's */
#define GENERATION 2  /* seconds */

struct counts {
	uint64_t calls, failed, kills, generations, missing, buried, reclaims;
};

static struct pp_zone *zone;
static struct pcp_cache *cache;
static char *memory;     /* never touched: addresses are all that counts */
static uint32_t *holder; /* of each page; shared with the child */
static uint32_t stop;
static struct counts total;

/* ---- what all do ---- */

struct actor {
	struct pcp *pcp; /* NULL without an lcore id */
	uint32_t name;
	unsigned int seed;
	void *page[HELD + BURST];
	uint32_t n;
	uint64_t calls, failed;
};

static uint32_t *
word_of(const void *page)
{
	const size_t i = (size_t)((const char *)page - memory) / PP_PAGE_SIZE;

	require(i < PAGES);
	return &holder[i];
}

/* The first one is at hand; it is this actor's alone. */
static void
hold(struct actor *actor, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		require(pp_exchange(word_of(actor->page[actor->n + i]), actor->name) == 0);
	actor->n += n;
}

/* The last n are about to be given back. */
static void
drop(struct actor *actor, uint32_t n)
{
	actor->n -= n;
	for (uint32_t i = 0; i < n; i++)
		require(pp_exchange(word_of(actor->page[actor->n + i]), 0) == actor->name);
}

static void
alloc_some(struct actor *actor, uint32_t n, bool past_caches)
{
	void **page = &actor->page[actor->n];
	int rc;

	if (actor->n + n > HELD)
		return;
	if (past_caches || actor->pcp == NULL)
		rc = pcp_depot_alloc_bulk(cache, 0, page, n);
	else if (n == 1)
		rc = (*page = pcp_alloc(actor->pcp)) != NULL ? 0 : -1;
	else
		rc = pcp_alloc_bulk(actor->pcp, page, n);
	actor->failed += rc != 0;
	if (rc == 0)
		hold(actor, n);
}

static void
free_some(struct actor *actor, uint32_t n, bool past_caches)
{
	n = RTE_MIN(n, actor->n);
	drop(actor, n);
	if (past_caches || actor->pcp == NULL)
		pcp_depot_free_bulk(cache, 0, &actor->page[actor->n], n);
	else if (n == 1)
		pcp_free(actor->pcp, actor->page[actor->n]);
	else
		pcp_free_bulk(actor->pcp, &actor->page[actor->n], n);
}

static void
section(struct actor *actor, uint32_t n)
{
	pcp_bh_disable(actor->pcp);
	for (uint32_t i = 0; i < n; i++) {
		if (rand_r(&actor->seed) % 2 == 0 && actor->n > 0) {
			drop(actor, 1);
			pcp_free_nested(actor->pcp, actor->page[actor->n]);
		} else if (actor->n < HELD) {
			actor->page[actor->n] = pcp_alloc_nested(actor->pcp);
			if (actor->page[actor->n] != NULL)
				hold(actor, 1);
		}
	}
	if (rand_r(&actor->seed) % 64 == 0)
		sched_yield();
	pcp_bh_enable(actor->pcp);
}

static void
act(struct actor *actor)
{
	const uint32_t n =
		rand_r(&actor->seed) % 2 == 0 ? 1 : 1 + (uint32_t)rand_r(&actor->seed) % BURST;

	actor->calls++;
	switch (rand_r(&actor->seed) % 16) {
	case 0:
		alloc_some(actor, n, true);
		break;
	case 1:
		free_some(actor, n, true);
		break;
	case 2:
	case 3:
	case 4:
	case 5:
		if (actor->pcp != NULL)
			section(actor, n);
		break;
	case 6:
		if (rand_r(&actor->seed) % 256 == 0)
			pcp_cache_drain(cache);
		break;
	case 7:
		if (rand_r(&actor->seed) % 64 == 0)
			pcp_cache_shrink(cache, n);
		break;
	case 8:
		free_some(actor, actor->n / 2, false);
		break;
	default:
		if (rand_r(&actor->seed) % 5 < 3)
			alloc_some(actor, n, false);
		else
			free_some(actor, n, false);
		break;
	}
}

/* ---- threads ---- */

static void *
work(void *arg)
{
	struct actor *actor = arg;

	if (actor->name < WORKERS) {
		require(rte_thread_register() == 0);
		require(rte_lcore_id() < LCORE);
		actor->pcp = pcp_this(cache);
		require(actor->pcp != NULL);
	}
	while (!pp_load_acquire(&stop))
		act(actor);
	while (actor->n > 0)
		free_some(actor, BURST, false);
	pp_fetch_add(&total.calls, actor->calls);
	pp_fetch_add(&total.failed, actor->failed);
	if (actor->pcp != NULL)
		rte_thread_unregister();
	return NULL;
}

/* ---- processes ---- */

static void __rte_noreturn
live(unsigned int seed)
{
	static struct actor actor;

	actor = (struct actor){.pcp = pcp_of_lcore(cache, LCORE), .seed = seed};
	actor.name = (uint32_t)getpid();
	RTE_PER_LCORE(_lcore_id) = LCORE; /* not its parent's */
	require(pcp_adopt(actor.pcp));
	for (;;)
		act(&actor);
}

/* What it held is known, and goes back; what it had in its hands for a moment only is lost. */
static void
inherit(uint32_t dead)
{
	for (uint32_t i = 0; i < PAGES; i++) {
		if (pp_load_acquire(&holder[i]) == dead) {
			pp_store_release(&holder[i], 0);
			pcp_depot_free(cache, memory + (size_t)i * PP_PAGE_SIZE, 0);
		}
	}
}

static void
start_and_kill(unsigned int *seed)
{
	const struct timespec time = {.tv_nsec = 200000 + rand_r(seed) % 20000000};
	const struct timespec moment = {.tv_nsec = 20000};
	struct pcp *pcp = pcp_of_lcore(cache, LCORE);
	const unsigned int childs = (unsigned int)rand_r(seed);
	const pid_t child = fork();

	require(child >= 0);
	if (child == 0)
		live(childs);
	/*
	 * Not while it takes memory for its magazines: EAL's own heap lock survives no kill. In
	 * mode preempt it takes none, but works past the caches of its parent.
	 */
	while (pp_load_acquire(&pcp->owner_pid) != (uint32_t)child ||
		(cache->cpu == NULL && pp_load_acquire(&pcp->attention) & PCP_ATTENTION_OFFLINE)) {
		require(waitpid(child, NULL, WNOHANG) == 0);
		nanosleep(&moment, NULL);
	}
	nanosleep(&time, NULL);
	require(waitpid(child, NULL, WNOHANG) == 0);
	require(kill(child, SIGKILL) == 0);
	require(waitpid(child, NULL, 0) == child);
	inherit((uint32_t)child);
	total.kills++;
}

/* ---- generations ---- */

static void
check(void)
{
	static void *page[PAGES + 1];
	struct pcp_stats stats;
	uint32_t n = 0;

	pcp_cache_drain(cache);
	for (uint32_t i = 0; i < PAGES; i++)
		require(holder[i] == 0);
	while (n <= PAGES && (page[n] = pcp_cache_alloc(cache)) != NULL)
		require(pp_exchange(word_of(page[n++]), 1) == 0);
	pcp_cache_get_stats(cache, &stats);
	require(pcp_cache_is_valid(cache));
	require(pp_zone_is_valid(zone));
	require(pcp_cache_free_pages(cache) == 0);
	/* What was lost was in the hands of one who died: in use, or between two places. */
	require(stats.in_use_pages + stats.missing_pages == PAGES);
	for (uint32_t i = 0; i < n; i++)
		pcp_cache_free(cache, page[i]);
	require(pcp_cache_free_pages(cache) == n);
	memset(holder, 0, PAGES * sizeof(*holder));
	total.missing += PAGES - n;
	total.buried += stats.buried;
	total.reclaims += stats.reclaims;
	total.generations++;
}

static void
generation(enum pcp_mode mode, time_t until, unsigned int *seed)
{
	const struct pcp_config config = {
		.mode = mode,
		.batch = 8u << rand_r(seed) % 4,
		.high = rand_r(seed) % 2 == 0 ? 0 : PAGES / 4,
		.lcores = WORKERS,
	};
	const struct pp_run run = {.addr = memory, .stride = PP_PAGE_SIZE, .count = PAGES};
	static struct actor actor[WORKERS];
	pthread_t thread[WORKERS];

	zone = pp_zone_create("soak", PP_NODE_ANY, 9);
	require(zone != NULL && pp_zone_add_runs(zone, &run, 1) == 0);
	cache = pcp_cache_create(zone, &config);
	require(cache != NULL);
	stop = 0;
	for (uint32_t i = 0; i < WORKERS; i++) {
		actor[i] = (struct actor){.name = i + 1, .seed = (unsigned int)rand_r(seed)};
		require(pthread_create(&thread[i], NULL, work, &actor[i]) == 0);
	}
	while (time(NULL) < until)
		start_and_kill(seed);
	pp_store_release(&stop, 1);
	for (uint32_t i = 0; i < WORKERS; i++)
		require(pthread_join(thread[i], NULL) == 0);
	check();
	pcp_cache_destroy(cache);
	pp_zone_abandon(zone);
}

static void *
map(size_t len, int prot, int flags)
{
	void *addr = mmap(NULL, len, prot, flags | MAP_ANONYMOUS, -1, 0);

	require(addr != MAP_FAILED);
	return addr;
}

/* A word of digits, as a number; another one ends the program with a line that says what it was to
 * be. */
static unsigned int
number(const char *word, const char *what)
{
	char *end;
	const unsigned long value = strtoul(word, &end, 10);

	if (word[0] < '0' || word[0] > '9' || *end != '\0' || value > INT_MAX) {
		fprintf(stderr, "pcp_soak: %s is no number of %s; see --help\n", word, what);
		exit(2);
	}
	return value;
}

int
main(int argc, char **argv)
{
	static const enum pcp_mode modes[] = {
		PCP_MODE_BH, PCP_MODE_SPIN, PCP_MODE_BYPASS, PCP_MODE_IRQ, PCP_MODE_PREEMPT};
	const bool asks = argc > 1 && strcmp(argv[1], "--help") == 0;
	char *eal[] = {argv[0], "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m",
		"64", "--lcores=0", "--log-level=lib.pcp_cache:error",
		"--log-level=lib.pagepool:error", NULL};
	const time_t start = time(NULL);
	cpu_set_t cpus;

	if (asks || argc > 3) {
		fprintf(asks ? stdout : stderr,
			"usage: pcp_soak [SECONDS [SEED]]   (600, by the clock)\n");
		return asks ? 0 : 2;
	}
	const time_t seconds = argc > 1 ? number(argv[1], "seconds") : 600;
	unsigned int seed = argc > 2 ? number(argv[2], "a seed") : (unsigned int)start;

	if (seconds == 0) {
		fprintf(stderr, "pcp_soak: 0 seconds are not enough; see --help\n");
		return 2;
	}
	printf("%ld seconds, seed %u\n", (long)seconds, seed);
	fflush(stdout);
	require(rte_eal_init(RTE_DIM(eal) - 1, eal) >= 0);
	/* EAL has put this thread, and so all that come from it, on one processor. */
	memset(&cpus, 0xff, sizeof(cpus));
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	memory = map((size_t)PAGES * PP_PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE);
	holder = map(PAGES * sizeof(*holder), PROT_READ | PROT_WRITE, MAP_SHARED);
	while (time(NULL) < start + seconds)
		generation(modes[total.generations % RTE_DIM(modes)],
			RTE_MIN(time(NULL) + GENERATION, start + seconds), &seed);
	printf("%" PRIu64 " calls of threads, %" PRIu64 " failed; %" PRIu64
	       " processes killed, %" PRIu64 " caches buried; %" PRIu64 " reclaims; %" PRIu64
	       " generations, %" PRIu64 " pages lost\n",
		total.calls, total.failed, total.kills, total.buried, total.reclaims,
		total.generations, total.missing);
	rte_eal_cleanup();
	/* Each life is buried once, but the last of a generation perhaps not at all. */
	require(total.buried <= total.kills && total.buried + total.generations >= total.kills);
	return total.kills > 0 && total.reclaims > 0 ? 0 : 1;
}
