/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "port.h"

/* A few lines per port. */
void cx_stats_summary(const struct softcx_card *card, FILE *f);

/* All counters; -EIO: not written in whole. */
int cx_stats_json(const struct softcx_card *card, const char *file);
