#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A primary and its secondaries share pools; secondaries are killed, in sections, in calls and under
# locks, and others come to their lcores. Then the primary is killed: no hugepage is lost by it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
[ -z "${PAGELANE_NO_HUGE-}" ] || skip 'secondary processes need hugepages'

program=$build/tests/integration/processes
[ -x "$program" ] || skip 'processes was not built: unit and perf programs are off'
huge=/run/huge # on a filesystem of the namespace
mkdir "$huge"
mount -t hugetlbfs -o pagesize=2M,size=256M none "$huge" || skip 'no hugetlbfs can be mounted'
common=(--no-pci --no-telemetry)
shared=("${common[@]}" --huge-dir "$huge" --file-prefix pagelane-processes)

status=0
timeout 150 "$program" "${shared[@]}" --proc-type=primary --lcores "$lcores" -- primary 24 \
	>"$tmp/primary.log" 2>&1 || status=$?
cat "$tmp/primary.log"
[ "$status" -eq 0 ] || fail "the primary ended with $status"
grep -q 'mempool pagepool: objects was made by another driver or build' "$tmp/primary.log" ||
	fail 'no line about a pool of another build'
grep -q 'mempool pagepool: other was made by another driver or build' "$tmp/primary.log" ||
	fail 'no line about a pool of another driver'
grep -q 'lcore 2 belongs to process [0-9]*, too' "$tmp/primary.log" ||
	fail 'no line about two processes on one lcore'

# hold NAME BACKEND EAL-ARGUMENT...: a process that holds a pool until it is killed; in $holder.
hold() {
	local log=$tmp/$1.log backend=$2

	shift 2
	"$program" "${common[@]}" --lcores "$lcores" "$@" -- hold "$backend" >"$log" 2>&1 &
	holder=$!
	children=("$holder")
	wait_for 30 grep -q holding "$log" || { cat "$log"; fail 'the process does not start'; }
}

kill_holder() {
	children=()
	kill -KILL "$holder"
	wait "$holder" 2>/dev/null || true
}

# 2-MiB pages that the files of the private mount have taken.
in_files() {
	local total free

	read -r total free < <(stat -f -c '%b %f' "$huge")
	echo $((total - free))
}

hold first memzone "${shared[@]:2}"
first=$(in_files)
kill_holder
left=$(in_files)
hold second memzone "${shared[@]:2}"
second=$(in_files)
kill_holder
echo "hugetlbfs: $first pages in use, $left after the kill, $second by the next one"
expect 'pages held by the first process' "$first" -ge 32
expect 'pages left behind' "$left" -eq "$first"
expect 'pages with the next process' "$second" -eq "$first"

free_pages() {
	cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages
}

is_free() {
	[ "$(free_pages)" -ge "$before" ]
}

# Others use the machine's pages, too; those that were lost would never come back.
lock=/sys/kernel/mm/hugepages
exec {turn}<"$lock"
flock -w 60 "$turn" || skip 'others use hugepages'
for backend in memfd memzone; do
	before=$(free_pages)
	hold "$backend" "$backend" --in-memory
	held=$(awk '/^HugetlbPages:/ { print $2 / 2048 }' "/proc/$holder/status")
	kill_holder
	wait_for 20 is_free || fail "$backend, --in-memory: $(free_pages) of $before pages are free"
	echo "$backend, --in-memory: $before pages free, $held then held, $(free_pages) after the kill"
	expect 'pages held' "$held" -ge 32
done
