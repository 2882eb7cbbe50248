#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# alloc-bench tells slower from as fast: a subject with a known delay is reported slower, by nine
# tenths of that delay at least, and compare tells differences from noise.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/alloc_bench.bash"

a=$tmp/a.json b=$tmp/b.json

# compare A B: must end well; what it says is in $tmp/out.
compare() {
	"$bench" compare "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || { show; fail "compare: $?"; }
	[ ! -s "$tmp/err" ] || { show; fail "compare: something on stderr"; }
}

# at_best COMMAND...: must succeed once in five times; other programs may run beside the test, and
# slow down one half of a measurement.
at_best() {
	for _ in 1 2 3 4 5; do
		! "$@" || return 0
	done
	show
	fail "not once in five times: $*"
}

# ---- a known delay, in cycles of the core: what little of it runs beside the call is not seen ----
sees_delay() {
	run_bench pages --batches 32 --subjects floor,delay --delay "$1" --rounds 31
	[ "$(jq ".machine.tsc_per_core_cycle as \$core |
		(.results | map(select(.op == \"pair\" and .api == \"single\")) |
		map({(.subject): .cycles_min}) | add) | (.delay - .floor) / $1 / \$core |
		. > 0.9" "$json")" = true ]
}
at_best sees_delay 100
at_best sees_delay 1000

# ---- a run against itself: whatever differs is chance ----
run_bench pages --batches 32,256 --subjects floor,delay,pagepool --rounds 15
cp "$json" "$a"
compare "$a" "$a"
says '^[0-9]+ rows: 0 better, 0 worse, [0-9]+ noise, 0 with too few samples$'
says '^Median pages pair-0-32 floor single .*\( +0\.00%\) .* noise, p 1( .not to be trusted.)?$'

# The same samples in another order are the same; those of one row a third slower are not. That row
# and its samples are made up, since those that were measured may be too noisy to tell.
is_row='.subject == "pagepool" and .mode == "bh" and .api == "bulk" and .call == "public" and
	.op == "pair" and .batch == 256'
jq "(.results[] | select($is_row)) |= (.trusted = true | .ns = 1.07 | .ns_min = 1 |
	.samples = [range(15) | 1 + . / 100])" "$a" >"$json"
cp "$json" "$a"
jq "(.results[] | .samples) |= reverse |
	(.results[] | select($is_row)) |= (.samples[] *= 1.33 | .ns *= 1.33 | .ns_min *= 1.33)" \
	"$a" >"$b"
compare "$a" "$b"
says '^[0-9]+ rows: 0 better, 1 worse, [0-9]+ noise, 0 with too few samples$'
says '^Median pages pair-0-256 pagepool/bh bulk public .*\( -33\.00%\)  worse, p '
compare "$b" "$a"
says '^[0-9]+ rows: 1 better, 0 worse, '
says '^Median pages pair-0-256 pagepool/bh bulk public .*\(  24\.81%\)  better, p '

# When floor moved as far, it was the machine.
jq '(.results[] | select(.subject == "floor")) |=
	(.trusted = true | .samples[] *= 1.4 | .ns *= 1.4)' "$b" >"$json"
jq '(.results[] | select(.subject == "floor")) |= (.trusted = true)' "$a" >"$b"
compare "$b" "$json"
says '^[0-9]+ rows: 0 better, 0 worse, '
says '^peers, the same code in both, moved by up to 40\.0%'

# Too few samples prove nothing, however far they lie apart.
jq '.results[].samples |= .[:7]' "$a" >"$b"
jq '.results[].samples[] *= 3' "$b" >"$json"
compare "$b" "$json"
says '^[0-9]+ rows: 0 better, 0 worse, 0 noise, [0-9]+ with too few samples$'

# Two machines are not one.
jq '.machine.compiler = "another"' "$a" >"$b"
compare "$a" "$b"
says '^the two differ in compiler$'

# ---- the same from end to end ----
tells_slower() {
	run_bench pages --batches 32 --subjects delay --delay 200
	cp "$json" "$a"
	run_bench pages --batches 32 --subjects delay --delay 400
	compare "$a" "$json"
	grep -Eq '^Median pages pair-0-32 delay single .* worse, p ' "$tmp/out"
}
at_best tells_slower
