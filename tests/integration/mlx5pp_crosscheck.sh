#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# DPDK's own mlx5 driver and mlx5pp get the same frames on softcx, and send them back: 1 to 8 queues,
# frames of 64 to 9018 bytes in one buffer or in several, bursts of every length, checksums by the card,
# each way of recycling. What the two say of the frames and count is the same, line by line, and what
# they count is what the device counts: see crosscheck.c. The device looks at every byte sent.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
. "$here/mlx5pp.bash"
needs_softcx
[ "$(id -u)" -eq 0 ] || skip 'no right to make a netdev, which the stock driver wants'

packets=6000
inline=0 # bytes of a frame that the card wants in its WQE

# counted NAME: what the driver says of it.
counted() {
	awk -v name="$1" '$2 == name { print $3 }' "$tmp/lines"
}

# checks VARIANT QUEUES ROOM FRAMES [cut]: runs it; the lines are in $tmp/lines.
checks() {
	local words ops=ring_mp_mc

	driver_variant "$1"
	if [[ $1 != stock-* ]]; then
		ops=pagepool
		words=("${words[@]/ibdev=/recycle=${1%-*},inline=$inline,ibdev=}")
	fi
	softcx --strict --device-cpu "${lcores##*@}" --probe --pause --rate 1G --payload full \
		--frame "$4" --packets "$packets" --stats "$tmp/stats.json" -- \
		"$build/tests/integration/crosscheck" "${words[@]}" -- "$2" "$packets" "$3" "${4##*,}" "$ops" "${@:5}" \
		>"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$*"; }
	grep '^= ' "$tmp/out" >"$tmp/lines"
	expect 'received' "$(counted ipackets)" -eq "$packets"
	expect 'received and delivered' "$(softcx_stat 0 rx_packets)" -eq "$packets"
	expect 'offered' "$(softcx_stat 0 offered)" -eq "$packets"
	expect 'bytes delivered' "$(softcx_stat 0 rx_bytes)" -eq "$(counted ibytes)"
	expect 'sent' "$(softcx_stat 0 tx_packets)" -eq "$(counted opackets)"
	expect 'bytes sent' "$(softcx_stat 0 tx_bytes)" -eq "$(counted obytes)"
	expect 'sent and received' "$(counted opackets)" -eq "$packets"
	for name in imissed ierrors oerrors rx_nombuf; do
		expect "$name" "$(counted $name)" -eq 0
	done
	checker_is_content 0
	expect 'lost' "$(softcx_stat 0 checker.lost)" -eq 0
	for name in faults tx_errors; do
		expect "$name" "$(softcx_stat 0 $name)" -eq 0
	done
	expect 'objects left' "$(jq .leaks "$tmp/stats.json")" -eq 0
}

# compares MODE... -- QUEUES ROOM FRAMES [cut]: with the stock driver's scalar functions, as the others receive no burst of less
# than four packets.
compares() {
	local mode modes=()

	while [ "$1" != -- ]; do
		modes+=("$1")
		shift
	done
	shift
	checks stock-scalar "$@"
	cp "$tmp/lines" "$tmp/stock"
	for mode in "${modes[@]}"; do
		checks "$mode-bh" "$@"
		diff "$tmp/stock" "$tmp/lines" || fail "$mode: not what the stock driver says: $*"
	done
	echo "$*: $packets packets alike in $(grep -c '= stream' "$tmp/stock") streams on" \
		"$(awk '/= stream/ { print $7 }' "$tmp/stock" | sort -u | wc -l) queues: ${modes[*]}"
}

all=64,65,128,777,1518,4000,9018
compares off pool -- 1 9100 $all
compares cache reuse -- 2 2048 $all
compares "${recycle_modes[@]}" -- 4 3392 64,65,128,777,1518 cut # with reuse two of them share a buffer
inline=18
compares "${recycle_modes[@]}" -- 8 2048 $all cut

# Both at once, with a cable between them: what one sends the other is offered, some of it after testpmd stopped.
driver_variant stock-scalar
eal=("${words[@]/03:00.0/03:00.1}")
testpmd_on_mlx5pp 1 ",recycle=${recycle_modes[-1]}" --ports 2 --wire pair -- --rxq=2 --txq=2 --rxd=1024 --txd=1024 \
	--total-num-mbufs=16384 --forward-mode=macswap
testpmd 'start tx_first 1'
sleep 0.3
testpmd stop
testpmd 'show port stats all'
testpmd 'port stop all'
ends_clean
for name in TX-packets:tx_packets RX-missed:out_of_buffer; do
	# which of the two is testpmd's first port does not matter
	expect "both, $name" \
		"$(printf '%s\n' "$(port_stat 0 "${name%:*}")" "$(port_stat 1 "${name%:*}")" | sort | xargs)" = \
		"$(printf '%s\n' "$(softcx_stat 0 "${name#*:}")" "$(softcx_stat 1 "${name#*:}")" | sort | xargs)"
done
for port in 0 1; do
	expect "both, offered by the other's port" "$(softcx_stat $port offered)" -eq "$(softcx_stat $((1 - port)) tx_packets)"
	softcx_conserved $port
	expect 'both, received' "$(softcx_stat $port rx_packets)" -gt 100
done
echo "both, with a cable between them: $(softcx_stat 0 rx_packets) and $(softcx_stat 1 rx_packets) packets received"
