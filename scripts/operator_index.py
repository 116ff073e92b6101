#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/operators.md from the registry and the examples of tests/ops/cases/.

usage: operator_index.py [--check]    where Python finds the built package; --check only compares
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import tensorcraft as tc

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "operators.md"
HEAD = """# Operators

Written by `scripts/operator_index.py` from the registry; `help(tc.NAME)` has every parameter, and
`print(tc.explain("NAME", ...))` says which variant a call takes and why.
CUDA variants also run without a GPU, in host memory, with `device="simt"`, if there is a C++ compiler; else `naive`.
"""


def examples() -> dict[str, str]:
    """One expression for each operator."""
    files = [json.loads(path.read_text()) for path in sorted((ROOT / "tests" / "ops" / "cases").glob("*.json"))]
    return {line.removeprefix("tc.").split("(")[0]: line for file in files for line in file.get("examples", [])}


def run(example: str) -> str:
    """The value of an example on the CPU, rounded so that it is the same on every machine."""
    tc.set_default_device("cpu")
    value = eval(example, {"tc": tc, "np": np})
    return np.array2string(np.asarray(value), precision=3, separator=", ").replace("\n", "")


def variants(operator: Any, device: str) -> str:
    return ", ".join(v.name for v in operator.variants if v.device == device)


def cell(text: str) -> str:
    """Text in a table, where a bare | would begin the next column."""
    return text.replace("|", r"\|")


def page() -> str:
    groups: dict[str, list[Any]] = {}
    for operator in tc.ops().values():
        groups.setdefault(operator.group, []).append(operator)
    known = examples()
    lines = [HEAD, "<!-- index -->", ""]
    for group, operators in groups.items():
        lines += [f"## {group}", "", "| operator | what it does | dtypes | CUDA variants | CPU variants |", "| --- | --- | --- | --- | --- |"]
        lines += [
            f"| `{o.name}` | {cell(o.summary)} | {', '.join(o.dtypes)} | {variants(o, 'cuda')} | {variants(o, 'cpu')} |"
            for o in operators
        ]
        lines += ["", "```python", *(f"{known[o.name]}  # {run(known[o.name])}" for o in operators), "```", ""]
    lines += ["<!-- /index -->", ""]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        return int(PAGE.read_text() != page())
    if arguments:
        print(__doc__)
        return 2
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
