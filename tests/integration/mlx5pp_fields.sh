#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What mlx5pp says of a received packet (type, checksums, hash and queue, VLAN tag, timestamp) is what the
# frame's bytes demand, and what the scalar functions of DPDK's own mlx5 driver say, on a port that receives what it sends; and
# between two ports of mlx5pp, which may be a card's: see rx_fields.c.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
. "$here/mlx5pp.bash"
[ "$(id -u)" -eq 0 ] || skip 'no right to make a netdev, which the stock driver wants'

# says STRIP HASH SOFTCX-OPTION...: with EAL's arguments in $words; the lines are in $tmp/lines.
says() {
	wired --payload full "${@:3}" -- "$build/tests/integration/rx_fields" "${words[@]}" -- "$1" "$2" \
		>"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$*"; }
	grep '^= ' "$tmp/out" >"$tmp/lines"
	on_a_card || expect 'objects left' "$(jq .leaks "$tmp/stats.json")" -eq 0
}

# two_ports STRIP HASH: from the first to the second.
two_ports() {
	driver_variant off-bh
	words=("${words[@]/ibdev=mlx5_0/ibdev=${cards[0]-mlx5_0}}" --vdev "net_mlx5pp1,ibdev=${cards[1]-mlx5_1}")
	says "$@" --ports 2 --wire pair
}

for strip in 0 1; do
	if on_a_card; then
		two_ports $strip 0
	else
		driver_variant stock-scalar
		says $strip 1 --wire loop
		cp "$tmp/lines" "$tmp/stock"
		driver_variant off-bh
		says $strip 1 --wire loop
		diff "$tmp/stock" "$tmp/lines" || fail 'not what the stock driver says'
		two_ports $strip 1
		diff "$tmp/stock" "$tmp/lines" || fail 'two ports: not what the stock driver says'
	fi
	echo "strip $strip: $(sort -u "$tmp/lines" | wc -l) kinds of frames"
done
