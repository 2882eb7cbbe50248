#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Real packets: two kernel hosts ping each other through an unmodified dpdk-testpmd on af_packet.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
make_hosts

testpmd_across pagepool --vdev net_af_packet0,iface=a1 --vdev net_af_packet1,iface=b1
[ "$(pool_ops)" = pagepool ] || fail "the pool's ops are '$(pool_ops)'"
expect 'objects in use after stop' "$(pool_in_use)" -eq 0
testpmd_quit
