#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""published.py DATA RESULTS [--write PAGE]: tables of published figures and alloc-bench's, as Markdown."""

import csv
import json
import pathlib
import re
import sys

BEGIN, END = "<!-- begin: tests/perf/published -->", "<!-- end -->"


def read_csv(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


class Run:
    def __init__(self, path):
        result = json.loads(path.read_text(encoding="utf-8"))
        self.machine, self.rows = result["machine"], result["results"]
        self.seed = result["config"]["seed"]

    def find(self, **keys):
        for row in self.rows:
            if all(row[key] == value for key, value in keys.items()):
                return row
        return None

    def cell(self, field, **keys):
        row = self.find(**keys)
        return "-" if row is None else f"{row[field]:.2f}" + ("" if row["trusted"] else "*")


def table(titles, rows):
    yield "| " + " | ".join(titles) + " |"
    yield "|" + "---|" * len(titles)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def operations(data, run):
    i7 = {row["operation"]: row for row in read_csv(data / "time-bench-2017.csv")}
    uml = {row["operation"]: row for row in read_csv(data / "kernel-7.2-uml.csv")}
    rows = []
    for row in run.rows:
        if row["subject"] == "empty" or row["api"] not in (None, "nested", "single"):
            continue
        label, kernel = row["subject"], row["subject"]
        if row["api"] is not None:
            way = row["api"] if row["api"] == "nested" else row["call"]
            label, kernel = f"page_alloc_put, {row['mode']}, {way}", "page_alloc_put"
        if kernel == "pp_lock_unlock":
            kernel = "spin_lock_unlock"
        there, virtual = i7.get(kernel), uml.get(kernel)
        rows.append(
            (
                label,
                f"{float(there['ns']):.2f}" if there else "-",
                there["cycles"] if there else "-",
                virtual["a_median"] if virtual else "-",
                virtual["b_median"] if virtual else "-",
                f"{row['ns']:.2f}" + ("" if row["trusted"] else "*"),
                f"{row['cycles']:.2f}",
            )
        )
    yield "**Operations.** Kernel: i7-4790K, 2017; user-mode kernel 7.2, TSC cycles, plain and with thunks.\n"
    yield from table(
        ("", "i7 ns", "i7 cycles", "uml plain", "uml thunks", "here ns", "here cycles"), rows
    )


def batches(data, run):
    ways = (
        ("pages, nested", "pagepool", "nested", "handle"),
        ("pages, public", "pagepool", "single", "public"),
        ("pages, bulk", "pagepool", "bulk", "public"),
        ("mempool, public", "rte_mempool/ring/512", "single", "public"),
        ("mempool, bulk", "rte_mempool/ring/512", "bulk", "public"),
    )
    published = read_csv(data / "pagealloc-odr0-2016.csv")
    for op in "alloc", "free":
        rows = []
        for line in published:
            if line["operation"] != op:
                continue
            batch = int(line["batch"])
            cells = [
                run.cell("cycles_min", op=op, subject=subject, api=api, call=call, batch=batch)
                for _, subject, api, call in ways
            ]
            rows.append([f"{op}-odr0-{batch}", line["defer_before"], line["defer_after"], *cells])
        yield f"**Order 0, {op}, by batch.** Minimum cycles per page; kernel: 2016, before and after checks were deferred.\n"
        yield from table(("", "before", "after", *(way[0] for way in ways)), rows)


def orders(data, run):
    uml = {row["operation"]: row for row in read_csv(data / "kernel-7.2-uml.csv")}
    rows = []
    for order in range(10):
        virtual = uml.get(f"page_alloc_free_order{order}_pair")
        pair = {"op": "pair", "order": order, "batch": 1}
        rows.append(
            (
                str(order),
                virtual["a_median"] if virtual else "-",
                virtual["b_median"] if virtual else "-",
                run.cell("cycles", subject="pagepool", api="nested", **pair),
                run.cell("cycles", subject="zone", api="single", **pair),
            )
        )
    yield "**Pairs by order.** TSC cycles; the user-mode kernel's grow with the pages of the block, ours do not.\n"
    yield from table(("order", "uml plain", "uml thunks", "pages, nested", "zone"), rows)


def sizes(data, run):
    published = {}
    for row in read_csv(data / "kmalloc-2009.csv"):
        if row["variant"] == "this_cpu":
            published[int(row["size"]), row["pattern"]] = row
    names = "pagepool", "rte_malloc", "glibc", "mimalloc"
    for pattern, op, title in (
        ("1", "alloc", "all allocated, then all freed: kmalloc"),
        ("1", "free", "all allocated, then all freed: kfree"),
        ("2", "pair", "pairs"),
    ):
        rows = []
        for size in (2**i for i in range(3, 15)):
            field = "kfree" if op == "free" else "kmalloc"
            cells = []
            for name in names:
                call = "handle" if name == "pagepool" else "public"
                keys = {"subject": name, "op": op, "size": size, "api": "single", "call": call}
                cells.append(run.cell("cycles", **keys))
            rows.append((str(size), published[size, pattern][field], *cells))
        yield f"**Sizes, {title}.** Cycles; kernel: 2009, with this_cpu operations; pages serve from 4096 bytes on.\n"
        yield from table(("size", "kernel", *names), rows)


def text(data, results):
    time, pages, order, kmalloc = (
        Run(results / f"{name}.json") for name in ("time", "pages", "orders", "kmalloc")
    )
    machine = time.machine
    yield (
        f"Here: {machine['cpu']}, TSC {machine['tsc_hz'] / 1e9:.3f} GHz, {machine['tsc_per_core_cycle']:.3f} of its "
        f"cycles per core cycle, {machine['compiler']}, -march={machine['march']}, {machine['dpdk']} "
        f"({machine['linkage']}), hypervisor's steal {machine['steal_ms']:.0f} ms. `*`: not to be trusted.\n"
    )
    yield from operations(data, time)
    yield from batches(data, pages)
    yield from orders(data, order)
    yield from sizes(data, kmalloc)


def main():
    data, results = map(pathlib.Path, sys.argv[1:3])
    body = "\n".join(text(data, results))
    if len(sys.argv) == 3:
        print(body)
        return
    page = pathlib.Path(sys.argv[4])
    old = page.read_text(encoding="utf-8")
    parts = re.fullmatch(f"(.*{re.escape(BEGIN)}\n).*({re.escape(END)}.*)", old, re.DOTALL)
    if parts is None:
        sys.exit(f"published: {page} has no marks to write between")
    page.write_text(f"{parts[1]}\n{body}\n{parts[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
