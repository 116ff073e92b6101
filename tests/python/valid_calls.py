# SPDX-License-Identifier: Apache-2.0
"""The valid call of every operator, which its cases file has (tests/ops/cases/README.md), as Python makes it."""

from __future__ import annotations

import ast
import functools
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tensorcraft as tc

CASES = Path(__file__).parents[1] / "ops" / "cases"
Arguments = tuple[list[Any], dict[str, Any]]


def files() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(CASES.glob("*.json"))]


def entries(key: str) -> dict[str, list[Any]]:
    """The entries of one list of every cases file, by operator."""
    found: dict[str, list[Any]] = {}
    for file in files():
        default = file.get("operators", [file["operator"]] if "operator" in file else [])
        for entry in file.get(key, []):
            for name in entry.get("operators", default):
                found.setdefault(name, []).append(entry)
    return found


CALLS = {name: calls[0] for name, calls in entries("calls").items()}


def values(random: np.random.Generator, shape: tuple[int, ...], dtype: str, fill: dict[str, Any] | None) -> Any:
    """Random elements: uniform if `fill` has bounds, else normal, and from 0 to 9 for integers."""
    if fill and fill.get("kind") == "arange":
        return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    low, high = (fill["low"], fill["high"]) if fill else (0, 9)
    if np.dtype(dtype).kind in "iub":
        return random.integers(low, high, shape, endpoint=True).astype(dtype)
    return (random.uniform(low, high, shape) if fill else random.standard_normal(shape)).astype(dtype)


def filled(shape: tuple[int, ...], dtype: str | None, fill: dict[str, Any] | None) -> Any:
    """The same array whenever it is asked for, row-major."""
    return values(np.random.default_rng(1), shape, dtype or "float32", fill)


def valid_call(
    name: str,
    make: Callable[[tuple[int, ...], str | None, dict[str, Any] | None], Any] = filled,
    sizes: dict[str, tuple[int, ...]] | None = None,
) -> Arguments:
    """Arrays by position and options by name; `make` makes an array, `sizes` says what a name in a shape stands for."""
    call = CALLS[name]
    named = sizes or {"...": (), **{size: tuple(one) for size, one in call["sweep"].items()}}

    def array(tensor: dict[str, Any]) -> Any:
        shape = [named.get(size, (size,)) for size in tensor["shape"]]
        return make(sum(shape, ()), tensor.get("dtype"), tensor.get("fill"))

    arrays = {parameter: array(tensor) for parameter, tensor in call["inputs"].items()}
    options = {option: array(v) if isinstance(v, dict) else v for option, v in call.get("options", {}).items()}
    order = list(inspect.signature(tc.ops()[name].function).parameters)
    positional = [arrays.pop(p) for p in order if p in arrays]
    # What is left has the names that the call gives it, and numbers stand beside these.
    values = iter(arrays.values())
    for operand in options.pop("operands").split(", ") if "operands" in options else ():
        word, _, number = operand.partition("=")
        options[word] = float(number) if number else next(values)
    return [options.pop("expression")] if "expression" in options else positional, options


@functools.cache
def choices(name: str) -> dict[str, list[str]]:
    """What each option that is one of a few words may be."""
    stub = ast.parse((Path(tc.__file__).parent / "_ops.pyi").read_text())
    function = next(f for f in stub.body if isinstance(f, ast.FunctionDef) and f.name == name)
    found = {}
    for argument in (*function.args.args, *function.args.kwonlyargs):
        words = [n.value for n in ast.walk(argument) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        if words and argument.arg != "variant":
            found[argument.arg] = words
    return found
