#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# DPDK's own mlx5 driver on softcx, two ports back to back: 1 to 8 queues, scalar and vector RX,
# ports stopped and started. What the driver counts and what the ports count is the same, to the
# packet, nothing is lost on the way, and every object is given back.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
need jq

# forwards QUEUES DEVARGS
forwards() {
	local queues=$1 port other sent

	softcx_devargs=$2
	testpmd_on_softcx 2 --wire pair --strict --stats "$tmp/stats.json" -- --rxq="$queues" \
		--txq="$queues" --rxd=512 --txd=512 --total-num-mbufs=20000 --forward-mode=macswap
	testpmd 'show port info 0'
	grep -q '^Link speed: 100 Gbps' "$testpmd_log" || fail 'the link is not of 100 Gbit/s'
	# Twice, so that the second life of every queue is seen, too.
	for _ in 1 2; do
		testpmd 'start tx_first 1'
		sleep 0.5
		testpmd stop
		expect 'packets received' "$(forward_stat RX-packets)" -gt 1000
		expect 'packets dropped' "$(forward_stat TX-dropped)" -eq 0
		testpmd 'show port stats all'
		testpmd 'port stop all'
		testpmd 'port start all'
	done
	testpmd 'port stop all'
	testpmd dump_mempool
	sent=("$(port_stat 0 TX-packets)" "$(port_stat 1 TX-packets)")
	expect 'receive errors' "$(port_stat 0 RX-errors)" -eq 0
	testpmd_quit
	if grep -E '^softcx: (mlx5_[0-9]+: |.* never destroyed)' "$testpmd_log"; then
		fail 'objects are left'
	fi
	for port in 0 1; do
		other=$((1 - port))
		expect "port $port: sent by testpmd and by the port" \
			"$(softcx_stat $port tx_packets)" -eq "${sent[$port]}"
		expect "port $port: offered by its peer" \
			"$(softcx_stat $port offered)" -eq "$(softcx_stat $other tx_packets)"
		expect "port $port: without a buffer" "$(softcx_stat $port out_of_buffer)" -eq 0
		expect "port $port: errors" "$(softcx_stat $port rx_errors)" -eq 0
	done
	echo "$queues queues, $2: $((sent[0] + sent[1])) packets"
}

forwards 1 rx_vec_en=0
forwards 2 rx_vec_en=1
forwards 3 rx_vec_en=1
forwards 4 rx_vec_en=0
forwards 7 rx_vec_en=0
forwards 8 rx_vec_en=1
# The driver's rings from our pages: its memory regions are those of the pool's chunks.
softcx_eal=(-d "$plugin" --mbuf-pool-ops-name=pagepool)
forwards 2 rx_vec_en=1
testpmd_used=$(pool_in_use)
[ "$(pool_ops)" = pagepool ] || fail "the pool's ops are '$(pool_ops)'"
expect 'pages in use after the ports were stopped' "$testpmd_used" -eq 0
softcx_eal=()

# A port stopped and started, often.
softcx_devargs=rx_vec_en=1
testpmd_on_softcx 1 --wire gen --rate 100M -- --rxq=2 --txq=2 --rxd=256 --txd=256 \
	--total-num-mbufs=4096
for ((i = 0; i < 50; i++)); do
	printf 'port stop 0\nport start 0\n' >&9
done
testpmd start
sleep 0.2
testpmd stop
expect 'packets received after the last start' "$(forward_stat RX-packets)" -gt 0
# They are for this port, which need not be promiscuous: more than there were in the rings.
testpmd 'set promisc all off'
testpmd 'clear port stats all'
testpmd start
wait_for 10 more_than 1000 RX-packets || { testpmd_show_log; fail 'no packets without promiscuous mode'; }
testpmd stop
testpmd_quit
if grep -E '^softcx: mlx5_[0-9]+: ' "$testpmd_log"; then
	fail 'objects are left'
fi
