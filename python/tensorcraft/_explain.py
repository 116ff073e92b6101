# SPDX-License-Identifier: Apache-2.0
"""`tc.explain` and `tc.ops`: what the library would do, and what it can do."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from . import _ops
from . import _tensorcraft as native
from ._registry import Operator
from .errors import TensorCraftKeyError


@dataclass(frozen=True)
class Verdict:
    """What the chooser says of one variant."""

    name: str
    idea: str
    accepted: bool
    reason: str
    config: str


@dataclass(frozen=True)
class Explanation:
    """The chosen variant of a call and the verdict on every other; str() is a table."""

    op: str
    variant: str
    variants: tuple[Verdict, ...]
    floor_us: float
    bytes: float
    flops: float
    text: str

    def __str__(self) -> str:
        return self.text


def ops() -> dict[str, Operator]:
    """Every operator by name."""
    return dict(_ops.OPERATORS)


def explain(op: str, *args: Any, **options: Any) -> Explanation:
    """What calling operator `op` with these arguments would run, and why; nothing is computed.

    Raises KeyError for an unknown operator, and what the call itself would raise for bad arguments.
    """
    if op not in _ops.OPERATORS:
        raise TensorCraftKeyError(f'no operator is named "{op}"; there are {", ".join(_ops.OPERATORS)}')
    record = _ops.OPERATORS[op]
    bound = inspect.signature(record.function).bind(*args, **options)
    bound.apply_defaults()
    values = dict(bound.arguments)
    common = {name: values.pop(name) for name in ("out", "stream", "variant", "device")}
    chosen = {name: values.pop(name) for name in record._options}
    found = native.explain(
        record._index, tuple(values.values()), tuple(chosen.values()), common["variant"], common["device"]
    )
    rows = tuple(Verdict(**row) for row in found.pop("variants"))
    return Explanation(variants=rows, **found)
