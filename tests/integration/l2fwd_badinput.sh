#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What l2fwd-bench cannot do, it says in one line with cause and remedy, with an exit status that
# is not 0, and leaves nothing behind.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
. "$here/l2fwd.bash"

null=("${eal[@]}" --vdev net_null0 --vdev net_null1)

# ---- the command line ----
refuses 2 "unknown option '--nothing'" "$bench" "${null[@]}" -- --nothing
refuses 2 "unknown option '-m'" "$bench" "${null[@]}" -- -m io
refuses 2 "unexpected argument 'io'" "$bench" "${null[@]}" -- io
refuses 2 'lacks its argument' "$bench" "${null[@]}" -- --burst
refuses 2 'takes no argument' "$bench" "${null[@]}" -- --help=yes
refuses 2 '--mode fast is unknown; give one of io' "$bench" "${null[@]}" -- --mode fast
refuses 2 '--pool bucket is unknown' "$bench" "${null[@]}" -- --pool bucket
refuses 2 '--pcp none is unknown' "$bench" "${null[@]}" -- --pcp none
refuses 2 '--checks some is unknown' "$bench" "${null[@]}" -- --checks some
refuses 2 '--json is empty' "$bench" "${null[@]}" -- --json ''
for option in burst rxq rxd txd pool-size batch high; do
	refuses 2 "--$option 0 is out of range" "$bench" "${null[@]}" -- "--$option" 0
done
for option in burst frame-size rxq rxd txd pool-size batch high mbcache duration; do
	refuses 2 "--$option -1 is not a number" "$bench" "${null[@]}" -- "--$option" -1
	refuses 2 "--$option 4x is not a number" "$bench" "${null[@]}" -- "--$option" 4x
	refuses 2 "--$option 99999999999999999999 is out of range" \
		"$bench" "${null[@]}" -- "--$option" 99999999999999999999
done
refuses 2 'out of range; give 1 to 512' "$bench" "${null[@]}" -- --burst 513
refuses 2 '--frame-size 63 is out of range' "$bench" "${null[@]}" -- --frame-size 63
refuses 2 '--frame-size 2053 is out of range' "$bench" "${null[@]}" -- --frame-size 2053
refuses 2 '--ports x is not a number' "$bench" "${null[@]}" -- --ports x
refuses 2 '--ports  is not a number' "$bench" "${null[@]}" -- --ports 0,
refuses 2 'names 1 twice' "$bench" "${null[@]}" -- --ports 1,0,1
for pool in ring_mp_mc stack lf_stack; do
	refuses 2 '--pcp has no meaning with' "$bench" "${null[@]}" -- --pool "$pool" --pcp bh
done
refuses 2 '--checks has no meaning' "$bench" "${null[@]}" -- --pool stack --checks off
refuses 2 '--batch has no meaning' "$bench" "${null[@]}" -- --pool stack --batch 32
refuses 2 '--high has no meaning' "$bench" "${null[@]}" -- --pool stack --high 32
refuses 2 '--mbcache has no meaning' "$bench" "${null[@]}" -- --pool pages --mbcache 32
refuses 2 '--recycle some is unknown; give one of off' "$bench" "${null[@]}" -- --recycle some
refuses 2 '--recycle reuse cannot see what returns' "$bench" "${null[@]}" -- --recycle reuse --pool stack
refuses 2 '--recycle pool cannot see what returns' "$bench" "${null[@]}" -- --recycle pool --pool stack
refuses 2 '--recycle cache cannot see' "$bench" "${null[@]}" -- --recycle cache --pool pagepool --mbcache 8
refuses 2 '--hold has a meaning only in rxonly' "$bench" "${null[@]}" -- --hold 5
refuses 2 '--free-on has a meaning only' "$bench" "${null[@]}" -- --free-on other
refuses 2 '--contend 513 is out of range; give 0 to 512' "$bench" "${null[@]}" -- --contend 513
refuses 2 '--yield takes no argument' "$bench" "${null[@]}" -- --yield=1
refuses 1 '--recycle is for ports of net_mlx5pp' "$bench" "${null[@]}" -- --recycle off
eal_n 1
refuses 1 'needs an lcore that does not poll' "$bench" "${eal_args[@]}" --vdev net_null0 -- \
	--mode rxonly --free-on other
refuses 1 '--contend needs an lcore that does not poll' "$bench" "${eal_args[@]}" --vdev net_null0 -- \
	--contend 32
refuses 2 "put it after '--'" "$bench" "${null[@]}" --mode io

# ---- the ports, queues and lcores ----
refuses 1 'port 7 does not exist' "$bench" "${null[@]}" -- --ports 0,7
refuses 1 'no Ethernet ports' "$bench" "${eal[@]}"
refuses 1 'no Ethernet ports' "$bench" "${eal[@]}" --vdev net_af_packet0,iface=nothere
eal_n 3
refuses 1 '3 lcores, too many' "$bench" "${eal_args[@]}" --vdev net_null0
eal_n 4
refuses 1 '4 lcores, too many' "$bench" "${eal_args[@]}" --vdev net_null0 --vdev net_null1
eal_n 1
refuses 1 '1 lcores, too few' "$bench" "${eal_args[@]}" --vdev net_null0 --vdev net_null1
refuses 1 '2 lcores, too few' "$bench" "${null[@]}" -- --rxq 2
refuses 1 'no more than 16 queues' "$bench" "${eal[@]}" --vdev net_ring0 -- --rxq 17
refuses 1 'does not fit port 0, whose MTU is 1500' \
	"$bench" "${null[@]}" -- --mode txonly --frame-size 1519

