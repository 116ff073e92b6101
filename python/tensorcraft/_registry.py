# SPDX-License-Identifier: Apache-2.0
"""What `tc.ops()` returns: one record an operator; and the classes of what operators return."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple


class Variant(NamedTuple):
    """One row of an operator's variant table."""

    name: str  # by which a call may ask for it
    device: str  # "cuda" (which the emulator runs too) or "cpu"
    idea: str  # what it does, in one line


class Operator:
    """An operator of the registry, as `tc.ops()` gives it."""

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
        self.name = name  # in every layer
        self.summary = summary  # one line
        self.aliases = aliases  # other names of the function
        self.group = group  # its section of the operator index
        self.function = function  # what a user calls
        self.dtypes = dtypes  # of the first array
        self._variants = variants
        self._num_inputs = num_inputs
        self._options = options

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The best first within a device."""
        return tuple(Variant(*v) for v in self._variants)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Calls the function."""
        return self.function(*args, **options)

    def __repr__(self) -> str:
        return f"<operator {self.name}: {', '.join(dict.fromkeys(v.name for v in self.variants))}>"


def result_class(operator: str, name: str, **fields: str) -> type:
    """A named tuple of an operator's results, whose names and meanings are given.

    Classes are made so at import, since a class of typing.NamedTuple takes several times as long.
    """
    made = namedtuple(name, fields, module="tensorcraft._ops")  # type: ignore[misc]
    made.__doc__ = f"What {operator} returns."
    for field, meaning in fields.items():
        getattr(made, field).__doc__ = meaning
    return made
