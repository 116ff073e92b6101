# SPDX-License-Identifier: Apache-2.0
"""What `tc.ops()` returns: one record an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Variant(NamedTuple):
    """One row of an operator's variant table: its name, the type of device it runs on, its idea."""

    name: str
    device: str
    idea: str


class Operator:
    """An operator of the registry: name, aliases, group, summary, dtypes, variants, and the function itself."""

    def __init__(
        self,
        index: int,
        name: str,
        group: str,
        function: Callable[..., Any],
        dtypes: tuple[str, ...],
        variants: tuple[tuple[str, str, str], ...],
        num_inputs: int,
        options: tuple[str, ...],
        summary: str,
        aliases: tuple[str, ...],
    ) -> None:
        self._index = index
        self.name = name
        self.summary = summary
        self.aliases = aliases
        self.group = group
        self.function = function
        self.dtypes = dtypes
        self.variants = tuple(Variant(*v) for v in variants)
        self._num_inputs = num_inputs
        self._options = options

    def __repr__(self) -> str:
        return f"<operator {self.name}: {', '.join(dict.fromkeys(v.name for v in self.variants))}>"
