/* SPDX-License-Identifier: BSD-3-Clause */
/* The costly half of the asymmetric barriers: see membarrier(2), private expedited. */

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pcp_internal.h"

bool
pcp_membarrier_register(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool
pcp_membarrier(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool
pcp_membarrier_rseq_register(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0) == 0;
}

bool
pcp_membarrier_rseq(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0) == 0;
}
