#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# An unmodified dpdk-testpmd on pools of ours, one short run per row: ways to make the pool, sizes,
# drivers and forwarding modes. A row that does not work with ring_mp_mc either is skipped.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need dpdk-testpmd stdbuf python3

null=(--vdev net_null0 --vdev net_null1)
ring=(--vdev net_ring0 --vdev net_ring1)
peers=() # processes besides the one of lib.sh

# peer_start EAL-ARGUMENT... -- ARGUMENT...: a second dpdk-testpmd on the same ops, which sends
# back what it receives until peer_quit.
peer_start() {
	mkfifo "$tmp/peer.in"
	LD_PRELOAD=${PAGELANE_PRELOAD-} stdbuf -oL dpdk-testpmd "${eal[@]}" "${pool[@]}" "$@" \
		<"$tmp/peer.in" >"$tmp/peer.log" 2>&1 9>&- &
	peer_pid=$!
	peers=("$peer_pid")
	children=("$peer_pid")
	exec 8>"$tmp/peer.in"
	rm "$tmp/peer.in"
	wait_for 30 grep -q 'Press enter to exit' "$tmp/peer.log" || {
		cat "$tmp/peer.log"
		fail 'the second dpdk-testpmd does not start'
	}
}

peer_quit() {
	local status=0

	echo >&8
	exec 8>&-
	wait "$peer_pid" || status=$?
	peers=()
	[ "$status" -eq 0 ] || { cat "$tmp/peer.log"; fail "the second dpdk-testpmd ended with $status"; }
}

# Objects of all pools that are in use, by the only `dump_mempool`.
all_in_use() {
	awk '
		/^ *size=/ { sub(/.*=/, ""); size += $0 }
		/common_pool_count=/ { sub(/.*=/, ""); common += $0 }
		/total_cache_count=/ { sub(/.*=/, ""); cached += $0 }
		END { print size - common - cached }' "$testpmd_log"
}

# Sum of what both ports received without a buffer, by the last `show port stats all`.
nombufs() {
	local second

	second=$(port_stat 1 RX-nombuf)
	echo $(($(port_stat 0 RX-nombuf) + ${second:-0}))
}

# works_with_ring EAL-ARGUMENT... -- ARGUMENT...
works_with_ring() {
	timeout -k 5 30 dpdk-testpmd "${eal[@]}" --mbuf-pool-ops-name=ring_mp_mc "$@" \
		</dev/null >"$tmp/ring.log" 2>&1
}

# row NAME START IN-USE EAL-ARGUMENT... -- ARGUMENT...: START is the command that starts forwarding;
# IN-USE the number of objects after it was stopped, `held` for what was received and not sent, or
# `any`. Variables: $during, a function to call; $counter and $least, what to count and how many at
# least; $gate, `no` to do without the run with ring_mp_mc.
row() {
	local name=$1 start=$2 in_use=$3 before nombuf packets began=$SECONDS

	shift 3
	if [ "${gate-yes}" = yes ] && ! works_with_ring "$@"; then
		echo "$name: skipped, does not work with ring_mp_mc: $(grep -m 1 -iE 'cannot|fail|error' "$tmp/ring.log" || true)"
		return
	fi
	testpmd_marks=0
	pool_eal pagepool
	testpmd_start "${pool[@]}" "$@"
	children+=("${peers[@]}")
	testpmd 'show port stats all'
	before=$(nombufs)
	testpmd "$start"
	sleep 0.5
	[ -z "${during-}" ] || "$during"
	testpmd stop
	testpmd 'show port stats all'
	testpmd dump_mempool

	[ "$(pool_ops)" = pagepool ] || fail "$name: the pool's ops are '$(pool_ops)'"
	! grep 'ops_name: <' "$testpmd_log" | grep -qv '<pagepool>' || fail "$name: a pool has other ops"
	nombuf=$(nombufs)
	packets=$(forward_stat "${counter-RX-packets}")
	[ "$in_use" != held ] || in_use=$((packets - $(forward_stat TX-packets) - $(forward_stat TX-dropped)))
	expect "$name: packets" "$packets" -gt "${least-10000}"
	expect "$name: receive without a buffer" "$nombuf" -eq "$before"
	[ "$in_use" = any ] || expect "$name: objects in use after stop" "$(all_in_use)" -eq "$in_use"
	testpmd_quit
	grep -q '^Bye' "$testpmd_log" || { testpmd_show_log; fail "$name: no clean end"; }
	echo "$name: $packets packets, $((SECONDS - began)) s"
}

