/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recycle.h"

#define VDEV "--vdev"

/* Lives as long as EAL, which keeps it. */
static char *
append(const struct options *options, const char *word)
{
	char *text;

	if (asprintf(&text, "%s,recycle=%s,pcp=%s", word, recycle_name(options->recycle),
		    pcp_mode_name(options->pcp)) < 0) {
		cli_error("no memory for '%s'; give less", word);
		return NULL;
	}
	return text;
}

int
recycle_eal_arguments(const struct options *options, int argc, char **argv, char **to)
{
	const char *device;
	int i;

	for (i = 0; i < argc; i++) {
		to[i] = argv[i];
		if (options->recycle < 0)
			continue;
		device = strncmp(argv[i], VDEV "=", sizeof(VDEV)) == 0 ? argv[i] + sizeof(VDEV)
			 : i > 0 && strcmp(argv[i - 1], VDEV) == 0     ? argv[i]
								       : "";
		if (strncmp(device, RECYCLE_DRIVER, strlen(RECYCLE_DRIVER)) != 0)
			continue;
		to[i] = append(options, argv[i]);
		if (to[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}
