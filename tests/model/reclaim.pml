/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The claim protocol of lib/pcp_cache, mode bh, for spin: pcp.h, section.c, reclaim.c, slow.c.
 * README.md says what is checked, what each mutant breaks, and what is left out.
 *
 * Sets of pages are bitmasks, so that a page handed out twice is seen as such. A list's state word
 * and the addresses behind it are one variable. What an owner stores goes through a store buffer,
 * which its own loads see first. An atomic or d_step holds what others cannot look into: one access
 * to shared memory with what is local around it, or what happens under the depot's lock.
 */

#ifndef LCORES
#define LCORES 2 /* or 3 */
#endif
#ifndef ACTIVE
#define ACTIVE LCORES /* of these; the others do nothing with the pages that they have */
#endif
#ifndef THREADS
#define THREADS 0 /* 1: also a thread without a cache, which allocates, frees and shrinks */
#endif
#ifndef PAGES
#define PAGES 2 /* up to 4 */
#endif
#ifndef BATCH
#define BATCH 1 /* pages per magazine, 1 or 2 */
#endif
#ifndef STEPS
#define STEPS 2 /* calls and section entries of each lcore */
#endif
#ifndef NEST_MAX
#define NEST_MAX 1
#endif
#ifndef DEPTH
#define DEPTH 3 /* of the store buffers, up to 4 */
#endif

#define ACTORS (LCORES + THREADS)
#define THREAD LCORES /* the number of the one without a cache */

/* ---- sets of pages ---- */

#define ALL	     ((1 << PAGES) - 1)
#define ONE(set)     ((set) & -(set))
#define SIZE(set)    (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1) + ((set) >> 3 & 1))
#define IS_FULL(set) (SIZE(set) == BATCH)
#if BATCH == 1
#define SOME(set) ONE(set) /* up to a magazine of them */
#else
#define SOME(set) (ONE(set) | ONE((set) & ~ONE(set)))
#endif

/* ---- memory ---- */

/* What an owner publishes; 0 is nothing at all. */
#define BUSY	 1
#define NEST	 2
#define LOADED	 3
#define PREVIOUS 4

#define CLAIMED 1
#define DRAIN	2

typedef pcp_t {
	byte memory[5];	     /* what everybody sees of what the owner stores */
	byte store[4];	     /* the owner's store buffer, oldest first; 0 behind the last */
	byte attention;	     /* written by locked instructions alone, so in no buffer */
	byte hand;	     /* pages that the owner moves between list, depot and application */
	bool owner, claimer; /* who is at the lists */
};
pcp_t pcp[ACTORS]; /* the thread's is never used */
byte depot, zone, transit, in_use;
bool reclaim_lock, backoff;

/* For each actor: pages that its allocation has no excuse for not having found. */
byte missed[ACTORS];
/* The depot's count of arrivals: 0 not interested, 1 none since the attempt began, 2 some. */
byte arrivals[ACTORS];

#define ENTRY(var, value) ((var) | (value) << 3)
#define VAR(entry)	  ((entry) & 7)
#define VALUE(entry)	  ((entry) >> 3)

/* What the owner itself sees. */
#define IS(i, k, var) (VAR(pcp[i].store[k]) == var)
#define OWN(i, var)                                                                                \
	(IS(i, 3, var) -> VALUE(pcp[i].store[3]) :                                                 \
	(IS(i, 2, var) -> VALUE(pcp[i].store[2]) :                                                 \
	(IS(i, 1, var) -> VALUE(pcp[i].store[1]) :                                                 \
	(IS(i, 0, var) -> VALUE(pcp[i].store[0]) : pcp[i].memory[var]))))

#define LANDED(i) (pcp[i].store[0] == 0)
#define ROOM(i)	  (pcp[i].store[DEPTH - 1] == 0)
#define LENGTH(i)                                                                                  \
	((pcp[i].store[0] != 0) + (pcp[i].store[1] != 0) + (pcp[i].store[2] != 0) +                \
		(pcp[i].store[3] != 0))

