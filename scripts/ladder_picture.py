#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws every variant of a case as a bar: docs/gemm_ladder.svg from benchmarks/results/, or what `tensorcraft bench` wrote.

The command draws the case of --operator in RESULTS.json with the most variants into --image, an SVG file, and writes its
bars into --csv; scripts/documents.py draws docs/gemm_ladder.svg.
"""

import argparse
import csv
import html
import json
import math
from pathlib import Path

import regions
import results_case
import results_table

PICTURE = regions.ROOT / "docs" / "gemm_ladder.svg"
LEFT, RIGHT, TOP, STEP = 132, 620, 64, 28
STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1b1f24; }
  .quiet { font-size: 12px; fill: #57606a; }
  .head { font-size: 16px; font-weight: 600; }
  .bar { fill: #0a5cad; }
  .peer { fill: #b35900; }
  .grid { stroke: #d0d7de; }
  .peak { stroke: #57606a; stroke-dasharray: 4 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ec; }
    .quiet { fill: #9aa5b1; }
    .bar { fill: #6cb2ff; }
    .peer { fill: #ffb26b; }
    .grid { stroke: #3a434d; }
    .peak { stroke: #9aa5b1; }
  }"""


def bars(rungs, beside, amount):
    """Name, speed in the unit of `amount`, times the first rung, class."""
    slowest = rungs[0][1]
    for name, us in rungs:
        yield name, amount / us, slowest / us, "bar"
    for name, row in beside.peers.items():
        if name != "copy" and not row.get("error"):
            yield name, amount / row["median_us"], slowest / row["median_us"], "peer"


def ladder_of_bench(document, op):
    """Variants of the case with the most of them, the slowest first; and that case."""
    timed = lambda case: {r["variant"]: r["median_us"] for r in case.ladder if not r.get("error")}
    cases = results_case.cases_of(document, op)
    beside = max(cases, key=lambda case: len(timed(case)), default=None)
    if not beside or not timed(beside):
        raise SystemExit(f"ladder_picture: no variant of {op} was timed")
    return sorted(timed(beside).items(), key=lambda rung: -rung[1]), beside


def ladder_of_gemm(found):
    rungs, beside = results_table.ladder_of(found, "gemm")
    device = next(d["device"] for d in found.values() if beside.first in d["rows"])
    return [(name, row["us"]) for name, row in rungs], beside, device


def table(rungs, beside, device):
    """The bars as lines of numbers."""
    unit, amount, _ = measure(beside, device)
    yield ["name", "kind", "us", unit, "times the first"]
    for name, speed, gain, kind in bars(rungs, beside, amount):
        yield [name, "peer" if kind == "peer" else "variant", f"{amount / speed:.6g}", f"{speed:.6g}", f"{gain:.6g}"]


def measure(beside, device):
    """The unit of a case's speed, the amount that over microseconds gives it, and the device's peak."""
    if beside.computes(device):
        return "TFLOPS", beside.first["flops"] * 1e-6, device["peak_tflops"][beside.first["dtype"]]
    return "GB/s", beside.first["bytes"] * 1e-3, device.get("bandwidth_gbs")


def picture(rungs, beside, device):
    unit, amount, peak = measure(beside, device)
    rows = list(bars(rungs, beside, amount))
    speeds = [speed for _, speed, _, _ in rows]
    low = min(0.1 if unit == "TFLOPS" else 10, 10 ** math.floor(math.log10(min(speeds))))
    high = 10 ** math.ceil(math.log10(max(peak or 0, *speeds)))
    x = lambda speed: LEFT + (RIGHT - LEFT) * math.log(speed / low) / math.log(high / low)
    bottom = TOP + STEP * len(rows)
    op, device_name = beside.first["op"], device.get("name") or "processor"
    size = f"{results_case.short_shape(beside.first)} in {beside.first['dtype']}"
    about = f"Each rung of the {op} ladder on one {device_name}, {size}. {unit}, on a logarithmic scale."
    note = f"{unit} on one {html.escape(device_name)}, logarithmic; the right column is times the first rung"
    shapes = [f'<text class="head" x="8" y="22">{op}, step by step: {html.escape(size)}</text>',
              f'<text class="quiet" x="8" y="42">{note}</text>']  # fmt: skip
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        at = f"{x(10.0**power):.1f}"
        shapes.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP - 6}" y2="{bottom}"/>')
        shapes.append(
            f'<text class="quiet" x="{at}" y="{bottom + 16}" text-anchor="middle">{10.0**power:g}</text>'
        )
    if peak:
        shapes.append(f'<line class="peak" x1="{x(peak):.1f}" x2="{x(peak):.1f}" y1="{TOP - 6}" y2="{bottom}"/>')
        shapes.append(f'<text class="quiet" x="{x(peak):.1f}" y="{TOP - 10}" text-anchor="end">peak {peak:.3g}</text>')
    for i, (name, speed, gain, kind) in enumerate(rows):
        y = TOP + STEP * i
        shapes += [f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{html.escape(name)}</text>',
                   f'<rect class="{kind}" x="{LEFT}" y="{y + 3}" width="{x(speed) - LEFT:.1f}" height="18" rx="2"/>',
                   f'<text x="{RIGHT + 14}" y="{y + 16}">{speed:.3g}</text>',
                   f'<text class="quiet" x="{RIGHT + 118}" y="{y + 16}" text-anchor="end">{f"{gain:,.0f}" if gain >= 100 else f"{gain:.3g}"}x</text>']  # fmt: skip
    width, height = RIGHT + 128, bottom + 26
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label="{html.escape(about)}">')  # fmt: skip
    return "\n".join([head, f"<style>{STYLE}\n</style>", *shapes, "</svg>"]) + "\n"


def update(check=False):
    drawn = picture(*ladder_of_gemm(results_table.documents(results_table.RESULTS)))
    if PICTURE.exists() and PICTURE.read_text() == drawn:
        return []
    if not check:
        PICTURE.write_text(drawn)
    return [PICTURE.relative_to(regions.ROOT).as_posix()]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, metavar="RESULTS.json")
    parser.add_argument("--operator", default="gemm")
    parser.add_argument("--image", type=Path, metavar="FILE.svg")
    parser.add_argument("--csv", type=Path, metavar="FILE.csv")
    given = parser.parse_args(arguments)
    document = json.loads(given.results.read_text())
    of = (*ladder_of_bench(document, given.operator), document["device"])
    if given.image:
        given.image.write_text(picture(*of))
    if given.csv:
        with given.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table(*of))


if __name__ == "__main__":
    main()
