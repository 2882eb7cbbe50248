/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of what hardware would punish, or what would go wrong on it one day. */

#include <stdarg.h>

#include "queue.h"

/* The two BlueFlame registers of a UAR page, each of two halves that are written in turn. */
static const unsigned int registers[] = {0x800, 0x900, 0xa00, 0xb00};

#define MAX_LINES 100 /* of a port; all are counted */

void
cx_strict(struct softcx_port *port, const char *fmt, ...)
{
	FILE *f = port->card->config.summary;
	va_list ap;

	if (!cx_is_strict(port))
		return;
	if (port->counters.strict++ >= MAX_LINES || f == NULL)
		return;
	flockfile(f);
	fprintf(f, "softcx: port %u: strict: ", port->index);
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fputc('\n', f);
	fflush(f);
	funlockfile(f);
}

void
cx_strict_register(struct softcx_port *port, const struct cx_qp *qp)
{
	const struct cx_sq *sq = &qp->sq;
	bool stale = false, empty = true;

	for (unsigned int i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		const uint64_t *at = (const void *)(sq->uar + registers[i]);
		const uint64_t value = __atomic_load_n(at, __ATOMIC_ACQUIRE);

		if (value == sq->last_ctrl)
			return;
		empty &= value == 0;
		stale |= be32toh((uint32_t)(value >> 32)) >> 8 == qp->object.number;
	}
	/* with others' doorbells alone in the registers ours may have come before them */
	if (stale || empty)
		cx_strict(port, "qp %#x: the doorbell register does not have the last WQE, %u",
			qp->object.number, (sq->cons - 1) & 0xffff);
}
