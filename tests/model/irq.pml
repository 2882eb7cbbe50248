/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How mode irq puts handlers off: handler.c, section.c, pcp_irq.h. A thread makes calls and enters
 * sections; a signal may interrupt it between any two of its steps. The handler runs on the same
 * thread, so that nothing of that happens meanwhile, and no store buffer is between the two: its
 * part is one step. What it does when it need not wait, its work, must not come between what the
 * thread does at the lists, nor into other work; and none may be forgotten.
 */

#ifndef SIGNALS
#define SIGNALS 3
#endif
#ifndef STEPS
#define STEPS 2
#endif

bool busy;	      /* inside a single call */
bool nest;	      /* of a section by pcp_bh_disable(); handlers do not look at it */
bool irq;	      /* nest >= PCP_NEST_IRQ */
bool locked, running; /* as in the code */
bool pending;	      /* a handler waits, as far as the thread knows */
bool owed;	      /* a handler waits, and its work has not begun since */
bool at_lists, working;
byte left = SIGNALS;
bool over;

#ifdef NEST_DEFERS
#define IN_SECTION (locked || nest)
#else
#define IN_SECTION locked
#endif
#ifdef NO_RUNNING
#define MUST_WAIT (busy || irq || IN_SECTION)
#else
#define MUST_WAIT (busy || irq || IN_SECTION || running)
#endif

active proctype handler()
{
	do
	:: atomic {
		left > 0 && !over ->
		left--;
		if
		:: MUST_WAIT -> pending = true; owed = true
		:: else -> assert(!at_lists && !working)
		fi
	   }
	:: left == 0 || over -> break
	od
}

inline use_lists()
{
	at_lists = true;
	at_lists = false
}

/* pcp_replay() */
inline replay()
{
	do
	:: pending ->
#ifndef CLEARED_LATE
		pending = false;
#endif
		running = true;
		atomic { working = true; owed = false };
		working = false;
#ifdef CLEARED_LATE
		pending = false;
#endif
		running = false
	:: !pending -> break
	od
}

/* A flag that keeps handlers off is cleared, then they are looked for. */
#ifdef LOOK_FIRST
#define END(flag) replay(); flag = false
#else
#define END(flag) flag = false; replay()
#endif

active proctype thread()
{
	byte steps = 0;

	do
	:: steps < STEPS -> steps++; busy = true; use_lists(); END(busy)
	:: steps < STEPS -> steps++; irq = true; use_lists(); END(irq)
	:: steps < STEPS ->
		steps++;
		nest = true;
		locked = true;
		use_lists();
		END(locked);
		nest = false
	:: steps == STEPS -> break
	od;
	atomic {
		over = true;
		assert(!owed)
	}
}
