# SPDX-License-Identifier: Apache-2.0
"""The files of a tree, and C++ without its comments."""

import re
import subprocess

CPP = (".cpp", ".hpp", ".h", ".cuh", ".cu")


def files(root):
    """Every file of the tree that git knows or would add; without git, every file outside build folders."""
    if (root / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                cwd=root, capture_output=True, check=True, text=True)  # fmt: skip
        names = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
    else:
        names = [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()]
        names = [n for n in names if not re.match(r"(build|dist|\.venv|\.cache)/|.*__pycache__/", n)]
    for name in sorted(names):
        try:
            yield name, (root / name).read_text()
        except UnicodeDecodeError:
            continue  # no text


def code_of(name, text):
    """C++ without comments, each replaced by its line ends so that line numbers hold."""
    if not name.endswith(CPP):
        return text
    token = re.compile(r'R"\w*\((?:.|\n)*?\)\w*"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*(?:.|\n)*?\*/')
    return token.sub(lambda m: "\n" * m[0].count("\n") if m[0].startswith("/") else m[0], text)