/* Where there is room: d_step { ROOM(i) -> STORE(i, ...) } */
#define STORE(i, var, value) pcp[i].store[LENGTH(i)] = ENTRY(var, value); OBSERVE

/* Entry k of the store buffer becomes visible. */
#define CLOSE_3(i) pcp[i].store[3] = 0
#define CLOSE_2(i) pcp[i].store[2] = pcp[i].store[3]; CLOSE_3(i)
#define CLOSE_1(i) pcp[i].store[1] = pcp[i].store[2]; CLOSE_2(i)
#define CLOSE_0(i) pcp[i].store[0] = pcp[i].store[1]; CLOSE_1(i)
#define SHOW(i, k) pcp[i].memory[VAR(pcp[i].store[k])] = VALUE(pcp[i].store[k])
#define LAND(i, k) SHOW(i, k); CLOSE_##k(i); OBSERVE

/* All of them: a barrier, a locked instruction; on weak machines what its release orders. */
#define FENCE(i)                                                                                   \
	SHOW(i, 0); SHOW(i, 1); SHOW(i, 2); SHOW(i, 3);                                            \
	pcp[i].store[0] = 0; pcp[i].store[1] = 0; pcp[i].store[2] = 0; pcp[i].store[3] = 0;        \
	OBSERVE

/* A locked instruction with acquire alone. */
#ifdef WEAK
#define ACQUIRE_FENCE(i) skip
#else
#define ACQUIRE_FENCE(i) FENCE(i)
#endif

/* ---- where pages are ---- */

#define OUTSIDE(i) (LANDED(i) && pcp[i].memory[BUSY] == 0 && pcp[i].memory[NEST] == 0)
#define SHOWN(i)   (pcp[i].memory[LOADED] | pcp[i].memory[PREVIOUS])
#define HELD(i)	   (OWN(i, LOADED) | OWN(i, PREVIOUS) | pcp[i].hand)

/*
 * Pages that an allocation must find in a cache: those of an owner that is outside. With PATIENT,
 * which waits for calls to end, all but those of an owner in a section.
 */
#ifdef PATIENT
#define FINDABLE(i)                                                                                \
	(pcp[i].memory[NEST] != 0 || OWN(i, NEST) != 0 -> 0 :                                      \
	(pcp[i].memory[BUSY] != 0 -> HELD(i) : SHOWN(i)))
#else
#define FINDABLE(i) (OUTSIDE(i) -> SHOWN(i) : 0)
#endif

#if LCORES == 3
#define OF_ALL(property, with) (property(0) with property(1) with property(2))
#else
#define OF_ALL(property, with) (property(0) with property(1))
#endif
#define SIZE_HELD(i) SIZE(HELD(i))

/* Every page is somewhere, and nowhere twice. */
#define AT_REST (OF_ALL(OUTSIDE, &&) && !reclaim_lock && transit == 0)
#define CONSERVED                                                                                  \
	((depot | zone | in_use | OF_ALL(HELD, |)) == ALL &&                                       \
		SIZE(depot) + SIZE(zone) + SIZE(in_use) + OF_ALL(SIZE_HELD, +) == PAGES)

/* After each step that could take a page out of an allocation's sight with good reason. */
#define FINDABLE_NOW	   ((depot | zone | transit | OF_ALL(FINDABLE, |)) & ~in_use)
#define FOR_ACTOR(actor)   missed[actor] = missed[actor] & found
#define ARRIVED_FOR(actor, pages)                                                                  \
	arrivals[actor] = (arrivals[actor] && ARE_COUNTED(pages) -> 2 : arrivals[actor])
