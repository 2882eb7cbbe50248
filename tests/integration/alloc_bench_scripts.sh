#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The scripts that make tables of alloc-bench's results: form, not figures.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/alloc_bench.bash"
need python3

perf=$here/../perf
export PAGELANE_BUILD=$build

"$perf/alloc_ratio" --rounds 2 >"$tmp/out"
number='[0-9]+\.[0-9]{3}|-'
line="^[a-z0-9._-]+ +($number) +($number) +($number)  (<=0\.75|>=0\.95|<=1\.00|<=1\.20|-) (holds|missed|noise|-)$"
[ "$(grep -Ec "$line" "$tmp/out")" -eq 24 ] || { show; fail 'not the lines that were meant'; }
[ "$(wc -l <"$tmp/out")" -eq 24 ] || { show; fail 'other lines, too'; }
for bar in 'pages-bulk-public .*<=0.75' 'pages-single-public .*<=0.75' 'contend-bulk-public .*(>=0.95|- noise)' \
	'latency-p99.99-free-bulk-public ' 'touch-128-coloured .*(<=1.20|- noise)'; do
	says "^$bar"
done

# What stands around the tables stays; the tables are replaced.
page=$tmp/page.md
printf 'before\n<!-- begin: tests/perf/published -->\nold\n<!-- end -->\nafter\n' >"$page"
"$perf/published" --rounds 1 --keep "$tmp/kept" --write "$page"
[ "$(sed -n '1p;$p' "$page" | tr '\n' ' ')" = 'before after ' ] || fail 'more than the tables was written'
! grep -q old "$page" || fail 'the old tables are still there'
grep -Eq '^\| spin_lock_unlock \| 8\.33 \| 33 \| 22\.6 \| 50\.0 \| [0-9]+\.[0-9]{2}\*? \|' "$page" || fail 'no operations'
grep -Eq '^\| alloc-odr0-16384 \| 201\.00 \| 188\.00 (\| [0-9]+\.[0-9]{2}\*? ){5}\|$' "$page" || fail 'no batches'
grep -Eq '^\| 9 \| 4429 \| 12544 \| - \| [0-9]+\.[0-9]{2}\*? \|$' "$page" || fail 'no orders'
grep -Eq '^\| 4096 \| 624 (\| [0-9]+\.[0-9]{2}\*? ){3}' "$page" || fail 'no sizes'
"$perf/published.py" "$here/../../docs/data" "$tmp/kept" | diff - <(sed '1,2d;/^<!-- end/,$d' "$page" | sed '1d') ||
	fail 'what is printed is not what is written'
echo 'no marks' >"$page"
! "$perf/published.py" "$here/../../docs/data" "$tmp/kept" --write "$page" 2>"$tmp/err" || fail 'wrote without marks'
grep -q '^published: .*page.md has no marks' "$tmp/err" || { show; fail 'not told why'; }
[ "$(cat "$page")" = 'no marks' ] || fail 'the page is gone'
