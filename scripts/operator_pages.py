# SPDX-License-Identifier: Apache-2.0
"""Fills `tests` of each operator's README: which tests and cases hold the folder.

What such a page has, which `problems` checks: an introduction, each rung by its name, a rung's own file that opens with what
is new, the measurements that there are, and this region.
"""

import json
import re

import regions
import results_table

# Operators whose kernels stand in the folder of another one.
ALSO = {
    "norm": ("layer_norm", "rms_norm"),
    "gemm": ("grouped_gemm", "masked_gemm"),
    "permute": ("copy", "join"),
    "elementwise": ("expression",),
}


def cases_of(op, root):
    names = (op, *ALSO.get(op, ()))
    return [path for name in names if (path := root / "tests" / "ops" / "cases" / f"{name}.json").exists()]


def tests_of(op, root):
    patterns = [f"{name}{more}_test.cpp" for name in (op, *ALSO.get(op, ())) for more in ("", "_*")]
    return sorted({path for pattern in patterns for path in (root / "tests" / "ops").glob(pattern)})


def tests(op, root=regions.ROOT):
    def links(paths):
        return ", ".join(f"[{path.name}](../../../{path.relative_to(root).as_posix()})" for path in paths)

    return (
        f"Tests: each variant against `reference` on {links(cases_of(op, root))}, on the CPU, the emulator and GPUs; "
        f"beside that {links(tests_of(op, root))}.\n"
    )


def names_of(op, root):
    """The operators of a folder, as results name them."""
    found = set()
    for path in cases_of(op, root):
        file = json.loads(path.read_text())
        found |= {*file.get("operators", []), file.get("operator", op)}
    return found


def problems(op, text, measured, rungs):
    """What the page lacks; `rungs` are the folder's files of device code by name, `measured` names in results."""
    lines = text.split("\n\n")
    if not lines[0].startswith("# ") or len(lines) < 2 or lines[1].startswith(("|", "#", "<!--", "```")):
        yield f"{op}: no introduction follows the title"
    for name, code in rungs.items():
        rung = name.removesuffix(".cuh")[3:]
        if f"`{rung}`" not in text and name not in text:
            yield f"{op}: the page does not name the rung {rung}"
        if not re.match(r"// SPDX[^\n]*\n#pragma once\n//", code):
            yield f"{op}: {name} does not open with what is new"
    shown = {region.split(" ")[-1] for region in re.findall(r"<!-- results: (.*?) -->", text)}
    if measured and not shown & measured:
        yield f"{op}: {', '.join(sorted(measured))} was measured, and the page has no region for it"
    if "<!-- tests -->" not in text:
        yield f"{op}: no region names its tests"


def measured_names():
    rows = [
        row for document in results_table.documents(results_table.RESULTS).values() for row in document.get("rows", [])
    ]
    return {row.get("op") or row.get("name", "").split(" ")[0] for row in rows}


def pages(root):
    return {path.parent.name: path for path in sorted((root / "tensorcraft" / "ops").glob("*/README.md"))}


def all_problems(root=regions.ROOT):
    measured = measured_names()
    for op, page in pages(root).items():
        rungs = {path.name: path.read_text() for path in sorted(page.parent.glob("[0-9][0-9]_*.cuh"))}
        yield from problems(op, page.read_text(), names_of(op, root) & measured, rungs)


def update(root=regions.ROOT, check=False):
    """Fills the regions, or with check only lists the pages whose region would change."""
    stale = []
    for op, page in pages(root).items():
        text = page.read_text()
        new = regions.filled(text, "tests", lambda _, op=op: tests(op, root))
        if new != text:
            stale.append(page.relative_to(root).as_posix())
            if not check:
                page.write_text(new)
    return stale
