#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# alloc-bench's files: tables for spreadsheets, pictures, and nothing half-written.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
. "$here/alloc_bench.bash"

quick=(--rounds 9 --sample-us 20)

# ---- CSV: the JSON's rows, field by field ----
run_bench pages --batches 1,32 --subjects floor,pagepool/bh,rte_mempool --csv "$tmp/rows.csv" \
	"${quick[@]}"
rows=$(jq '.results | length' "$json")
[ "$(wc -l <"$tmp/rows.csv")" -eq $((rows + 1)) ] || fail 'not as many rows as in JSON'
columns=$(head -n 1 "$tmp/rows.csv")
[[ $columns == test,subject,mode,* ]] || fail "unexpected titles: $columns"
jq -r --arg columns "$columns" '($columns | split(",")) as $names | .results[] |
	[.[$names[]] | if . == null then "" elif type == "number" then . else tostring end] |
	map(if type == "number" then (. * 1e6 | round | tostring) else . end) | join(",")' \
	"$json" >"$tmp/expected.csv"
tail -n +2 "$tmp/rows.csv" | awk -F, -v OFS=, '{
	for (i = 1; i <= NF; i++)
		if ($i ~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/)
			$i = sprintf("%.0f", $i * 1e6)
	print
}' >"$tmp/got.csv"
[ "$(cut -d, -f 1-13 "$tmp/got.csv")" = "$(cut -d, -f 1-13 "$tmp/expected.csv")" ] ||
	{ diff "$tmp/got.csv" "$tmp/expected.csv"; fail 'CSV and JSON differ'; }

# ---- pictures ----
if command -v gnuplot >/dev/null; then
	# A line of rows that are not to be trusted is left out: then once more.
	for _ in 1 2 3 4 5; do
		run_bench pages --batches 1,32 --subjects floor,pagepool/bh --plot "$tmp/lines.svg" \
			"${quick[@]}"
		grep -q '<svg' "$tmp/lines.svg" || fail 'no SVG'
		! grep -q 'bh/nested' "$tmp/lines.svg" || break
	done
	grep -q 'bh/nested' "$tmp/lines.svg" || fail 'a line without its name'
	run_bench time --plot "$tmp/bars.png" "${quick[@]}"
	[ "$(head -c 4 "$tmp/bars.png" | tail -c 3)" = PNG ] || fail 'no PNG'
	run_bench contend --batches 64 --subjects floor --plot "$tmp/lcores.svg" "${quick[@]}"
fi

# Without gnuplot: one line, before anything is measured, and no file.
status=0
mkdir -p "$tmp/empty"
PATH=$tmp/empty "$bench" "${eal[@]}" -- time --plot "$tmp/none.svg" >"$tmp/out" 2>"$tmp/err" ||
	status=$?
[ "$status" -eq 1 ] || { show; fail "status $status without gnuplot"; }
[ "$(wc -l <"$tmp/err")" -eq 1 ] || { show; fail 'not one line'; }
grep -q '^alloc-bench: no gnuplot .*; install package gnuplot-nox' "$tmp/err" || { show; fail 'gnuplot'; }
[ ! -s "$tmp/out" ] || { show; fail 'measured all the same'; }
[ ! -e "$tmp/none.svg" ] || fail 'left a file'

# ---- a malloc that is not there is named and left out ----
library=$(ldconfig -p | awk '$1 == "libjemalloc.so.2" { print $NF; exit }')
[ -z "$library" ] || mount --bind /dev/null "$library"
run_bench kmalloc --sizes 64 --count 100 --subjects glibc,jemalloc "${quick[@]}"
says '^left out: jemalloc; install package libjemalloc2$'
is 'and in JSON' 'any(.left_out[]; .subject == "jemalloc" and .why == "install package libjemalloc2")'
is 'the others are there' 'any(.results[]; .subject == "glibc")'
status=0
"$bench" "${eal[@]}" -- kmalloc --subjects jemalloc >"$tmp/out" 2>"$tmp/err" || status=$?
[ "$status" -eq 1 ] || { show; fail "status $status with nothing but a missing subject"; }
[ "$(cat "$tmp/err")" = "alloc-bench: jemalloc cannot be measured: install package libjemalloc2; \
choose another with --subjects, or give EAL more memory" ] || { show; fail 'not that line'; }

# ---- killed: its children go, and no file is half-written ----
"$bench" "${eal[@]}" -- kmalloc --rounds 1000 --json "$tmp/killed.json" >"$tmp/out" 2>&1 &
pid=$!
children+=("$pid")
workers() {
	grep -zl '^[-]-worker' /proc/[0-9]*/cmdline 2>/dev/null | wc -l
}
have_workers() {
	[ "$(workers)" -ge 1 ]
}
no_workers() {
	[ "$(workers)" -eq 0 ]
}
wait_for 20 have_workers || { show; fail 'no worker started'; }
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
wait_for 10 no_workers || fail 'workers outlive their program'
[ -z "$(find "$tmp" -name 'killed*')" ] || fail 'left a file'
