#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# mlx5pp: packets held, cloned, chained and freed in every legal way, on two lcores, while the port
# is stopped and started, in each way of recycling: see torture.c. One slow consumer blocks the FIFOs
# of recycle=cache and recycle=reuse, and not recycle=pool.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
. "$here/mlx5pp.bash"
needs_softcx
torture=$build/tests/integration/torture

# tortures RECYCLE ARGUMENT...
tortures() {
	local recycle=$1 extra=()

	shift
	[ -z "${PAGELANE_NO_HUGE-}" ] || extra=(--iova-mode=va)
	softcx --strict --payload full --frame 64,300,1518 --rate 1G --stats "$tmp/stats.json" -- \
		"$torture" "${eal[@]}" "${extra[@]}" -d "$mlx5pp" \
		--vdev "net_mlx5pp0,ibdev=mlx5_0,recycle=$recycle,cache_size=256" -- "$@" \
		>"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "torture $*"; }
	grep -E '^(recycle=|freed )' "$tmp/out"
	expect 'faults' "$(softcx_stat 0 faults)" -eq 0
	expect 'objects left' "$(jq .leaks "$tmp/stats.json")" -eq 0
}

for recycle in "${recycle_modes[@]}"; do
	tortures "$recycle" "$recycle" 12 4000
done
for recycle in "${recycle_modes[@]}"; do
	tortures "$recycle" "$recycle" 2 20000 broken
done
tortures cache cache 1 20000 slow
tortures reuse reuse 1 20000 slow
tortures pool pool 1 20000 slow
