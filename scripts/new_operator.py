#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes an operator of one rung that builds and passes its tests; the work is then to replace what it computes.

It gets a folder tensorcraft/ops/NAME, a line in ops/all.hpp and one in ops/registry.hpp, a file of cases and a test, and
computes out = x + amount. Each place to edit has a comment that begins with EDIT. docs/adding_an_operator.md says more.
"""

import argparse
import keyword
import re
import shutil
import subprocess
import sys
from pathlib import Path

import launchers
import regions

TEMPLATES = Path(__file__).resolve().parent / "new_operator"
# From the templates of that folder; @name@ stands for l2_normalize, @Name@ for L2Normalize.
FILES = {
    "tensorcraft/ops/@name@/@name@.hpp": "header",
    "tensorcraft/ops/@name@/params.h": "params",
    "tensorcraft/ops/@name@/00_naive.cuh": "naive",
    "tensorcraft/ops/@name@/plan.h": "plan",
    "tensorcraft/ops/@name@/problem.hpp": "problem",
    "tensorcraft/ops/@name@/@name@_cpu.cpp": "cpu",
    "tensorcraft/ops/@name@/@name@.cpp": "definition",
    "tensorcraft/ops/@name@/README.md": "readme",
    "tests/ops/cases/@name@.json": "cases",
    "tests/ops/@name@_test.cpp": "test",
}
LAUNCHER = {"tensorcraft/kernels/@name@.cuh": "launcher"}
CPP_KEYWORD = re.compile(
    r"alignas|alignof|asm|auto|bitand|bitor|bool|case|catch|char|class|compl|concept|const|consteval|constexpr|constinit|decltype|"
    r"default|delete|do|double|enum|explicit|export|extern|false|float|friend|goto|inline|int|long|mutable|namespace|new|noexcept|"
    r"operator|private|protected|public|register|requires|short|signed|sizeof|static|struct|switch|template|this|throw|true|"
    r"typedef|typeid|typename|union|unsigned|using|virtual|void|volatile|xor"
)


def fail(text):
    raise SystemExit(f"new_operator: {text}")


def in_pascal_case(name):
    return "".join(word[0].upper() + word[1:] for word in name.split("_"))


def filled(text, name):
    return text.replace("@name@", name).replace("@Name@", in_pascal_case(name))


def who_uses(name, root):
    """The first file in which the name means something else; None if there is none."""
    quoted = f'"{name}"'  # another operator's name, its alias, or a variant
    declared = re.compile(rf"^[^\s/#].*(?<!:)\b{name}\b *[({{=;]", re.MULTILINE)  # in a namespace, so from the first column on
    for path in sorted((root / "tensorcraft").rglob("*.[hc]*")):
        text = path.read_text(encoding="utf-8")
        if path.parent.parent.name == "ops":
            found = quoted in text
        else:
            found = path.suffix != ".cpp" and declared.search(text)
        if found:
            return path
    package = root / "python/tensorcraft/__init__.py"
    return package if re.search(rf"\b{name}\b", package.read_text(encoding="utf-8")) else None


def check_name(name, root):
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        fail(f'"{name}" is no name of an operator: expected words of lower-case letters and digits joined by _, as l2_normalize')
    if CPP_KEYWORD.fullmatch(name) or keyword.iskeyword(name) or keyword.issoftkeyword(name):
        fail(f'"{name}" is a word of C++ or Python')
    for path in {**FILES, **LAUNCHER}:
        if (root / filled(path, name)).exists():
            fail(f'"{name}" is taken: there is {filled(path, name)}')
    if path := who_uses(name, root):
        fail(f'"{name}" is taken: {path.relative_to(root)} uses it')


def with_include(text, name):
    """ops/all.hpp with the operator's header, in the order of the folders."""
    lines = text.splitlines(keepends=True)
    new = f'#include "tensorcraft/ops/{name}/{name}.hpp"\n'
    others = [i for i, line in enumerate(lines) if line.startswith('#include "tensorcraft/ops/')]
    lines.insert(next((i for i in others if lines[i] > new), others[-1] + 1), new)
    return "".join(lines)


def with_folder(text, name):
    """ops/registry.hpp with the folder in its list, and the backslashes in one column."""
    macro = re.compile(r"(#define TC_OPERATOR_FOLDERS\(X\)) *\\\n((?: +X\(\w+\) *\\?\n)+)")
    found = macro.search(text)
    lines = [found[1], *(f"  X({folder})" for folder in sorted([*re.findall(r"X\((\w+)\)", found[2]), name]))]
    width = max(map(len, lines[:-1])) + 1
    return text.replace(found[0], "\\\n".join(line.ljust(width) for line in lines[:-1]) + f"\\\n{lines[-1]}\n")


def make(name, root=regions.ROOT, launcher=False):
    """Writes the operator into the tree; returns the paths of what is new, then of what has a new line."""
    check_name(name, root)
    new, changed = [], []
    for path, template in {**FILES, **(LAUNCHER if launcher else {})}.items():
        file = root / filled(path, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(filled((TEMPLATES / f"{template}.in").read_text(encoding="utf-8"), name), encoding="utf-8")
        new.append(file.relative_to(root).as_posix())
    for path, change in (("tensorcraft/ops/all.hpp", with_include), ("tensorcraft/ops/registry.hpp", with_folder)):
        text = (root / path).read_text(encoding="utf-8")
        (root / path).write_text(change(text, name), encoding="utf-8")
        changed.append(path)
    return new, changed + (launchers.update(root) if launcher else [])


def format_files(paths, root):
    """False if clang-format is not installed: line ends depend on the length of the name."""
    program = shutil.which("clang-format-19")
    if program:
        files = [path for path in paths if path.endswith((".cpp", ".hpp", ".h", ".cuh"))]
        subprocess.run([program, "-i", *files], cwd=root, check=True)
    return bool(program)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: scripts/new_operator.py soft_clip --launcher")  # fmt: skip
    parser.add_argument("name", metavar="NAME", help="of the operator, its folder and its function: words_like_this")
    parser.add_argument("--launcher", action="store_true", help="also tensorcraft/kernels/NAME.cuh, for users of nvcc")
    parser.add_argument("--root", type=Path, default=regions.ROOT, help="of the tree, if it is another than this script's")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    if not (root / "tensorcraft/ops/registry.hpp").exists():
        fail(f"{arguments.root} is no tree of TensorCraft: there is no tensorcraft/ops/registry.hpp")
    new, changed = make(arguments.name, root, arguments.launcher)
    formatted = format_files(new, root)
    for path in new:
        print(f"new      {path}")
    for path in changed:
        print(f"changed  {path}")
    if not formatted:
        print("\nThere is no clang-format-19: run scripts/format.sh before you commit.")
    print(f"\nEvery place to edit: git grep -n --untracked 'EDIT' -- '*{arguments.name}*'\nThen: scripts/build.sh, and "
          f"build/release/tests/ops_tests --gtest_filter='*{arguments.name}*:{in_pascal_case(arguments.name)}*'\n"
          "What comes after: docs/adding_an_operator.md")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
