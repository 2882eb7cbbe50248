#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The scripts that compare rates: form, not figures.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need python3 jq taskset

perf=$here/../perf
export PAGELANE_BUILD=$build

# script NAME ARGUMENT...: with a folder for its files of its own.
script() {
	PAGELANE_TMP='' "$perf/$1" "${@:2}"
}

# summarised ARGUMENT... <RUNS: a table's lines with single spaces.
summarised() {
	"$perf/summary.py" "$@" | sed 's/  */ /g; s/ $//'
}

# is_table WHAT EXPECTED: what is in $tmp/out.
is_table() {
	diff "$tmp/out" - <<<"$2" || fail "$1"
}

printf '%s\n' 'a 0 100 10' 'b 0 50 20' 'c 0 7 null' 'd 0 1' 'a 1 90 12' 'b 1 60 30' 'c 1 0' | summarised >"$tmp/out"
is_table 'by rate' ' Mpps median [min .. max] cycles/packet [min .. max] ratio to a [min .. max]
a 95.000 [ 90.000 .. 100.000] 11.0 [ 10.0 .. 12.0] 1
b 55.000 [ 50.000 .. 60.000] 25.0 [ 20.0 .. 30.0] 0.583 [0.500 .. 0.667]
c 3.500 [ 0.000 .. 7.000] - 0.035 [0.000 .. 0.070]
d 1.000 [ 1.000 .. 1.000] - 0.010 [0.010 .. 0.010]'
# Of a round that one of the two lacks, or in which there was nothing, there is no ratio.
printf '%s\n' 'a 0 100 10' 'a 1 0 null' 'b 0 50 20' 'b 1 60 30' 'c 1 60 30' | summarised cycles >"$tmp/out"
is_table 'by cycles' ' Mpps median [min .. max] cycles/packet [min .. max] cycles, ratio to a [min .. max]
a 50.000 [ 0.000 .. 100.000] 10.0 [ 10.0 .. 10.0] 1
b 55.000 [ 50.000 .. 60.000] 25.0 [ 20.0 .. 30.0] 2.000 [2.000 .. 2.000]
c 60.000 [ 60.000 .. 60.000] 30.0 [ 30.0 .. 30.0] -'
printf '%s\n' 'a 0 0' 'b 0 1' | summarised >"$tmp/out"
grep -q '^b 1.000 .* - -$' "$tmp/out" || fail 'a ratio to nothing'
for round in {0..5}; do
	printf '%s\n' "a $round 10" "b $round 5"
done | summarised | grep -q 'ratio to a \[95%\]$' || fail 'six rounds have an interval'
! "$perf/summary.py" </dev/null 2>"$tmp/err" || fail 'a table of nothing'
grep -q '^summary: no runs$' "$tmp/err" || fail 'not told why'

script l2fwd_ratio --rounds 1 --seconds 1 --pools ring_mp_mc,pages/bypass >"$tmp/out" || { cat "$tmp/out"; fail l2fwd_ratio; }
grep -Eq '^pages/bypass +[0-9.]+ .* [0-9.]+ \[[0-9.]+ \.\. [0-9.]+\]$' "$tmp/out" || { cat "$tmp/out"; fail 'no ratio'; }
# What fails says why.
! script l2fwd_ratio --rounds 1 --seconds 1 --pools bogus >"$tmp/out" || fail 'no such pool'
grep -q 'l2fwd-bench: --pool bogus is unknown' "$tmp/out" || { cat "$tmp/out"; fail 'the cause is not shown'; }
grep -q '^FAIL: ' "$tmp/out" || { cat "$tmp/out"; fail 'no verdict'; }

# Three that want a processor each, or two in turn, need two.
[ -x "$build/sim/softcx/softcx-run" ] && [ "$(id -u)" -eq 0 ] || exit 0
[ -f "$build/drivers/librte_net_mlx5pp.so" ] || exit 0
status=0
PAGELANE_TMP='' taskset -c "${lcores##*@}" "$perf/mlx5pp_ratio" --contend 32 --rounds 1 --seconds 1 --frames 1518 \
	--variants off-bh >"$tmp/out" || status=$?
[ "$status" -eq 77 ] || { cat "$tmp/out"; fail "one processor: status $status"; }
grep -q '^SKIP: one processor' "$tmp/out" || { cat "$tmp/out"; fail 'not told why'; }
