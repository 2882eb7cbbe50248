#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# SIGINT and SIGTERM end l2fwd-bench as its duration would; a second one ends it at once, and
# leaves no file.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/l2fwd.bash"

# Whether the program, no longer the shell that starts it, has a handler for SIGINT, bit 1.
catches() {
	local mask

	[ "$(readlink "/proc/$pid/exe")" = "$bench" ] || return 1
	mask=$(awk '/^SigCgt:/ { print $2 }' "/proc/$pid/status" 2>/dev/null) || return 1
	[ -n "$mask" ] && (((16#$mask & 2) != 0))
}

catches_or_died() {
	catches || ! kill -0 "$pid" 2>/dev/null
}

start() {
	rm -f "$json"
	"$bench" "$@" --json "$json" >"$tmp/out" 2>"$tmp/err" </dev/null &
	pid=$!
	children=("$pid")
	wait_for 30 catches_or_died || true
	catches || { show; fail "does not start: $*"; }
}

# await STATUS: the program's.
await() {
	local status=0

	wait "$pid" || status=$?
	children=()
	[ "$status" -eq "$1" ] || { show; fail "status $status, not $1"; }
}

null=(--vdev net_null0 --vdev net_null1)
for signal in INT TERM; do
	for n in 2 3; do # the main lcore polls, or waits
		eal_n "$n"
		start "${eal_args[@]}" "${null[@]}" -- --duration 0
		sleep 0.5
		kill -"$signal" "$pid"
		await 0
		conserved "$signal with $n lcores"
		is 'packets' '.results[-1].rx_packets > 0'
	done
done

# As early as it can be: while ports are being set up.
start "${eal[@]}" "${null[@]}" -- --duration 0
kill -TERM "$pid"
await 0
conserved 'early'

# No packets at all, so that nothing but polling goes on.
start "${eal[@]}" --vdev net_null0,no-rx=1 --vdev net_null1,no-rx=1 -- --duration 0
sleep 0.5
kill -INT "$pid"
await 0
conserved 'idle'
is 'nothing to divide by' '.results[-1] | .cycles_per_packet == null and .mpps == 0'

# Twice. Stopped in between, the program cannot end before the second one comes.
start "${eal[@]}" "${null[@]}" -- --duration 0
kill -STOP "$pid"
kill -INT "$pid"
kill -TERM "$pid"
kill -CONT "$pid"
status=0
wait "$pid" || status=$?
children=()
[ "$status" -eq 130 ] || [ "$status" -eq 143 ] || { show; fail "status $status after two signals"; }
[ -z "$(find "$tmp" -name 'result.json*')" ] || fail 'a result in spite of the second signal'

# A terminal shows a line each second.
need script
script -qec "$bench ${eal[*]} ${null[*]} -- --duration 3" /dev/null >"$tmp/out" </dev/null ||
	{ show; fail "status $? on a terminal"; }
[ "$(grep -o 'RX [0-9.]* Mpps' "$tmp/out" | wc -l)" -ge 1 ] || { show; fail 'no live line'; }