#ifdef COUNT_NOTHING
#define ARE_COUNTED(pages) true
#else
#define ARE_COUNTED(pages) (pages) != 0
#endif
hidden byte found;
#if ACTORS == 2
#define OBSERVE found = FINDABLE_NOW; FOR_ACTOR(0); FOR_ACTOR(1)
#define ARRIVED(pages) ARRIVED_FOR(0, pages); ARRIVED_FOR(1, pages)
#else
#define OBSERVE found = FINDABLE_NOW; FOR_ACTOR(0); FOR_ACTOR(1); FOR_ACTOR(2)
#define ARRIVED(pages) ARRIVED_FOR(0, pages); ARRIVED_FOR(1, pages); ARRIVED_FOR(2, pages)
#endif

/* With SHELVES two, looked at in turn: each time a page comes it lies on the other one. */
#ifdef SHELVES
byte far;
#define NEAR	      (depot & ~far)
#define SHELVE(pages) far = far ^ (pages)
#else
#define NEAR	      depot
#define SHELVE(pages) skip
#endif

#define PUT(pages)                                                                                 \
	assert(((depot | zone | in_use) & (pages)) == 0);                                          \
	depot = depot | (pages);                                                                   \
	SHELVE(pages);                                                                             \
	ARRIVED(pages)

#define HAND_OUT(pages)                                                                            \
	assert((in_use & (pages)) == 0);                                                           \
	in_use = in_use | (pages)

/* ---- when stores become visible ---- */

#ifdef NO_RELEASE
#define IS_RELEASE(i, k) false
#else
#define IS_RELEASE(i, k) (pcp[i].store[k] == ENTRY(BUSY, 0) || pcp[i].store[k] == ENTRY(NEST, 0))
#endif
#define SAME(i, j, k) (VAR(pcp[i].store[j]) == VAR(pcp[i].store[k]))

proctype store_buffer(byte i)
{
end:
	do
	:: d_step { !LANDED(i) -> LAND(i, 0); assert(!AT_REST || CONSERVED) }
#ifdef WEAK
	:: d_step { pcp[i].store[1] != 0 && !IS_RELEASE(i, 1) && !SAME(i, 0, 1) -> LAND(i, 1) }
	:: d_step {
		pcp[i].store[2] != 0 && !IS_RELEASE(i, 2) && !SAME(i, 0, 2) && !SAME(i, 1, 2) ->
		LAND(i, 2)
	   }
	:: d_step {
		pcp[i].store[3] != 0 && !IS_RELEASE(i, 3) && !SAME(i, 0, 3) && !SAME(i, 1, 3) &&
			!SAME(i, 2, 3) ->
		LAND(i, 3)
	   }
#endif
	od
}

/* ---- sections and calls: the owner's side ---- */

/* The look at attention has passed: from here on the lists are the owner's. */
#define OWNS(me)                                                                                   \
	assert(!pcp[me].claimer);                                                                  \
	pcp[me].owner = true;                                                                      \
	asked = (pcp[me].attention & DRAIN) != 0

/* While there is a claim, step out of what `var` says, and in again. */
inline wait_unclaimed(me, var, value)
{
	do
	:: pcp[me].attention & CLAIMED ->
		/* A section around this one goes on. */
		d_step { ROOM(me) -> pcp[me].owner = value > 1; STORE(me, var, 0) };
		!(pcp[me].attention & CLAIMED);
		d_step { ROOM(me) -> STORE(me, var, value) }
	:: d_step { !(pcp[me].attention & CLAIMED) -> OWNS(me) }; break
	od
}

inline flush_if_asked(me)
{
#ifndef NO_DRAIN_ON_LEAVE
	if
	:: pcp[me].attention & DRAIN ->
		d_step {
			FENCE(me);
			pcp[me].attention = pcp[me].attention & ~DRAIN;
			asked = false
		};
		d_step {
			FENCE(me);
			pcp[me].hand = SHOWN(me);
			PUT(pcp[me].hand);
			pcp[me].hand = 0;
			STORE(me, PREVIOUS, 0);
			STORE(me, LOADED, 0)
		}
	:: else
	fi;
#endif
	/* A request that was there at the beginning is served at the end. */
	assert(!asked)
}

