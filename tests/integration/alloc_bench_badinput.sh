#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What alloc-bench cannot do, it says in one line with cause and remedy, with an exit status that
# is not 0, and leaves nothing behind.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
. "$here/alloc_bench.bash"

cases=0

# refuses STATUS PATTERN ARGUMENT...: the program's status, and a pattern for its one line.
refuses() {
	local status=0 expected=$1 pattern=$2 line

	shift 2
	"$bench" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || status=$?
	[ "$status" -eq "$expected" ] || { show; fail "status $status, not $expected: $*"; }
	[ "$(wc -l <"$tmp/err")" -eq 1 ] || { show; fail "not one line: $*"; }
	line=$(cat "$tmp/err")
	[[ $line == 'alloc-bench: '*';'* ]] || fail "no cause and remedy in '$line'"
	[[ $line =~ $pattern ]] || fail "'$line' is not about '$pattern': $*"
	[ ! -s "$tmp/out" ] || { show; fail "something on stdout: $*"; }
	[ -z "$(find "$tmp" -name '*.tmp' -o -name 'new.*')" ] || fail "left a file: $*"
	[ -z "$(find /run/dpdk ! -type d 2>/dev/null)" ] || fail "left files in /run: $*"
	cases=$((cases + 1))
}

ours=("${eal[@]}" --)

# ---- the command line ----
refuses 2 'no sub-command'
refuses 2 'no sub-command' "${ours[@]}"
refuses 2 "unknown sub-command 'page'" "${ours[@]}" page
refuses 2 'no sub-command before --rounds' "${ours[@]}" --rounds 5
refuses 2 "unknown option '--nothing'" "${ours[@]}" pages --nothing
refuses 2 "unexpected argument 'time'" "${ours[@]}" pages time
refuses 2 "unknown option '--sizes'" "${ours[@]}" pages --sizes 8
refuses 2 "unknown option '--orders'" "${ours[@]}" kmalloc --orders 0
refuses 2 "unknown option '--batches'" "${ours[@]}" time --batches 1
refuses 2 "unknown option '--rounds'" compare a b --rounds 5
refuses 2 'lacks its argument' "${ours[@]}" pages --batches
refuses 2 'takes no argument' "${ours[@]}" pages --list=yes
refuses 2 "put it after '--'" "${eal[@]}" --rounds 5 -- pages
refuses 2 '--worker' --worker
for list in '' '1,' ',1' '1,,2' x 1-x 1-2-3 -1 1.5 0x10; do
	refuses 2 '--batches .*' "${ours[@]}" pages --batches "$list"
done
refuses 2 '--batches 0 is out of range' "${ours[@]}" pages --batches 0
refuses 2 '--batches 1048577 is out of range' "${ours[@]}" pages --batches 1048577
refuses 2 '--batches names 4 twice' "${ours[@]}" pages --batches 1-4,4
refuses 2 '--batches 4-1 runs backwards' "${ours[@]}" pages --batches 4-1
refuses 2 '--batches has more than 64' "${ours[@]}" pages --batches 1-65
refuses 2 '--orders 10 is out of range' "${ours[@]}" pages --orders 0-10
refuses 2 '--sizes 0 is out of range' "${ours[@]}" kmalloc --sizes 0
refuses 2 '--order sideways is unknown' "${ours[@]}" pages --order sideways
refuses 2 '--unit s is unknown' "${ours[@]}" pages --unit s
refuses 2 '--subjects malloc is unknown' "${ours[@]}" pages --subjects glibc,malloc
refuses 2 '--subjects  is unknown' "${ours[@]}" pages --subjects glibc,
refuses 2 '--pcp irqs is unknown' "${ours[@]}" pages --pcp bh,irqs
for option in rounds sample-us seed memory; do
	refuses 2 "--$option 0 is out of range" "${ours[@]}" pages "--$option" 0
	refuses 2 "--$option 4x is not a number" "${ours[@]}" pages "--$option" 4x
	refuses 2 "--$option 99999999999 is out of range" "${ours[@]}" pages "--$option" 99999999999
done
refuses 2 '--rounds 1001 is out of range' "${ours[@]}" pages --rounds 1001
refuses 2 '--plot .* no picture' "${ours[@]}" pages --plot "$tmp/new.pdf"
refuses 2 '--plot has a quote' "${ours[@]}" pages --plot "$tmp/new'.svg"

# ---- files ----
refuses 1 'cannot write .*No such file.*--json' "${ours[@]}" pages --json "$tmp/none/new.json"
refuses 1 'cannot write .*Is a directory.*--csv' "${ours[@]}" pages --csv "$tmp"
refuses 1 'not a regular file.*--json' "${ours[@]}" pages --json /dev/null
echo '{' >"$tmp/half.json"
echo '{}' >"$tmp/other.json"
echo '{"schema": 1, "program": "alloc-bench", "results": []}' >"$tmp/none.json"
echo '{"schema": 2, "program": "alloc-bench", "results": []}' >"$tmp/later.json"
refuses 2 'compare lacks a file' compare
refuses 2 'compare lacks a file' compare "$tmp/none.json"
refuses 2 "unexpected argument" compare "$tmp/none.json" "$tmp/none.json" "$tmp/none.json"
refuses 1 'cannot read .*missing.json' compare "$tmp/none.json" "$tmp/missing.json"
refuses 1 'cannot read .*half.json' compare "$tmp/half.json" "$tmp/none.json"
refuses 1 'other.json is no result' compare "$tmp/none.json" "$tmp/other.json"
refuses 1 'later.json is no result of alloc-bench with schema 1' compare "$tmp/later.json" "$tmp/none.json"
refuses 1 'no row in common' compare "$tmp/none.json" "$tmp/none.json"

# ---- the machine ----
one=("${eal[@]}")
one[1]=${lcores%%,*}
refuses 1 'pipeline needs 2 lcores' "${one[@]}" -- pipeline
refuses 1 'contend needs 2 lcores' "${one[@]}" -- contend
refuses 1 'no subject is left' "${ours[@]}" time --subjects floor
refuses 1 'no subject is left' "${ours[@]}" kmalloc --sizes 8 --subjects zone
refuses 2 'EAL does not start' --in-memory --no-pci --lcores 0@4095 -- time
refuses 1 'cannot be measured: Cannot allocate memory' --lcores "$lcores" --no-pci --no-huge --no-shconf -m 16 \
	-- kmalloc --count 1000000 --sizes 8 --subjects floor
echo "$cases cases"
