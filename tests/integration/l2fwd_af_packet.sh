#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Real packets: two kernel hosts talk through l2fwd-bench on af_packet, and no loss is unexplained.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
. "$here/l2fwd.bash"
need python3
make_hosts

for pool in pages pagepool ring_mp_mc; do
	across "${eal[@]}" --vdev net_af_packet0,iface=a1 --vdev net_af_packet1,iface=b1 -- \
		--pool "$pool" --duration 0
	is 'both ports checked' '[.results[:-1][].device_checked] == [true, true]'
done
