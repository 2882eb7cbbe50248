#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# DPDK's own tests pass on pktmbuf pools of ours as they do on rings.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need dpdk-test

# Of dpdk-test's autotests those that pass with ring_mp_mc in less than ten seconds and use the ops
# of --mbuf-pool-ops-name: with a name that does not exist each of them fails.
tests=(
	mempool mbuf ipfrag reorder distributor table ring_pmd link_bonding link_bonding_rssconf
	event_eth_rx_adapter event_eth_tx_adapter event_crypto_adapter cryptodev_null
)

if [ -n "${PAGELANE_NO_HUGE-}" ]; then
	eal+=(-m 1024)
fi

# autotest OPS NAME: leaves the output in $tmp/autotest.log.
autotest() {
	local extra=() status=0

	pool_eal "$1"
	[ "$2" != cryptodev_null ] || extra=(--vdev crypto_null0)
	LD_PRELOAD=${PAGELANE_PRELOAD-} DPDK_TEST=${2}_autotest timeout -k 5 30 dpdk-test \
		"${eal[@]}" "${pool[@]}" "${extra[@]}" </dev/null >"$tmp/autotest.log" 2>&1 || status=$?
	[ "$status" -eq 0 ] && grep -q 'Test OK$' "$tmp/autotest.log"
}

failed=()
for name in "${tests[@]}"; do
	if autotest pagepool "$name"; then
		echo "$name: passed"
		continue
	fi
	mv "$tmp/autotest.log" "$tmp/pagepool.log"
	# Without hugepages, or with little memory, some cannot pass whatever the ops.
	if autotest ring_mp_mc "$name"; then
		tail -n 40 "$tmp/pagepool.log"
		printf '\n%s\n' "$name: FAILED, and passes with ring_mp_mc"
		failed+=("$name")
	else
		echo "$name: skipped, fails with ring_mp_mc, too"
	fi
done
[ ${#failed[@]} -eq 0 ] || fail "${failed[*]}"