inline bh_disable(me)
{
	d_step { ROOM(me) -> nest++; STORE(me, NEST, nest) };
	if
#ifndef NESTED_STEPS_OUT
	:: nest > 1
#endif
	:: else -> wait_unclaimed(me, NEST, nest)
	fi
}

inline bh_enable(me)
{
	if
	:: nest == 1 -> flush_if_asked(me)
	:: else
	fi;
	d_step { ROOM(me) -> nest--; pcp[me].owner = nest > 0; STORE(me, NEST, nest) }
}

/* pcp_open(): a single call's own section; slow: the fast path is forbidden. */
inline open(me)
{
	if
	:: single ->
		d_step {
			ROOM(me) -> STORE(me, BUSY, 1);
#ifdef EARLY_READ
			seen = OWN(me, LOADED)
#endif
		};
		atomic {
			slow = pcp[me].attention != 0;
			if
			:: !slow && nest == 0 -> OWNS(me)
			:: else
			fi
		};
#ifdef HANDLER
		/* A signal handler's call sees busy: it stays off the lists, and leaves busy. */
		if
		:: true
		:: d_step { ROOM(me) -> STORE(me, BUSY, 1) };
#ifdef HANDLER_CLEARS_BUSY
		   d_step { ROOM(me) -> STORE(me, BUSY, 0) }
#endif
		fi
#endif
	:: else
	fi
}

/* pcp_enter() */
inline enter(me)
{
	if
	:: single && nest == 0 -> wait_unclaimed(me, BUSY, 1)
	:: else
	fi
}

/* pcp_leave(), pcp_close() */
inline leave(me)
{
	if
	:: single && slow && nest == 0 -> flush_if_asked(me)
	:: else
	fi;
	d_step {
		!single || ROOM(me) ->
		if
		:: single -> pcp[me].owner = nest > 0; STORE(me, BUSY, 0)
		:: else
		fi;
		single = false;
		slow = false
	}
}

/* ---- reclaim: the claimer's side; me is THREAD for the one without a cache ---- */

#define NOTHING	   0
#define IN_SECTION 1
#define IN_CALL	   2
#define IDLE	   3

/* By separate loads with TORN_LOOK, else at once. */
#ifdef TORN_LOOK
#define LOOK
#else
#define LOOK atomic
#endif

inline look(i)
{
	prospect = NOTHING;
	if
	:: pcp[i].memory[NEST] > 0 -> prospect = IN_SECTION
	:: pcp[i].memory[NEST] == 0 ->
		if
#ifdef LOOK_PAST_CALLS
		:: false
#else
		:: pcp[i].memory[BUSY] != 0 -> prospect = IN_CALL
#endif
		:: else ->
			if
			:: pcp[i].memory[LOADED] != 0 -> prospect = IDLE
			:: else ->
				if
				:: pcp[i].memory[PREVIOUS] != 0 -> prospect = IDLE
				:: else
				fi
			fi
		fi
	fi;
#ifdef ASKED_ONCE
	if
	:: pcp[i].attention & DRAIN -> prospect = NOTHING
	:: else
	fi
#endif
}

#define FIRST(me)   (me == 0 -> 1 : 0)
#define NEXT(me, i) (i + 1 == me -> i + 2 : i + 1)

/* Time passes at any moment, so an armed back-off may be over. */
inline read_clock()
{
	if
	:: backoff -> spare_calls = true
	:: backoff = false
	fi
}

inline anything_to_get(me)
{
	atomic { i = FIRST(me); read_clock() };
	do
	:: LOOK {
		i < LCORES ->
		look(i);
		worth = worth || prospect == IDLE || (prospect == IN_CALL && !spare_calls) ||
			(prospect == IN_SECTION && !(pcp[i].attention & DRAIN));
		prospect = 0;
		i = NEXT(me, i)
	   }
	:: atomic { i >= LCORES -> i = 0; spare_calls = false; break }
	od
}

