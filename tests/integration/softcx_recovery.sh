#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Errors that softcx makes up (--inject), and DPDK's own mlx5 driver that recovers from them: a
# queue in error is reset, filled and goes on, and each packet is in some counter.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
need jq

packets=8000

# under OPTION...: testpmd sends back what comes, on two queues.
under() {
	testpmd_on_softcx 1 --rate 5M --frame 64 --probe --strict --stats "$tmp/stats.json" "$@" -- \
		--no-flush-rx --rxq=2 --txq=2 --rxd=1024 --txd=1024 --total-num-mbufs=8192 \
		--forward-mode=macswap
	testpmd start
}

# runs OPTION...: all of the packets, until no more come; the counters are in $received and so on.
runs() {
	under --packets "$packets" "$@"
	all_came
	testpmd stop
	testpmd 'show port stats all'
	testpmd 'show port xstats 0'
	received=$(port_stat 0 RX-packets)
	sent=$(port_stat 0 TX-packets)
	wqe_errors=$(awk '$1 == "rx_wqe_errors:" { n = $2 } END { print n }' "$testpmd_log")
	testpmd_quit
	expect 'offered' "$(softcx_stat 0 offered)" -eq "$packets"
	softcx_conserved 0
	expect 'received by testpmd and delivered' "$received" -eq "$(softcx_stat 0 rx_packets)"
	expect 'missed by testpmd and without a buffer' \
		"$(port_stat 0 RX-missed)" -eq "$(softcx_stat 0 out_of_buffer)"
	# What a send queue in error held testpmd counts as sent, as an error, and as dropped.
	expect 'received and forwarded' "$received" -eq \
		$((sent + $(forward_stat TX-dropped) - $(port_stat 0 TX-errors)))
	expect 'lost' "$(softcx_stat 0 checker.lost)" -le $((received - $(softcx_stat 0 tx_packets)))
	for name in reordered duplicated corrupted foreign; do
		expect "$name" "$(softcx_stat 0 checker.$name)" -eq 0
	done
	for name in faults cq_overruns strict; do
		expect "$name" "$(softcx_stat 0 $name)" -eq 0
	done
	echo "$* $softcx_devargs: received $received, sent $sent, $(softcx_stat 0 injected) errors" \
		"of ours, $(softcx_stat 0 flushed) WQEs flushed"
}

# What a receive queue loses is counted, by testpmd too, and every error is one of ours.
receives() {
	runs "$@"
	expect 'errors' "$(softcx_stat 0 injected)" -ge 2
	expect 'errors, and by cause' "$(softcx_stat 0 rx_errors)" -eq "$(softcx_stat 0 injected)"
	expect 'errors that testpmd saw' "$wqe_errors" -eq "$(softcx_stat 0 injected)"
	expect 'sent by testpmd and by the port' "$sent" -eq "$(softcx_stat 0 tx_packets)"
}

no_dumps=max_dump_files_num=0 # of the driver's, in /var/log
softcx_devargs=$no_dumps,rx_vec_en=0
receives --inject rq-prot:500
expect 'WQEs flushed' "$(softcx_stat 0 flushed)" -gt 0
expect 'buffers that testpmd counts as lost' \
	"$(port_stat 0 RX-errors)" -eq "$(softcx_sum 0 rx_errors flushed)"
softcx_devargs=$no_dumps,rx_vec_en=1
receives --inject rq-length:50

# A send queue that fails is emptied: what it held was not sent, and nothing else.
runs --inject sq-op:500
expect 'errors' "$(softcx_stat 0 tx_errors)" -ge 2
expect 'errors of ours' "$(softcx_stat 0 tx_errors)" -eq "$(softcx_stat 0 injected)"
expect 'sent by testpmd, and what became of it' "$sent" -eq "$(softcx_sum 0 tx_packets tx_errors flushed)"

# The vectorized receive function of DPDK 22.11 resets a queue and leaves it there. Ports that are
# started again are well.
under --inject rq-prot:20000 # seldom: started ports must not see the next one
wait_for 20 more_than 0 RX-errors || fail 'no error'
testpmd stop
testpmd 'port stop all'
testpmd 'port start all'
testpmd 'show port stats all'
before=$(port_stat 0 RX-packets)
testpmd start
wait_for 20 more_than $((before + 500)) RX-packets || { testpmd_show_log; fail 'nothing comes again'; }
testpmd stop
testpmd_quit
softcx_conserved 0
