#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Summarise alternated runs: a table with medians, spread and ratios.

Reads lines `variant round mpps [cycles]`; the first variant is what the others are compared with.
The ratio is the median over the rounds of the two rates of the same round, so that what slows the
machine down for a while slows both; its interval is a bootstrap's 95%.
"""

import random
import statistics
import sys


def interval(values, repeats=10000):
    rng = random.Random(1)
    medians = sorted(
        statistics.median(rng.choices(values, k=len(values))) for _ in range(repeats)
    )
    return medians[int(repeats * 0.025)], medians[int(repeats * 0.975)]


def main():
    mpps, cycles = {}, {}
    for line in sys.stdin:
        variant, number, rate, *rest = line.split()
        mpps.setdefault(variant, {})[number] = float(rate)
        if rest and rest[0] != "null":
            cycles.setdefault(variant, []).append(float(rest[0]))
    if not mpps:
        sys.exit("summary: no runs")

    base = next(iter(mpps))
    width = max(map(len, mpps))
    print(f"{'':{width}}  Mpps median [min .. max]      cycles/packet  ratio to {base} [95%]")
    for variant, rates in mpps.items():
        values = list(rates.values())
        spread = f"{statistics.median(values):8.3f} [{min(values):7.3f} .. {max(values):7.3f}]"
        cost = f"{statistics.median(cycles[variant]):13.1f}" if variant in cycles else f"{'-':>13}"
        ratio = "1"
        if variant != base:
            ratios = [rate / mpps[base][number] for number, rate in rates.items()]
            low, high = interval(ratios)
            ratio = f"{statistics.median(ratios):.3f} [{low:.3f} .. {high:.3f}]"
        print(f"{variant:{width}}  {spread}  {cost}  {ratio}")


if __name__ == "__main__":
    main()
