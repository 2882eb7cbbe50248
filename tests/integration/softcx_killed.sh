#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# testpmd, or softcx-run above it, killed while packets flow: no process and no file stays.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"
need pgrep

export TMPDIR=$tmp/run
mkdir "$TMPDIR"

# shellcheck disable=SC2317 # called by wait_for
packets_flow() {
	testpmd 'show port stats all'
	[ "$(port_stat 0 TX-packets)" -gt 0 ] && [ "$(port_stat 1 RX-packets)" -gt 0 ]
}

# shellcheck disable=SC2317
gone() {
	! kill -0 "$command" 2>/dev/null && [ -z "$(ls -A "$TMPDIR")" ]
}

for what in testpmd softcx-run; do
	testpmd_on_softcx 2 --rate 100M --delay 100 -- --rxq=2 --txq=2 --total-num-mbufs=8192 \
		--forward-mode=macswap
	testpmd start
	wait_for 20 packets_flow || { testpmd_show_log; fail 'nothing comes'; }
	command=$(pgrep -P "$testpmd_pid" -x dpdk-testpmd)
	victim=$command
	[ "$what" = testpmd ] || victim=$testpmd_pid
	kill -KILL "$victim"
	status=0
	wait "$testpmd_pid" 2>/dev/null || status=$?
	exec 9>&-
	children=()
	[ "$status" -eq 137 ] || fail "$what killed: status $status"
	wait_for 10 gone || { ls "$TMPDIR"; fail "$what killed, and something stays"; }
done
