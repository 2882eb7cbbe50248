/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "port.h"

#define CX_MAX_MRS 16384

bool cx_mr_has_gone(const struct cx_mr *mr, uint64_t offset, uint64_t length);

/*
 * Where [addr, addr + length) of a work request lies for the host, by a key of protection domain
 * `pd`; NULL: nowhere, *why says which check it failed.
 */
static inline uint8_t *
cx_mr_translate(const struct softcx_port *port, uint32_t pd, uint32_t lkey, uint64_t addr,
	uint64_t length, bool write, enum cx_why *why)
{
	const struct cx_mr *mr = cx_table_find(&port->mrs, lkey >> 8);

	if (unlikely(mr == NULL || mr->lkey != lkey)) {
		*why = CX_WHY_LKEY;
		return NULL;
	}
	if (unlikely(mr->pd != pd)) {
		*why = CX_WHY_PD;
		return NULL;
	}
	const uint64_t offset = addr - mr->iova;

	if (unlikely(offset > mr->length || length > mr->length - offset)) {
		*why = CX_WHY_BOUNDS;
		return NULL;
	}
	if (unlikely(write && !mr->writable)) {
		*why = CX_WHY_ACCESS;
		return NULL;
	}
	if (unlikely(mr->n_gone > 0) && cx_mr_has_gone(mr, offset, length)) {
		*why = CX_WHY_GONE;
		return NULL;
	}
	return mr->host + offset;
}
