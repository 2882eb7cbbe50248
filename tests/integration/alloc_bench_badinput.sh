#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What alloc-bench cannot do, it says in one line with cause and remedy, with an exit status that
# is not 0, and leaves nothing behind.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
. "$here/alloc_bench.bash"

ours=("${eal[@]}" --)

# ---- the command line ----
refuses 2 'no sub-command' "$bench"
refuses 2 'no sub-command' "$bench" "${ours[@]}"
refuses 2 "unknown sub-command 'page'" "$bench" "${ours[@]}" page
refuses 2 'no sub-command before --rounds' "$bench" "${ours[@]}" --rounds 5
refuses 2 "unknown option '--nothing'" "$bench" "${ours[@]}" pages --nothing
refuses 2 "unexpected argument 'time'" "$bench" "${ours[@]}" pages time
refuses 2 "unknown option '--sizes'" "$bench" "${ours[@]}" pages --sizes 8
refuses 2 "unknown option '--orders'" "$bench" "${ours[@]}" kmalloc --orders 0
refuses 2 "unknown option '--batches'" "$bench" "${ours[@]}" time --batches 1
refuses 2 "unknown option '--rounds'" "$bench" compare a b --rounds 5
refuses 2 'lacks its argument' "$bench" "${ours[@]}" pages --batches
refuses 2 'takes no argument' "$bench" "${ours[@]}" pages --list=yes
refuses 2 "put it after '--'" "$bench" "${eal[@]}" --rounds 5 -- pages
refuses 2 '--worker' "$bench" --worker
for list in '' '1,' ',1' '1,,2' x 1-x 1-2-3 -1 1.5 0x10; do
	refuses 2 '--batches .*' "$bench" "${ours[@]}" pages --batches "$list"
done
refuses 2 '--batches 0 is out of range' "$bench" "${ours[@]}" pages --batches 0
refuses 2 '--batches 1048577 is out of range' "$bench" "${ours[@]}" pages --batches 1048577
refuses 2 '--batches names 4 twice' "$bench" "${ours[@]}" pages --batches 1-4,4
refuses 2 '--batches 4-1 runs backwards' "$bench" "${ours[@]}" pages --batches 4-1
refuses 2 '--batches has more than 64' "$bench" "${ours[@]}" pages --batches 1-65
refuses 2 '--orders 10 is out of range' "$bench" "${ours[@]}" pages --orders 0-10
refuses 2 '--sizes 0 is out of range' "$bench" "${ours[@]}" kmalloc --sizes 0
refuses 2 '--order sideways is unknown' "$bench" "${ours[@]}" pages --order sideways
refuses 2 '--unit s is unknown' "$bench" "${ours[@]}" pages --unit s
refuses 2 '--subjects malloc is unknown' "$bench" "${ours[@]}" pages --subjects glibc,malloc
refuses 2 '--subjects  is unknown' "$bench" "${ours[@]}" pages --subjects glibc,
refuses 2 '--pcp irqs is unknown' "$bench" "${ours[@]}" pages --pcp bh,irqs
refuses 2 '--checks some is unknown' "$bench" "${ours[@]}" pages --checks off,some
refuses 2 "unknown option '--checks'" "$bench" "${ours[@]}" touch --checks off
for option in rounds sample-us seed memory; do
	refuses 2 "--$option 0 is out of range" "$bench" "${ours[@]}" pages "--$option" 0
	refuses 2 "--$option 4x is not a number" "$bench" "${ours[@]}" pages "--$option" 4x
	refuses 2 "--$option 99999999999 is out of range" "$bench" "${ours[@]}" pages "--$option" 99999999999
done
refuses 2 '--rounds 1001 is out of range' "$bench" "${ours[@]}" pages --rounds 1001
refuses 2 '--plot .* no picture' "$bench" "${ours[@]}" pages --plot "$tmp/new.pdf"
refuses 2 '--plot has a quote' "$bench" "${ours[@]}" pages --plot "$tmp/new'.svg"

# ---- files ----
refuses 1 'cannot write .*No such file.*--json' "$bench" "${ours[@]}" pages --json "$tmp/none/new.json"
refuses 1 'cannot write .*Is a directory.*--csv' "$bench" "${ours[@]}" pages --csv "$tmp"
refuses 1 'not a regular file.*--json' "$bench" "${ours[@]}" pages --json /dev/null
refuses 2 '--json and --csv both name' "$bench" "${ours[@]}" pages --json "$tmp/new.both" --csv "$tmp/new.both"
mkdir "$tmp/full"
mount -t tmpfs -o size=4k none "$tmp/full"
short=(pages --subjects floor --batches 1-16 --rounds 3)
for kind in json csv plot; do
	[ "$kind" != plot ] || command -v gnuplot >/dev/null || continue
	status=0
	"$bench" "${ours[@]}" "${short[@]}" "--$kind" "$tmp/full/out.svg" >/dev/null 2>"$tmp/err" || status=$?
	[ "$status" -eq 1 ] || { cat "$tmp/err"; fail "--$kind on a full disk: status $status"; }
	grep -qE "^alloc-bench: .*(No space left on device|gnuplot cannot draw).*; choose another --$kind file" "$tmp/err" ||
		{ cat "$tmp/err"; fail "--$kind on a full disk"; }
	[ -z "$(ls -A "$tmp/full")" ] || fail "--$kind on a full disk leaves $(ls "$tmp/full")"
done
umount "$tmp/full"
needs_stdout "$bench" "${ours[@]}" "${short[@]}"
echo '{' >"$tmp/half.json"
echo '{}' >"$tmp/other.json"
echo '{"schema": 1, "program": "alloc-bench", "results": []}' >"$tmp/none.json"
echo '{"schema": 2, "program": "alloc-bench", "results": []}' >"$tmp/later.json"
refuses 2 'compare lacks a file' "$bench" compare
refuses 2 'compare lacks a file' "$bench" compare "$tmp/none.json"
refuses 2 "unexpected argument" "$bench" compare "$tmp/none.json" "$tmp/none.json" "$tmp/none.json"
refuses 1 'cannot read .*missing.json' "$bench" compare "$tmp/none.json" "$tmp/missing.json"
refuses 1 'cannot read .*half.json' "$bench" compare "$tmp/half.json" "$tmp/none.json"
refuses 1 'other.json is no result' "$bench" compare "$tmp/none.json" "$tmp/other.json"
refuses 1 'later.json is no result of alloc-bench with schema 1' "$bench" compare "$tmp/later.json" "$tmp/none.json"
refuses 1 'no row in common' "$bench" compare "$tmp/none.json" "$tmp/none.json"

# ---- the machine ----
one=("${eal[@]}")
one[1]=${lcores%%,*}
refuses 1 'pipeline needs 2 lcores' "$bench" "${one[@]}" -- pipeline
refuses 1 'contend needs 2 lcores' "$bench" "${one[@]}" -- contend
refuses 1 'no subject is left' "$bench" "${ours[@]}" time --subjects floor
refuses 1 'no subject is left' "$bench" "${ours[@]}" kmalloc --sizes 8 --subjects zone
refuses 1 'more than --memory 256 in all cases; give more' "$bench" "${ours[@]}" pages --orders 9 --batches 65536
refuses 2 'EAL does not start' "$bench" --in-memory --no-pci --lcores 0@4095 -- time
refuses 1 'cannot be measured: Cannot allocate memory' "$bench" --lcores "$lcores" --no-pci --no-huge --no-shconf -m 16 \
	-- kmalloc --count 1000000 --sizes 8 --subjects floor
echo "$refused cases"
