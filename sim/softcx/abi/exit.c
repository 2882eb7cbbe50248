/* SPDX-License-Identifier: BSD-3-Clause */

/* What closes when the process ends. */

#include <stddef.h>

#include "card.h"
#include "context.h"
#include "libc.h"

static void __attribute__((destructor)) finish(void)
{
	struct abi_file *file;
	int fd, index;

	if (card_ports() == 0 || file_is_orphaned())
		return;
	for (fd = file_next(0); fd >= 0; fd = file_next(fd + 1)) {
		file = file_get(fd);
		if (file == NULL)
			continue;
		index = context_port(file);
		file_put(file);
		if (index < 0)
			continue;
		abi_say("mlx5_%d: not closed", index);
		file_close(fd);
	}
	card_stop();
}
