/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* --recycle and --pcp on their way to ports of the driver mlx5pp, whose arguments EAL reads. */

#include "options.h"

#define RECYCLE_DRIVER "net_mlx5pp"

/*
 * EAL's arguments, with what the options say appended to each --vdev net_mlx5pp...: into `to`, of
 * argc entries. 0, or -errno after one line on stderr.
 */
int recycle_eal_arguments(const struct options *options, int argc, char **argv, char **to);
