/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that share pools, and are killed. Run by processes.sh:
 *	processes EAL-ARGUMENT... -- primary KILLS     the test: starts and kills the others
 *	processes EAL-ARGUMENT... -- hold BACKEND      holds a page pool until it is killed
 *	processes EAL-ARGUMENT... -- ROLE LCORE        a secondary, as the primary starts it
 */

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "../../drivers/mempool/pagepool/mempool_internal.h"
#include "../../lib/pagepool/pp_internal.h"
#include "../../lib/pcp_cache/pcp_internal.h"
#include "../require.h"

#define POOL_SIZE 4096u
#define HELD      64u /* that a secondary keeps of each pool, at most */
#define BURST     32u
#define SLOTS     2u /* secondaries at a time, on the lcores after the primary's two */
#define LCORE(i)  (2 + (i))

/* What the processes say to each other. */
struct board {
	uint32_t ready[SLOTS]; /* pid of a secondary that has taken all the memory that it needs */
	uint32_t stop;         /* the primary's worker */
};

static struct board *board;
static struct rte_mempool *pool[2]; /* with ops pagepool; of pages */
static const char *const pool_name[] = {"objects", "pages"};

/* ---- another driver, which takes the place of ours where a secondary registers it first ---- */

static int
other_alloc(struct rte_mempool *mp)
{
	mp->pool_data = rte_zmalloc("other", 4096, 0);
	return mp->pool_data != NULL ? 0 : -ENOMEM;
}

static void
other_free(struct rte_mempool *mp)
{
	rte_free(mp->pool_data);
}

static int
other_enqueue(struct rte_mempool *mp __rte_unused, void *const *objs __rte_unused,
	unsigned int n __rte_unused)
{
	return 0;
}

static int
other_dequeue(
	struct rte_mempool *mp __rte_unused, void **objs __rte_unused, unsigned int n __rte_unused)
{
	return -ENOBUFS;
}

static unsigned int
other_get_count(const struct rte_mempool *mp __rte_unused)
{
	return 0;
}

static const struct rte_mempool_ops other_ops = {
	.name = "other",
	.alloc = other_alloc,
	.free = other_free,
	.enqueue = other_enqueue,
	.dequeue = other_dequeue,
	.get_count = other_get_count,
};

/* Before the driver's own constructor. */
RTE_INIT_PRIO(register_first, LOG)
{
	if (getenv("PROCESSES_OTHER_FIRST") != NULL)
		rte_mempool_register_ops(&other_ops);
}

/* ---- what all roles do with the pools ---- */

struct hoard {
	void *object[HELD];
	uint32_t n;
};

static void
take(struct rte_mempool *mp, struct hoard *hoard, uint32_t n)
{
	if (hoard->n + n <= HELD && rte_mempool_get_bulk(mp, &hoard->object[hoard->n], n) == 0)
		hoard->n += n;
}

static void
give(struct rte_mempool *mp, struct hoard *hoard, uint32_t n)
{
	n = RTE_MIN(n, hoard->n);
	hoard->n -= n;
	rte_mempool_put_bulk(mp, &hoard->object[hoard->n], n);
}

/* As a poll loop: one section per burst. */
static void
in_a_section(struct rte_mempool *mp, struct hoard *hoard, uint32_t n)
{
	struct pcp *pcp = pcp_this(pp_mempool_cache(mp));
	void *object[BURST];
	uint32_t got = 0;

	pcp_bh_disable(pcp);
	while (got < n && (object[got] = pcp_alloc_nested(pcp)) != NULL)
		got++;
	while (got > 0)
		pcp_free_nested(pcp, object[--got]);
	while (hoard->n > HELD / 2)
		pcp_free_nested(pcp, hoard->object[--hoard->n]);
	pcp_bh_enable(pcp);
}

