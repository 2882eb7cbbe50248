#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# dpdk-pdump, a secondary process, captures what dpdk-testpmd forwards on buffers of ours; its
# copies are in a pool of ours that it made and that the primary takes from.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
need dpdk-pdump dpdk-testpmd
[ -z "${PAGELANE_NO_HUGE-}" ] || skip 'secondary processes need hugepages'
mkdir /run/huge
mount -t hugetlbfs -o pagesize=2M,size=256M none /run/huge || skip 'no hugetlbfs can be mounted'

# A pool knows its ops by a number, so both programs must load all mempool drivers in one order;
# Debian's are linked with different drivers, and without this ring_mp_mc captures nothing either.
for driver in /usr/lib/*/dpdk/pmds-*/librte_{mempool_*,net_dpaa,net_dpaa2}.so "$plugin"; do
	PAGELANE_PRELOAD=${PAGELANE_PRELOAD:+$PAGELANE_PRELOAD:}$driver
done
eal=(--no-pci --no-telemetry --huge-dir /run/huge --file-prefix pagelane-pdump)
pool_eal pagepool
testpmd_start --lcores "$lcores" "${pool[@]}" --vdev net_ring0 --vdev net_ring1 -- -i --total-num-mbufs=4096
testpmd 'start tx_first'
status=0
LD_PRELOAD=$PAGELANE_PRELOAD timeout -s INT -k 5 3 dpdk-pdump --lcores "2@${lcores##*@}" "${eal[@]}" "${pool[@]}" \
	-- --pdump 'port=0,queue=*,rx-dev=/dev/null,ring-size=1024,total-num-mbufs=4095' \
	>"$tmp/pdump.log" 2>&1 || status=$?
testpmd stop
testpmd dump_mempool
captured=$(awk '/packets dequeued/ { print $NF }' "$tmp/pdump.log")
[ "${captured:-0}" -gt 1000 ] || { cat "$tmp/pdump.log"; testpmd_show_log; fail "captured: ${captured:-nothing}"; }
[ "$status" -eq 124 ] || fail "dpdk-pdump ended with $status before it was told to"
testpmd_quit
echo "$captured packets captured"
