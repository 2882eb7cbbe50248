#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Real packets: two kernel hosts ping each other through an unmodified dpdk-testpmd on af_xdp.
# The driver's umem is the pool's first chunk, so the pool must be one: virtual addresses as IOVA
# see to that. It keeps buffers in its rings after a stop.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# It sizes the umem as objects times their size: short where small pages leave gaps between them, and
# a pool that is last in, first out hands out its end first.
[ -z "${PAGELANE_NO_HUGE-}" ] || skip "af_xdp of DPDK 22.11 needs objects without gaps: hugepages"
isolate "$@"

across() {
	testpmd_across "$1" --iova-mode=va --vdev net_af_xdp0,iface=a1 --vdev net_af_xdp1,iface=b1
}

# The kernel may lack AF_XDP. If the stock ops fail as well it is not about us.
make_hosts
(across ring_mp_mc && testpmd_quit) >"$tmp/baseline.log" 2>&1 || {
	cat "$tmp/baseline.log"
	skip "af_xdp does not work here with ring_mp_mc either: $(tail -n 1 "$tmp/baseline.log")"
}

ip netns del a
ip netns del b
wait_for 5 test ! -e /sys/class/net/a1
wait_for 5 test ! -e /sys/class/net/b1
make_hosts
across pagepool
[ "$(pool_ops)" = pagepool ] || fail "the pool's ops are '$(pool_ops)'"
grep -q nb_mem_chunks=1$ "$testpmd_log" || fail 'the pool is not one chunk'
rings=$((2 * (2048 + 2048))) # descriptors for receive and transmit on both ports
expect 'objects in the rings after stop' "$(pool_in_use)" -le "$rings"
testpmd_quit
