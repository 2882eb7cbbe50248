/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * What the kernel's own operations cost, for orders of magnitude.
 *
 * i7: i7-4790K at 4.00 GHz, time_bench_sample, published in January 2017 with the patches to the
 * per-cpu page lists. uml: Linux 7.2's allocator run as a user-mode kernel on an EPYC core with a
 * TSC of 2.445 GHz, medians of several runs, without mitigations and with the default return and
 * retpoline thunks. Fences and the hardware's own cost of interrupts are absent there, so it has no
 * irq rows, and two processors shared a core complex: use it for ratios only.
 */

struct kernel_figure {
	const char *operation;       /* ours */
	const char *kernel;          /* the kernel's */
	double i7_cycles, i7_ns;     /* NAN: not known */
	double uml_plain, uml_thunk; /* TSC cycles */
};

/* NULL: the kernel has nothing like it. */
const struct kernel_figure *kernel_figure_find(const char *operation);
