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

# Commands to run when the script ends, the last one first; also after a signal.
undo=()

on_exit() {
	undo=("$1" "${undo[@]}")
}

run_undo() {
	local status=$? command

	trap '' INT TERM HUP
	for command in "${undo[@]}"; do
		$command || true
	done
	exit "$status"
}

trap run_undo EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
