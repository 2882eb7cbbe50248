#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ratios of page caches to rte_mempool, out of alloc-bench's results, beside what they are meant to be.

Prints lines `NAME VALUE LOW HIGH BAR VERDICT`: the median of the rounds' ratios with its 95% interval
by bootstrap, or `-` where there are no rounds; VERDICT is `holds`, `missed`, or `noise` where a row
is not to be trusted; BAR and VERDICT are `-` where nothing is promised.
"""

import json
import statistics
import sys

sys.dont_write_bytecode = True

from summary import interval

PEER = "rte_mempool/ring/512"


class Results:
    def __init__(self, paths):
        self.rows = []
        for path in paths:
            with open(path, encoding="utf-8") as file:
                self.rows += json.load(file)["results"]

    def find(self, test, subject, **keys):
        for row in self.rows:
            name = row["subject"] + ("/" + row["mode"] if row["subject"] == "pagepool" else "")
            if (row["test"], name) == (test, subject) and all(
                row[key] == value for key, value in keys.items()
            ):
                return row
        sys.exit(f"alloc_ratio: no row of {subject} in {test}: {keys}")


def show(name, ratio, bar, rows, rounds=None):
    """`bar` is ("<=" or ">=", number), or None."""
    low, high = interval(rounds) if rounds else ("-", "-")
    verdict = "-"
    if bar:
        verdict = "holds" if (ratio <= bar[1] if bar[0] == "<=" else ratio >= bar[1]) else "missed"
        if not all(row["trusted"] for row in rows):
            verdict = "noise"
    cells = [f"{cell:.3f}" if isinstance(cell, float) else cell for cell in (ratio, low, high)]
    print(f"{name:<40} {cells[0]:>7} {cells[1]:>7} {cells[2]:>7}", end="  ")
    print(f"{bar[0]}{bar[1]:.2f}" if bar else "-", verdict)


def unknown(name):
    print(f"{name:<40} {'-':>7} {'-':>7} {'-':>7}  - noise")


def show_rounds(name, bar, over, under):
    """The product of the rows `over` by that of the rows `under`, round by round."""
    rounds = []
    for samples in zip(*(row["samples"] for row in over + under)):
        if all(sample > 0 for sample in samples):
            ratio = 1.0
            for i, sample in enumerate(samples):
                ratio = ratio * sample if i < len(over) else ratio / sample
            rounds.append(ratio)
    if not rounds:
        unknown(name)
        return
    show(name, statistics.median(rounds), bar, over + under, rounds)


def beyond_caches(results):
    for api, call in ("bulk", "public"), ("bulk", "handle"), ("single", "public"), ("single", "handle"):
        keys = {"op": "pair", "api": api, "call": call, "batch": 16384}
        ours = results.find("pages", "pagepool/bh", **keys)
        bar = ("<=", 0.75) if call == "public" else None
        show_rounds(f"pages-{api}-{call}", bar, [ours], [results.find("pages", PEER, **keys)])
        # As gcc compiles it unless told otherwise.
        stv = results.find("pages", "rte_mempool_stv", **keys)
        show_rounds(f"pages-{api}-{call}-stv", None, [ours], [stv])
    keys = {"op": "pair", "call": "handle", "batch": 16384}
    nested = results.find("pages", "pagepool/bh", api="nested", **keys)
    show_rounds("pages-nested", None, [nested], [results.find("pages", PEER, api="single", **keys)])


def between_lcores(results):
    calls = ("nested", "handle"), ("single", "handle"), ("single", "public"), ("bulk", "handle"), ("bulk", "public")
    lcores = max(row["lcores"] for row in results.rows if row["test"] == "contend")
    for subject in "pagepool/bh", PEER:
        for api, call in calls:
            if subject == PEER and api == "nested":
                continue
            floor_api = "bulk" if api == "bulk" else "single"
            keys = {"api": api, "call": call}
            one, all_ = (results.find("contend", subject, lcores=n, **keys) for n in (1, lcores))
            floor_one, floor_all = (
                results.find("contend", "floor", lcores=n, api=floor_api) for n in (1, lcores)
            )
            bar = (">=", 0.95) if subject != PEER else None
            name = f"contend-{api}-{call}" + ("-rte_mempool" if subject == PEER else "")
            show_rounds(name, bar, [one, floor_all], [all_, floor_one])


def at_the_tail(results):
    for api, call in ("single", "public"), ("bulk", "public"):
        for op in "alloc", "free":
            keys = {"api": api, "call": call, "op": op, "state": "warm"}
            rows = [results.find("latency", name, **keys) for name in ("pagepool/bh", PEER)]
            ours, peer = (row["percentiles"]["p99_99"] for row in rows)
            name = f"latency-p99.99-{op}-{api}-{call}"
            if ours and peer:
                show(name, ours / peer, ("<=", 1.0), rows)
            else:
                unknown(name)  # too few calls


def in_hand(results):
    keys = {"op": "touch", "batch": 128}
    peer = results.find("touch", PEER, **keys)
    for subject, bar in ("pagepool/coloured", ("<=", 1.2)), ("pagepool/plain", None):
        ours = next(
            row for row in results.rows if row["test"] == "touch" and row["subject"] == subject
        )
        show_rounds(f"touch-128-{subject.split('/')[1]}", bar, [ours], [peer])


def main():
    results = Results(sys.argv[1:])
    beyond_caches(results)
    between_lcores(results)
    at_the_tail(results)
    in_hand(results)


if __name__ == "__main__":
    main()
