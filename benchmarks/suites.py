"""The calls of suites.json, expanded as `tensorcraft bench` expands them."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SUITES = Path(__file__).with_name("suites.json")
SHAPE = re.compile(r"(scalar|\d+(x\d+)*(/\d+)?)(:\w+)?")


@dataclass(frozen=True)
class Case:
    """One call as text, and what its ratios must reach."""

    op: str
    shapes: tuple[str, ...]
    dtype: str
    options: tuple[str, ...] = ()
    below: dict[str, int] = field(default_factory=dict)
    step: dict[str, int] = field(default_factory=dict)  # of integers that ascend from 0
    at_least: dict[str, float] = field(default_factory=dict)
    at_most_us: dict[str, float] = field(default_factory=dict)
    group: str = ""

    @property
    def name(self) -> str:
        """As the rows of the results have it."""
        return " ".join([" ".join(self.shapes), self.dtype, *self.options])

    @property
    def words(self) -> list[str]:
        """As the command line has it."""
        options = [word for option in self.options for word in ("--option", option)]
        return [self.op, *self.shapes, "--dtype", self.dtype, *options]


def filled(text: str, size: dict[str, int]) -> str:
    return re.sub(r"\{(\w+)\}", lambda m: str(size[m[1]]), text)


def parse(line: str, **facts: Any) -> Case:
    """A case from one line: OP SHAPE... [--dtype D] [--option NAME=VALUE]..."""
    words, shapes, options, dtype = iter(line.split()), [], [], "float32"
    op = next(words)
    for word in words:
        if word == "--dtype":
            dtype = next(words)
        elif word == "--option":
            options.append(next(words))
        elif word.startswith("--"):
            raise ValueError(f'"{line}": there is no {word}')
        else:
            shapes.append(word)
    return Case(op, tuple(shapes), dtype, tuple(options), **facts)


def suite(name: str, path: Path = SUITES) -> list[Case]:
    """The cases of one suite, or of "all", each once."""
    groups = json.loads(path.read_text())["groups"]
    known = {group["suite"] for group in groups}
    if name not in {*known, "all"}:
        raise ValueError(f'there is no suite "{name}"; there are {", ".join(sorted(known))}, all')
    found: dict[tuple[str, str], Case] = {}
    for group in groups:
        if name not in ("all", group["suite"]):
            continue
        for call, size, dtype in itertools.product(group["calls"], group.get("sizes", [{}]), group["dtypes"]):
            facts = {key: group.get(key, {}) for key in ("at_least", "at_most_us")}
            for key in ("below", "step"):
                facts[key] = {k: int(filled(str(v), size)) for k, v in group.get(key, {}).items()}
            case = parse(f"{filled(call, size)} --dtype {dtype}", group=group["title"], **facts)
            found.setdefault((case.op, case.name), case)
    return list(found.values())
