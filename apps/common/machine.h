/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* What a result depends on beside the program: the machine, its kernel and the build. */

#include <stdint.h>

#include <jansson.h>

/*
 * cpu, cores, tsc_hz, kernel, hugepage_size, dpdk, compiler, march, linkage, mitigations, governor;
 * null where the system does not say. After rte_eal_init(). The caller owns it; NULL: no memory.
 */
json_t *machine_facts(void);

/*
 * TSC cycles per cycle of the core that this thread runs on, by a chain of dependent additions of
 * one cycle each; takes some 10 ms. Below 1 while the core runs faster than its nominal clock.
 */
double machine_tsc_per_core_cycle(void);

/* Milliseconds since boot that the hypervisor gave to others, all processors; NAN: not known. */
double machine_steal_ms(void);

/* The smallest page size of EAL's memory, in bytes; 4096 without hugepages. */
uint64_t machine_page_size(void);
