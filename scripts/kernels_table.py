#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills the tables of docs/kernels.md and docs/performance/kernels.md from docs/kernels.json: what the compiler made of every kernel.

The compile gate (ctest -R compile) writes what it measured to a file; --accept FILE makes that the baseline on purpose,
for the architectures it has, and leaves the others as they are.
"""

import argparse
import json
from pathlib import Path

import regions

BASELINE = regions.ROOT / "docs" / "kernels.json"
DETAILED = "sm_90a"  # the architecture whose every Config is measured


def text(baseline):
    """The file: one kernel a line, so that a change reads well."""

    def lines(value, depth):
        if not isinstance(value, dict):
            return json.dumps(value, separators=(",", ":"))
        items = [f"{' ' * depth}{json.dumps(key)}: {lines(value[key], depth + 1)}" for key in sorted(value)]
        return "{\n" + ",\n".join(items) + "\n" + " " * (depth - 1) + "}"

    return lines(baseline, 1) + "\n"


def merged(baseline, measured):
    """The baseline with the architectures that were measured in place of its own."""
    for arch, number in measured.pop("left_out", {}).items():
        raise SystemExit(f"kernels_table: texts have changed and this run left out {number} kernels for {arch}: measure all "
                         "with TC_TEST_FULL=1 ctest -R '^compile$'")  # fmt: skip
    if not baseline:
        return measured
    kernels = {**baseline["kernels"], **measured["kernels"]}
    kept = sorted(set(baseline["kernels"]) - set(measured["kernels"]))
    if kept and measured["nvrtc"] != baseline["nvrtc"]:
        raise SystemExit(f"kernels_table: this run is of NVRTC {measured['nvrtc']} and did not measure {', '.join(kept)}, "
                         f"which the baseline has from NVRTC {baseline['nvrtc']}: run the whole gate")  # fmt: skip
    return {**measured, "kernels": kernels, "texts": {**baseline["texts"], **measured["texts"]}}


def accept(path, target=BASELINE):
    baseline = json.loads(target.read_text()) if target.exists() else {}
    target.write_text(text(merged(baseline, json.loads(Path(path).read_text()))))


def spread(values):
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def variant_rows(baseline):
    """One row a rung, over its dtypes and Configs."""
    column = {name: i for i, name in enumerate(baseline["columns"])}
    yield "| rung | dtypes | kernels | registers | shared memory, bytes | spills, bytes | code, bytes | launch bounds |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for rung, kernels in baseline["kernels"].get(DETAILED, {}).items():
        dtypes = ", ".join(dict.fromkeys(d for name in kernels for d in name.split(" ")[0].split(",")))
        rows = list(kernels.values())
        numbers = (
            spread([row[column[c]] for row in rows]) for c in ("registers", "shared_bytes", "spill_bytes", "code_bytes")
        )
        bounds = sorted({(row[column["threads"]], row[column["min_blocks"]]) for row in rows})
        promised = ", ".join(f"{threads} x {blocks}" for threads, blocks in bounds)
        yield f"| `{rung}` | {dtypes} | {len(rows)} | {' | '.join(numbers)} | {promised} |"


def architecture_rows(baseline):
    column = {name: i for i, name in enumerate(baseline["columns"])}
    yield "| architecture | kernels | that spill | largest registers | largest shared memory, bytes | largest code, bytes |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for arch, kernels in sorted(baseline["kernels"].items(), key=lambda item: int(item[0].strip("sm_af"))):
        rows = [row for rung in kernels.values() for row in rung.values()]
        spilling = sum(row[column["spill_bytes"]] > 0 for row in rows)
        largest = " | ".join(
            f"{max(row[column[c]] for row in rows):,}" for c in ("registers", "shared_bytes", "code_bytes")
        )
        yield f"| {arch} | {len(rows)} | {spilling} | {largest} |"


def table(what, path=BASELINE):
    baseline = json.loads(path.read_text())
    if what == "compiler":
        return f"Compiled by NVRTC {baseline['nvrtc']}.\n"
    rows = architecture_rows if what == "architectures" else variant_rows
    return "\n".join(rows(baseline)) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", metavar="FILE", required=True, help="the measurement that becomes the baseline")
    accept(parser.parse_args().accept)
    for path in regions.update("kernels", table):
        print(f"{path}: written")


if __name__ == "__main__":
    main()