/*
 * Waiting for a call and for another's reclaim may end at any moment. PATIENT: for a call not before
 * nothing else can happen any more, for a reclaim never, since those end.
 */
#if defined(UNBOUNDED_WAIT)
#define TIRED_OF_CALL	 false
#define TIRED_OF_RECLAIM false
#elif defined(PATIENT)
#define TIRED_OF_CALL	 timeout
#define TIRED_OF_RECLAIM false
#else
#define TIRED_OF_CALL	 true
#define TIRED_OF_RECLAIM true
#endif

#ifdef IGNORE_NEST
#define IN_SECTION_NOW(i) false
#else
#define IN_SECTION_NOW(i) (pcp[i].memory[NEST] != 0)
#endif

#ifdef NO_ACQUIRE
#define READ_EARLY(i) seen = SHOWN(i)
#define READ_LATE(i)  skip
#else
#define READ_EARLY(i) skip
#define READ_LATE(i)  seen = SHOWN(i)
#endif

inline release(me, i)
{
	d_step { FENCE(me); pcp[i].attention = pcp[i].attention & ~CLAIMED; seen = 0 }
}

/* is_taken(), the flush if so, and the release. */
inline take(me, i)
{
	READ_EARLY(i);
	do
	:: IN_SECTION_NOW(i) -> break
	:: !IN_SECTION_NOW(i) ->
		if
		:: d_step {
			pcp[i].memory[BUSY] == 0 ->
			assert(!pcp[i].owner);
			pcp[i].claimer = true
		   };
		   break
		:: pcp[i].memory[BUSY] != 0 ->
			if
			:: IN_SECTION_NOW(i) || pcp[i].memory[BUSY] == 0
			:: TIRED_OF_CALL -> break
			fi
		fi
	od;
	if
	:: pcp[i].claimer ->
		d_step {
			FENCE(me);
			READ_LATE(i);
			PUT(seen);
			pcp[i].memory[LOADED] = 0;
			pcp[i].memory[PREVIOUS] = 0;
			moved = moved || seen != 0;
			seen = 0
		};
		d_step {
			pcp[i].claimer = false;
			pcp[i].attention = pcp[i].attention & ~(CLAIMED | DRAIN)
		}
	:: else ->
		release(me, i)
	fi
}

inline membarrier(me)
{
#ifdef MEMBARRIER_FAILS
	if
	:: atomic { ordered = false; missed[me] = 0 }
	:: true
	fi;
#endif
#ifdef NO_MEMBARRIER
	i = LCORES
#else
	do
	:: d_step { i < LCORES && ordered -> FENCE(i); i++ }
	:: i >= LCORES || !ordered -> break
	od
#endif
}

#define IS_PROMISING (prospect == IDLE || (prospect == IN_CALL && !spare_calls))
#if defined(NO_BACKOFF)
#define IS_CANDIDATE (prospect == IDLE || prospect == IN_CALL)
#elif defined(CLAIM_SECTIONS)
#define IS_CANDIDATE true
#else
#define IS_CANDIDATE IS_PROMISING
#endif
#define HAS(i) (candidates & (1 << (i)))

#ifdef IGNORE_FAILURE
#define IS_ORDERED true
#else
#define IS_ORDERED ordered
#endif

