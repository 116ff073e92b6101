#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/gemm_ladder.svg, every rung of gemm as a bar, from benchmarks/results/.

--check writes nothing and fails if the picture is not up to date.
"""

import argparse
import html
import math
import sys

import regions
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


def bars(rungs, beside):
    """Name, TFLOPS, times the first rung, class."""
    rate = lambda us: beside.first["flops"] / us * 1e-6
    slowest = rungs[0][1]["us"]
    for name, row in rungs:
        yield name, rate(row["us"]), slowest / row["us"], "bar"
    for name, row in beside.peers.items():
        if name != "copy" and not row.get("error"):
            yield name, rate(row["median_us"]), slowest / row["median_us"], "peer"


def picture(found):
    rungs, beside = results_table.ladder_of(found, "gemm")
    rows = list(bars(rungs, beside))
    device = next(d["device"] for d in found.values() if beside.first in d["rows"])
    peak = device["peak_tflops"][beside.first["dtype"]]
    low, high = 0.1, 10 ** math.ceil(math.log10(peak))
    x = lambda tflops: LEFT + (RIGHT - LEFT) * math.log(tflops / low) / math.log(high / low)
    bottom = TOP + STEP * len(rows)
    size = f"{results_table.short_shape(beside.first)} in {beside.first['dtype']}"
    about = f"Each rung of the gemm ladder on one {device['name']}, {size}. TFLOPS, on a logarithmic scale."
    note = f"TFLOPS on one {html.escape(device['name'])}, logarithmic; the right column is times the first rung"
    shapes = [f'<text class="head" x="8" y="22">gemm, step by step: {html.escape(size)}</text>',
              f'<text class="quiet" x="8" y="42">{note}</text>']  # fmt: skip
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        at = f"{x(10.0**power):.1f}"
        shapes.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP - 6}" y2="{bottom}"/>')
        shapes.append(
            f'<text class="quiet" x="{at}" y="{bottom + 16}" text-anchor="middle">{10.0**power:g}</text>'
        )
    shapes.append(f'<line class="peak" x1="{x(peak):.1f}" x2="{x(peak):.1f}" y1="{TOP - 6}" y2="{bottom}"/>')
    shapes.append(f'<text class="quiet" x="{x(peak):.1f}" y="{TOP - 10}" text-anchor="end">peak {peak:.3g}</text>')
    for i, (name, tflops, gain, kind) in enumerate(rows):
        y = TOP + STEP * i
        shapes += [f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{html.escape(name)}</text>',
                   f'<rect class="{kind}" x="{LEFT}" y="{y + 3}" width="{x(tflops) - LEFT:.1f}" height="18" rx="2"/>',
                   f'<text x="{RIGHT + 14}" y="{y + 16}">{tflops:.3g}</text>',
                   f'<text class="quiet" x="{RIGHT + 118}" y="{y + 16}" text-anchor="end">{f"{gain:,.0f}" if gain >= 100 else f"{gain:.3g}"}x</text>']  # fmt: skip
    width, height = RIGHT + 128, bottom + 26
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label="{html.escape(about)}">')  # fmt: skip
    return "\n".join([head, f"<style>{STYLE}\n</style>", *shapes, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    drawn = picture(results_table.documents(results_table.RESULTS))
    stale = not PICTURE.exists() or PICTURE.read_text() != drawn
    if stale and not check:
        PICTURE.write_text(drawn)
    if stale:
        print(f"{PICTURE.name}: {'is not up to date: run scripts/ladder_picture.py' if check else 'written'}")
    return stale and check


if __name__ == "__main__":
    sys.exit(main())
