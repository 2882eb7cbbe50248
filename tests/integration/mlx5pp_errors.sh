#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# mlx5pp: arguments and pools that cannot be are refused in one line of its own; frames that do not
# fit their buffer are errors, counted as the device counts them, and cost nothing else.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
. "$here/mlx5pp.bash"
needs_softcx
[ -z "${PAGELANE_NO_HUGE-}" ] || eal+=(--iova-mode=va)

# refused PATTERN DEVARGS EAL-ARGUMENT... -- TESTPMD-ARGUMENT...
refused() {
	local pattern=$1 devargs=$2

	shift 2
	# dpdk-testpmd ends when a port cannot be had; its status depends on which
	LD_PRELOAD=${PAGELANE_PRELOAD-} "$softcx_run" -- dpdk-testpmd "${eal[@]}" -d "$plugin" \
		-d "$mlx5pp" --vdev "net_mlx5pp0,$devargs" "$@" >"$tmp/out" 2>&1 </dev/null || true
	[ "$(grep -c '^mlx5pp: ' "$tmp/out")" -ge 1 ] || { cat "$tmp/out"; fail "no reason: $devargs"; }
	grep -Eq "^(mlx5pp|mempool pagepool): .*$pattern" "$tmp/out" ||
		{ cat "$tmp/out"; fail "not about '$pattern': $devargs"; }
}

refused 'recycle=some: must be off, cache, reuse or pool' recycle=some
refused 'there are only mlx5_0' ibdev=mlx5_9
refused 'cache_size=1: must be 2 to' cache_size=1
refused 'cache_size=x: must be' cache_size=x
refused 'pcp=none-such: there is no such mode' pcp=none-such
refused 'inline=7: must be 0 or 18' inline=7
for key in ibdev recycle cache_size pcp inline; do
	refused "$key needs a value" "$key"
done
refused 'the arguments are ibdev=NAME' colour=red
small=(--total-num-mbufs=4096)
refused 'its ops are not pagepool' recycle=pool -- "${small[@]}"
refused 'its ops are not pagepool' recycle=reuse -- "${small[@]}"
refused 'would hide what is returned' recycle=cache --mbuf-pool-ops-name=pagepool -- "${small[@]}"
refused 'has page caches of mode bh, and pcp=spin' pcp=spin --mbuf-pool-ops-name=pagepool -- "${small[@]}"
# not refused, but said: the ring and its FIFO can have all pages of the pool
scant=(--mbuf-pool-ops-name=pagepool -- --total-num-mbufs=1100 --mbcache=0)
refused 'alone can keep 2047 \(ring 1024, recycling 1023\)' recycle=cache "${scant[@]}" --rxd=1024
refused 'alone can keep 1279 \(ring 1024, recycling 255\)' recycle=reuse,cache_size=256 "${scant[@]}" --rxd=1024
refused 'alone can keep 1216 \(ring 64, recycling 1152\)' recycle=pool "${scant[@]}" --rxd=64
refused 'enable the SCATTER offload' ibdev=mlx5_0 -- "${small[@]}" --mbuf-size=1024 --max-pkt-len=1518

for recycle in "${recycle_modes[@]}"; do
	testpmd_on_mlx5pp 1 ",recycle=$recycle" --rate 200M --frame 64,3000 --packets 20000 -- \
		--rxq=2 --txq=2 --total-num-mbufs=16384 --mbuf-size="$(mbuf_size "$recycle")" \
		--forward-mode=macswap
	testpmd start
	sleep 2
	testpmd stop
	testpmd 'show port stats all'
	errors=$(port_stat 0 RX-errors)
	testpmd 'port stop all'
	ends_clean
	expect 'frames that did not fit' "$errors" -gt 0
	expect 'errors, as the device counts them' "$(softcx_stat 0 rx_errors)" -eq "$errors"
	echo "recycle=$recycle: $errors frames did not fit"
done
