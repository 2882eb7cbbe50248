#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The scripts that run others end at once when they are told to, with everything that they started and made,
# whatever blanks are in paths; and nothing else goes.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
isolate "$@"
scripts=$(realpath "$here/../../scripts")
export TMPDIR="$tmp/a b"
mkdir "$TMPDIR" "$tmp/a"
touch "$tmp/a/kept"
cd "$tmp"

none_sleeps() {
	! pgrep -x sleep >/dev/null
}

# ends_at_once COMMAND...: once it has made $tmp/up.
ends_at_once() {
	local status=0 begin

	rm -f "$tmp/up"
	"$@" >"$tmp/out" 2>&1 </dev/null &
	pid=$!
	children=("$pid")
	wait_for 20 test -e "$tmp/up" || { cat "$tmp/out"; fail "does not start: $*"; }
	begin=$SECONDS
	kill -TERM "$pid"
	wait "$pid" || status=$?
	children=()
	[ "$status" -eq 143 ] || { cat "$tmp/out"; fail "status $status: $*"; }
	[ $((SECONDS - begin)) -lt 30 ] || fail "ran to its end: $*"
	wait_for 5 none_sleeps || fail "left a process: $*"
	[ -z "$(ls -A "$TMPDIR")" ] || fail "left $(ls -A "$TMPDIR"): $*"
	[ -e "$tmp/a/kept" ] || fail "removed what is not its own: $*"
}

# A test among copies of what runs it.
mkdir -p "$tmp/a b.copy/tests/integration" "$tmp/a b.copy/build/drivers"
cp -r "$scripts" "$tmp/a b.copy"
cp "$here/run" "$tmp/a b.copy/tests/integration"
touch "$tmp/a b.copy/build/drivers/$plugin"
printf '#!/bin/sh\ntouch "%s/up"\nsleep 60\n' "$tmp" >"$tmp/a b.copy/tests/integration/slow.sh"
chmod +x "$tmp/a b.copy/tests/integration/slow.sh"

need pgrep
ends_at_once env -u PAGELANE_RESERVED PAGELANE_NO_HUGE=1 "$scripts/hugepages" 1 sh "$tmp/a b.copy/tests/integration/slow.sh"
unset PAGELANE_BUILD PAGELANE_TMP
ends_at_once env PAGELANE_RESERVED=1 "$tmp/a b.copy/tests/integration/run" slow

# What they remove when all goes well.
# shellcheck disable=SC2016 # for that shell
bash -c '. "$0/lib.sh"; made=$(mktemp -d); on_exit rm -rf "$made"' "$tmp/a b.copy/scripts"
[ -z "$(ls -A "$TMPDIR")" ] || fail "left $(ls -A "$TMPDIR")"
[ -e "$tmp/a/kept" ] || fail 'removed what is not its own'
