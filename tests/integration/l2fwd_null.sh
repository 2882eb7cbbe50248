#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# l2fwd-bench on net_null ports: in all modes and from all pools every packet and buffer is
# accounted for, and the figures are of the kind that the mode makes.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/l2fwd.bash"

null=("${eal[@]}" --vdev net_null0 --vdev net_null1)

for pool in pages pagepool ring_mp_mc stack lf_stack; do
	modes=(io mac macswap rxonly txonly)
	case $pool in
	pagepool) modes=(mac txonly) ;; # page caches, as pages
	*stack) modes=(mac) ;;           # as ring_mp_mc, to us
	esac
	for mode in "${modes[@]}"; do
		run_bench "${null[@]}" -- --pool "$pool" --mode "$mode" --duration 1
		is 'two checked ports' '[.results[:-1][].device_checked] == [true, true]'
		is 'pool and mode' ".config.pool == \"$pool\" and .config.mode == \"$mode\""
		is 'cycles per packet' '.results[-1].cycles_per_packet > 0'
		is 'full bursts' '.results[-1].packets_per_burst == 32'
		case $mode in
		rxonly) is 'received, not sent' '.results[-1] |
				.rx_packets > 10000 and .tx_packets == 0 and .rxonly == .rx_packets and
				(.drops | add) == 0' ;;
		txonly) is 'sent, not received' '.results[-1] |
				.rx_packets == 0 and .generated > 10000 and .tx_packets == .generated' ;;
		*) is 'received and sent' '.results[-1] |
				.rx_packets > 10000 and .tx_packets == .rx_packets and
				(.drops | add) == 0' ;;
		esac
		case $pool in
		pages | pagepool) is 'page caches' '.config.pcp == "bh" and .config.mbcache == 0 and
				.pool.allocs > 0 and .pool.failed == 0' ;;
		*) is 'a library cache' '.config.pcp == null and .config.mbcache == 512' ;;
		esac
	done
done

for pcp in bh spin irq preempt bypass; do
	run_bench "${null[@]}" -- --pcp "$pcp" --batch 64 --high 256 --duration 1
	is 'page caches as asked' ".config |
		.pcp == \"$pcp\" and .batch == 64 and .high == 256"
done
is 'bypass goes to the zone' '.pool.zone_allocs > 0'

for checks in deferred full; do
	run_bench "${null[@]}" -- --checks "$checks" --duration 1
	is 'checks as asked, and nothing bad' "
		.config.checks == \"$checks\" and .pool.bad_pages == 0 and .pool.allocs > 0"
done

# The ends of the ranges.
for burst in 1 512; do
	run_bench "${null[@]}" -- --burst "$burst" --duration 1
	is 'the burst' ".config.burst == $burst and .results[-1].packets_per_burst == $burst"
done

# A frame of 1518 bytes occupies 1538 on the wire, one of 64 occupies 84.
run_bench "${null[@]}" -- --mode txonly --frame-size 1518 --duration 1
is 'L1 and L2 of 1518' '.results[-1] | (.gbps_l1 / .gbps_l2 - 1538 / 1518 | fabs) < 1e-6 and
	(.gbps_l2 - .mpps * 1518 * 8 / 1000 | fabs) < 1e-6 * .gbps_l2'
run_bench "${null[@]}" -- --mode txonly --duration 1
is 'L1 and L2 of 64' '.results[-1] | (.gbps_l1 / .gbps_l2 - 84 / 64 | fabs) < 1e-6'

# net_null's frames can be shorter than the addresses that mac would write.
run_bench "${eal[@]}" --vdev net_null0,size=13 --vdev net_null1 -- --mode mac --duration 1
is 'too short' '.results[0].drops.app == .results[0].rx_packets and .results[0].rx_packets > 0'

# The main lcore alone, with a port that forwards to itself; and only for printing.
eal_n 1
run_bench "${eal_args[@]}" --vdev net_null0 -- --duration 1
is 'the main lcore polls' '[.config.streams[].main] == [true]'
eal_n 3
run_bench "${eal_args[@]}" --vdev net_null0 --vdev net_null1 -- --duration 1
is 'the main lcore does not poll' '[.config.streams[].main] == [false, false]'

# A second lcore that wants buffers of the same pool. Past the caches it meets the zone's lock.
for pool in pages/bypass pagepool/preempt ring_mp_mc; do
	options=(--pool "${pool%/*}")
	[[ $pool != */* ]] || options+=(--pcp "${pool#*/}")
	run_bench "${eal[@]}" --vdev net_null0 -- "${options[@]}" --contend 512 --yield --duration 1
	is 'what was asked for' '.config.contend == 512 and .config.yield'
	is 'buffers for both' '.contender_mops > 0 and .results[-1].rx_packets > 10000'
	is 'the pool is large enough' '.results[-1].drops.no_buffer == 0'
	[ "$pool" = ring_mp_mc ] || is 'they came out of this pool' \
		'.pool.allocs - .results[-1].rx_packets >= .contender_mops * 1e6 * .config.seconds - 512'
done
run_bench "${eal[@]}" --vdev net_null0 -- --duration 1
is 'no contender unless asked for' '.config.contend == 0 and .contender_mops == 0'

# RSS over two queues; a choice of ports, in the order given.
eal_n 4
run_bench "${eal_args[@]}" --vdev net_null0 --vdev net_null1 -- --rxq 2 --duration 1
is 'RSS' '[.config.ports[].rss] == [true, true] and (.config.streams | length) == 4'
run_bench "${eal[@]}" --vdev net_null0 --vdev net_null1 --vdev net_null2 -- \
	--ports 2,0 --duration 1
is 'ports 2 and 0' '[.config.ports[] | [.port, .peer]] == [[2, 0], [0, 2]]'

# A larger pool than needed, and everything that describes the machine.
run_bench "${null[@]}" -- --pool-size 20000 --duration 1
is 'the pool' '.config.pool_size == 20000 and .config.pool_needed < 20000'
is 'the machine' '.machine | all(.cpu, .kernel, .dpdk, .compiler, .march; type == "string") and
	.tsc_hz > 0 and .cores > 0 and (.linkage == "shared" or .linkage == "static") and
	has("mitigations") and has("governor") and has("hugepage_size")'