static void
churn_once(struct hoard *hoards)
{
	const unsigned int which = (unsigned int)rand() % RTE_DIM(pool);
	const uint32_t n = 1 + (uint32_t)rand() % BURST;

	switch (rand() % 3) {
	case 0:
		take(pool[which], &hoards[which], n);
		break;
	case 1:
		give(pool[which], &hoards[which], n);
		break;
	case 2:
		in_a_section(pool[which], &hoards[which], n);
		break;
	}
}

/* ---- secondaries ---- */

static void
find_pools(void)
{
	const struct rte_memzone *zone = rte_memzone_lookup("board");

	require(zone != NULL);
	board = zone->addr;
	for (unsigned int i = 0; i < RTE_DIM(pool); i++) {
		pool[i] = rte_mempool_lookup(pool_name[i]);
		require(pool[i] != NULL);
	}
}

/* A cache takes memory at its first call. */
static void
warm_up(void)
{
	struct hoard hoards[RTE_DIM(pool)] = {0};

	for (unsigned int i = 0; i < RTE_DIM(pool); i++) {
		take(pool[i], &hoards[i], 1);
		give(pool[i], &hoards[i], 1);
	}
}

/* From here on the kill may come: EAL's own heap lock would not survive it. */
static void
ready(unsigned int slot)
{
	pp_store_release(&board->ready[slot], (uint32_t)getpid());
}

static void __rte_noreturn
wait_for_the_kill(void)
{
	for (;;)
		pause();
}

static void __rte_noreturn
secondary_churn(unsigned int slot)
{
	struct hoard hoards[RTE_DIM(pool)] = {0};

	srand((unsigned int)getpid());
	warm_up();
	ready(slot);
	for (;;)
		churn_once(hoards);
}

static void __rte_noreturn
secondary_section(unsigned int slot)
{
	void *object[2 * BURST];

	for (unsigned int i = 0; i < RTE_DIM(pool); i++) {
		struct pcp *pcp = pcp_this(pp_mempool_cache(pool[i]));

		pcp_bh_disable(pcp);
		for (unsigned int k = 0; k < RTE_DIM(object); k++)
			require((object[k] = pcp_alloc_nested(pcp)) != NULL);
		for (unsigned int k = 0; k < BURST; k++)
			pcp_free_nested(pcp, object[k]);
	}
	ready(slot);
	wait_for_the_kill();
}

/* Holds the zones' locks, the depots', or those of reclaim; the others must be in full swing. */
static void __rte_noreturn
secondary_lock(unsigned int slot, const char *which)
{
	warm_up();
	while (pp_load_acquire(&board->ready[SLOTS - 1 - slot]) == 0)
		rte_pause();
	for (unsigned int i = 0; i < RTE_DIM(pool); i++) {
		struct pcp_cache *cache = pp_mempool_cache(pool[i]);

		if (strcmp(which, "zone-lock") == 0)
			pp_zone_lock(pcp_cache_zone(cache));
		else if (strcmp(which, "depot-lock") == 0)
			pp_lock(&cache->depot->lock);
		else
			pp_lock(&cache->depot->reclaim_lock);
	}
	ready(slot);
	wait_for_the_kill();
}

/* On the lcore of a living process: it works, past the caches, and is told. */
static int
secondary_guest(void)
{
	struct hoard hoards[RTE_DIM(pool)] = {0};

	for (unsigned int i = 0; i < RTE_DIM(pool); i++) {
		const struct pcp *theirs = &pp_mempool_cache(pool[i])->pcp[rte_lcore_id()];
		const uint32_t owner = theirs->owner_pid;

		require(owner != 0 && owner != (uint32_t)getpid());
		take(pool[i], &hoards[i], BURST);
		require(hoards[i].n == BURST);
		give(pool[i], &hoards[i], BURST);
		require(theirs->owner_pid == owner);
	}
	return 0;
}

/* Both pools are of another build, as their first word says: nothing of them can be had. */
static int
secondary_stranger(void)
{
	void *object = NULL;

	for (unsigned int i = 0; i < RTE_DIM(pool); i++) {
		require(rte_mempool_get(pool[i], &object) == -EINVAL && object == NULL);
		require(rte_mempool_avail_count(pool[i]) == 0);
		require(pp_mempool_cache(pool[i]) == NULL);
	}
	return 0;
}

