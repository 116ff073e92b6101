# SPDX-License-Identifier: Apache-2.0
"""Fills the tables of operators, in the README and docs/operators.md, from the registry and the examples of tests/ops/cases/."""

import json

import regions


def package():
    """tensorcraft, which no other writer needs."""
    try:
        import tensorcraft
    except ImportError as error:
        raise SystemExit(f"operators: {error}: run scripts/build.sh, then {regions.COMMAND}") from None
    return tensorcraft


def unique(words):
    return ", ".join(dict.fromkeys(words))


def variants_of(members, device):
    """Those of the longest list first, best first."""
    lists = [[v.name for v in operator.variants if v.device == device] for operator in members]
    return unique(name for names in sorted(lists, key=len, reverse=True) for name in names)


def groups_of(operators):
    groups = {}
    for operator in operators.values():
        groups.setdefault(operator.group, []).append(operator)
    return groups


def rows(operators):
    """One row a group: its operators and every variant that one of them has."""
    yield "| group | operators | variants on the GPU | on the CPU |"
    yield "| --- | --- | --- | --- |"
    for group, members in groups_of(operators).items():
        names = unique(f"`{operator.name}`" for operator in members)
        yield f"| {group} | {names} | {variants_of(members, 'cuda')} | {variants_of(members, 'cpu')} |"


def table(_=""):
    return "\n".join(rows(package().ops())) + "\n"


def examples():
    """One expression for each operator."""
    files = [json.loads(path.read_text()) for path in sorted((regions.ROOT / "tests" / "ops" / "cases").glob("*.json"))]
    return {line.removeprefix("tc.").split("(")[0]: line for file in files for line in file.get("examples", [])}


def run(example):
    """The value of an example on the CPU, rounded so that it is the same on every machine."""
    tc = package()
    import numpy as np

    tc.set_default_device("cpu")
    value = eval(example, {"tc": tc, "np": np})
    return np.array2string(np.asarray(value), precision=3, separator=", ").replace("\n", "")


def cell(text):
    """Text in a table, where a bare | would begin the next column."""
    return text.replace("|", r"\|")


def index(_=""):
    """A section for each group: one row an operator, and their examples with values."""
    known = examples()
    lines = [""]
    for group, operators in groups_of(package().ops()).items():
        lines += [f"## {group}", "", "| operator | what it does | dtypes | CUDA variants | CPU variants |", "| --- | --- | --- | --- | --- |"]
        lines += [
            f"| `{o.name}` | {cell(o.summary)} | {', '.join(o.dtypes)} | {variants_of([o], 'cuda')} | {variants_of([o], 'cpu')} |"
            for o in operators
        ]
        lines += ["", "```python", *(f"{known[o.name]}  # {run(known[o.name])}" for o in operators), "```", ""]
    return "\n".join(lines) + "\n"


def update(root=regions.ROOT, check=False):
    return regions.update("operators", table, root, check) + regions.update("index", index, root, check)
