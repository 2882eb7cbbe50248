/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define PROGRAM "softcx-run"

/* "softcx-run: <message>" on stderr. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- preflight.c: 0, or -errno after a line ---- */

/* Whoever started us without standard files gets /dev/null: no descriptor of ours is one of them.
 */
void preflight_descriptors(void);

/* The file can be written when the command ends; one that is there is left as it is. */
int preflight_stats(const char *path);

/* The devices' threads may have these processors; first -1: any. */
int preflight_processors(int first, unsigned int n);

/* A path of `library` that LD_PRELOAD takes: itself, or of a link in `folder` that is to be made.
 */
int preflight_preload(const char *library, const char *folder, char *path, size_t size);

/* ---- guardian.c: who cleans up, whatever becomes of us ---- */

/* A folder of our own for the sysfs trees, removed when this process has ended. 0 or -errno. */
int guardian_start(char *folder, size_t size);

/* Have it removed now. */
void guardian_stop(void);

/* ---- netdev.c ---- */

/*
 * Network and mount namespaces of our own where we may, with `folder` in memory that goes with
 * them. Whether we may.
 */
bool namespaces_enter(const char *folder);

/* A tap for each port, there until this process ends. 0, or -errno after a line. */
int netdevs_create(unsigned int ports);

/* ---- sysfs.c ---- */

/* The trees that libibverbs and DPDK look at. 0, or -errno after a line. */
int sysfs_create(const char *folder, unsigned int ports, bool netdevs);

/* ---- child.c ---- */

/* Run the command until it ends, forwarding signals; its exit status as a shell has it. */
int child_run(char **command);
