#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# mlx5pp beside ports of other drivers: what it receives goes out at net_ring, net_null and af_packet, and
# comes in from them and out at mlx5pp again, in each way of recycling, under testpmd; and DPDK's own l2fwd.
# The device checks every frame sent, and all that was received was sent, or dropped and counted.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
. "$here/mlx5pp.bash"
needs_softcx
packets=10000

# forwards RATE FRAMES: testpmd between port 0, which is mlx5pp's, and $other_vdevs, until all have come.
forwards() {
	testpmd_on_mlx5pp 1 ",recycle=$recycle" --probe --pause --rate "$1" --payload full \
		--frame "$2" --packets "$packets" -- --total-num-mbufs=16384 --rxd=1024 --txd=512
	testpmd start
	wait_for 60 more_than $((packets - 1)) RX-packets || { testpmd_show_log; fail 'packets are missing'; }
	sleep 0.2 # on their way through the others
	testpmd stop
	testpmd 'show port stats all'
	testpmd 'port stop all'
	testpmd_quit
	expect "$recycle: offered" "$(softcx_stat 0 offered)" -eq "$packets"
	softcx_conserved 0
	expect "$recycle: received and delivered" "$(port_stat 0 RX-packets)" -eq "$(softcx_stat 0 rx_packets)"
	expect "$recycle: missed" "$(port_stat 0 RX-missed)" -eq "$(softcx_stat 0 out_of_buffer)"
	expect "$recycle: sent" "$(port_stat 0 TX-packets)" -eq "$(softcx_stat 0 tx_packets)"
	for name in tx_errors rx_errors faults; do
		expect "$recycle: $name" "$(softcx_stat 0 $name)" -eq 0
	done
	expect "$recycle: objects left" "$(jq .leaks "$tmp/stats.json")" -eq 0
	echo "recycle=$recycle, ${other_vdevs[*]}: $(port_stat 0 RX-packets) received," \
		"$(port_stat 0 TX-packets) sent, $(forward_stat TX-dropped) dropped by testpmd"
}

# came_back: what was sent were the generator's frames, and what is missing testpmd or the kernel dropped.
came_back() {
	expect 'most were sent' "$(port_stat 0 TX-packets)" -gt $((packets / 2))
	expect 'lost' "$(softcx_stat 0 checker.lost)" -le \
		$(($(port_stat 0 RX-packets) - $(port_stat 0 TX-packets)))
	checker_is_content 0
}

for recycle in "${recycle_modes[@]}"; do
	# A ring, into which its port sends and out of which it receives.
	other_vdevs=(net_ring0)
	forwards 200M 64,300,1518
	came_back
	expect 'sent, or dropped' "$(($(port_stat 0 TX-packets) + $(forward_stat TX-dropped)))" -eq \
		"$(port_stat 0 RX-packets)"
done

# A port that takes all, and makes packets as fast as it can, of buffers with something old in them.
other_vdevs=(net_null0)
forwards 200M 64,300,1518
expect 'taken by net_null' "$(port_stat 1 TX-packets)" -eq "$(port_stat 0 RX-packets)"
expect 'out of net_null' "$(($(port_stat 0 TX-packets) + $(forward_stat TX-dropped)))" -eq \
	"$(port_stat 1 RX-packets)"
expect 'looked at' "$(softcx_sum 0 checker.packets checker.foreign)" -eq "$(port_stat 0 TX-packets)"

# l2fwd_total NAME: the last sum over its ports that l2fwd printed.
l2fwd_total() {
	awk -v name="$1:" '/^Total packets/ && $3 == name { n = $4 } END { print n + 0 }' "$tmp/out"
}

# What was dropped on its way to a port cannot come back from it.
is_done() {
	[ $(($(l2fwd_total received) + $(l2fwd_total dropped))) -ge "$1" ]
}

# l2fwds PORTS VDEV...: DPDK's own l2fwd between two ports, PORTS of them ours, until all have come.
l2fwds() {
	local port vdevs=() sent=0 received=0 pid ports=$1

	for ((port = 0; port < ports; port++)); do
		vdevs+=(--vdev "net_mlx5pp$port,ibdev=mlx5_$port")
	done
	[ -z "${PAGELANE_NO_HUGE-}" ] || vdevs+=(--iova-mode=va)
	for port in "${@:2}"; do
		vdevs+=(--vdev "$port")
	done
	: >"$tmp/out" # what is_done() reads from now on is of this run
	"$softcx_run" --ports "$ports" --strict --probe --pause --rate 50M --payload full --frame 64,300,1518 \
		--packets "$packets" --stats "$tmp/stats.json" -- \
		"$l2fwd" "${eal[@]}" "${pool[@]}" -d "$mlx5pp" "${vdevs[@]}" -- -p 3 -q 2 -P -T 1 \
		>"$tmp/out" 2>&1 &
	pid=$!
	children=("$pid")
	# what comes back from the other driver counts, too
	wait_for 60 is_done $((2 * packets)) || { cat "$tmp/out"; fail "l2fwd: $*"; }
	kill -INT "$pid"
	wait "$pid" || { cat "$tmp/out"; fail "l2fwd: $*"; }
	children=()
	for ((port = 0; port < ports; port++)); do
		softcx_conserved "$port"
		checker_is_content "$port"
		expect "l2fwd: offered to port $port" "$(softcx_stat "$port" offered)" -eq "$packets"
		sent=$((sent + $(softcx_stat "$port" tx_packets)))
		received=$((received + $(softcx_stat "$port" rx_packets)))
	done
	expect 'l2fwd: sent, or dropped' $((sent + $(l2fwd_total dropped))) -eq "$received"
	expect 'l2fwd: most were sent' "$sent" -gt $((packets / 2))
	expect 'l2fwd: objects left' "$(jq .leaks "$tmp/stats.json")" -eq 0
	echo "l2fwd, $ports ports of ours ${*:2}: $received received, $sent sent, $(l2fwd_total dropped) dropped"
}

l2fwd=$build/tests/integration/dpdk-l2fwd
if [ -x "$l2fwd" ]; then
	pool_eal pagepool
	l2fwds 2
	pool_eal ring_mp_mc
	l2fwds 1 net_ring0
fi

# Into the kernel, over a cable of its, and the same way back.
need ip
[ "$(id -u)" -eq 0 ] || skip 'no right to make interfaces'
# shellcheck disable=SC2016 # its own variables
under_softcx=(bash -c 'ip link add a1 type veth peer name b1 &&
	sysctl -q net.ipv6.conf.a1.disable_ipv6=1 net.ipv6.conf.b1.disable_ipv6=1 &&
	ip link set a1 up && ip link set b1 up && exec "$@"' -)
other_vdevs=('net_af_packet0,iface=a1' 'net_af_packet1,iface=b1' net_ring0)
packets=2000 recycle=${recycle_modes[-1]}
forwards 20M 64,300,1000
came_back
