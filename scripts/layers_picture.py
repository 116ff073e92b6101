# SPDX-License-Identifier: Apache-2.0
"""The picture of the layers in ARCHITECTURE.md, drawn from the includes.

An arrow goes from a folder of `tensorcraft/` to one that it includes. One that another path of arrows says too is left out.
"""

from pathlib import Path

import check_layers
import regions


def includes(root):
    """{folder: the folders of tensorcraft/ that its files include}"""
    found = {}
    for file in sorted((root / "tensorcraft").rglob("*")):
        here = check_layers.layer(file.relative_to(root).as_posix())
        if here and file.suffix in (".hpp", ".cpp", ".h", ".cuh"):
            targets = {check_layers.layer(m[2]) for m in check_layers.INCLUDE.finditer(file.read_text()) if m[2].startswith("tensorcraft/")}
            found.setdefault(here, set()).update(targets - {here, None})
    return found


def reached(graph, start):
    """The folders that paths of two and more arrows lead to."""
    seen, open_ = set(), [further for one in graph[start] for further in graph[one]]
    while open_:
        if (one := open_.pop()) not in seen:
            seen.add(one)
            open_ += graph[one]
    return seen


def picture(root):
    graph = includes(root)
    arrows = [f"  {a} --> {b}\n" for a in sorted(graph) for b in sorted(graph[a] - reached(graph, a))]
    return "```mermaid\nflowchart TD\n" + "".join(arrows) + "```\n"


def update(root: Path = regions.ROOT, check: bool = False) -> list[str]:
    return regions.update("layers", lambda _: picture(root), root, check)
