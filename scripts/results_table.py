#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills the tables of measurements in the documents from benchmarks/results/*.json.

`<!-- results -->` holds every file; `<!-- results: gemm -->` the rows named gemm. Rows without a name are evidence that
is read in the file itself.
"""

import json
import sys

import regions

NOT_SHOWN = {"p10_ms", "p90_ms", "python", "system", "title"}  # in the file, for those who doubt


def cell(value):
    if not isinstance(value, float):
        return str(value)
    if 0.99 <= value < 1:
        return f"{value:.7f}"  # a cosine: what is left to 1 counts
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def tables_of(rows):
    """One table for each run of rows that have the same columns."""
    previous = None
    for row in rows:
        columns = [name for name in row if name not in NOT_SHOWN]
        if columns != previous:
            if previous:
                yield ""
            yield "| " + " | ".join(c.replace("_", " ") for c in columns) + " |"
            yield "| " + " | ".join("---" for _ in columns) + " |"
            previous = columns
        yield "| " + " | ".join(cell(row[c]) for c in columns) + " |"


def section(document, name):
    named = [r for r in document.get("rows", []) if "name" in r]
    rows = [r for r in named if not name or r["name"].split(" ")[0] == name]
    if not rows:
        return []
    facts = {**document.get("machine", {}), **{k: v for k, v in document.items() if isinstance(v, (str, int, float))}}
    machine = ", ".join(f"{key} {value}" for key, value in facts.items() if key not in NOT_SHOWN)
    title = f"**{document['title']}**" + (f" ({machine})" if machine else "")
    return [title, "", *tables_of(rows), ""]


def table(name, folder=regions.ROOT / "benchmarks" / "results"):
    lines = []
    for path in sorted(folder.glob("*.json")):
        lines += section(json.loads(path.read_text()), name)
    return "\n".join(lines or ["Nothing is measured yet.", ""]) + "\n"


if __name__ == "__main__":
    sys.exit(regions.main("results", table, __doc__))
