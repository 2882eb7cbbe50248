#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# An unmodified dpdk-testpmd forwards on a net_null pair from our mempool driver, with its own
# cache and without, and has every object back when it stops.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

forward() {
	local before received

	pool_eal pagepool
	testpmd_start "${pool[@]}" --vdev net_null0 --vdev net_null1 -- -i --total-num-mbufs=8192 "$@"
	testpmd 'show port stats all'
	before=$(port_stat 0 RX-nombuf)
	testpmd start
	sleep 1
	testpmd stop
	testpmd 'show port stats all'
	testpmd dump_mempool

	received=$(forward_stat RX-packets)
	[ "$(pool_ops)" = pagepool ] || fail "the pool's ops are '$(pool_ops)'"
	expect 'packets received' "$received" -gt 100000
	expect 'packets sent or dropped' \
		$(($(forward_stat TX-packets) + $(forward_stat TX-dropped))) -eq "$received"
	expect 'receive without a buffer' "$(port_stat 0 RX-nombuf)" -eq "$before"
	expect 'objects in use after stop' "$(pool_in_use)" -eq 0
	testpmd_quit
	echo "testpmd $*: $received packets"
}

forward
forward --mbcache=0