/* take_by_claim() */
inline round(me)
{
	atomic { i = FIRST(me); read_clock() };
	do
	:: LOOK { i < LCORES -> look(i) };
	   atomic {
		if
		:: prospect != NOTHING && !(pcp[i].attention & DRAIN) ->
			FENCE(me);
			pcp[i].attention = pcp[i].attention | DRAIN
		:: else
		fi;
		if
		:: prospect != NOTHING && IS_CANDIDATE -> candidates = candidates | 1 << i
		:: else
		fi;
		worth = worth || IS_PROMISING;
		prospect = 0;
		i = NEXT(me, i)
	   }
	:: atomic { i >= LCORES -> i = 0; spare_calls = false; break }
	od;
	if
	:: candidates == 0
	:: else ->
		/* Nobody is disturbed for what must fail anyway. */
		assert(worth);
		do
		:: d_step { i < LCORES && !HAS(i) -> i++ }
		:: d_step {
			i < LCORES && HAS(i) ->
			FENCE(me);
			pcp[i].attention = pcp[i].attention | CLAIMED;
			i++
		   }
		:: atomic { i >= LCORES -> i = 0; break }
		od;
		membarrier(me);
		i = 0;
		do
		:: i < LCORES ->
			if
			:: HAS(i) && IS_ORDERED -> take(me, i)
			:: HAS(i) && !IS_ORDERED -> release(me, i)
			:: !HAS(i)
			fi;
			i++
		:: else -> break
		od;
		atomic {
			i = 0;
			candidates = 0;
			ordered = true;
#ifndef PATIENT
			backoff = backoff || !moved
#endif
		}
	fi;
	worth = false
}

/* reclaim() of slow.c and pcp_reclaim(); again: it is worth while to try again. */
inline reclaim(me)
{
	anything_to_get(me);
	if
	:: !worth
	:: worth ->
		if
		:: d_step { !reclaim_lock -> reclaim_lock = true; ACQUIRE_FENCE(me); worth = false };
		   round(me);
		   d_step {
			FENCE(me);
			reclaim_lock = false;
			again = moved;
			moved = false;
			assert(!AT_REST || CONSERVED)
		   }
		:: atomic { reclaim_lock -> worth = false };
#ifdef TWO_THIEVES
		   arrivals[me] = 0
#else
		   if
		   :: !reclaim_lock
		   :: TIRED_OF_RECLAIM
		   fi;
		   again = true
#endif
		fi
	fi;
	/* At once with the failure that it decides on. */
	d_step {
		if
#ifndef MOVED_ONLY
		:: arrivals[me] == 2 -> again = true
#endif
		:: else
		fi;
		arrivals[me] = 0;
		assert(again || missed[me] == 0);
#ifndef MAY_MISS_DEPOT
		assert(again || depot == 0);
#endif
		missed[me] = (again -> missed[me] : 0)
	}
}

#define LOCALS                                                                                     \
	byte steps = 0, i = 0, seen = 0, prospect = 0, candidates = 0;                             \
	bool worth = false, moved = false, again = false, spare_calls = false, ordered = true

/* ---- calls ---- */

/* With the lists the owner's: one page, if there is any. */
inline list_alloc(me)
{
	do
	:: d_step {
		OWN(me, LOADED) != 0 && ROOM(me) ->
		seen = OWN(me, LOADED);
		HAND_OUT(ONE(seen));
		STORE(me, LOADED, seen & ~ONE(seen));
		missed[me] = 0;
		seen = 0
	   };
	   break
	:: d_step {
		OWN(me, LOADED) == 0 && OWN(me, PREVIOUS) != 0 && ROOM(me) ->
		STORE(me, LOADED, OWN(me, PREVIOUS))
	   };
	   d_step { ROOM(me) -> STORE(me, PREVIOUS, 0) }
	:: d_step {
		OWN(me, LOADED) == 0 && OWN(me, PREVIOUS) == 0 ->
		FENCE(me);
#ifndef LATE_COUNT
		arrivals[me] = 1;
#endif
		pcp[me].hand = SOME(NEAR);
		depot = depot & ~pcp[me].hand;
		OBSERVE
	   };
#ifdef SHELVES
	   d_step {
		if
		:: pcp[me].hand == 0 ->
#ifdef LATE_COUNT
			arrivals[me] = 1;
#endif
			pcp[me].hand = SOME(depot & far);
			depot = depot & ~pcp[me].hand;
			OBSERVE
		:: else
		fi
	   };
#endif
#if THREADS > 0
	   d_step {
		if
		:: pcp[me].hand == 0 ->
			pcp[me].hand = SOME(zone);
			zone = zone & ~pcp[me].hand;
			OBSERVE
		:: else
		fi
	   };
#endif
	   if
	   :: d_step {
		pcp[me].hand != 0 ->
		arrivals[me] = 0;
		STORE(me, LOADED, pcp[me].hand);
		pcp[me].hand = 0
	      }
	   :: pcp[me].hand == 0 ->
		reclaim(me);
		if
		:: again -> again = false
		:: else -> break
		fi
	   fi
	od
}

