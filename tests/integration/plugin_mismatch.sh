#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A plugin of another DPDK is refused with a line that names what it misses. What ties a plugin to
# a DPDK are the names of the libraries that the linker recorded in it, with the ABI's number, so
# our plugin with another number is what a user would get from another release.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mkdir "$tmp/other"
sed 's/\(librte_[a-z_]*\.so\.\)[0-9][0-9]/\199/g' "$build/drivers/$plugin" >"$tmp/other/$plugin"
! cmp -s "$build/drivers/$plugin" "$tmp/other/$plugin" || fail 'the plugin names no DPDK library'
export LD_LIBRARY_PATH="$tmp/other:$build/lib/pcp_cache:$build/lib/pagepool"

status=0
timeout 20 dpdk-testpmd "${eal[@]}" -d "$plugin" --mbuf-pool-ops-name=pagepool --vdev net_null0 \
	-- --total-num-mbufs=2048 >"$tmp/refused.log" 2>&1 </dev/null || status=$?
cat "$tmp/refused.log"
[ "$status" -ne 0 ] || fail 'not refused'
[ "$status" -lt 124 ] || fail "killed or hung: status $status"
grep -q 'librte_[a-z]*\.so\.99: cannot open shared object file' "$tmp/refused.log" ||
	fail 'no line names the missing library'
