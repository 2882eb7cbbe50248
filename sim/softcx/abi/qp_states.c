/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_states.h"

#define STATES (IBV_QPS_ERR + 1)

static const struct {
	bool valid;
	uint32_t required, optional;
} transitions[STATES][STATES] = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_INIT] = {true, IBV_QP_PORT, 0},
		},
	[IBV_QPS_INIT] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_ERR] = {true, 0, 0},
			[IBV_QPS_INIT] = {true, 0, 0},
			[IBV_QPS_RTR] = {true, 0, 0},
		},
	[IBV_QPS_RTR] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_ERR] = {true, 0, 0},
			[IBV_QPS_RTS] = {true, 0, IBV_QP_RATE_LIMIT},
		},
	[IBV_QPS_RTS] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_ERR] = {true, 0, 0},
			[IBV_QPS_RTS] = {true, 0, IBV_QP_RATE_LIMIT},
			[IBV_QPS_SQD] = {true, 0, 0},
		},
	[IBV_QPS_SQD] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_ERR] = {true, 0, 0},
			[IBV_QPS_RTS] = {true, 0, 0},
			[IBV_QPS_SQD] = {true, 0, 0},
		},
	[IBV_QPS_SQE] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_ERR] = {true, 0, 0},
			[IBV_QPS_RTS] = {true, 0, 0},
		},
	[IBV_QPS_ERR] =
		{
			[IBV_QPS_RESET] = {true, 0, 0},
			[IBV_QPS_ERR] = {true, 0, 0},
		},
};

bool
qp_transition_is_valid(enum ibv_qp_state from, enum ibv_qp_state to, uint32_t mask)
{
	/* Who says what the state is can do so only where the device may have changed it. */
	if (mask & IBV_QP_CUR_STATE && from != IBV_QPS_RTR && from != IBV_QPS_RTS &&
		from != IBV_QPS_SQD && from != IBV_QPS_SQE)
		return false;
	if (!transitions[from][to].valid)
		return false;
	if ((mask & transitions[from][to].required) != transitions[from][to].required)
		return false;
	return !(mask &
		 ~(transitions[from][to].required | transitions[from][to].optional | IBV_QP_STATE));
}
