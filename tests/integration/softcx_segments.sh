#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# DPDK's own mlx5 driver on softcx with packets of many segments, both ways, and with checksums that
# the card computes. The generator's frames carry number, pattern and checksums, and the checker
# looks at every byte that comes back; each frame is in a counter of the driver's.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
need jq

# Offload bits, as of rte_ethdev.h.
rx_checksums=0xe rx_scatter=0x2000 rx_both=0x200e
tx_checksums=0xe tx_segments=0x8000 tx_both=0x800e

# carries FRAMES COMMANDS ARGUMENT...: testpmd gets the commands before its ports start, and sends
# the generator's frames back. All that was offered has a place in the driver's counters.
carries() {
	local frames=$1 commands=$2

	shift 2
	testpmd_on_softcx 1 "${device[@]}" --payload full --rate 50M --frame "$frames" --packets "$packets" --probe \
		--strict --stats "$tmp/stats.json" -- --disable-device-start --no-flush-rx --rxd=2048 \
		--txd=1024 --total-num-mbufs=16384 --mbuf-size=2048 "$@"
	while read -r command; do
		testpmd "$command"
	done <<<"$commands"
	testpmd 'port start all'
	testpmd start
	all_came
	testpmd stop
	testpmd 'show port stats all'
	received=$(port_stat 0 RX-packets)
	sent=$(port_stat 0 TX-packets)
	missed=$(port_stat 0 RX-missed)
	testpmd_quit
	expect 'offered' "$(softcx_stat 0 offered)" -eq "$packets"
	softcx_conserved 0
	expect 'received by testpmd and delivered' "$received" -eq "$(softcx_stat 0 rx_packets)"
	expect 'missed by testpmd and without a buffer' "$missed" -eq "$(softcx_stat 0 out_of_buffer)"
	expect 'sent by testpmd and by the port' "$sent" -eq "$(softcx_stat 0 tx_packets)"
	expect 'received and sent' "$received" -eq "$((sent + $(forward_stat TX-dropped)))"
	if [ "$received" -eq "$sent" ]; then
		expect 'bytes received and sent' "$(softcx_stat 0 rx_bytes)" -eq "$(softcx_stat 0 tx_bytes)"
	fi
	expect 'looked at' "$(softcx_stat 0 checker.packets)" -eq "$sent"
	expect 'lost' "$(softcx_stat 0 checker.lost)" -le $((received - sent))
	for name in reordered duplicated corrupted foreign; do
		expect "$name" "$(softcx_stat 0 checker.$name)" -eq 0
	done
	for name in rx_errors tx_errors faults strict; do
		expect "$name" "$(softcx_stat 0 $name)" -eq 0
	done
	expect 'enough of them' "$sent" -gt $((packets / 10))
	if grep -E '^ *Bad-.*: [1-9]' "$testpmd_log"; then
		fail "$frames: checksums that the card did not find good"
	fi
	echo "$frames, $*: $sent packets, $missed missed"
}
packets=2000
device=() # options of softcx-run

# Frames over up to five buffers, and sent from them.
carries 64,1518,9018,1924,4000 'set fwd macswap' --max-pkt-len=9018 \
	--rx-offloads=$rx_scatter --tx-offloads=$tx_segments

# Checksums: the card says that they are good, and computes them anew.
csum=$'set fwd csum\ncsum set ip hw 0\ncsum set udp hw 0'
for softcx_devargs in rx_vec_en=0 rx_vec_en=1; do
	carries 64,65,594,1518 "$csum" --rx-offloads=$rx_checksums --tx-offloads=$tx_checksums
done

# Both, of packets that testpmd cuts into segments of its own.
carries 512,1518 "$csum"$'\nset txpkts 64,200,30,1,2\nset txsplit on' --rx-offloads=$rx_checksums \
	--tx-offloads=$tx_both
# With a device that is late at random, too.
device=(--delay 3000)
carries 512,9018 "$csum" --max-pkt-len=9018 --rx-offloads=$rx_both \
	--tx-offloads=$tx_both

# Segments of testpmd's own packets, which go nowhere but are counted.
softcx_devargs=
testpmd_on_softcx 1 --wire sink --strict --stats "$tmp/stats.json" -- --txd=256 \
	--total-num-mbufs=4096 --tx-offloads=$tx_segments
testpmd 'set fwd txonly'
testpmd 'set txpkts 64,200,100,9,1'
testpmd start
sleep 0.3
testpmd stop
testpmd 'show port stats all'
sent=$(port_stat 0 TX-packets)
testpmd_quit
expect 'packets of five segments' "$sent" -gt 0
expect 'the same' "$(softcx_stat 0 tx_packets)" -eq "$sent"
expect 'their bytes' "$(softcx_stat 0 tx_bytes)" -eq $((sent * 374))
expect 'strict reports' "$(softcx_stat 0 strict)" -eq 0
