# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables of lib.sh
#
# Sourced after lib.sh by the tests of softcx.

softcx_run=$build/sim/softcx/softcx-run
[ -x "$softcx_run" ] || skip 'softcx is not built'

# softcx OPTION... -- COMMAND...: with the sanitizer's run-time, where there is one.
softcx() {
	LD_PRELOAD=${PAGELANE_PRELOAD-} "$softcx_run" "$@"
}

# testpmd_on_softcx PORTS OPTION... -- ARGUMENT...: an interactive testpmd on the mlx5 PMD.
testpmd_on_softcx() {
	local ports=$1 port eal_before=("${eal[@]}")
	local -a words=()

	shift
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	[ "$(id -u)" -eq 0 ] || skip 'no right to make a netdev'
	eal=(--lcores "$lcores" --no-telemetry)
	if [ -n "${PAGELANE_NO_HUGE-}" ]; then
		eal+=(--no-huge --no-shconf -m 512 --iova-mode=va)
	else
		eal+=(--in-memory)
	fi
	for ((port = 0; port < ports; port++)); do
		eal+=(-a "0000:03:00.$port,dv_flow_en=0,mprq_en=0,rxq_cqe_comp_en=0${softcx_devargs:+,$softcx_devargs}")
	done
	testpmd_under=("$softcx_run" --ports "$ports" "${words[@]}" --)
	testpmd_start "${softcx_eal[@]}" -- -i "$@"
	eal=("${eal_before[@]}")
}
softcx_devargs= # further ones of the mlx5 PMD
softcx_eal=()   # further arguments of EAL's

# softcx_stat PORT NAME: a counter in the file that --stats named.
softcx_stat() {
	jq ".ports[$1].$2" "$tmp/stats.json"
}

# softcx_sum PORT NAME...: several added up.
softcx_sum() {
	local port=$1 sum=0 name

	shift
	for name; do
		sum=$((sum + $(softcx_stat "$port" "$name")))
	done
	echo "$sum"
}

# softcx_conserved PORT: each frame that was offered has a fate.
softcx_conserved() {
	expect "port $1: offered, and what became of it" "$(softcx_stat "$1" offered)" -eq \
		"$(softcx_sum "$1" rx_packets out_of_buffer rx_errors no_flow flow_drops queue_not_ready)"
}

# more_than NUMBER NAME: testpmd's port 0 has counted more by now.
more_than() {
	testpmd 'show port stats all'
	[ "$(port_stat 0 "$2")" -gt "$1" ]
}

# Nothing has come to testpmd's port 0 for a while.
is_quiet() {
	local now

	sleep 0.1
	testpmd 'show port stats all'
	now=$(($(port_stat 0 RX-packets) + $(port_stat 0 RX-missed) + $(port_stat 0 RX-errors)))
	quiet_for=$((now == quiet_at ? quiet_for + 1 : 0))
	quiet_at=$now
	[ "$quiet_for" -ge 8 ]
}

# Wait until all frames of a generator that ends (--packets) have come to testpmd's port 0.
all_came() {
	wait_for 20 more_than 0 RX-packets || { testpmd_show_log; fail 'no frame comes'; }
	quiet_for=0 quiet_at=0
	wait_for 40 is_quiet || { testpmd_show_log; fail 'frames do not end'; }
}
