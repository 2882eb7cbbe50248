# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Sourced by the tests of l2fwd-bench, after lib.sh.
# shellcheck disable=SC2154 # lib.sh sets build, tmp, lcores and eal

use_app l2fwd-bench

# lcores_n N: EAL's argument for N lcores on the processors of $lcores.
lcores_n() {
	local list=() i first=${lcores#0@} second=${lcores##*@}

	first=${first%%,*}
	for ((i = 0; i < $1; i++)); do
		list+=("$i@$((i % 2 == 0 ? first : second))")
	done
	(IFS=, && echo "${list[*]}")
}

# eal_n N: EAL's arguments in this environment, with N lcores; in $eal_args.
# shellcheck disable=SC2034 # which is for the caller
eal_n() {
	eal_args=("${eal[@]}")
	eal_args[1]=$(lcores_n "$1")
}

show() {
	cat "$tmp/out" "$tmp/err" "$json" 2>/dev/null || true
}

# run_bench EAL-ARGUMENT... -- ARGUMENT...: must end well and with everything accounted for.
run_bench() {
	local status=0

	rm -f "$json"
	"$bench" "$@" --json "$json" >"$tmp/out" 2>"$tmp/err" </dev/null || status=$?
	[ "$status" -eq 0 ] || { show; fail "status $status: $*"; }
	conserved "$*"
}

# result FILTER: a value out of the last run's results.
result() {
	jq -r "$1" "$json"
}

# is WHAT FILTER: must be true for the last run's results.
is() {
	[ "$(result "$2")" = true ] || { show; fail "not so: $1 ($2)"; }
}

# Every packet and every buffer is somewhere.
conserved() {
	is "$1: unaccounted" 'all(.results[]; .unaccounted == 0)'
	is "$1: buffers" '.pool.missing == 0'
	is "$1: a result per port, and the total" \
		'(.config.ports | length) + 1 == (.results | length) and .results[-1].port == "total"'
	is "$1: what came is what went" '.results[-1] | .rx_packets + .generated ==
		.tx_packets + .rxonly + .drops.ring_full + .drops.app'
	# shellcheck disable=SC2016 # jq's variables
	is "$1: the total is the sum" '. as $all |
		all("rx_packets", "tx_packets", "rxonly", "generated"; . as $name |
			$all.results[-1][$name] == ([$all.results[:-1][][$name]] | add)) and
		all("no_buffer", "ring_full", "driver", "app"; . as $name |
			$all.results[-1].drops[$name] == ([$all.results[:-1][].drops[$name]] | add))'
	is "$1: rates are numbers, line rates are not known" 'all(.results[];
		all(.mpps, .gbps_l2, .gbps_l1; type == "number") and .line_rate_percent == null)'
	is "$1: the page caches gave and got alike" \
		'if .pool.allocs and .pool.kept_by_drivers == 0 then .pool.allocs == .pool.frees else true end'
}

# ---- a run in the background ----

# Whether the program polls: it has said so.
polls() {
	grep -q '^lcore ' "$tmp/out" 2>/dev/null
}

polls_or_died() {
	polls || ! kill -0 "$pid" 2>/dev/null
}

# start_bench EAL-ARGUMENT... -- ARGUMENT...: until it polls; in $pid.
start_bench() {
	rm -f "$json" "$tmp/out"
	"$bench" "$@" --json "$json" >"$tmp/out" 2>"$tmp/err" </dev/null &
	pid=$!
	children+=("$pid")
	wait_for 30 polls_or_died || true
	polls || { show; fail "does not start: $*"; }
}

# end_bench SIGNAL: must end well and with everything accounted for.
end_bench() {
	local status=0

	kill -"$1" "$pid"
	wait "$pid" || status=$?
	children=()
	[ "$status" -eq 0 ] || { show; fail "status $status after SIG$1"; }
	conserved "ended by SIG$1"
}

# ---- two hosts and l2fwd-bench between them: see make_hosts ----

pings() {
	ip netns exec a ping -q -c 1 -W 1 192.0.2.2 >"$tmp/ping" 2>&1
}

# across EAL-ARGUMENT... -- ARGUMENT...: pings and a UDP stream cross l2fwd-bench; every packet
# that does not arrive is found in a counter of the program, the interfaces or the socket.
across() {
	local sent received dropped lost counted before=() receiver name

	for name in 'a a0 tx_dropped' '- a1 rx_packets' '- b1 tx_packets' '- b1 tx_dropped'; do
		# shellcheck disable=SC2086 # three words
		before+=("$(net_stat $name)")
	done
	start_bench "$@"
	wait_for 10 pings || { show; cat "$tmp/ping"; fail 'no ping crosses'; }
	ip netns exec a ping -q -c 100 -i 0.01 192.0.2.2 >"$tmp/ping" || true
	grep -q '100 packets transmitted, 100 received' "$tmp/ping" ||
		{ cat "$tmp/ping"; fail 'pings were lost'; }

	: >"$tmp/received"
	ip netns exec b python3 "$here/l2fwd_udp.py" receive 192.0.2.2 5000 >"$tmp/received" &
	receiver=$!
	children+=("$receiver")
	wait_for 10 grep -q ready "$tmp/received" || fail 'no receiver'
	sent=$(ip netns exec a python3 "$here/l2fwd_udp.py" send 192.0.2.2 5000 1) ||
		fail 'the sender died'
	wait "$receiver" || { cat "$tmp/received"; fail 'the receiver died'; }
	read -r received dropped < <(tail -n 1 "$tmp/received")
	end_bench INT

	counted=$(result '.results | .[0].rx_packets + .[0].drops.driver + .[0].in_flight')
	expect 'what came to a1' "$counted" -eq $(($(net_stat - a1 rx_packets) - before[1]))
	counted=$(result '.results[1].tx_packets')
	expect 'what left b1' "$counted" -eq \
		$(($(net_stat - b1 tx_packets) - before[2] + $(net_stat - b1 tx_dropped) - before[3]))
	lost=$(result '.results | .[0].drops.driver + .[0].in_flight + .[0].drops.app +
		.[1].drops.ring_full + .[1].drops.driver')
	# A peer of a veth that takes no more, its ring or backlog full, is a drop of the sender's side.
	lost=$((lost + $(net_stat a a0 tx_dropped) - before[0] + $(net_stat - b1 tx_dropped) - before[3]))
	expect 'datagrams' "$sent" -eq $((received + dropped + lost))
	expect 'datagrams received' "$received" -gt 0
	echo "$*: $sent sent, $received received, $dropped dropped by the socket, $lost on the way"
}
