/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The magazines of one order, for spin: depot.c and slow.c. Whatever calls, exchanges and flushes
 * come in whatever order, there is an empty magazine for whoever has a full one to give.
 *
 * Exclusion is reclaim.pml's concern: here each exchange is one step, so counts are enough. Owners
 * and claimers look the same.
 */

#ifndef CACHES
#define CACHES 2
#endif
#ifndef PAGES
#define PAGES 7
#endif
#ifndef BATCH
#define BATCH 2
#endif
#ifndef DRAINERS
#define DRAINERS 0 /* at once, outside of the lock: see away */
#endif
#ifdef TOO_FEW
#define MAGAZINES ((PAGES + BATCH - 1) / BATCH)
#else
#define MAGAZINES ((PAGES + BATCH - 1) / BATCH + 1)
#endif

byte loaded[CACHES], previous[CACHES];
byte filled[BATCH + 1]; /* magazines in the depot by the pages in them, but for the partial one */
byte partial;
byte away; /* magazines whose pages somebody gave to the zone, and that are not yet back */
byte zone = PAGES, in_use;

/* A magazine with `pages` for an empty one. */
inline give(pages)
{
	assert(filled[0] > 0);
	filled[0]--;
	filled[pages]++
}

/* pcp_depot_take_full() */
inline take_full(i)
{
	if
	:: filled[BATCH] > 0 -> filled[BATCH]--; filled[0]++; loaded[i] = BATCH
	:: filled[BATCH] == 0 && partial > 0 -> loaded[i] = partial; partial = 0
#ifdef NO_PARTIAL
	:: filled[1] > 0 -> filled[1]--; filled[0]++; loaded[i] = 1
#endif
	fi
}

/* pcp_depot_put(), a page at a time */
inline put()
{
	if
	:: partial == BATCH -> give(BATCH); partial = 1
	:: else -> partial++
	fi
}

inline flush(magazine)
{
#ifdef NO_PARTIAL
	if
	:: magazine > 0 -> give(magazine)
	:: else
	fi;
	magazine = 0
#else
	do
	:: magazine > 0 -> put(); magazine--
	:: else -> break
	od
#endif
}

#define DEPOT_IS_DRY (filled[BATCH] == 0 && partial == 0)

active proctype anybody()
{
	byte i;

	filled[0] = MAGAZINES - 1; /* one is the partial one */
	do
	:: atomic {
		select (i : 0 .. CACHES - 1);
		if
		/* An owner allocates, refilling first. */
		:: loaded[i] > 0 -> loaded[i]--; in_use++
		:: loaded[i] == 0 && previous[i] > 0 -> loaded[i] = previous[i]; previous[i] = 0
		:: loaded[i] == 0 && previous[i] == 0 && !DEPOT_IS_DRY -> take_full(i)
		:: loaded[i] == 0 && previous[i] == 0 && DEPOT_IS_DRY && zone > 0 ->
			do
			:: loaded[i] < BATCH && zone > 0 -> loaded[i]++; zone--
			:: else -> break
			od
		/* It frees, making room first. */
		:: in_use > 0 && loaded[i] < BATCH -> loaded[i]++; in_use--
		:: loaded[i] == BATCH && previous[i] == 0 -> previous[i] = BATCH; loaded[i] = 0
		:: in_use > 0 && loaded[i] == BATCH && previous[i] > 0 -> give(BATCH); loaded[i] = 0
		/* Its pages go, by drain or claim. */
		:: loaded[i] + previous[i] > 0 -> flush(previous[i]); flush(loaded[i])
		/* pcp_depot_take(), pcp_depot_put() and surplus to the zone, by whoever. */
		:: partial > 0 -> partial--; in_use++
		:: partial == 0 && filled[BATCH] > 0 ->
			filled[BATCH]--;
			filled[0]++;
			partial = BATCH - 1;
			in_use++
		:: in_use > 0 -> put(); in_use--
		:: filled[BATCH] > 0 && away < DRAINERS ->
			filled[BATCH]--;
			away++;
			zone = zone + BATCH
		:: away > 0 -> away--; filled[0]++
		:: filled[BATCH] > 0 -> filled[BATCH]--; filled[0]++; zone = zone + BATCH
		:: partial > 0 -> zone = zone + partial; partial = 0
		:: else
		fi;
		assert(previous[i] == 0 || previous[i] == BATCH)
	   }
	od
}
