#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Buffers of ours that no driver copies: net_ring ports hand the same mbufs round for ever.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pool_eal pagepool
testpmd_start "${pool[@]}" --vdev net_ring0 --vdev net_ring1 -- -i --total-num-mbufs=4096
testpmd 'start tx_first 4'
sleep 1
testpmd stop
testpmd dump_mempool

[ "$(pool_ops)" = pagepool ] || fail "the pool's ops are '$(pool_ops)'"
received=$(forward_stat RX-packets)
sent=$(forward_stat TX-packets)
expect 'packets received' "$received" -gt 100000
expect 'packets dropped' "$(forward_stat TX-dropped)" -eq 0
# What was sent first, 4 bursts of 32 on each of 2 ports, is still under way.
expect 'packets under way' $((sent - received)) -eq 256
expect 'objects in use' "$(pool_in_use)" -eq 256
testpmd_quit
echo "$received packets"
