#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where a document links to a file or heading that is not there, or names a path of the tree that does not exist.

usage: check_links.py [ROOT]
"""

import re
import sys
from pathlib import Path

import regions

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FOLDERS = "bench|benchmarks|bindings|cli|cmake|docs|examples|python|scripts|tensorcraft|tests"
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]*\w)`")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(text):
    """The names by which the headings of a page are linked to, as code hosting sites make them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", CODE.sub("", text), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        number = 1
        while name in found:
            name, number = f"{name.removesuffix(f'-{number - 1}')}-{number}", number + 1
        found.add(name)
    return found


def problems(root):
    for path in regions.documents(root):
        text = CODE.sub("", path.read_text())
        place = path.relative_to(root).as_posix()
        for target in LINK.findall(text):
            if re.match(r"\w+:", target):
                continue  # another site
            name, _, anchor = target.partition("#")
            linked = path.parent / name if name else path
            if not linked.exists():
                yield f"{place}: links to {target}, which does not exist"
            elif anchor and anchor not in anchors(linked.read_text()):
                yield f"{place}: links to {target}, but there is no such heading"
        for name in NAMED.findall(text):
            if not (root / name).exists():
                yield f"{place}: names {name}, which does not exist"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else regions.ROOT
    found = list(problems(root))
    print("\n".join(found) or "check_links: every link leads somewhere")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
