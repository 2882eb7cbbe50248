#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# mlx5pp: each allocation and each verbs call of a port's life fails in turn, and those that ways of recycling add: a code
# and one line say so, nothing is left, and the next try works: see port_faults.c.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
. "$here/mlx5pp.bash"
needs_softcx
program=$build/tests/integration/port_faults
[ -x "$program" ] || skip 'the calls of a program with a sanitizer cannot be made to fail'
[ -z "${PAGELANE_NO_HUGE-}" ] || eal+=(--iova-mode=va)

# faults RECYCLE [STEP]
faults() {
	softcx --strict --frame 64,1518 --rate 1G --stats "$tmp/stats.json" -- \
		"$program" "${eal[@]}" -d "$mlx5pp" -- "ibdev=mlx5_0,recycle=$1" "${@:2}" \
		>"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "recycle=$1"; }
	expect 'objects left' "$(jq .leaks "$tmp/stats.json")" -eq 0
	sed -n "s/.* failed in turn/recycle=$1: &/p" "$tmp/out"
}

faults off
for recycle in "${recycle_modes[@]:1}"; do
	faults "$recycle" 'RX queues'
done
