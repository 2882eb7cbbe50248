#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# As l2fwd_af_packet.sh, on af_xdp, which moves the pool's own buffers through the kernel, and of
# which 2048 per queue are known never to come back.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
. "$here/l2fwd.bash"
need python3
make_hosts

pools=(pages pagepool ring_mp_mc)
[ -z "${PAGELANE_NO_HUGE-}" ] || pools=(pages) # the others are refused
for pool in "${pools[@]}"; do
	across "${eal[@]}" --iova-mode=va --vdev net_af_xdp0,iface=a1 --vdev net_af_xdp1,iface=b1 -- \
		--pool "$pool" --duration 0
	is 'both ports checked' '[.results[:-1][].device_checked] == [true, true]'
	is 'the fill rings kept their buffers' '.pool.kept_by_drivers == 4096'
done
