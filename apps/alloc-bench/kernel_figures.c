/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include <rte_common.h>

#include "kernel_figures.h"

static const struct kernel_figure figures[] = {
	{"for_loop", "for_loop", 0, 0.232, NAN, NAN},
	{"spin_lock_unlock", "spin_lock_unlock", 33, 8.334, 22.6, 50.0},
	{"pp_lock_unlock", "spin_lock_unlock", 33, 8.334, 22.6, 50.0},
	{"spin_lock_unlock_irqsave", "spin_lock_unlock_irqsave", 62, 15.607, NAN, NAN},
	{"local_BH_disable_enable", "local_BH_disable_enable", 19, 4.920, 9.1, 24.9},
	{"local_irq_save_restore", "local_irq_save_restore", 38, 9.665, NAN, NAN},
	{"sigmask_save_restore", "local_irq_save_restore", 38, 9.665, NAN, NAN},
	{"rseq_section", "preempt_disable_enable", 11, 2.794, 3.2, 2.9},
	{"function_call_cost", "function_call_cost", 6, 1.689, 4.4, 19.3},
	{"func_ptr_call_cost", "func_ptr_call_cost", 11, 2.767, NAN, NAN},
	{"page_alloc_put", "page_alloc_put", 211, 52.803, 111.7, 305.0},
};

const struct kernel_figure *
kernel_figure_find(const char *operation)
{
	for (unsigned int i = 0; i < RTE_DIM(figures); i++)
		if (strcmp(figures[i].operation, operation) == 0)
			return &figures[i];
	return NULL;
}
