#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every sub-command of alloc-bench measures all its subjects, says so in tables and files, and gives
# back what it took. Figures are not judged here: other programs run beside the tests.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$here/alloc_bench.bash"

quick=(--rounds 9 --sample-us 20)

# Subjects that are not installed are named, and no others are.
subjects() {
	local name package

	for name in jemalloc:libjemalloc2 tcmalloc:libtcmalloc-minimal4 mimalloc:libmimalloc2.0; do
		package=${name#*:}
		name=${name%:*}
		if grep -q "^left out: $name; install package $package" "$tmp/out"; then
			is "$name is left out" "all(.results[]; .subject != \"$name\")"
		else
			is "$name is there" "any(.results[]; .subject == \"$name\")"
		fi
	done
	for name in "$@"; do
		is "$name is there" "any(.results[]; .subject == \"$name\")"
	done
}

row_is_sane='.ns >= 0 and .ns_min >= 0 and .cycles >= 0 and .overhead_ns >= 0 and
	.ns_low <= .ns and .ns <= .ns_high and (.samples | length) == 9 and
	(.trusted == (.doubt == null)) and (.checks == null) == (.mode == null)'

# ---- time ----
run_bench time "${quick[@]}"
says '^Type:for_loop  *Per elem:  *[0-9]+\.[0-9]{3} cycles\(tsc\)  *[0-9]+\.[0-9]{3} ns '
for operation in spin_lock_unlock spin_lock_unlock_irqsave local_BH_disable_enable \
	local_irq_save_restore sigmask_save_restore function_call_cost func_ptr_call_cost; do
	says "^Type:$operation  .*\\| .*[0-9.]+ .*[a-z_]+$"
done
for mode in bh spin bypass irq preempt none; do
	says "^Type:page_alloc_put-$mode-public .* 211\\.0 .* page_alloc_put$"
done
is 'a system call costs more than a flag' '
	(.results | map({(.subject): .cycles}) | add) |
	.sigmask_save_restore > 10 * .local_irq_save_restore'

# ---- pages ----
run_bench pages --batches 1,32 "${quick[@]}"
is 'sane rows' "all(.results[]; $row_is_sane)"
is 'alloc, free and pair' '[.results[].op] | unique == ["alloc", "free", "pair"]'
is 'modes' '[.results[] | select(.subject == "pagepool").mode] | unique ==
	["bh", "bypass", "irq", "none", "preempt", "spin"]'
is 'calls of pagepool' '[.results[] | select(.subject == "pagepool" and .batch == 32) |
	[.api, .call]] | unique == [["bulk", "handle"], ["bulk", "public"],
	["nested", "handle"], ["single", "handle"], ["single", "public"]]'
is 'calls of rte_mempool' '[.results[] | select(.subject == "rte_mempool/ring/0" and .batch == 32) |
	[.api, .call]] | unique | length == 4'
is 'too short to trust' 'any(.results[]; .op == "alloc" and .batch == 1 and .subject == "floor" and
	.doubt == "too short for the clock")'
subjects pagepool zone rte_mempool/{ring,stack,lf_stack}/{0,512} rte_malloc glibc floor
says '^ *alloc-odr0-1 '
says '^ *free-odr0-32 '
says '^ *Min +floor'
says 'pages: ([0-9]+) given, \1 free at the end, lists valid'

run_bench pages --orders 0-9 --batches 1 --pcp bh "${quick[@]}"
is 'orders of the caches and of the zone' '
	([.results[] | select(.subject == "pagepool").order] | unique == [0, 1, 2, 3]) and
	([.results[] | select(.subject == "zone").order] | unique == [range(10)]) and
	([.results[] | select(.subject == "pagepool").mode] | unique == ["bh"])'

run_bench pages --orders 0,2 --batches 1,1000 --pcp bh --subjects pagepool,floor \
	--checks off,deferred,full "${quick[@]}"
is 'checks beside each other' '
	([.results[] | select(.subject == "pagepool").checks] | unique == ["deferred", "full", "off"]) and
	([.results[] | select(.subject == "floor").checks] | unique == [null])'
says 'pages: ([0-9]+) given, \1 free at the end, lists valid'

# ---- kmalloc ----
run_bench kmalloc --count 100 "${quick[@]}"
is 'sizes' '[.results[] | select(.subject == "glibc").size] | unique ==
	[8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]'
is 'two patterns' '[.results[] | select(.subject == "glibc") | [.op, .batch]] | unique ==
	[["alloc", 100], ["free", 100], ["pair", 1]]'
is 'pages serve pages' '[.results[] | select(.subject == "pagepool") | [.size, .order]] | unique ==
	[[4096, 0], [8192, 1], [16384, 2]]'
subjects rte_malloc glibc floor
says '^ *kmalloc-16384 '
says '^ *kfree-8 '
says '^ *pair-64 '

# ---- two lcores ----
run_bench pipeline "${quick[@]}"
is 'two lcores' 'all(.results[]; .lcores == 2 and .objects_per_second > 0)'
subjects pagepool zone rte_malloc glibc rte_mempool/ring/512
is 'no mode without exclusion' 'all(.results[]; .mode != "none")'

run_bench contend --batches 2048 --subjects floor,pagepool/bh,rte_mempool/ring,glibc "${quick[@]}"
is 'one and all lcores' '[.results[] | select(.subject == "pagepool") | .lcores] | unique == [1, 2]'
is 'above the caches' 'all(.results[]; .batch == 2048)'
says "scale +of floor's"

# ---- latency ----
run_bench latency "${quick[@]}"
is 'fresh and warm' '[.results[].state] | unique == ["fresh", "warm"]'
is 'percentiles rise' 'all(.results[].percentiles; .p50 <= .p90 and .p90 <= .max and .calls > 0)'
is 'as many fresh calls as there are' 'all(.results[] | select(.state == "fresh" and
	.api == "single"); .percentiles.calls == 9 * .batch)'
subjects pagepool rte_malloc glibc floor

# ---- touch ----
run_bench touch "${quick[@]}"
is 'colours' '[.results[] | select(.mode == "bh").subject] | unique ==
	["pagepool/coloured", "pagepool/plain"]'
subjects rte_mempool/ring/512 rte_malloc glibc floor

# ---- facts and seeds ----
run_bench pages --batches 32 --subjects floor --seed 7 "${quick[@]}"
is 'the seed' '.config.seed == 7'
says '^seed 7, order shuffle, 9 rounds '
is 'the machine' '.machine | .cpu != null and .tsc_hz > 1e8 and .compiler != null and
	.march != null and (.linkage == "shared" or .linkage == "static") and .dpdk != null and
	has("governor") and has("mitigations") and .hugepage_size >= 4096 and
	.tsc_per_core_cycle > 0.1 and .tsc_per_core_cycle < 10 and .clock_cycles > 0 and
	.clock_step > 0 and .steal_ms >= 0 and (.lcores | length) == 2 and
	all(.lcores[]; (.cpus | length) == 1)'
for order in ascending descending; do
	run_bench pages --batches 1,32 --subjects floor --order "$order" "${quick[@]}"
	is 'the order' ".config.order == \"$order\""
	is 'shuffled rounds to compare with' 'all(.results[]; .order_p != null)'
done

# What would take too much is left out, by name.
run_bench pages --orders 0-1 --batches 16384 --memory 65 --subjects floor --rounds 1
says '^left out: .* of floor, .*more than --memory'
is 'the smaller one is there' '[.results[].order] | unique == [0]'
is 'the larger one is named' 'any(.left_out[]; .order == 1 and .subject == "floor")'
