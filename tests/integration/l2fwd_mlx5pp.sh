#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# l2fwd-bench on mlx5pp: each way of recycling, with usable and bypassed page caches, packets freed at
# once, late, and on the other lcore. No packet unaccounted, no page missing, and recycling happens.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
. "$here/mlx5pp.bash"
needs_softcx
use_app l2fwd-bench
[ -z "${PAGELANE_NO_HUGE-}" ] || eal+=(--iova-mode=va)

# benches ARGUMENT...
under=() # options of softcx'
benches() {
	softcx "${under[@]}" --strict --rate 1G --stats "$tmp/stats.json" -- "$bench" "${eal[@]}" -d "$mlx5pp" \
		--vdev net_mlx5pp0,ibdev=mlx5_0 -- --duration 1 --json "$json" "$@" \
		>"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "l2fwd-bench $*"; }
	expect 'packets' "$(softcx_stat 0 rx_packets)" -gt 100
	expect 'faults' "$(softcx_stat 0 faults)" -eq 0
	echo "$*: $(softcx_stat 0 rx_packets) packets"
}

for recycle in "${recycle_modes[@]}"; do
	for pcp in bh bypass; do
		benches --recycle "$recycle" --pcp "$pcp" --mode macswap
		benches --recycle "$recycle" --pcp "$pcp" --mode rxonly --hold 100 --free-on other
	done
done
# The device and the lcore take turns on one processor, another lcore wants the zone's lock on the other.
under=(--device-cpu "${lcores##*@}" --yield)
for recycle in off pool; do
	benches --recycle "$recycle" --pcp bypass --mode macswap --yield --contend 32
	jq -e '.contender_mops > 0' "$json" >/dev/null || fail 'no buffer for the second lcore'
done
under=()
benches --recycle pool --pool pagepool --mode rxonly --free-on other
benches --recycle reuse --pcp bypass --pool pagepool --mode macswap
benches --mode io --pool ring_mp_mc
