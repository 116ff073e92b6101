# SPDX-License-Identifier: Apache-2.0
"""What dtypes hold and how they combine: finfo, iinfo, isdtype, result_type, can_cast."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from . import _tensorcraft as native
from ._tensorcraft import DType
from .errors import TensorCraftTypeError, TensorCraftValueError

_SIGNED = {DType.int8: 8, DType.int16: 16, DType.int32: 32, DType.int64: 64}
_UNSIGNED = {DType.uint8: 8}
_INTEGERS = _SIGNED | _UNSIGNED


class FloatInfo(NamedTuple):
    """The limits of a floating-point dtype."""

    bits: int  # of an element
    eps: float  # from 1 to the next larger number
    max: float  # the largest finite number
    min: float  # the lowest finite number
    smallest_normal: float  # the smallest positive number of full precision
    dtype: DType  # the one asked about


class IntegerInfo(NamedTuple):
    """The limits of an integer dtype."""

    bits: int  # of an element
    max: int  # the largest number
    min: int  # the lowest number
    dtype: DType  # the one asked about


# Bits of the fraction, the largest number, the exponent of the smallest normal number, bits of all.
_FLOATS = {
    DType.float32: (23, (2 - 2.0**-23) * 2.0**127, -126, 32),
    DType.float16: (10, 65504.0, -14, 16),
    DType.bfloat16: (7, (2 - 2.0**-7) * 2.0**127, -126, 16),
    DType.float8_e4m3fn: (3, 448.0, -6, 8),
    DType.float8_e5m2: (2, 57344.0, -14, 8),
}
_KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (DType.bool_,),
    "signed integer": tuple(_SIGNED),
    "unsigned integer": tuple(_UNSIGNED),
    "integral": tuple(_INTEGERS),
    "real floating": tuple(_FLOATS),
    "complex floating": (),
    "numeric": (*_INTEGERS, *_FLOATS),
}


def dtype_of(x: Any) -> DType:
    """The dtype of an array, or the one that `x` names."""
    if isinstance(x, DType):
        return x
    return native.from_any(x).dtype if hasattr(x, "__dlpack__") else native.to_dtype(x)


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating-point dtype, or of an array's."""
    dtype = dtype_of(type)
    if dtype not in _FLOATS:
        raise TensorCraftTypeError(f"finfo: {dtype.name} is no floating-point dtype; iinfo tells of integers")
    fraction, largest, exponent, bits = _FLOATS[dtype]
    return FloatInfo(bits, 2.0**-fraction, largest, -largest, 2.0**exponent, dtype)


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype, or of an array's."""
    dtype = dtype_of(type)
    if dtype in _UNSIGNED:
        return IntegerInfo(_UNSIGNED[dtype], 2 ** _UNSIGNED[dtype] - 1, 0, dtype)
    if dtype not in _SIGNED:
        raise TensorCraftTypeError(f"iinfo: {dtype.name} is no integer dtype; finfo tells of floats")
    half: int = 2 ** (_SIGNED[dtype] - 1)
    return IntegerInfo(_SIGNED[dtype], half - 1, -half, dtype)


def dtypes_of(kind: Any) -> tuple[DType, ...]:
    """The dtypes of a kind such as "integral", of several kinds, or of all (None)."""
    if kind is None:
        return (DType.bool_, *_KINDS["numeric"])
    kinds = kind if isinstance(kind, tuple) else (kind,)
    for one in kinds:
        if not isinstance(one, str) or one not in _KINDS:
            raise TensorCraftValueError(f"no kind of dtypes is named {one!r}; there are {', '.join(_KINDS)}")
    return tuple(dict.fromkeys(dtype for one in kinds for dtype in _KINDS[one]))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Is the dtype of a kind? A kind is a name such as "integral", a dtype, or a tuple of them."""
    wanted = native.to_dtype(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(
        wanted in dtypes_of(one) if isinstance(one, str) and one in _KINDS else native.to_dtype(one) == wanted
        for one in kinds
    )


def _wider(a: DType, b: DType) -> DType | None:
    """What holds the values of both; of an integer and a float it is the float; None: bool with a number."""
    if a == b:
        return a
    if a in _INTEGERS and b in _INTEGERS:
        if (a in _SIGNED) == (b in _SIGNED):
            return a if _INTEGERS[a] > _INTEGERS[b] else b
        signed, bits = (a, _INTEGERS[b]) if a in _SIGNED else (b, _INTEGERS[a])
        return next(s for s in _SIGNED if _SIGNED[s] > bits and _SIGNED[s] >= _SIGNED[signed])
    if a in _FLOATS and b in _FLOATS:
        small = (DType.float8_e4m3fn, DType.float8_e5m2)
        if a in small or b in small:
            return (b if a in small else a) if (a in small) != (b in small) else DType.float32
        return DType.float32
    if a in _FLOATS and b in _INTEGERS:
        return a
    return b if a in _INTEGERS and b in _FLOATS else None


def promoted(dtypes: Iterable[DType], name: str) -> DType:
    """The dtype in which an operator combines arrays of these."""
    first, *rest = dtypes
    for dtype in rest:
        wider = _wider(first, dtype)
        if wider is None:
            raise TensorCraftTypeError(
                f"{name}: no dtype is common to {first.name} and {dtype.name}; convert one with astype"
            )
        first = wider
    return first


def _with_number(dtype: DType, number: Any, name: str) -> DType:
    """The dtype of an array beside a Python number: the array's, which must be of the number's kind or above it."""
    if isinstance(number, bool) or (isinstance(number, int) and dtype != DType.bool_):
        return dtype
    if isinstance(number, float) and dtype in _FLOATS:
        return dtype
    if isinstance(number, float) and dtype in _INTEGERS:
        return DType.float32  # as an operator gives
    raise TensorCraftTypeError(f"{name}: a {type(number).__name__} goes with no {dtype.name}; convert it with astype")


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype in which an operator combines arrays, dtypes and Python numbers.

    A number takes the dtype of what stands beside it; an integer beside a float gives the float. TypeError where there
    is no common dtype, as of bool and a number's.
    """
    numbers = [x for x in arrays_and_dtypes if isinstance(x, (bool, int, float))]
    dtypes = [dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, (bool, int, float))]
    if not dtypes:
        raise TensorCraftValueError("result_type: expected at least one array or dtype")
    result = promoted(dtypes, "result_type")
    for number in numbers:
        result = _with_number(result, number, "result_type")
    return result


def can_cast(from_: Any, to: Any, /) -> bool:
    """Is every value of a dtype, or of an array's, exactly a value of another?"""
    source, target = dtype_of(from_), native.to_dtype(to)
    if source == target or source == DType.bool_:
        return True
    if source in _INTEGERS and target in _INTEGERS:
        inner, outer = iinfo(source), iinfo(target)
        return outer.min <= inner.min and inner.max <= outer.max
    if source in _INTEGERS and target in _FLOATS:
        return _INTEGERS[source] - (source in _SIGNED) <= _FLOATS[target][0] + 1
    if source not in _FLOATS or target not in _FLOATS:
        return False
    (fraction, largest, exponent, _), (to_fraction, to_largest, to_exponent, _) = _FLOATS[source], _FLOATS[target]
    return fraction <= to_fraction and largest <= to_largest and exponent >= to_exponent
