# SPDX-License-Identifier: Apache-2.0
"""Keyword arguments that an expression names, as the native call takes them."""

from __future__ import annotations

from typing import Any

from .errors import TensorCraftValueError

MOST_ARRAYS = 8


def split(op: str, operands: dict[str, Any]) -> tuple[tuple[Any, ...], str]:
    """The arrays, and a text such as "g, u, b=0.5" that names them and holds the numbers."""
    arrays, words = [], []
    for name, value in operands.items():
        if not (name.isascii() and name.isidentifier()):
            raise TensorCraftValueError(f"{op}: {name!r} is not a name of ASCII letters, digits and _")
        if isinstance(value, bool):
            words.append(f"{name}={value}")
        elif isinstance(value, int):
            words.append(f"{name}={_whole(op, name, value)}")
        elif isinstance(value, float):
            words.append(f"{name}={float.__repr__(value)}")
        else:
            words.append(name)
            arrays.append(value)
    if not 0 < len(arrays) <= MOST_ARRAYS:
        raise TensorCraftValueError(f"{op}: takes 1 to {MOST_ARRAYS} arrays as keyword arguments, got {len(arrays)}")
    return tuple(arrays), ",".join(words)


def _whole(op: str, name: str, value: int) -> str:
    if not -(2**63) <= value < 2**63:
        raise TensorCraftValueError(f"{op}: {name} does not fit 64 bits; use a float or a number from -2**63 to 2**63 - 1")
    return int.__repr__(value)
