#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# softcx-run: bad input is one line, its status is the command's, signals reach it, and nothing
# stays behind, whoever is killed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/softcx.bash"

export TMPDIR=$tmp/run
mkdir "$TMPDIR"

need jq

nothing_left() {
	[ -z "$(ls -A "$TMPDIR")" ]
}

# refuses PATTERN ARGUMENT...: with status $usage.
usage=2
refuses() {
	local pattern=$1 status=0

	shift
	softcx "$@" >"$tmp/out" 2>&1 || status=$?
	[ "$status" -eq "$usage" ] || { cat "$tmp/out"; fail "softcx-run $*: status $status"; }
	[ "$(wc -l <"$tmp/out")" -eq 1 ] || { cat "$tmp/out"; fail "softcx-run $*: not one line"; }
	grep -q "^softcx-run: .*$pattern" "$tmp/out" || { cat "$tmp/out"; fail "softcx-run $*"; }
}

refuses 'no command'
refuses 'no command' --ports 2
refuses 'no command' --ports 2 --
refuses 'unknown option --prots' --prots 2 -- true
refuses 'unknown option true' true
refuses 'needs a value' --ports
refuses 'takes no value' --strict=1 -- true
for value in 0 9 x '' -1 1x 99999999999999999999; do
	refuses "--ports $value: " --ports "$value" -- true
done
for value in 63 9979 '64,' ',64' '64,x' imixx; do
	refuses "--frame $value: " --frame "$value" -- true
done
for value in 1q 100GG -1 1e99 ''; do
	refuses "--rate $value: " "--rate=$value" -- true
done
for value in rq-prot rq-prot:0 cq-op:5 rq-:5; do
	refuses "--inject $value: " --inject "$value" -- true
done
refuses '--wire tap: ' --wire tap -- true
refuses '--payload all: ' --payload all -- true
refuses '--clock fake: ' --clock fake -- true
refuses '--device-cpu x: ' --device-cpu x -- true

# What cannot be is said before the command runs.
usage=1
refuses 'new: No such file or directory; choose another' --stats "$tmp/none/new" -- true
refuses 'Is a directory; choose another' --stats "$tmp" -- true
refuses 'port 0 cannot have processor 4000; see nproc' --device-cpu 4000 -- true
last=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status | sed 's/.*[,-]//')
refuses "port 1 cannot have processor $((last + 1))" --ports 2 --device-cpu "$last" -- true
TMPDIR=$tmp/none refuses 'No such file or directory; set TMPDIR' -- true
nothing_left || fail 'files after bad input'

# LD_PRELOAD takes no blanks; where the folder has one a link stands for it, which needs one without.
if [ -z "${PAGELANE_PRELOAD-}" ]; then
	mkdir -p "$tmp/a b"
	cp "$softcx_run" "$build/sim/softcx/libsoftcx.so" "$tmp/a b"
	"$tmp/a b/softcx-run" -- ibv_devices >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail 'a folder with a blank'; }
	grep -q mlx5_0 "$tmp/out" || { cat "$tmp/out"; fail 'no device from a folder with a blank'; }
	nothing_left || fail 'files after a folder with a blank'
	softcx_run="$tmp/a b/softcx-run" TMPDIR="$tmp/a b" refuses 'set TMPDIR to a folder without' -- true
fi

# Without standard files.
softcx -- ibv_devices <&- >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail 'without standard input'; }
grep -q mlx5_0 "$tmp/out" || { cat "$tmp/out"; fail 'no device without standard input'; }
softcx --stats "$tmp/stats.json" -- ibv_devinfo <&- >&- 2>&- || fail 'without standard files'
jq -e '.leaks == 0' "$tmp/stats.json" >/dev/null || { cat "$tmp/stats.json"; fail 'something else in the file'; }
nothing_left || fail 'files after runs without standard files'

# status EXPECTED COMMAND...
status() {
	local expected=$1 got=0

	shift
	softcx -- "$@" >"$tmp/out" 2>&1 || got=$?
	[ "$got" -eq "$expected" ] || { cat "$tmp/out"; fail "$*: status $got, not $expected"; }
	nothing_left || fail "files after $*"
}

