#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Errors that softcx makes up (--inject), and mlx5pp that recovers from them, in each way of recycling: a queue
# in error starts anew, every packet is in some counter, and every page comes back.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
. "$here/mlx5pp.bash"
needs_softcx
packets=8000

for recycle in "${recycle_modes[@]}"; do
	testpmd_on_mlx5pp 1 ",recycle=$recycle" --probe --rate 20M --frame 64,300 --payload full \
		--packets "$packets" --inject rq-prot:500 --inject sq-op:700 -- --rxq=2 --txq=2 --rxd=1024 --txd=1024 \
		--total-num-mbufs=16384 --mbuf-size="$(mbuf_size "$recycle")" --forward-mode=macswap
	testpmd start
	all_came
	testpmd stop
	# testpmd's word of what was dropped has the port's errors in it, as far as they are known by now
	testpmd 'show port stats all'
	refused=$(($(forward_stat TX-dropped) - $(port_stat 0 TX-errors)))
	# a send queue that failed last is seen to have
	testpmd 'port cleanup 0 txq 0 0'
	testpmd 'port cleanup 0 txq 1 0'
	testpmd 'show port stats all'
	testpmd 'show port xstats 0'
	testpmd 'port stop all'
	received=$(port_stat 0 RX-packets) sent=$(port_stat 0 TX-packets)
	ends_clean
	expect 'offered' "$(softcx_stat 0 offered)" -eq "$packets"
	softcx_conserved 0
	expect 'received and delivered' "$received" -eq "$(softcx_stat 0 rx_packets)"
	expect 'missed' "$(port_stat 0 RX-missed)" -eq "$(softcx_stat 0 out_of_buffer)"
	expect 'most came' "$received" -gt $((packets / 2))
	expect 'sent by testpmd and by the port' "$sent" -eq "$(softcx_stat 0 tx_packets)"
	checker_is_content 0
	expect 'lost' "$(softcx_stat 0 checker.lost)" -le $((received - sent))
	expect 'errors of ours' "$(softcx_stat 0 injected)" -eq "$(softcx_sum 0 rx_errors tx_errors)"
	for name in rx tx; do
		expect "$name errors" "$(softcx_stat 0 ${name}_errors)" -ge 2
		expect "$name recoveries" "$(xstat 0 ${name}_recoveries)" -eq "$(softcx_stat 0 ${name}_errors)"
	done
	expect 'errors of the port' "$(port_stat 0 RX-errors)" -eq "$(softcx_stat 0 rx_errors)"
	# what a send queue in error held is an error of the port's
	expect 'sent, failed or refused' $((sent + $(port_stat 0 TX-errors) + refused)) -eq "$received"
	echo "recycle=$recycle: received $received, sent $sent, $(softcx_stat 0 injected) errors of ours," \
		"$(softcx_stat 0 flushed) WQEs flushed"
done
