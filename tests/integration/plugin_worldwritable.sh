#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# EAL refuses a plugin by path below a world-writable folder, and leaves nothing behind; the same
# file loads by its bare name. The README tells users so, and the other tests rely on it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

open=$tmp/open
mkdir "$open"
cp "$build/drivers/$plugin" "$open"
chmod 777 "$open"
export LD_LIBRARY_PATH="$open:$build/lib/pcp_cache:$build/lib/pagepool"

start=(--mbuf-pool-ops-name=pagepool --vdev net_null0 -- -i --total-num-mbufs=2048)
(testpmd_start -d "$open/$plugin" "${start[@]}") >"$tmp/refused.log" && fail 'not refused by path'
grep -q 'world-writable and insecure' "$tmp/refused.log" || {
	cat "$tmp/refused.log"
	fail 'refused for another reason'
}

testpmd_start -d "$plugin" "${start[@]}"
testpmd dump_mempool
[ "$(pool_ops)" = pagepool ] || fail "the pool's ops are '$(pool_ops)'"
grep -q "$open/$plugin" "/proc/$testpmd_pid/maps" || fail 'another copy was loaded'
testpmd_quit