/* A list, as the fast path sees it. */
#ifdef EARLY_READ
#define LIST(me) (single -> seen : OWN(me, LOADED))
#else
#define LIST(me) OWN(me, LOADED)
#endif

inline alloc(me)
{
	open(me);
	if
	:: d_step {
		!slow && LIST(me) != 0 && ROOM(me) ->
		seen = LIST(me);
		HAND_OUT(ONE(seen));
		STORE(me, LOADED, seen & ~ONE(seen));
		missed[me] = 0;
		seen = 0
	   }
	:: atomic { slow || LIST(me) == 0 -> slow = true; seen = 0 };
	   enter(me);
	   list_alloc(me)
	fi;
	leave(me)
}

/* With the lists the owner's, and the page in its hand. */
inline list_free(me)
{
	do
	:: d_step {
		!IS_FULL(OWN(me, LOADED)) && ROOM(me) ->
		STORE(me, LOADED, OWN(me, LOADED) | pcp[me].hand);
		pcp[me].hand = 0
	   };
	   break
	:: d_step {
		IS_FULL(OWN(me, LOADED)) && OWN(me, PREVIOUS) == 0 && ROOM(me) ->
		seen = OWN(me, LOADED);
		STORE(me, LOADED, 0)
	   };
	   d_step { ROOM(me) -> STORE(me, PREVIOUS, seen); seen = 0 }
	:: d_step {
		IS_FULL(OWN(me, LOADED)) && OWN(me, PREVIOUS) != 0 ->
		FENCE(me);
		PUT(OWN(me, LOADED));
		STORE(me, LOADED, 0)
	   }
	od
}

inline free(me)
{
	open(me);
	if
	:: d_step {
		!slow && !IS_FULL(LIST(me)) && ROOM(me) ->
		seen = LIST(me);
		STORE(me, LOADED, seen | pcp[me].hand);
		pcp[me].hand = 0;
		seen = 0
	   }
	:: atomic { slow || IS_FULL(LIST(me)) -> slow = true; seen = 0 };
	   enter(me);
	   list_free(me)
	fi;
	leave(me)
}

/* A single call, which may be in a section, or the nested one, which must. */
inline choose_call()
{
	if
	:: single = true
	:: nest > 0
	fi
}

proctype lcore(byte me)
{
	LOCALS;
	byte nest = 0;
	bool single = false, slow = false, asked = false;

	do
	:: atomic { steps < STEPS && nest < NEST_MAX -> steps++ }; bh_disable(me)
	:: nest > 0 -> bh_enable(me)
	:: atomic {
		steps < STEPS ->
		steps++;
		choose_call();
		missed[me] = FINDABLE_NOW
	   };
	   alloc(me)
	:: atomic {
		steps < STEPS && in_use != 0 ->
		steps++;
		choose_call();
		pcp[me].hand = ONE(in_use);
		in_use = in_use & ~pcp[me].hand
	   };
	   free(me)
	:: steps == STEPS && nest == 0 -> break
	od
}

/*
 * is_hopeless(), pcp_cache_free_pages(): what there is, counted the way that pages go, so that none
 * slips by.
 */
