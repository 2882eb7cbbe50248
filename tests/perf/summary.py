#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Summarise alternated runs: a table with medians, spread and ratios.

Reads lines `variant round mpps [cycles]`; the first variant is what the others are compared with,
by rate or, with the argument `cycles`, by cycles per packet. The ratio is the median over the rounds
of the two figures of the same round, so that what slows the machine down for a while slows both; its
interval is a bootstrap's 95%, or of fewer than six rounds, whose median has none, the extremes.
"""

import random
import statistics
import sys

ROUNDS_MIN = 6  # of fewer even the extremes miss the median more often than once in twenty


def interval(values, repeats=10000):
    rng = random.Random(1)
    medians = sorted(
        statistics.median(rng.choices(values, k=len(values))) for _ in range(repeats)
    )
    return medians[int(repeats * 0.025)], medians[int(repeats * 0.975)]


def spread(values, decimals):
    if not values:
        return f"{'-':>8} {'':20}"
    low, high = (f"{limit(values):.{decimals}f}" for limit in (min, max))
    return f"{statistics.median(values):8.{decimals}f} [{low:>7} .. {high:>7}]"


def compare(base, values):
    ratios = [value / base[number] for number, value in values.items() if base.get(number)]
    if not ratios:
        return "-"
    low, high = interval(ratios) if len(ratios) >= ROUNDS_MIN else (min(ratios), max(ratios))
    return f"{statistics.median(ratios):.3f} [{low:.3f} .. {high:.3f}]"


def main():
    by_cycles = sys.argv[1:] == ["cycles"]
    if sys.argv[1:] and not by_cycles:
        sys.exit("usage: summary.py [cycles] <RUNS")
    mpps, cycles = {}, {}
    for line in sys.stdin:
        variant, number, rate, *rest = line.split()
        mpps.setdefault(variant, {})[number] = float(rate)
        if rest and rest[0] != "null":
            cycles.setdefault(variant, {})[number] = float(rest[0])
    if not mpps:
        sys.exit("summary: no runs")

    what = cycles if by_cycles else mpps
    base = next(iter(mpps))
    width = max(map(len, mpps))
    between = "95%" if len(mpps[base]) >= ROUNDS_MIN else "min .. max"
    print(
        f"{'':{width}}  {'Mpps median [min .. max]':29}  {'cycles/packet [min .. max]':29}"
        f"  {'cycles, ' if by_cycles else ''}ratio to {base} [{between}]"
    )
    for variant, rates in mpps.items():
        ratio = "1"
        if variant != base:
            ratio = compare(what.get(base, {}), what.get(variant, {}))
        print(
            f"{variant:{width}}  {spread(list(rates.values()), 3)}"
            f"  {spread(list(cycles.get(variant, {}).values()), 1)}  {ratio}"
        )


if __name__ == "__main__":
    main()
