# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Sourced by the scripts that measure, which have a function `usage`.

misuse() {
	printf '%s: %s; see --help\n' "${0##*/}" "$*" >&2
	exit 2
}

# parse_options NAME[:MIN]... -- ARGUMENT...: the value of each option --NAME goes to the variable of that
# name; with MIN it is a number from there on.
parse_options() {
	local name value
	local -A min=()

	while [ "$1" != -- ]; do
		name=${1%%:*}
		min[$name]=${1#"$name"}
		shift
	done
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		-h | --help)
			usage
			exit 0
			;;
		esac
		name=${1#--}
		[[ $1 == --* && " ${!min[*]} " == *" $name "* ]] || misuse "unknown option $1"
		value=${2-}
		[ -n "$value" ] || misuse "$1 needs a value"
		if [ -n "${min[$name]}" ]; then
			[[ $value =~ ^[0-9]{1,18}$ ]] || misuse "$1 $value is not a number"
			value=$((10#$value))
			[ "$value" -ge "${min[$name]#:}" ] || misuse "$1 $value is less than ${min[$name]#:}"
		fi
		printf -v "$name" %s "$value"
		shift 2
	done
}
