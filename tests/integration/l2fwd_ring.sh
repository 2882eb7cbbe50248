#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# l2fwd-bench over net_ring: one lcore receives from net_null and fills a ring, another empties it,
# so that buffers are freed on another lcore than they were allocated on; what does not fit the
# ring, and what is in it at the end, is accounted for.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/l2fwd.bash"

for pool in pages pagepool ring_mp_mc; do
	run_bench "${eal[@]}" --vdev net_null0 --vdev net_ring0 -- --pool "$pool" --duration 1
	is 'packets went through the ring' '.results[1].rx_packets > 1000 and
		.results[1].device_checked'
	is 'what entered the ring left it or was found there' \
		'.results[1] | .tx_packets == .rx_packets + .in_flight'
done

# Two queues, each a ring of its own.
eal_n 4
run_bench "${eal_args[@]}" --vdev net_null0 --vdev net_ring0 -- --rxq 2 --duration 1
is 'four lcores' '[.config.streams[].lcore] | unique | length == 4'
is 'through both rings' '.results[1] | .rx_packets > 1000 and .tx_packets == .rx_packets + .in_flight'

# Nobody empties a ring: it fills, the rest is refused, and its content comes back at the end.
run_bench "${eal[@]}" --vdev net_ring0 --vdev net_ring1 -- --mode txonly --duration 1
is 'a full ring' 'all(.results[:-1][]; .tx_packets == 1023 and .in_flight == 1023 and
	.drops.ring_full > 0)'
