# SPDX-License-Identifier: Apache-2.0
"""Regions of the documents that a script fills: between `<!-- NAME: ARGUMENT -->` and `<!-- /NAME -->`."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ".venv/bin/python scripts/documents.py"  # the Python that has the built package
SKIPPED = {"build", "dist", ".venv", ".cache", ".git"}


def documents(root):
    for path in sorted(root.rglob("*.md")):
        if not SKIPPED & set(path.relative_to(root).parts):
            yield path


def filled(text, name, content_of):
    """The text with every region of this name holding content_of(argument)."""
    region = re.compile(rf"(<!-- {name}(?:: (.*?))? -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    return region.sub(lambda m: m[1] + content_of(m[2] or "") + m[3], text)


def update(name, content_of, root=ROOT, check=False):
    """Fills the regions of every document, or with check only lists those that would change."""
    stale = []
    for path in documents(root):
        text = path.read_text()
        new = filled(text, name, content_of)
        if new != text:
            stale.append(path.relative_to(root).as_posix())
            if not check:
                path.write_text(new)
    return stale
