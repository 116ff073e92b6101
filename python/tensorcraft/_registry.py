# SPDX-License-Identifier: Apache-2.0
"""What `tc.ops()` returns: one record an operator."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple


class Variant(NamedTuple):
    name: str
    device: str
    idea: str


class Operator:
    """An operator of the registry: name, group, dtypes, variants, and the function itself."""

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
    ) -> None:
        self._index = index
        self.name = name
        self.group = group
        self.function = function
        self.dtypes = dtypes
        self.variants = tuple(Variant(*v) for v in variants)
        self._num_inputs = num_inputs
        self._options = options

    def __repr__(self) -> str:
        return f"<operator {self.name}: {', '.join(dict.fromkeys(v.name for v in self.variants))}>"
