# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Sourced by the tests of l2fwd-bench, after lib.sh.
# shellcheck disable=SC2154 # lib.sh sets build, tmp, lcores and eal

need jq

bench=$build/apps/l2fwd-bench/l2fwd-bench
[ -x "$bench" ] || skip "no $bench"
json=$tmp/result.json

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
