#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# DPDK's own client asks programs with pools of ours about them while they forward: l2fwd-bench,
# and an unmodified dpdk-testpmd that has loaded the plugin.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
need jq dpdk-telemetry.py
. "$here/l2fwd.bash"

mapfile -t eal < <(printf '%s\n' "${eal[@]}" --file-prefix telemetry | grep -vx -e --no-telemetry)
read -ra wrong <<<'zone pcp zone, pcp, zone,x zone,-1 pcp,1x zone,99 pcp,99 zone,4294967296'

# ask COMMAND...: the answers, one after the other, in the array $answers.
ask() {
	local replies

	replies=$(printf '/pagepool/%s\n' "$@" | dpdk-telemetry.py -f telemetry)
	answers=$(jq -sc 'map(.[])' <<<"$replies") || { show; fail "no answers, but: $replies"; }
	holds "length == $#"
}

# holds FILTER: of the answers.
holds() {
	[ "$(jq "$1" <<<"$answers")" = true ] || fail "not so: $1 of $answers"
}

# ask_of NAME OWNER PID: a program that forwards, about its only pool.
ask_of() {
	local before

	ask list zone,0 pcp,0 "${wrong[@]}"
	holds ".[0] == {\"0\": \"$1\"}"
	holds ".[1] | .name == \"$1\" and .owner == \"$2\" and .pid == $3"
	holds '.[1] | .pages > .free and .bad_frees == 0 and (.allocs | add) > 0'
	holds '.[1] | (.free_blocks | length) == (.allocs | length)'
	holds '.[2] | .mode == "bh" and (.lcores | length) == (.lcore_pages | length)'
	holds '.[2] | .cached_pages + .depot_pages > 0 and (.lcores | length) >= 1'
	holds '.[3:] | all(. == null)'
	before=$(jq '.[2] | .alloc_fast + .alloc_slow' <<<"$answers")
	ask pcp,0
	holds ".[0] | .alloc_fast + .alloc_slow > $before and .alloc_failed == 0"
	holds '.[0] | .recycle_cached + .recycle_ring > 0'
}

start_bench "${eal[@]}" --vdev net_null0 --vdev net_null1 -- --pool pages --duration 600
ask_of packets 'mempool packets' "$pid"
end_bench INT

pool_eal pagepool
testpmd_start "${pool[@]}" --vdev net_null0 --vdev net_null1 -- -i --mbcache=0
testpmd start
ask_of mb_pool_0 'mempool mb_pool_0' "$testpmd_pid"
testpmd stop
testpmd_quit
