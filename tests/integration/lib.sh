# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Sourced by the integration tests. A test is a script that ends with 0 (passed), 77 (skipped; its
# last line says why) or anything else (failed). Environment, all with defaults:
#	PAGELANE_BUILD    build folder
#	PAGELANE_NO_HUGE  not empty: without hugepages
#	PAGELANE_PRELOAD  what dpdk-testpmd loads first: a sanitizer's run-time
#	PAGELANE_TMP      folder for the test's files; the runner makes and removes it

set -euo pipefail

script=$(realpath "$0")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(realpath "${PAGELANE_BUILD:-$here/../../build}")
tmp=${PAGELANE_TMP:-$(mktemp -d)}
plugin=librte_mempool_pagepool.so
children=() # processes to end with the test

clean_up() {
	local pid

	for pid in "${children[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	[ -n "${PAGELANE_TMP-}" ] || rm -rf "$tmp"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap '' PIPE # who writes to a program that died gets an error

fail() {
	printf 'FAIL: %s\n' "$*"
	exit 1
}

skip() {
	printf 'SKIP: %s\n' "$*"
	exit 77
}

need() {
	local program

	for program; do
		command -v "$program" >/dev/null || skip "no $program"
	done
}

# use_app NAME: the program that the test is about, in $bench, and a file for its results, in $json.
# No failure goes without a word then, wherever it happens.
# shellcheck disable=SC2034 # which are for the caller
use_app() {
	need jq
	set -E
	trap 'echo "line $LINENO of ${BASH_SOURCE[0]}: status $?: $BASH_COMMAND"' ERR
	bench=$build/apps/$1/$1
	[ -x "$bench" ] || skip "no $bench"
	json=$tmp/result.json
}

# refuses STATUS PATTERN COMMAND...: $bench, however it is started, ends with that status, one line of
# its own with cause and remedy that matches, and nothing else; it leaves no file.
refused=0
refuses() {
	local status=0 expected=$1 pattern=$2 name line

	shift 2
	name=$(basename "$bench")
	"$@" >"$tmp/out" 2>"$tmp/err" </dev/null || status=$?
	[ "$status" -eq "$expected" ] || { show; fail "status $status, not $expected: $*"; }
	line=$(grep -vE '^(EAL: Bus|[a-z_]+\(\):) ' "$tmp/err") # which are DPDK's drivers'
	[ "$(wc -l <<<"$line")" -eq 1 ] || { show; fail "not one line: $*"; }
	[[ $line == "$name: "*';'* ]] || fail "no cause and remedy in '$line'"
	[[ $line =~ $pattern ]] || fail "'$line' is not about '$pattern': $*"
	[ ! -s "$tmp/out" ] || { show; fail "something on stdout: $*"; }
	[ -z "$(find "$tmp" -name '*.tmp' -o -name 'new.*')" ] || fail "left a file: $*"
	[ -z "$(find /run/dpdk /dev/hugepages ! -type d 2>/dev/null)" ] ||
		fail "left $(find /run/dpdk /dev/hugepages ! -type d): $*"
	refused=$((refused + 1))
}

# needs_stdout COMMAND...: $bench, which prints to a full disk, says so.
needs_stdout() {
	local status=0

	"$@" >/dev/full 2>"$tmp/err" </dev/null || status=$?
	if [ "$status" -ne 1 ] || ! grep -q 'standard output: No space left on device; ' "$tmp/err"; then
		cat "$tmp/err"
		fail "status $status with a full disk: $*"
	fi
}

# EAL refuses a plugin by path where any folder above it is world-writable, such as /tmp, but
# leaves a bare name to the loader's search path. A bare name must not be that of a file in the
# working folder.
cd /
export LD_LIBRARY_PATH="$build/drivers${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

# Run the calling script in network, mount and process namespaces of its own: its interfaces, its
# files in /run and all its processes vanish with it, however it ends.
isolate() {
	if [ -z "${PAGELANE_ISOLATED-}" ]; then
		unshare --net --mount --pid --fork true 2>/dev/null || skip 'no right to make namespaces'
		clean_up
		PAGELANE_ISOLATED=1 exec unshare --net --mount --pid --fork --kill-child --mount-proc \
			"$BASH" "$script" "$@"
	fi
	mount -t tmpfs none /run
	mount -t sysfs none /sys # shows the new namespace's interfaces
	mount -t bpf none /sys/fs/bpf || true
	ip link set lo up
}

# Two hosts, which are the namespaces `a` and `b`, and a wire between them that ends in this
# namespace: 192.0.2.1 at a0 - a1 | b1 - b0 at 192.0.2.2. Whoever forwards between a1 and b1
# connects them. Nothing but the tests' own packets travels there, and checksums are complete
# where a program that is not the kernel sees them.
make_hosts() {
	local host number=0

	need ip ethtool
	for host in a b; do
		number=$((number + 1))
		ip netns add "$host"
		ip netns exec "$host" sysctl -q net.ipv6.conf.default.disable_ipv6=1
		ip link add "${host}1" type veth peer name "${host}0" netns "$host"
		sysctl -q "net.ipv6.conf.${host}1.disable_ipv6=1"
		ip netns exec "$host" ethtool -K "${host}0" tx off >/dev/null
		ip -n "$host" addr add "192.0.2.$number/24" dev "${host}0"
		ip -n "$host" link set "${host}0" up
		ip link set "${host}1" up
	done
}

# net_stat HOST INTERFACE NAME: an interface's counter; HOST is a, b, or - for this namespace.
net_stat() {
	local in=()

	[ "$1" = - ] || in=(ip netns exec "$1")
	"${in[@]}" cat "/sys/class/net/$2/statistics/$3"
}

# Two lcores, on two processors where there are two: in $lcores; and in $processors how many there are.
# shellcheck disable=SC2034 # which is for the caller
pick_lcores() {
	local list part cpu cpus=()

	list=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
	for part in ${list//,/ }; do
		for ((cpu = ${part%-*}; cpu <= ${part#*-}; cpu++)); do
			cpus+=("$cpu")
		done
	done
	lcores="0@${cpus[0]},1@${cpus[1]-${cpus[0]}}"
	processors=${#cpus[@]}
}
pick_lcores

# EAL's arguments in this environment. Nothing is shared between processes, so that runs side by
# side do not meet. EAL refuses --in-memory together with --no-huge.
eal=(--lcores "$lcores" --no-pci --no-telemetry)
if [ -n "${PAGELANE_NO_HUGE-}" ]; then
	eal+=(--no-huge --no-shconf -m 512)
else
	eal+=(--in-memory)
fi

# pool_eal OPS: the EAL arguments that choose the mempool ops; in $pool.
pool_eal() {
	pool=("--mbuf-pool-ops-name=$1")
	[ "$1" != pagepool ] || pool+=(-d "$plugin")
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
	local deadline=$((SECONDS + $1))

	shift
	until "$@"; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		sleep 0.05
	done
}

# ---- an interactive dpdk-testpmd ----

testpmd_log=$tmp/testpmd.log
testpmd_under=() # a command that runs it
testpmd_marks=0

# testpmd_start EAL-ARGUMENT... -- ARGUMENT...
testpmd_start() {
	need dpdk-testpmd stdbuf
	rm -f "$tmp/testpmd.in"
	mkfifo "$tmp/testpmd.in"
	LD_PRELOAD=${PAGELANE_PRELOAD-} "${testpmd_under[@]}" stdbuf -oL dpdk-testpmd "${eal[@]}" "$@" \
		<"$tmp/testpmd.in" >"$testpmd_log" 2>&1 &
	testpmd_pid=$!
	children=("$testpmd_pid")
	exec 9>"$tmp/testpmd.in"
	testpmd_sync || { testpmd_show_log; fail 'dpdk-testpmd did not start'; }
}

testpmd_alive() {
	kill -0 "$testpmd_pid" 2>/dev/null
}

testpmd_marked() {
	! testpmd_alive || grep -q "^testpmd> # mark $testpmd_marks\b" "$testpmd_log"
}

# The log, without its lines for lcores that it does not have.
testpmd_show_log() {
	grep -v 'cache_count\[.*=0$' "$testpmd_log" 2>/dev/null || true
}

# Wait until testpmd has done what it was told: it echoes a comment when it comes to it.
testpmd_sync() {
	testpmd_marks=$((testpmd_marks + 1))
	echo "# mark $testpmd_marks" >&9 || true
	wait_for 30 testpmd_marked && testpmd_alive
}

# testpmd COMMAND: tell, and wait until it is done.
testpmd() {
	echo "$1" >&9 || true
	testpmd_sync || { testpmd_show_log; fail "dpdk-testpmd hangs or died at: $1"; }
}

testpmd_quit() {
	echo quit >&9
	exec 9>&-
	children=()
	wait "$testpmd_pid" || { testpmd_show_log; fail "dpdk-testpmd ended with $?"; }
}

# port_stat PORT NAME: the last value of a counter in `show port stats all`.
port_stat() {
	awk -v port="$1" -v name="$2:" '
		/NIC statistics for port/ { here = $6 == port }
		here { for (i = 1; i < NF; i++) if ($i == name) value = $(i + 1) }
		END { print value }' "$testpmd_log"
}

# forward_stat NAME: the last sum over all ports that `stop` or `show fwd stats all` printed.
forward_stat() {
	awk -v name="$1:" '
		/Accumulated forward statistics/ { here = 1 }
		/^  \++$/ { here = 0 }
		here { for (i = 1; i < NF; i++) if ($i == name) value = $(i + 1) }
		END { print value }' "$testpmd_log"
}

# Objects of the first pool that are in use, by the last `dump_mempool`.
pool_in_use() {
	awk '
		/^ *size=/ { sub(/.*=/, ""); size = $0 }
		/common_pool_count=/ { sub(/.*=/, ""); common = $0 }
		/total_cache_count=/ { sub(/.*=/, ""); cached = $0 }
		END { print size - common - cached }' "$testpmd_log"
}

# The ops that the last `dump_mempool` names.
pool_ops() {
	sed -n 's/.*ops_name: <\(.*\)>.*/\1/p' "$testpmd_log" | tail -n 1
}

# expect WHAT LEFT OPERATOR RIGHT: an integer comparison that must hold.
expect() {
	test "$2" "$3" "$4" || { testpmd_show_log; fail "$1: not $2 $3 $4"; }
}

# ping_across COUNT: from host a to host b, one after the other and none may be lost.
ping_across() {
	need ping
	# The first one also finds out the addresses.
	ip netns exec a ping -q -c 1 -W 5 192.0.2.2 >"$tmp/ping.log" || fail 'no answer to the first ping'
	ip netns exec a ping -q -f -c "$1" 192.0.2.2 >"$tmp/ping.log"
	grep -q "^$1 packets transmitted, $1 received, 0% packet loss" "$tmp/ping.log" ||
		fail "ping: $(grep transmitted "$tmp/ping.log")"
}

# testpmd_across OPS EAL-ARGUMENT... : hosts a and b ping each other through testpmd, whose ports
# 0 and 1 are on a1 and b1. What the kernel counted on its side of the wire and what testpmd counted
# on the other is the same. Leaves testpmd stopped but alive.
testpmd_across() {
	local port=0 host

	pool_eal "$1"
	shift
	testpmd_start "${pool[@]}" "$@" -- -i --total-num-mbufs=16384
	testpmd start
	ping_across 2000
	testpmd stop
	testpmd 'show port stats all'
	testpmd dump_mempool
	for host in a b; do
		expect "$host: sent by the kernel, received by testpmd" \
			"$(net_stat "$host" "${host}0" tx_packets)" -eq "$(port_stat $port RX-packets)"
		expect "$host: sent by testpmd, received by the kernel" \
			"$(port_stat $port TX-packets)" -eq "$(net_stat "$host" "${host}0" rx_packets)"
		expect "$host: requests or replies" "$(port_stat $port RX-packets)" -ge 2001
		expect "$host: received without a buffer" "$(port_stat $port RX-nombuf)" -eq 0
		port=$((port + 1))
	done
	expect 'packets dropped' "$(forward_stat TX-dropped)" -eq 0
}
