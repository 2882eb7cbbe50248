#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The scripts, and programs that measure: each option is in --help, and bad input is one line.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export PAGELANE_BUILD=$build

# refuses PATTERN COMMAND...
refuses() {
	local pattern=$1 status=0

	shift
	timeout 20 "$@" >"$tmp/out" 2>&1 </dev/null || status=$?
	[ "$status" -eq 2 ] || { cat "$tmp/out"; fail "status $status: $*"; }
	[ "$(wc -l <"$tmp/out")" -eq 1 ] || { cat "$tmp/out"; fail "not one line: $*"; }
	grep -q -e "^${1##*/}: .*$pattern" "$tmp/out" || { cat "$tmp/out"; fail "not about $pattern: $*"; }
}

# helps COMMAND: with a usage, in $tmp/help.
helps() {
	timeout 20 "$1" --help >"$tmp/help" 2>"$tmp/err" </dev/null || { cat "$tmp/err"; fail "$1 --help"; }
	grep -q "^usage: .*${1##*/}" "$tmp/help" || { cat "$tmp/help"; fail "no usage of $1"; }
	[ ! -s "$tmp/err" ] || { cat "$tmp/err"; fail "$1 --help"; }
}

for script in "$here"/../perf/{alloc_ratio,published,l2fwd_ratio,testpmd_ratio,mlx5pp_ratio,mlx5pp_100g}; do
	case $script in
	*/mlx5pp_*) [ -x "$build/sim/softcx/softcx-run" ] || continue ;;
	esac
	helps "$script"
	refuses 'unknown option --bogus' "$script" --bogus 1
	refuses 'unknown option rounds' "$script" rounds 1
	refuses '--rounds needs a value' "$script" --rounds
	for value in x -1 1.5 9999999999999999999; do
		refuses "--rounds $value is not a number" "$script" --rounds "$value"
	done
	refuses '--rounds 0 is less than 1' "$script" --rounds 00
	mapfile -t options < <(grep -o '^  --[a-z]*' "$tmp/help" | tr -d ' ')
	for option in "${options[@]}"; do
		refuses "$option needs a value" "$script" "$option" ''
	done
	# what it takes is in its help
	read -ra options < <(sed -n 's/^parse_options \(.*\) -- .*/\1/p' "$script")
	for option in "${options[@]}"; do
		grep -q -e "^  --${option%:*} " "$tmp/help" || fail "$script --help does not know --${option%:*}"
	done
done
refuses 'neither null nor veth' "$here/../perf/l2fwd_ratio" --ports eth0

for script in "$here"/../../scripts/{demo,setup,check,build} "$here"/../{coverage,aarch64,model/run,integration/run}; do
	helps "$script"
done

# Without a build there is a line, too.
for script in alloc_ratio l2fwd_ratio testpmd_ratio; do
	status=0
	PAGELANE_BUILD=$tmp/none "$here/../perf/$script" --rounds 1 >"$tmp/out" 2>&1 </dev/null || status=$?
	[ "$status" -eq 77 ] || { cat "$tmp/out"; fail "$script without a build: status $status"; }
	grep -q "^SKIP: no $tmp/none/" "$tmp/out" || { cat "$tmp/out"; fail "$script without a build"; }
done

soak=$build/tests/soak/pcp_soak
if [ -x "$soak" ]; then
	helps "$soak"
	refuses 'seconds' "$soak" 0
	refuses 'seconds' "$soak" 1x
	refuses 'seed' "$soak" 1 x
fi
helps "$here/../soak/softcx_restarts"
refuses "'0' is not a number" "$here/../soak/softcx_restarts" 0
