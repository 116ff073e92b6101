# SPDX-License-Identifier: Apache-2.0
"""What the functions written in Python share: arrays of any framework in and out, axes and shapes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from . import _frameworks
from . import _tensorcraft as native
from ._tensor import beside, is_numpy, is_plain
from ._tensorcraft import Tensor
from .errors import TensorCraftAxisError, TensorCraftTypeError, TensorCraftValueError

if TYPE_CHECKING:
    from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")


def to_index(value: Any, what: str) -> int:
    """An integer of any kind; `what` names it in the error."""
    try:
        return operator.index(value)
    except TypeError:
        raise TensorCraftTypeError(f"{what} must be an integer, got {type(value).__name__}") from None


def to_list(value: Any, what: str, items: str) -> list[Any]:
    """The items of a list or another iterable; `what` names it in the error, `items` what it holds."""
    try:
        return list(value)
    except TypeError:
        raise TensorCraftTypeError(f"{what} must be a list of {items}, got {type(value).__name__}") from None


def to_flag(value: Any, what: str) -> bool:
    """True or False, of Python or NumPy."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TensorCraftTypeError(f"{what} must be True or False, got {type(value).__name__}")


def to_number(value: Any, what: str) -> float:
    """A real number of any kind as float."""
    try:
        if isinstance(value, str):
            raise TypeError
        return float(value)
    except TypeError:
        raise TensorCraftTypeError(f"{what} must be a number, got {type(value).__name__}") from None
    except OverflowError:
        raise TensorCraftValueError(f"{what} does not fit float64") from None


def to_axis(axis: Any, rank: int, name: str) -> int:
    """An axis of a tensor with `rank` dimensions, counted from the first; -1 is the last."""
    position = to_index(axis, f"{name}: axis")
    if not -rank <= position < rank:
        raise TensorCraftAxisError(f"{name}: axis must be in [{-rank}, {rank}), got {position}")
    return position % rank


def to_axes(axes: Any, rank: int, name: str) -> tuple[int, ...]:
    """One axis or several, each once."""
    given = axes if isinstance(axes, (tuple, list)) else (axes,)
    found = tuple(to_axis(a, rank, name) for a in given)
    if len(set(found)) < len(found):
        raise TensorCraftValueError(f"{name}: axis {tuple(given)} names one axis twice")
    return found


def to_shape(shape: Any, what: str) -> tuple[int, ...]:
    """A shape: an integer, or a list or tuple of integers."""
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(to_index(size, what) for size in sizes)


def to_tensors(given: Sequence[Any]) -> list[Tensor]:
    """Tensors of what was given, on the device of the first array that has one: see `beside`."""
    known = next((native.from_any(x).device for x in given if not (is_plain(x) or is_numpy(x))), "cpu")
    return [beside(x, known) for x in given]


def in_framework(first: Any, result: Any) -> Any:
    """Tensors of ours, one or a list or tuple of them, in the framework of `first`; lists and numbers go to NumPy."""
    if isinstance(first, Tensor):
        return result
    if isinstance(result, (list, tuple)):
        return type(result)(in_framework(first, part) for part in result)
    if not isinstance(result, Tensor):
        return result
    if is_plain(first) or type(first).__module__.split(".")[0] == "numpy":
        return result.numpy()
    return _frameworks.from_dlpack(type(first), result)


def takes_arrays(count: int | None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function of tensors take arrays of any framework as its first `count` arguments; None: as all of them.

    What it returns comes back in the framework of the first array, as from an operator.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def called(*args: P.args, **options: P.kwargs) -> R:
            arrays = args[:count]
            if all(isinstance(x, Tensor) for x in arrays):
                return function(*args, **options)
            anything: Any = function  # the arrays have other types now
            result = anything(*to_tensors(arrays), *args[len(arrays) :], **options)
            first = next((x for x in arrays if not is_plain(x)), arrays[0])
            converted: R = in_framework(first, result)
            return converted

        return called

    return decorate


class OfArray(Protocol[P]):
    """A function of an array whose result is of the array's kind; lists and numbers give what NumPy has."""

    @overload
    def __call__(self, x: Tensor, /, *args: P.args, **options: P.kwargs) -> Tensor: ...
    @overload
    def __call__(self, x: NDArray[Any], /, *args: P.args, **options: P.kwargs) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Any, /, *args: P.args, **options: P.kwargs) -> Any: ...


class OfTwoArrays(Protocol[P]):
    """A function of two arrays of one kind, which is the result's."""

    @overload
    def __call__(self, x1: Tensor, x2: Tensor, /, *args: P.args, **options: P.kwargs) -> Tensor: ...
    @overload
    def __call__(self, x1: NDArray[Any], x2: NDArray[Any], /, *args: P.args, **options: P.kwargs) -> NDArray[Any]: ...
    @overload
    def __call__(self, x1: Any, x2: Any, /, *args: P.args, **options: P.kwargs) -> Any: ...


def of_array(function: Callable[Concatenate[Any, P], Any]) -> OfArray[P]:
    """takes_arrays for one array and a result of its kind."""
    return cast("OfArray[P]", takes_arrays(1)(function))


def of_two_arrays(function: Callable[Concatenate[Any, Any, P], Any]) -> OfTwoArrays[P]:
    """takes_arrays for two arrays and a result of their kind."""
    return cast("OfTwoArrays[P]", takes_arrays(2)(function))


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes have together, by NumPy's rule."""
    known = [to_shape(s, "broadcast_shapes: a shape") for s in shapes]
    rank = max((len(s) for s in known), default=0)
    result = []
    for axis in range(-rank, 0):
        sizes = {s[axis] for s in known if len(s) >= -axis} - {1}
        if len(sizes) > 1:
            raise TensorCraftValueError(
                f"broadcast_shapes: {', '.join(map(str, known))} do not broadcast: axis {axis} has sizes "
                f"{sorted(sizes)}, of which all but one must be 1"
            )
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)
