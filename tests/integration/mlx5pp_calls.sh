#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# mlx5pp: what few applications ask of a port, each in the way of recycling that it concerns: see
# port_calls.c.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
. "$here/mlx5pp.bash"
needs_softcx

injected=() # options of softcx
under=()    # a command that starts the program

# calls RECYCLE CASE...
calls() {
	local recycle=$1 extra=()

	shift
	[ -z "${PAGELANE_NO_HUGE-}" ] || extra=(--iova-mode=va)
	softcx --strict "${injected[@]}" --frame 1400 --rate 1G --stats "$tmp/stats.json" -- \
		timeout 60 "${under[@]}" "$build/tests/integration/port_calls" "${eal[@]}" "${extra[@]}" -d "$mlx5pp" \
		--vdev "net_mlx5pp0,ibdev=mlx5_0,recycle=$recycle,cache_size=256" -- "$@" \
		>"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "recycle=$recycle: $*"; }
	grep 'as it should be' "$tmp/out"
	expect 'faults' "$(softcx_stat 0 faults)" -eq 0
	expect 'objects left' "$(jq .leaks "$tmp/stats.json")" -eq 0
}

calls pool foreign_thread counters pool_first
calls cache starving
calls reuse starving
calls reuse shared mixed_queues counters pool_first
calls cache counters pool_first
calls off pinned_buffers missing_queue cleanup external_buffer crossing_buffer only_sending long_frames

if [ "$(id -u)" -eq 0 ] && command -v ip >/dev/null; then
	# shellcheck disable=SC2016 # its own variables
	under=(bash -c 'ip link set softcx0 address 02:00:00:00:00:77 && exec "$@"' -)
	calls off address
	under=()
fi
for recycle in off reuse pool; do
	injected=(--inject rq-reset:1)
	calls "$recycle" rx_reset_refused
	injected=(--inject rq-prot:500 --inject rq-reset:2 --inject rq-ready:3)
	injected+=(--inject sq-prot:70 --inject sq-reset:2 --inject sq-ready:3)
	calls "$recycle" recovery_refused
done
injected=(--inject sq-ready:2)
calls off tx_start_refused
injected=(--inject sq-reset:1)
calls off tx_reset_refused
injected=(--inject rq-reset:1 --inject rq-destroy:1 --inject sq-reset:1 --inject sq-destroy:1)
calls off destroy_refused
calls reuse destroy_refused
