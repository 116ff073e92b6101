# SPDX-License-Identifier: Apache-2.0
"""Every public function and method, called with what it does not take: a tc.errors.Error whose text is ours, or a result."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from valid_calls import valid_call

import tensorcraft as tc

# What only nanobind, C++ or the names inside the package would put into a text.
FOREIGN = re.compile(
    r"incompatible function arguments|nanobind|nb_|std::|bad_cast|from_any|\b_(reshape|permute|to|squeeze|expand_dims)\b"
    r"|Invoked with|does not support indexing|no constructor",
)
WRONG: dict[str, Any] = {
    "None": None,
    "object": object(),
    "text": "x",
    "bytes": b"x",
    "float": 1.5,
    "empty list": [],
    "nested list": [[1], [[2]]],
    "list of None": [None],
    "complex": 1j,
    "dict": {},
    "set": {1},
    "class": int,
    "function": os.getpid,  # tc.Graph calls one: without arguments
    "huge": 2**70,
    "float64": np.ones(2),
    "text array": np.array(["a"]),
    "tensor": tc.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu"),
    "integers": tc.asarray([1, 2], device="cpu"),
}
METHODS = [
    name
    for name in dir(tc.Tensor)
    if callable(getattr(tc.Tensor, name)) and (not name.startswith("_") or name in ("__getitem__", "__contains__", "__dlpack__"))
]  # fmt: skip
CLASSES = (tc.Stream, tc.Event, tc.Graph, tc.Tensor)
MODULES: dict[str, Any] = {"tc": tc, "tc.cache": tc.cache, "tc.linalg": tc.linalg}


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for module, owner in MODULES.items():
        for name in owner.__all__:
            found = getattr(owner, name)
            if name not in tc.ops() and callable(found) and not isinstance(found, (type, tc.DType)):
                yield f"{module}.{name}", found
    for kind in CLASSES:
        yield f"tc.{kind.__name__}", kind


def counts(function: Callable[..., Any]) -> list[int]:
    """How many arguments to give by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [1, 2]  # of the native part, which refuses what it does not take
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return [1, 2]
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in places)
    return [n for n in range(max(required, 1), len(places) + 1)]


def check(call: Callable[[], Any], what: str) -> None:
    try:
        call()
    except tc.errors.Error as error:
        assert str(error) and not FOREIGN.search(str(error)), f"{what}: {error}"
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    before = tc.default_device()
    yield
    tc.set_default_device(before)


FUNCTIONS = dict(functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function(name: str) -> None:
    function = FUNCTIONS[name]
    for count in counts(function):
        for kind, value in WRONG.items():
            check(lambda: function(*[value] * count), f"{name}, {count} times {kind}")  # noqa: B023


@pytest.mark.parametrize("name", METHODS)
def test_a_method(name: str) -> None:
    for shape in ((), (2,), (2, 3)):
        tensor = tc.zeros(shape, device="cpu")
        method = getattr(tensor, name)
        for count in counts(method):
            for kind, value in WRONG.items():
                check(lambda: method(*[value] * count), f"{name} of {shape}, {count} times {kind}")  # noqa: B023


@pytest.mark.parametrize("name", sorted(tc.ops()))
def test_an_argument_of_an_operator(name: str) -> None:
    arguments, options = valid_call(name)
    function = tc.ops()[name].function
    parameters = inspect.signature(function).parameters.values()
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    for kind, value in WRONG.items():
        for i in range(len(arguments)):
            changed = [*arguments[:i], value, *arguments[i + 1 :]]
            check(lambda: function(*changed, **options), f"{name}, argument {i}: {kind}")  # noqa: B023
        for keyword in keywords:
            check(lambda: function(*arguments, **{**options, keyword: value}), f"{name}, {keyword}: {kind}")  # noqa: B023


def test_the_creation_functions_take_none_for_a_dtype() -> None:
    for make in (tc.zeros, tc.ones, tc.empty):
        assert make((2,), dtype=None).dtype == tc.float32
    assert tc.full((2,), 1.5, dtype=None).dtype == tc.float32
    assert tc.asarray([1.5], dtype=None).dtype == tc.float32


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tc.zeros(2, 3), "shape must be a tuple"),
        (lambda: tc.Tensor([1, 2]), "use tc.asarray"),
        (lambda: tc.asarray(None), "obj must be an array .*got NoneType"),
        (lambda: tc.zeros(3).astype(None), "dtype must not be None"),
        (lambda: tc.zeros(3).reshape(None), "shape must be an integer or a sequence of integers, got NoneType"),
        (lambda: tc.zeros(3).to(None), "device must be text, got NoneType"),
        (lambda: tc.device_info(None), "device must be text, got NoneType"),
        (lambda: tc.zeros(3).__dlpack__(max_version=1), "max_version must be a pair of integers, got int"),
        (lambda: tc.zeros(3).__dlpack__(copy=1), "copy must be True, False or None, got int"),
        (lambda: tc.zeros(3)["a":], "a slice has integers or None"),  # type: ignore[misc]
        (lambda: tc.arange(None), "arange: start must be a number, got NoneType"),
        (lambda: tc.clip(np.zeros(2, np.float32), min="low"), "clip: min must be a number, got a string"),
        (lambda: tc.pad(np.zeros((2, 2), np.float32), np.ones((2, 2))), "pad: .*must be an integer, got float"),
        (lambda: tc.DType("f9"), "dtype f9 is not supported"),
        (lambda: tc.load_safetensors(3), "path must be text, bytes"),
    ],
)  # fmt: skip
def test_the_text_of_a_wrong_kind(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(tc.errors.TensorCraftTypeError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tc.zeros(3)[::0], "the step of a slice must not be 0"),
        (lambda: tc.arange(0, 3, 0), "arange: step must not be 0"),
        (lambda: tc.arange(float("nan")), "arange: "),
        (lambda: tc.zeros((0, 3)).reshape(-1, 0), "the size for -1 is not determined"),
        (lambda: tc.zeros((2, 3)).reshape(-1, 0), "the size for -1 is not determined"),
        (lambda: tc.zeros((2, 3)).reshape(-2), "-2 is no size"),
        (lambda: tc.zeros((2, 3)).reshape(-1, -1), "more than one -1"),
        (lambda: bool(tc.zeros((2, 3))), "the truth of 6 elements; use tc.any or tc.all"),
        (lambda: bool(tc.zeros((0,))), "the truth of 0 elements"),
    ],
)  # fmt: skip
def test_the_text_of_a_wrong_value(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(tc.errors.TensorCraftValueError, match=text):
        call()