/* Our driver has the place that the other one has in the primary, and the other one ours. */
static int
secondary_shifted(void)
{
	struct rte_mempool *theirs = rte_mempool_lookup("other");
	void *object = NULL;

	require(theirs != NULL);
	require(strcmp(rte_mempool_get_ops(theirs->ops_index)->name, PP_MEMPOOL_OPS_NAME) == 0);
	require(rte_mempool_get(theirs, &object) == -EINVAL && object == NULL);
	require(rte_mempool_avail_count(theirs) == 0);
	require(pp_mempool_cache(theirs) == NULL);
	require(pp_mempool_cache(pool[0]) == NULL);
	return 0;
}

static int
secondary(const char *role, unsigned int lcore)
{
	find_pools();
	if (strcmp(role, "churn") == 0)
		secondary_churn(lcore - LCORE(0));
	if (strcmp(role, "section") == 0)
		secondary_section(lcore - LCORE(0));
	if (strstr(role, "-lock") != NULL)
		secondary_lock(lcore - LCORE(0), role);
	if (strcmp(role, "guest") == 0)
		return secondary_guest();
	if (strcmp(role, "stranger") == 0)
		return secondary_stranger();
	require(strcmp(role, "shifted") == 0);
	return secondary_shifted();
}

/* ---- the primary ---- */

static char *const *eal_argv; /* up to "--" */
static int eal_argc;

static pid_t
start(const char *role, unsigned int slot)
{
	char lcores[16], number[16], *argv[32];
	int n = 0;

	snprintf(lcores, sizeof(lcores), "%u@%d", LCORE(slot), sched_getcpu());
	snprintf(number, sizeof(number), "%u", LCORE(slot));
	const pid_t pid = fork();

	require(pid >= 0);
	if (pid > 0)
		return pid;
	for (int i = 0; i < eal_argc; i++) {
		if (strncmp(eal_argv[i], "--lcores", 8) != 0 &&
			strncmp(eal_argv[i], "--proc-type", 11) != 0)
			argv[n++] = eal_argv[i];
	}
	argv[n++] = strdup("--proc-type=secondary");
	argv[n++] = strdup("--lcores");
	argv[n++] = lcores;
	argv[n++] = strdup("--");
	argv[n++] = strdup(role);
	argv[n++] = number;
	argv[n] = NULL;
	if (strcmp(role, "shifted") == 0)
		setenv("PROCESSES_OTHER_FIRST", "1", 1);
	execv("/proc/self/exe", argv);
	require_failed(__FILE_NAME__, __LINE__, "execv");
}

static void
wait_until_ready(pid_t pid, unsigned int slot)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	int status;

	while (pp_load_acquire(&board->ready[slot]) != (uint32_t)pid) {
		require(waitpid(pid, &status, WNOHANG) == 0);
		nanosleep(&moment, NULL);
	}
}