status 0 true
status 1 false
status 77 sh -c 'exit 77'
status 127 "$tmp/nothing"
status 126 "$tmp"
# shellcheck disable=SC2016 # for the inner shell
status 137 sh -c 'kill -KILL $$'
softcx --help | grep -q -e --ports || fail '--help'
softcx --version | grep -q '^softcx-run [0-9]' || fail '--version'

# A signal to softcx-run is the command's, which may do as it likes.
# shellcheck disable=SC2016
LD_PRELOAD=${PAGELANE_PRELOAD-} "$softcx_run" -- sh -c 'trap "exit 5" TERM; touch "$0/up"; while :; do sleep 0.05; done' "$tmp" &
pid=$!
children=("$pid")
wait_for 10 test -e "$tmp/up" || fail 'the command did not start'
kill -TERM "$pid"
got=0
wait "$pid" || got=$?
[ "$got" -eq 5 ] || fail "the command ended with $got, not as its trap says"
nothing_left || fail 'files after SIGTERM'

# killed PROCESS: its parent, or itself, is killed while it has a device open.
killed() {
	local what=$1 command

	rm -f "$tmp/pid" "$tmp/out" # of the one before
	# shellcheck disable=SC2016
	LD_PRELOAD=${PAGELANE_PRELOAD-} "$softcx_run" -- sh -c 'echo $$ >"$0/pid.new"; mv "$0/pid.new" "$0/pid"; exec ibv_asyncwatch' "$tmp" \
		>"$tmp/out" 2>&1 &
	pid=$!
	children=("$pid")
	wait_for 10 grep -qs mlx5_0 "$tmp/out" || { cat "$tmp/out"; fail 'ibv_asyncwatch did not start'; }
	command=$(cat "$tmp/pid")
	if [ "$what" = runner ]; then kill -KILL "$pid"; else kill -KILL "$command"; fi
	got=0
	wait "$pid" 2>/dev/null || got=$?
	[ "$got" -eq 137 ] || fail "$what killed: status $got"
	# shellcheck disable=SC2317 # called by wait_for
	gone() { ! kill -0 "$command" 2>/dev/null; }
	wait_for 10 gone || fail "$what killed, and the command lives"
	wait_for 10 nothing_left || fail "$what killed, and files stay"
	children=()
}
need ibv_asyncwatch stdbuf
killed command
killed runner

# Without rights there is no netdev, which is said, but there are devices.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && [ -z "${PAGELANE_PRELOAD-}" ]; then
	mkdir -m 0777 "$tmp/copy" "$TMPDIR/nobody"
	chmod 0711 "$tmp" "$TMPDIR"
	cp "$softcx_run" "$build/sim/softcx/libsoftcx.so" "$tmp/copy"
	chmod 0777 "$TMPDIR/nobody"
	if setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$tmp/copy/softcx-run"; then
		TMPDIR=$TMPDIR/nobody setpriv --reuid 65534 --regid 65534 --clear-groups \
			"$tmp/copy/softcx-run" -- ibv_devices >"$tmp/out" 2>&1 ||
			{ cat "$tmp/out"; fail 'without rights'; }
		grep -q mlx5_0 "$tmp/out" || fail 'no device without rights'
		grep -q 'no netdevs' "$tmp/out" || { cat "$tmp/out"; fail 'what is missing is not said'; }
		[ -z "$(ls -A "$TMPDIR/nobody")" ] || fail 'files after a run without rights'
	fi
fi

# Real devices are not hidden.
if [ "$(id -u)" -eq 0 ]; then
	cat >"$tmp/real" <<-END
		mount -t tmpfs none /sys/class && mkdir -p /sys/class/infiniband/mlx5_7
		LD_PRELOAD="${PAGELANE_PRELOAD-}" exec "$softcx_run" -- true
	END
	got=0
	unshare --mount "$BASH" "$tmp/real" >"$tmp/out" 2>&1 || got=$?
	[ "$got" -eq 1 ] || { cat "$tmp/out"; fail "beside a real device: status $got"; }
	grep -q 'mlx5_7, which softcx would hide' "$tmp/out" || { cat "$tmp/out"; fail 'no reason'; }
fi
