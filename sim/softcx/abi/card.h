/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * The process's card. It is made when the first node is opened and lives until the process ends,
 * so that its counters are those of the whole run.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"

/* Ports of the card that softcx-run described; 0: this process runs without one. */
unsigned int card_ports(void);

/* Whether a node was opened, and the process has not ended yet. */
bool card_is_made(void);

/* Bit/s of each port; 0: as fast as it can. */
unsigned long card_rate(void);

/* One more user, of a port. 0 or -errno. */
int card_get(unsigned int index, struct softcx_port **port);
void card_put(void);

/* A number for a protection domain. */
uint32_t card_new_pdn(void);

/* Whether this change of a queue is one to be refused: --inject. */
bool card_refuses(enum softcx_refusal change);

/* Memory of the program is about to go. */
void card_memory_gone(const void *address, size_t length);

/* The counters of a port; zeros while nothing is open. */
void card_counters(unsigned int index, struct softcx_port_counters *counters);

/* Bring the counters in sysfs up to date, if `path` is one of them. */
void card_refresh(const char *path);

/* The process ends, all contexts closed; waits for threads inside of calls, but not for ever. */
void card_stop(void);
