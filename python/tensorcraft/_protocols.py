# SPDX-License-Identifier: Apache-2.0
"""What Python and NumPy ask of a tc.Tensor: `in`, bool(), format(), round(), copies, pickling, __array__, ufuncs."""

from __future__ import annotations

from typing import Any, NoReturn

from . import _ops
from . import _tensorcraft as native
from ._methods import _NOT_IN_NUMPY, _host_values, _item
from ._operators import operand_of
from ._tensorcraft import DType, Tensor
from .errors import TensorCraftTypeError, TensorCraftValueError
from .linalg import matmul, vecdot

# NumPy's ufuncs whose names here are others.
_OF_UFUNC = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "true_divide": "divide",
}


def _new(kind: type, *_: Any, **__: Any) -> NoReturn:
    raise TensorCraftTypeError(f"a tc.{kind.__name__} is not made by its class; use tc.asarray, tc.zeros or tc.empty")


def _bool(self: Tensor) -> bool:
    if self.size != 1:
        raise TensorCraftValueError(f"bool: the truth of {self.size} elements; use tc.any or tc.all")
    return bool(_item(self))


def _index(self: Tensor) -> int:
    if self.ndim or self.dtype.kind not in "iu":
        raise TensorCraftTypeError(
            f"only a tensor of one integer and rank 0 is an index, got {self.dtype} of shape {self.shape}"
        )
    return int(_item(self))


def _contains(self: Tensor, value: Any) -> bool:
    """Is any element equal to `value`, which broadcasts?"""
    operand = operand_of(self, value)
    return operand is not None and bool(_ops.any(_ops.equal(self, operand)))


def _format(self: Tensor, spec: str) -> str:
    if self.ndim and not spec:
        return str(self)
    if self.ndim:
        raise TensorCraftTypeError(f'format: "{spec}" is for a tensor of rank 0, this has shape {self.shape}')
    return format(_item(self), spec)


def _round(self: Tensor, ndigits: int | None = None) -> Any:
    if ndigits:
        raise TensorCraftTypeError(f"round: to whole numbers only, got {ndigits!r} digits; scale the tensor first")
    return _ops.round(self)


def _copied(self: Tensor, memo: Any = None) -> Tensor:
    result: Tensor = _ops.copy(self)
    return result


def _reduced(self: Tensor) -> tuple[Any, ...]:
    values = self
    if self.dtype in _NOT_IN_NUMPY:
        values = self._with_dtype(DType.int16 if self.dtype.itemsize == 2 else DType.uint8)
    return _restored, (values.numpy(), self.dtype.name, self.device)


def _restored(values: Any, dtype: str, device: str) -> Tensor:
    """A tensor from a pickle: on its device, or on the CPU if that is not here."""
    tensor = native.from_any(values)._with_dtype(dtype)
    return tensor._to(device if device in native.devices() else "cpu")


def _reduced_dtype(self: DType, protocol: int) -> tuple[Any, ...]:
    return DType, (self.name,)


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """The values for NumPy: shares host memory; dtypes NumPy lacks are widened to float32, which copies."""
    values = _host_values(self)
    is_copy = self.device.startswith("cuda") or self.dtype in _NOT_IN_NUMPY
    if dtype is not None and values.dtype != dtype:
        values, is_copy = values.astype(dtype), True
    if is_copy and copy is not None and not copy:
        raise TensorCraftValueError(
            f"__array__: copy=False, but {self.dtype} on {self.device} needs a copy to become {values.dtype} of NumPy"
        )
    return values.copy() if copy and not is_copy else values


def _divmod(a: Any, b: Any) -> tuple[Any, Any]:
    return _ops.floor_divide(a, b), _ops.remainder(a, b)


def _refuse_ufunc(name: str, why: str) -> NoReturn:
    raise TensorCraftTypeError(f"np.{name}: {why}; give it np.asarray(tensor), or look for a function of tc")


def _array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
    """NumPy's functions of tensors: into arrays as NumPy computes them, else tc's function of that name."""
    name = ufunc.__name__
    if out:
        if any(isinstance(o, Tensor) for o in out):
            _refuse_ufunc(name, "out is a tc.Tensor")
        arrays = [_array(x) if isinstance(x, Tensor) else x for x in inputs]
        return getattr(ufunc, method)(*arrays, out=out, **options)
    written: dict[str, Any] = {"divmod": _divmod, "matmul": matmul, "vecdot": vecdot}
    function = written.get(name) or getattr(_ops, _OF_UFUNC.get(name, name), None)
    if method != "__call__" or options or function is None:
        _refuse_ufunc(name, "does not take a tc.Tensor" + (" with options" if options else ""))
    return function(*(operand_of(self, x) for x in inputs))


def install() -> None:
    """Gives the native classes these methods; called once by the package."""
    methods = {
        "__array__": _array,
        "__array_ufunc__": _array_ufunc,
        "__bool__": _bool,
        "__contains__": _contains,
        "__copy__": _copied,
        "__deepcopy__": _copied,
        "__format__": _format,
        "__index__": _index,
        "__reduce__": _reduced,
        "__round__": _round,
    }
    for name, method in methods.items():
        setattr(Tensor, name, method)
    Tensor.__new__ = staticmethod(_new)  # type: ignore[method-assign, assignment]
    DType.__reduce_ex__ = _reduced_dtype  # type: ignore[method-assign, assignment]
    DType._missing_ = staticmethod(native.to_dtype)  # type: ignore[method-assign, assignment]