# ---- memory ----
refuses 1 'too small: .* = [0-9]*; give' "$bench" "${null[@]}" -- --pool-size 1000
for pool in pages pagepool ring_mp_mc stack lf_stack; do
	refuses 1 'no memory for 100000000 buffers' \
		"$bench" "${null[@]}" -- --pool "$pool" --pool-size 100000000
done
[ -n "${PAGELANE_NO_HUGE-}" ] || refuses 1 'no memory for 10000 buffers .*; reserve more' \
	"$bench" "${null[@]}" --socket-limit 6 -- --pool-size 10000
refuses 1 'give EAL a larger -m' "$bench" --lcores "$lcores" --no-pci --no-huge -m 16 \
	--vdev net_null0 --vdev net_null1 -- --pool-size 100000

# ---- files ----
refuses 1 'No such file or directory' "$bench" "${null[@]}" -- --json "$tmp/none/new.json"
refuses 1 'Is a directory' "$bench" "${null[@]}" -- --json "$tmp"
refuses 1 'not a regular file' "$bench" "${null[@]}" -- --json /dev/null
[ -c /dev/null ] || fail '/dev/null is gone'

# ---- EAL ----
refuses 2 "unrecognized option '--nothing'" "$bench" "${null[@]}" --nothing
refuses 2 "invalid option -- 'Z'" "$bench" "${null[@]}" -Z
refuses 2 'lcore 120 unavailable|core list' "$bench" -l 120 --no-pci --vdev net_null0
refuses 1 'net_nothing0' "$bench" "${eal[@]}" --vdev net_nothing0
refuses 1 'librte_nothing.so' "$bench" "${null[@]}" -d librte_nothing.so

refuses 1 'must be a primary process; leave out --proc-type' "$bench" "${null[@]}" --proc-type secondary
refuses 1 'must be a primary process' "$bench" "${null[@]}" --proc-type=secondary

# ---- limits ----
# within LIMIT COMMAND...
within() { bash -c 'ulimit $0; exec "$@"' "$@"; }
refuses 1 'may open 40 files only; .*ulimit -n' within '-n 40' "$bench" "${null[@]}"
[ -n "${PAGELANE_NO_HUGE-}" ] || refuses 1 'virtual area: .*; .*ulimit -v' within '-v 2000000' "$bench" "${null[@]}"

# ---- standard files ----
needs_stdout "$bench" --help
needs_stdout "$bench" "${null[@]}" -- --duration 1
"$bench" "${null[@]}" -- --duration 1 --json "$json" <&- >&- 2>&- || fail 'without standard files'
jq -e '.results[-1].unaccounted == 0' "$json" >/dev/null || fail 'something else in the file'
rm "$json"

# What EAL says when it gives up is not lost.
need cc
printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' \
	'int rte_eal_init(void) { fputs("PANIC in somewhere()\n", stderr); abort(); }' |
	cc -shared -fPIC -x c - -o "$tmp/panic.so"
status=0
(ulimit -c 0 && LD_PRELOAD=$tmp/panic.so exec "$bench" "${null[@]}") >"$tmp/out" 2>"$tmp/err" || status=$?
[ "$status" -eq 134 ] || { show; fail "status $status of a panic in EAL"; }
grep -q '^PANIC in somewhere' "$tmp/err" || { show; fail 'a panic in EAL without its words'; }

# A plugin that wants a symbol which this DPDK does not have.
echo 'extern int rte_of_another_dpdk; int *wanted = &rte_of_another_dpdk;' |
	cc -shared -fPIC -x c - -o "$tmp/librte_other.so"
LD_LIBRARY_PATH=$tmp:$LD_LIBRARY_PATH refuses 1 'undefined symbol: rte_of_another_dpdk' \
	"$bench" "${null[@]}" -d librte_other.so

# ---- rights ----
need setpriv
mkdir -p /run/build
mount --bind "$build" /run/build
refuses 1 'as root' setpriv --reuid=65534 --regid=65534 --clear-groups \
	/run/build/apps/l2fwd-bench/l2fwd-bench "${eal[@]}" --vdev net_af_packet0,iface=lo

# ---- hugepages, as sysfs would show a machine without ----
mount -t tmpfs none /sys/kernel/mm/hugepages
huge=(--lcores "$lcores" --no-pci --vdev net_null0 --vdev net_null1)
refuses 1 'no free hugepages; .*--no-huge' "$bench" "${huge[@]}"
mkdir /sys/kernel/mm/hugepages/hugepages-2048kB
for file in nr free resv surplus nr_overcommit; do
	echo 0 >"/sys/kernel/mm/hugepages/hugepages-2048kB/${file}_hugepages"
done
refuses 1 'no free hugepages; .*--no-huge' "$bench" "${huge[@]}"

echo "$refused cases"