# ---- ways to make pools ----

# With `anon` dpdk-testpmd populates an empty pool without a word on its ops, and gets ring_mp_mc.
echo 'mp-alloc anon: skipped, dpdk-testpmd does not ask for ops there'
for how in native xmem xmemhuge; do
	case ${PAGELANE_NO_HUGE-}$how in
	?*xmemhuge) echo "mp-alloc $how: skipped, no hugepages" ;;
	*) row "mp-alloc $how" start 0 "${null[@]}" -- -i --mp-alloc="$how" --total-num-mbufs=2048 ;;
	esac
done

# ---- sizes and caches ----

row 'mbuf-size 2048,1024' start 0 "${null[@]}" -- -i --mbuf-size=2048,1024 --total-num-mbufs=2048
row 'mbuf-size 9216,4096,256' start 0 "${null[@]}" -- -i --mbuf-size=9216,4096,256 --total-num-mbufs=2048
row 'mbcache 0' start 0 "${null[@]}" -- -i --mbcache=0 --total-num-mbufs=2048
row 'mbcache 0, ring' 'start tx_first 4' 256 "${ring[@]}" -- -i --mbcache=0 --total-num-mbufs=2048
row 'mbcache 512' start 0 "${null[@]}" -- -i --mbcache=512 --total-num-mbufs=4096

# ---- forwarding modes ----

restart_ports() {
	for _ in 1 2 3 4; do
		testpmd stop
		testpmd 'port stop all'
		testpmd 'port start all'
		testpmd start
		sleep 0.2
	done
}
during=restart_ports row 'ports stopped and started' start 0 "${null[@]}" -- -i --total-num-mbufs=4096

counter=TX-packets row 'multi-segment, sent' start 0 "${null[@]}" -- \
	-i --forward-mode=txonly --txpkts=64,128,256 --total-num-mbufs=8192
row 'multi-segment, handed round' 'start tx_first 4' 768 "${ring[@]}" -- \
	-i --txpkts=64,128,256 --total-num-mbufs=8192

# What the buffers hold is neither sent nor free.
row 'noisy' start held "${null[@]}" -- -i --forward-mode=noisy --noisy-tx-sw-buffer-size=1024 \
	--noisy-tx-sw-buffer-flushtime=100 --total-num-mbufs=16384

# ---- drivers ----

python3 - "$tmp/in.pcap" <<-'END'
	import struct, sys

	with open(sys.argv[1], 'wb') as pcap:
	    pcap.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
	    for number in range(200):
	        size = (60, 300, 1000, 1514)[number % 4]
	        pcap.write(struct.pack('<IIII', 0, number, size, size))
	        pcap.write(bytes.fromhex('0200000000020200000000010800').ljust(size, b'\0'))
END
replay=rx_pcap=$tmp/in.pcap,tx_pcap=/dev/null
# The driver keeps the packets that it replays for ever.
row 'pcap, replayed' start 200 --vdev "net_pcap0,$replay,infinite_rx=1" -- -i --total-num-mbufs=4096
least=199 row 'pcap, packets in several mbufs' start 0 --vdev "net_pcap0,$replay" -- \
	-i --no-flush-rx --mbuf-size=640 --total-num-mbufs=4096

memif=socket=$tmp/memif.sock,socket-abstract=no
pair=(--vdev "net_memif0,role=server,id=0,$memif" --vdev "net_memif1,role=client,id=0,$memif")
row memif 'start tx_first 4' 0 "${pair[@]}" -- -i --total-num-mbufs=4096
row 'memif, packets in several mbufs' 'start tx_first 4' 0 "${pair[@]}" -- \
	-i --mbuf-size=640 --txpkts=1200 --total-num-mbufs=4096

if [ -n "${PAGELANE_NO_HUGE-}" ]; then
	echo 'vhost and virtio_user: skipped, no hugepages'
else
	pool_eal pagepool
	peer_start --single-file-segments --vdev "net_vhost0,iface=$tmp/vhost.sock" -- --total-num-mbufs=4096
	# Packets under way, and empty buffers in the receive ring, are with the driver.
	gate=no least=1000 row 'vhost and virtio_user' 'start tx_first 4' any --single-file-segments \
		--vdev "net_virtio_user0,path=$tmp/vhost.sock,queue_size=256" -- -i --total-num-mbufs=4096
	peer_quit
fi
