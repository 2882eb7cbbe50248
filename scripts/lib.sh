# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the other scripts: messages, and what must be undone on exit.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export top

say() {
	printf '%s\n' "$*"
}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# on_exit COMMAND...: to be run when the script ends, the last one first; also after a signal.
undo=()

on_exit() {
	undo=("$(printf '%q ' "$@")" "${undo[@]}")
}

# run COMMAND...: and let signals end it with the script, at once. A shell waits for what it runs in the
# foreground before it looks at its traps, and Ctrl-C does not reach what has a process group of its own.
child=
run() {
	local status=0

	set -m
	"$@" &
	child=$!
	set +m
	wait "$child" || status=$?
	child=
	return "$status"
}

stop_child() {
	[ -n "$child" ] || return 0
	kill -TERM -- "-$child" 2>/dev/null || true
	wait "$child" 2>/dev/null || true
}

run_undo() {
	local status=$? command

	trap '' INT TERM HUP
	stop_child
	for command in "${undo[@]}"; do
		eval "$command" || true
	done
	exit "$status"
}

trap run_undo EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
