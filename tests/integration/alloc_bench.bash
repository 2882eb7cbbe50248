# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Sourced by the tests of alloc-bench, after lib.sh.
# shellcheck disable=SC2154 # lib.sh sets build, tmp, lcores and eal

use_app alloc-bench

show() {
	cat "$tmp/out" "$tmp/err" 2>/dev/null || true
}

# run_bench SUB-COMMAND ARGUMENT...: must end well and with every page where it came from.
run_bench() {
	local status=0

	rm -f "$json"
	"$bench" "${eal[@]}" -- "$@" --json "$json" >"$tmp/out" 2>"$tmp/err" </dev/null || status=$?
	[ "$status" -eq 0 ] || { show; fail "status $status: $*"; }
	[ ! -s "$tmp/err" ] || { show; fail "something on stderr: $*"; }
	is 'schema 1' '.schema == 1 and .program == "alloc-bench"'
	is 'every page is where it came from' \
		'all(.conservation[]; .given == .free and .valid) and (.conservation | length) > 0'
}

# is WHAT FILTER: must be true for the last run's results.
is() {
	[ "$(jq -r "$2" "$json")" = true ] || { show; fail "not so: $1 ($2)"; }
}

# says PATTERN: what the last run printed.
says() {
	grep -Eq -- "$1" "$tmp/out" || { show; fail "no line like '$1'"; }
}
