#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A pool as small as the application can make it: pages that idle lcores cache must not be missing
# elsewhere. On a vhost port with virtio_user as its peer, whose receive ring is refilled from the
# pool and counts each failure, ours shows no more of them than ring_mp_mc.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
[ -z "${PAGELANE_NO_HUGE-}" ] || skip 'virtio_user shares hugepages with vhost'

ring=512

# no_buffer OPS PACKETS-UNDER-WAY MBUFS [ARGUMENT...]: failures to refill; in $failures.
no_buffer() {
	local ops=$1 bursts=$(($2 / 32)) mbufs=$3

	shift 3
	rm -f "$tmp/vhost"
	pool_eal "$ops"
	testpmd_start "${pool[@]}" --single-file-segments --vdev "net_vhost0,iface=$tmp/vhost" -- -i \
		"--total-num-mbufs=$mbufs" --rxd=$ring --txd=$ring --port-topology=chained "$@"
	# The socket is there once the vhost port has started; then its peer can connect.
	testpmd "port attach net_virtio_user0,path=$tmp/vhost,queue_size=$ring"
	testpmd 'port start all'
	testpmd 'set portlist 0,1'
	wait_for 10 grep -q 'ready for processing' "$testpmd_log"
	testpmd "start tx_first $bursts"
	sleep 1
	testpmd stop
	testpmd 'show port stats all'
	testpmd dump_mempool
	[ "$(pool_ops)" = "$ops" ] || fail "the pool's ops are '$(pool_ops)'"
	failures=$(port_stat 1 RX-nombuf)
	received=$(forward_stat RX-packets)
	testpmd_quit
}

# What the ring and the packets under way hold; the most that one lcore's library cache keeps, half
# as much again as its size; and a burst.
compare() {
	local cache=$1 mbufs=$((ring + 512 + $1 * 3 / 2 + 32)) stock

	no_buffer ring_mp_mc 512 "$mbufs" "--mbcache=$cache"
	stock=$failures
	no_buffer pagepool 512 "$mbufs" "--mbcache=$cache"
	echo "mbcache $cache, $mbufs mbufs: no buffer $failures times, ring_mp_mc $stock; $received packets"
	expect "failures to refill with a cache of $cache" "$failures" -le "$stock"
	expect 'packets received' "$received" -gt 100000
}

compare 250
compare 32
compare 0
