#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# mlx5pp, two ports back to back: ports and queues stopped and started under traffic, addresses and
# modes changed, in each way of recycling. Nothing is lost but what a stopped queue could not take,
# and every page comes back.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
. "$here/mlx5pp.bash"

for recycle in "${recycle_modes[@]}"; do
	testpmd_on_mlx5pp 2 ",recycle=$recycle" --wire pair -- --rxq=2 --txq=2 --rxd=256 --txd=256 \
		--total-num-mbufs=8192 --mbuf-size="$(mbuf_size "$recycle")" --forward-mode=macswap
	for _ in 1 2 3; do
		testpmd 'start tx_first 1'
		sleep 0.2
		testpmd stop
		expect 'packets received' "$(forward_stat RX-packets)" -gt 100
		testpmd 'port stop all'
		testpmd dump_mempool
		expect 'pages away after stop' "$(pool_in_use)" -eq 0
		testpmd 'port start all'
	done
	# A queue alone, while the others run.
	testpmd 'start tx_first 1'
	for _ in 1 2 3; do
		testpmd 'port 0 rxq 1 stop'
		testpmd 'port 0 rxq 1 start'
	done
	for _ in 1 2 3; do
		testpmd 'set promisc all off'
		testpmd 'set allmulti all on'
		testpmd 'set promisc all on'
		testpmd 'set allmulti all off'
	done
	testpmd stop
	testpmd 'mac_addr add 0 02:00:00:00:00:05'
	testpmd 'mac_addr remove 0 02:00:00:00:00:05'
	testpmd 'port config mtu 0 1400'
	testpmd 'port stop all'
	ends_clean
	echo "recycle=$recycle: $(forward_stat RX-packets) packets, the last time"
done
