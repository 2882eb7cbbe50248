#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# mlx5pp under an unmodified testpmd on softcx: 1 to 8 queues, sizes from 64 to 9000 bytes, each way
# of recycling, every frame checked by the device. What driver, application and device count is the
# same, to the packet, and every page is given back.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
. "$here/mlx5pp.bash"
needs_softcx

# The generator has come to its end: nothing new arrived for a while. A few frames may have come
# before there was a rule for them, so that their number is not known here.
is_over() {
	local before=${arrived-0}

	sleep 0.5
	testpmd 'show port stats all'
	arrived=$(($(port_stat 0 RX-packets) + $(port_stat 0 RX-missed)))
	[ "$arrived" -gt $((packets / 2)) ] && [ "$arrived" -eq "$before" ]
}

# forwards QUEUES DEVARGS FRAMES ARGUMENT...
forwards() {
	local queues=$1 devargs=$2 frames=$3 received dropped
	local packets=20000 arrived=0 early

	shift 3
	testpmd_on_mlx5pp 1 "$devargs" --probe --rate 200M --payload full --frame "$frames" \
		--packets "$packets" -- --rxq="$queues" --txq="$queues" --rxd=512 --txd=512 \
		--total-num-mbufs=20000 --forward-mode=macswap "$@"
	testpmd start
	wait_for 60 is_over || { testpmd_show_log; fail 'packets are missing'; }
	testpmd stop
	testpmd 'show port stats all'
	testpmd 'show port xstats 0'
	testpmd 'port stop all'
	received=$(port_stat 0 RX-packets) dropped=$(forward_stat TX-dropped)
	expect 'receive errors' "$(port_stat 0 RX-errors)" -eq 0
	expect 'no buffer' "$(port_stat 0 RX-nombuf)" -eq 0
	expect 'sent or dropped' "$(($(port_stat 0 TX-packets) + dropped))" -eq "$received"
	ends_clean
	expect 'offered' "$(softcx_stat 0 offered)" -eq "$packets"
	expect 'delivered by the device' "$(softcx_stat 0 rx_packets)" -eq "$received"
	early=$(($(softcx_stat 0 no_flow) + $(softcx_stat 0 queue_not_ready)))
	expect 'out of buffer' "$(softcx_stat 0 out_of_buffer)" -eq "$((packets - received - early))"
	expect 'sent by the device' "$(softcx_stat 0 tx_packets)" -eq "$((received - dropped))"
	case $devargs in
	*cache* | *reuse*) expect 'pages used again' "$(xstat 0 rx_cache_reuse)" -gt 0 ;;
	*pool*) expect 'pages used again' "$(xstat 0 rx_pp_recycle_cached)" -gt 0 ;;
	esac
	expect 'lost' "$(softcx_stat 0 checker.lost)" -le "$dropped"
	checker_is_content 0
	echo "$queues queues, ${devargs:-,recycle=off}, $frames bytes: $received of $packets received," \
		"$dropped dropped by testpmd"
}

for recycle in "${recycle_modes[@]}"; do
	size=$(mbuf_size "$recycle")
	forwards 1 ",recycle=$recycle" 64,65,128,777,1518 --mbuf-size="$size"
	[ "$recycle" = reuse ] || forwards 4 ",recycle=$recycle" imix
	forwards 8 ",recycle=$recycle" 1518 --mbuf-size="$size"
	# frames over several buffers
	forwards 2 ",recycle=$recycle" 64,1518,4000,9018 --max-pkt-len=9100 --rx-offloads=0x2000 \
		--tx-offloads=0x8000 --mbuf-size=2176
done
forwards 2 ,recycle=cache,cache_size=7 1518
forwards 4 ,recycle=reuse,cache_size=7 imix --mbuf-size=14656 # eight frames to a page
forwards 2 ,recycle=off,inline=18 64,1518

# DPDK's own recycling, where there is: receive queues take part with recycle=off and one buffer per frame.
if grep -q recycle_mbufs "$(command -v dpdk-testpmd)"; then
	own=--forward-mode=recycle_mbufs
	for queues in 1 4; do
		forwards "$queues" ,recycle=off 64,777,1518 $own
		expect 'buffers moved to the receive ring' "$(xstat 0 rx_recycled_mbufs)" -gt 0
	done
	forwards 2 ,recycle=off 64,1518,4000,9018 --max-pkt-len=9100 --rx-offloads=0x2000 \
		--tx-offloads=0x8000 --mbuf-size=2176 $own
	expect 'none, as frames have several' "$(xstat 0 rx_recycled_mbufs)" -eq 0
	for recycle in cache pool; do
		forwards 2 ",recycle=$recycle" 64,1518 $own
		expect 'none, as pages must be seen' "$(xstat 0 rx_recycled_mbufs)" -eq 0
	done
fi