inline count()
{
#ifdef COUNT_BACKWARDS
	seen = zone;
	seen = seen | depot;
#endif
	do
	:: d_step { i < LCORES -> seen = seen | SHOWN(i); i++ }
	:: atomic { i >= LCORES -> i = 0; break }
	od;
#ifndef COUNT_BACKWARDS
	seen = seen | depot;
	seen = seen | zone
#endif
}

/* pcp_depot_alloc(), pcp_depot_free() and pcp_cache_shrink() by a thread without an lcore id. */
proctype thread()
{
	LOCALS;

	do
	:: atomic { steps < STEPS -> steps++; missed[THREAD] = FINDABLE_NOW };
	   count();
	   do
	   :: seen == 0 -> assert(missed[THREAD] == 0); break
	   :: atomic {
		seen != 0 ->
		arrivals[THREAD] = 1;
		seen = ONE(zone);
		zone = zone & ~seen;
		HAND_OUT(seen);
		OBSERVE
	      };
	      atomic {
		if
		:: seen == 0 ->
			seen = ONE(NEAR);
			depot = depot & ~seen;
			HAND_OUT(seen);
			OBSERVE
		:: else
		fi
	      };
#ifdef SHELVES
	      atomic {
		if
		:: seen == 0 ->
			seen = ONE(depot & far);
			depot = depot & ~seen;
			HAND_OUT(seen);
			OBSERVE
		:: else
		fi
	      };
#endif
	      if
	      :: seen != 0 -> break
	      :: else
	      fi;
	      reclaim(THREAD);
	      if
	      :: again -> again = false; seen = ALL
	      :: else -> break
	      fi
	   od;
	   atomic { seen = 0; arrivals[THREAD] = 0; missed[THREAD] = 0 }
	:: d_step {
		steps < STEPS && in_use != 0 ->
		steps++;
		seen = ONE(in_use);
		in_use = in_use & ~seen;
		PUT(seen);
		seen = 0
	   }
#ifdef DRAIN_UNLOCKED
	:: d_step {
		steps < STEPS && depot != 0 ->
		steps++;
		transit = SOME(depot);
		depot = depot & ~transit
	   };
	   d_step { zone = zone | transit };
	   d_step { ARRIVED(transit); transit = 0 }
#else
	:: d_step {
		steps < STEPS && depot != 0 ->
		steps++;
		transit = SOME(depot);
		zone = zone | transit;
		depot = depot & ~transit;
		ARRIVED(transit);
		transit = 0
	   }
#endif
	:: steps == STEPS -> break
	od
}

#define AT_FIRST_IN(i)                                                                             \
	:: place <= 2 * i && !IS_FULL(pcp[i].memory[LOADED]) ->                                    \
		place = 2 * i;                                                                     \
		pcp[i].memory[LOADED] = pcp[i].memory[LOADED] | 1 << page                          \
	:: place <= 2 * i && page + BATCH <= PAGES ->                                              \
		place = 2 * i + 1;                                                                 \
		pcp[i].memory[PREVIOUS] = ((1 << BATCH) - 1) << page;                              \
		page = page + BATCH - 1

init
{
	byte page = 0, place = 0;

	atomic {
		/* Pages lie anywhere at first. They are all alike, so later ones lie no earlier. */
		do
		:: page < PAGES ->
			if
			AT_FIRST_IN(0)
			AT_FIRST_IN(1)
#if LCORES == 3
			AT_FIRST_IN(2)
#endif
			:: place <= 6 -> place = 6; depot = depot | 1 << page
			:: place = 7; in_use = in_use | 1 << page
			fi;
			page++
		:: else -> break
		od;
		page = 0;
		place = 0;
		do
		:: page < ACTIVE -> run store_buffer(page); run lcore(page); page++
		:: else -> break
		od;
#if THREADS > 0
		run thread();
#endif
		page = 0
	}
}
