/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Which changes of a raw packet QP's state the kernel lets pass to the device. */

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define QP_ATTR_STANDARD ((1u << 21) - 1) /* all of verbs but the rate limit */

/* `mask` is that of ibv_modify_qp(): what comes with the change must be all it takes, no more. */
bool qp_transition_is_valid(enum ibv_qp_state from, enum ibv_qp_state to, uint32_t mask);
