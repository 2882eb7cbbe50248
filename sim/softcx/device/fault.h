/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Faults of the device's own accesses to software's memory. */

#include "port.h"

/* From here on, faults of this thread jump to port->fault_env, which the caller has set. */
void cx_fault_guard(struct softcx_port *port);
void cx_fault_unguard(void);

/* Put our handler in front, once per process. */
int cx_fault_install(void);

/* What port->at says has faulted: fail the queue that did it. */
void cx_fault_recover(struct softcx_port *port);
