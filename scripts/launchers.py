# SPDX-License-Identifier: Apache-2.0
"""Writes kernels/all.cuh and the table of docs/launchers.md from the headers of tensorcraft/kernels/.

A header's row is the first sentence of its head, its public functions, and every sentence "T: ..." of their contracts.
"""

import re

import regions

FOLDER = "tensorcraft/kernels"
HEAD = """// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every launcher; scripts/documents.py writes this. A header of one operator alone compiles faster.
"""
DETAILS = re.compile(r"^namespace detail(\S*) \{.*?^\}  // namespace detail\1$", re.DOTALL | re.MULTILINE)
PUBLIC = re.compile(r"^(?:inline )?(?:std::string_view|void) launch_(\w+)\(|^TC_[A-Z]+_LAUNCHER\((\w+)|^class (\w+)|^using (\w+) = \w+<",
                    re.MULTILINE)  # fmt: skip


def headers(root):
    """Paths of the folder's headers but all.cuh."""
    return sorted(p for p in (root / FOLDER).glob("*.cuh") if p.name != "all.cuh")


def all_cuh(root):
    return HEAD + "".join(f'#include "{FOLDER}/{p.name}"\n' for p in headers(root))


def comments(text):
    """Each run of comment lines as one line."""
    for run in re.findall(r"(?:^// .*\n)+", text, re.MULTILINE):
        yield " ".join(line.removeprefix("// ") for line in run.splitlines())


def row(name, text):
    """The header's row; None if it has no launcher of an operator."""
    if f"{FOLDER}/launch.cuh" not in text and "tensorcraft/ops/" not in text:
        return None
    head = next(c for c in comments(text) if not c.startswith("SPDX"))
    public = DETAILS.sub("", text)
    names = []
    for launcher, made, *types in PUBLIC.findall(public):
        names.append(f"launch_{launcher or made}" if launcher or made else "".join(types))
    of_types = [types for c in comments(public) for types in re.findall(r"(?:^|\. |of )T: ([^.]*)\.", c)]
    return f"| `{name}` | {head.split('. ')[0]} | {unique(f'`{n}`' for n in names)} | {unique(of_types, ' / ')} |"


def unique(words, between=", "):
    return between.join(dict.fromkeys(words))


def table(root):
    rows = [row(p.name, p.read_text(encoding="utf-8")) for p in headers(root)]
    lines = ["| header | what | launchers | types |", "| --- | --- | --- | --- |", *filter(None, rows)]
    return "\n".join(lines) + "\n"


def update(root=regions.ROOT, check=False):
    """Writes what is not up to date, or with check only names it."""
    stale = regions.update("launchers", lambda _: table(root), root, check)
    path = root / FOLDER / "all.cuh"
    if path.read_text(encoding="utf-8") != all_cuh(root):
        stale.append(path.relative_to(root).as_posix())
        if not check:
            path.write_text(all_cuh(root), encoding="utf-8")
    return stale
