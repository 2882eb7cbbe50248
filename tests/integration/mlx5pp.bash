# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables of lib.sh
#
# Sourced after softcx.bash by the tests of the driver mlx5pp.

mlx5pp=librte_net_mlx5pp.so
recycle_modes=(off cache reuse pool) # the driver's ways of recycling
[ -f "$build/drivers/$mlx5pp" ] || skip 'mlx5pp is not built'
need jq

# mbuf_size RECYCLE: of testpmd's buffers: with reuse, so large that two frames of 1522 bytes share one.
mbuf_size() {
	if [ "$1" = reuse ]; then echo 3520; else echo 2176; fi
}

# PAGELANE_IBDEV=mlx5_0,mlx5_1: two ports of a real card with a cable between them, in softcx' place.
cards=()
[ -z "${PAGELANE_IBDEV-}" ] || IFS=, read -ra cards <<<"$PAGELANE_IBDEV"

on_a_card() {
	[ ${#cards[@]} -gt 0 ]
}

needs_softcx() {
	! on_a_card || skip "frames come from softcx' generator, not from a card"
}

# wired SOFTCX-OPTION... -- COMMAND...: on softcx, or on the card as it is.
wired() {
	if on_a_card; then
		while [ "$1" != -- ]; do
			shift
		done
		LD_PRELOAD=${PAGELANE_PRELOAD-} "${@:2}"
	else
		softcx --strict --stats "$tmp/stats.json" "$@"
	fi
}

# testpmd_on_mlx5pp PORTS DEVARGS SOFTCX-OPTION... -- ARGUMENT...: an interactive testpmd on the
# driver, its buffers in a pool with ops pagepool and without mempool caches.
other_vdevs=()  # ports of other drivers, behind it
under_softcx=() # a command that starts testpmd where softcx' netdevs are
testpmd_on_mlx5pp() {
	local ports=$1 devargs=$2 port vdevs=() other
	local -a words=()

	shift 2
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	for ((port = 0; port < ports; port++)); do
		vdevs+=(--vdev "net_mlx5pp$port,ibdev=${cards[port]-mlx5_$port}$devargs")
	done
	for other in "${other_vdevs[@]}"; do
		vdevs+=(--vdev "$other")
	done
	pool_eal pagepool
	[ -z "${PAGELANE_NO_HUGE-}" ] || vdevs+=(--iova-mode=va)
	testpmd_under=("$softcx_run" --ports "$ports" --strict --stats "$tmp/stats.json" "${words[@]}" --
		"${under_softcx[@]}")
	! on_a_card || testpmd_under=()
	testpmd_start "${pool[@]}" -d "$mlx5pp" "${vdevs[@]}" -- -i --mbcache=0 --no-flush-rx "$@"
}

# Every way of recycling with page caches that are used, and with such that are not, as MODE-PCP.
variants_of_mlx5pp() {
	printf '%s-bh\n' "${recycle_modes[@]}"
	printf '%s-bypass\n' "${recycle_modes[@]}"
}

# driver_variant VARIANT: EAL's arguments, in $words, for one port of the driver: stock-scalar or stock-vector,
# DPDK's own, or MODE[:SLOTS]-PCP; and in $options l2fwd-bench's for the latter.
driver_variant() {
	local word vector=0 mode=${1%-*} slots=

	words=() options=()
	for word in "${eal[@]}"; do
		[ "$word" = --no-pci ] && [[ $1 = stock-* ]] || words+=("$word")
	done
	[ -z "${PAGELANE_NO_HUGE-}" ] || words+=(--iova-mode=va)
	case $1 in
	stock-*)
		[ "$1" = stock-scalar ] || vector=1
		words+=(-a "0000:03:00.0,dv_flow_en=0,mprq_en=0,rxq_cqe_comp_en=0,rx_vec_en=$vector")
		;;
	*)
		[[ $mode != *:* ]] || slots=,cache_size=${mode#*:}
		words+=(-d "$mlx5pp" --vdev "net_mlx5pp0,ibdev=mlx5_0$slots")
		options=(--recycle "${mode%:*}" --pcp "${1#*-}")
		;;
	esac
}

# xstat PORT NAME: its last value in `show port xstats PORT`.
xstat() {
	awk -v port="$1" -v name="$2:" '
		/NIC extended statistics for port/ { here = $NF == port }
		here && $1 == name { value = $2 }
		END { print value }' "$testpmd_log"
}

# Every page is back in the pool, and the device saw nothing that hardware would punish. testpmd has
# stopped its ports; it ends here.
ends_clean() {
	testpmd dump_mempool
	expect 'pages that did not come back' "$(pool_in_use)" -eq 0
	testpmd_quit
	if grep -E '^softcx: (mlx5_[0-9]+: |.* never destroyed)' "$testpmd_log"; then
		fail 'objects are left'
	fi
	if grep 'softcx: .*strict: ' "$testpmd_log"; then
		fail 'strict reports'
	fi
}

# What the checker saw of a port's own frames: none twice, changed, or out of order.
checker_is_content() {
	local name

	for name in reordered duplicated corrupted foreign; do
		expect "port $1: $name" "$(softcx_stat "$1" "checker.$name")" -eq 0
	done
	expect "port $1: checked" "$(softcx_stat "$1" checker.packets)" -eq \
		"$(softcx_stat "$1" tx_packets)"
}