static void
kill_and_wait(pid_t pid)
{
	int status;

	require(kill(pid, SIGKILL) == 0);
	require(waitpid(pid, &status, 0) == pid);
	require(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
run_to_its_end(const char *role, unsigned int slot)
{
	const pid_t pid = start(role, slot);
	int status;

	require(waitpid(pid, &status, 0) == pid);
	require(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	printf("%s: as expected\n", role);
}

/* The primary goes on meanwhile. */
static int
worker(void *arg __rte_unused)
{
	struct hoard hoards[RTE_DIM(pool)] = {0};

	while (!pp_load_acquire(&board->stop))
		churn_once(hoards);
	for (unsigned int i = 0; i < RTE_DIM(pool); i++)
		give(pool[i], &hoards[i], HELD);
	return 0;
}

static int
compare_pointers(const void *a, const void *b)
{
	const uintptr_t x = (uintptr_t) * (void *const *)a, y = (uintptr_t) * (void *const *)b;

	return x < y ? -1 : x > y;
}

/*
 * At rest: all that is free can be had, each object once and whole; it and what is in use or
 * missing are the pool.
 */
static void
check_pool(struct rte_mempool *mp, uint64_t lost_at_most)
{
	static void *object[POOL_SIZE + 1];
	struct pcp_cache *cache = pp_mempool_cache(mp);
	struct pcp_stats stats;
	unsigned int n = 0;

	while (n <= POOL_SIZE && rte_mempool_get(mp, &object[n]) == 0) {
		require(rte_mempool_from_obj(object[n]) == mp);
		if (mp == pool[1])
			rte_mbuf_sanity_check(object[n], 1);
		memset((char *)object[n] + sizeof(struct rte_mbuf), (int)n,
			mp->elt_size - sizeof(struct rte_mbuf));
		n++;
	}
	require(n <= POOL_SIZE);
	require(rte_mempool_avail_count(mp) == 0);
	qsort(object, n, sizeof(object[0]), compare_pointers);
	for (unsigned int i = 1; i < n; i++)
		require(object[i] != object[i - 1]);
	for (unsigned int i = 0; i < n; i++)
		rte_mempool_put(mp, object[i]);
	require(rte_mempool_avail_count(mp) == n);

	pcp_cache_get_stats(cache, &stats);
	require(pcp_cache_is_valid(cache));
	require(pp_zone_is_valid(pcp_cache_zone(cache)));
	rte_mempool_audit(mp);
	require(n + stats.in_use_pages + stats.missing_pages == POOL_SIZE);
	require(POOL_SIZE - n <= lost_at_most);
	printf("  %s: %u free, %" PRIu64 " held by the dead, %" PRIu64 " missing, %" PRIu64
	       " caches buried\n",
		mp->name, n, stats.in_use_pages, stats.missing_pages, stats.buried);
}

/*
 * Two secondaries live, work and die while the primary works, too. Returns the most objects of a
 * pool that they can have taken with them: what they held, a burst, and the magazines of an
 * exchange.
 */
static uint64_t
live_and_die(const char *const *role)
{
	const struct timespec life = {.tv_nsec = 1000000 + rand() % 20000000};
	struct pcp_config config;
	pid_t pid[SLOTS];

	memset(board, 0, sizeof(*board));
	require(rte_eal_remote_launch(worker, NULL, 1) == 0);
	for (unsigned int i = 0; i < SLOTS; i++)
		pid[i] = start(role[i], i);
	for (unsigned int i = 0; i < SLOTS; i++)
		wait_until_ready(pid[i], i);
	nanosleep(&life, NULL);
	for (unsigned int i = 0; i < SLOTS; i++)
		kill_and_wait(pid[i]);
	pp_store_release(&board->stop, 1);
	rte_eal_wait_lcore(1);
	pcp_cache_get_config(pp_mempool_cache(pool[0]), &config);
	return SLOTS * (HELD + BURST + 3 * config.batch);
}

static void
make_pools(void)
{
	const struct rte_memzone *zone =
		rte_memzone_reserve("board", sizeof(*board), SOCKET_ID_ANY, 0);
	struct pp_mempool_config config = {.pcp = {.batch = 32, .lcores = 4}};
	const struct pp_pktmbuf_config pages = {
		.backend = PP_BACKEND_MEMZONE,
		.pcp = config.pcp,
	};

	require(zone != NULL);
	board = zone->addr;
	memset(board, 0, sizeof(*board));
	pool[0] = rte_mempool_create_empty(pool_name[0], POOL_SIZE, 512, 0, 0, SOCKET_ID_ANY, 0);
	require(pool[0] != NULL);
	require(rte_mempool_set_ops_byname(pool[0], PP_MEMPOOL_OPS_NAME, &config) == 0);
	require(rte_mempool_populate_default(pool[0]) == POOL_SIZE);
	pool[0]->pool_config = NULL;
	pool[1] = pp_pktmbuf_pool_create(pool_name[1], POOL_SIZE, 0, 2176, SOCKET_ID_ANY, &pages);
	require(pool[1] != NULL);
}

/* A pool of the other driver; its place in the table is the one after ours. */
static void
make_other(void)
{
	struct rte_mempool *mp = rte_mempool_create_empty("other", 16, 64, 0, 0, SOCKET_ID_ANY, 0);

	require(mp != NULL);
	require(rte_mempool_set_ops_byname(mp, "other", NULL) == 0);
	require(rte_mempool_populate_default(mp) == 16);
	require(mp->ops_index == pool[0]->ops_index + 1);
}

static void
change_layout(void)
{
	for (unsigned int i = 0; i < RTE_DIM(pool); i++)
		((struct pp_mempool *)pool[i]->pool_data)->layout ^= 1;
}

static int
primary(unsigned int kills)
{
	static const char *const roles[][SLOTS] = {
		{"section", "churn"},
		{"zone-lock", "churn"},
		{"churn", "depot-lock"},
		{"reclaim-lock", "churn"},
		{"churn", "section"},
	};
	static const char *const churn[SLOTS] = {"churn", "churn"};
	uint64_t lost_at_most = 0;

	make_pools();
	make_other();
	for (unsigned int i = 0; i * SLOTS < kills; i++) {
		const char *const *role = i < RTE_DIM(roles) ? roles[i] : churn;

		printf("round %u: %s, %s\n", i, role[0], role[1]);
		lost_at_most += live_and_die(role);
		for (unsigned int k = 0; k < RTE_DIM(pool); k++)
			check_pool(pool[k], lost_at_most);
	}
	for (unsigned int k = 0; k < RTE_DIM(pool); k++) {
		struct pcp_stats stats;

		pcp_cache_get_stats(pp_mempool_cache(pool[k]), &stats);
		require(stats.buried == kills);
	}

	memset(board, 0, sizeof(*board));

	const pid_t host = start("churn", 0);

	wait_until_ready(host, 0);
	run_to_its_end("guest", 0);
	kill_and_wait(host);
	change_layout();
	run_to_its_end("stranger", 1);
	change_layout();
	run_to_its_end("shifted", 1);
	for (unsigned int k = 0; k < RTE_DIM(pool); k++)
		check_pool(pool[k], lost_at_most + HELD + BURST + 3 * 32);
	require(pp_pktmbuf_pool_free(pool[1]) == -EBUSY);
	printf("%u processes killed\n", kills + 1);
	return 0;
}

static int
hold(const char *backend)
{
	const struct pp_pktmbuf_config config = {
		.backend = strcmp(backend, "memfd") == 0 ? PP_BACKEND_MEMFD : PP_BACKEND_MEMZONE,
	};
	struct rte_mempool *mp =
		pp_pktmbuf_pool_create("held", 4 * POOL_SIZE, 0, 2176, SOCKET_ID_ANY, &config);

	require(mp != NULL);
	printf("holding\n");
	fflush(stdout);
	wait_for_the_kill();
}

int
main(int argc, char **argv)
{
	for (eal_argc = 1; eal_argc < argc && strcmp(argv[eal_argc], "--") != 0;)
		eal_argc++;
	eal_argv = argv;
	if (argc - eal_argc < 3) {
		fprintf(stderr, "usage: processes EAL-ARGUMENT... -- ROLE ARGUMENT\n");
		return 2;
	}
	const char *role = argv[eal_argc + 1], *argument = argv[eal_argc + 2];
	char *arguments[64];

	/* EAL sorts what it is given. */
	require(argc < (int)RTE_DIM(arguments));
	memcpy(arguments, argv, (size_t)argc * sizeof(*argv));
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getenv("PROCESSES_OTHER_FIRST") == NULL)
		rte_mempool_register_ops(&other_ops);
	require(rte_eal_init(eal_argc, arguments) >= 0);
	if (strcmp(role, "primary") == 0) {
		const int status = primary((unsigned int)atoi(argument));

		rte_eal_cleanup();
		return status;
	}
	if (strcmp(role, "hold") == 0)
		return hold(argument);
	return secondary(role, (unsigned int)atoi(argument));
}
