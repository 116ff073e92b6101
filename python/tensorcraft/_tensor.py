"""The NumPy-like surface of tc.Tensor, over the operators and the native views."""

from __future__ import annotations

import operator
from typing import Any, Iterator

from . import _ops
from . import _tensorcraft as native
from ._tensorcraft import DType, Tensor


def asarray(obj: Any, dtype: Any = None, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tc.Tensor of `obj`: an array of any framework, a nested list, or a number.

    Shares the memory where dtype and device allow it, unless `copy` is True; copy=False refuses to copy
    with ValueError. Lists of floats become float32. A float64 array is a TypeError unless dtype is given.
    """
    wanted = None if dtype is None else native.to_dtype(dtype)
    if wanted is not None and str(getattr(obj, "dtype", "")) == "float64":
        obj = obj.astype("float32")
    tensor = native.from_any(obj)
    result = tensor if device is None else tensor._to(device)
    if wanted is not None and result.dtype != wanted:
        result = _ops.astype(result, wanted)
    shared = result is tensor or result.data_ptr == tensor.data_ptr
    if copy is False and not shared:
        raise ValueError("asarray: copy=False, but the dtype or device asked for needs a copy")
    return _ops.copy(result) if copy and shared else result


def from_dlpack(x: Any) -> Tensor:
    """A tc.Tensor that shares the memory of `x`, which has __dlpack__."""
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: {type(x).__name__} has no __dlpack__; use tc.asarray")
    return native.from_any(x)


def empty(shape: Any, dtype: Any = DType.float32, device: str | None = None) -> Tensor:
    """Uninitialised memory of a shape."""
    return native.empty(shape, dtype, device or native.default_device())


def full(shape: Any, value: float, dtype: Any = DType.float32, device: str | None = None) -> Tensor:
    """A tensor whose elements all are `value`."""
    return _ops.fill(empty(shape, dtype, device), value)


def zeros(shape: Any, dtype: Any = DType.float32, device: str | None = None) -> Tensor:
    """A tensor of zeros."""
    return full(shape, 0, dtype, device)


def ones(shape: Any, dtype: Any = DType.float32, device: str | None = None) -> Tensor:
    """A tensor of ones."""
    return full(shape, 1, dtype, device)


def arange(start: float, stop: float | None = None, step: float = 1, dtype: Any = None, device: str | None = None) -> Tensor:
    """Evenly spaced numbers from start up to, without, stop. Integers give int64, else float32."""
    import numpy as np

    first, last = (0, start) if stop is None else (start, stop)
    numbers = np.arange(first, last, step)
    if dtype is None and numbers.dtype.kind == "f":
        dtype = DType.float32
    return asarray(numbers, dtype=dtype, device=device or native.default_device())


def empty_like(x: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Uninitialised memory of the shape, dtype and device of `x`."""
    t = native.from_any(x)
    return empty(t.shape, dtype or t.dtype, device or t.device)


def full_like(x: Any, value: float, dtype: Any = None, device: str | None = None) -> Tensor:
    """`value` in the shape, dtype and device of `x`."""
    return _ops.fill(empty_like(x, dtype, device), value)


def zeros_like(x: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Zeros in the shape, dtype and device of `x`."""
    return full_like(x, 0, dtype, device)


def ones_like(x: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Ones in the shape, dtype and device of `x`."""
    return full_like(x, 1, dtype, device)


def _shape_argument(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape


def _index(self: Tensor, key: Any) -> Tensor:
    """A view: integers, slices, `...` and None, as in NumPy."""
    keys = key if isinstance(key, tuple) else (key,)
    taken = sum(k is not None and k is not Ellipsis for k in keys)
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index can have one ellipsis only")
    if taken > self.ndim:
        raise IndexError(f"too many indices: the tensor has {self.ndim} dimensions, {taken} were given")
    if not any(k is Ellipsis for k in keys):
        keys = (*keys, Ellipsis)
    view, axis = self, 0
    for k in keys:
        if k is Ellipsis:
            axis += self.ndim - taken
        elif k is None:
            view, axis = view._expand_dims(axis), axis + 1
        elif isinstance(k, slice):
            start, stop, step = k.indices(view.shape[axis])
            if step < 0:
                raise ValueError("a slice with a negative step is not supported; copy through NumPy")
            view, axis = view._slice(axis, start, max(start, stop), step), axis + 1
        else:
            try:
                position = operator.index(k)
            except TypeError:
                raise TypeError(
                    f"tensors are indexed by integers, slices, ... and None, not {type(k).__name__}"
                ) from None
            view = view._select(axis, position)
    return view


def _set_index(self: Tensor, key: Any, value: Any) -> None:
    target = _index(self, key)
    source = value if isinstance(value, Tensor) else asarray(value, dtype=self.dtype, device=self.device)
    if source.dtype != self.dtype:
        source = _ops.astype(source, self.dtype)
    _ops.copy(source._to(self.device)._broadcast_to(target.shape), out=target)


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise TypeError("a tensor of rank 0 cannot be iterated over")
    return (self._select(0, i) for i in range(self.shape[0]))


def _length(self: Tensor) -> int:
    if self.ndim == 0:
        raise TypeError("a tensor of rank 0 has no length")
    return int(self.shape[0])


def _host_values(self: Tensor) -> Any:
    """NumPy array of the values; dtypes NumPy lacks are widened to float32."""
    has_numpy = self.dtype not in (DType.bfloat16, DType.float8_e4m3fn, DType.float8_e5m2)
    return (self if has_numpy else _ops.astype(self, DType.float32)).numpy()


def _item(self: Tensor) -> Any:
    """The only element as a Python number; waits for the device."""
    if self.size != 1:
        raise ValueError(f"item: the tensor has {self.size} elements, not 1")
    return _host_values(self).item()


def _repr(self: Tensor) -> str:
    import numpy as np

    values = np.array2string(_host_values(self), separator=", ", threshold=64, edgeitems=3, prefix="Tensor(")
    return f"Tensor({values}, shape={self.shape}, dtype={self.dtype.name.rstrip('_')}, device={self.device!r})"


def _transposed(self: Tensor) -> Tensor:
    if self.ndim != 2:
        raise ValueError(f"T: the tensor has {self.ndim} dimensions, not 2; use mT or permute_dims")
    return self._permute((1, 0))


def _matrix_transposed(self: Tensor) -> Tensor:
    if self.ndim < 2:
        raise ValueError("mT: the tensor has fewer than 2 dimensions")
    return self._permute((*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    values = _host_values(self)
    if dtype is not None and values.dtype != dtype:
        return values.astype(dtype)
    return values.copy() if copy else values


def _to(self: Tensor, device: str, non_blocking: bool = False) -> Tensor:
    """The tensor on a device; itself where it is there already. Copies between host and device wait."""
    del non_blocking  # pageable host memory always waits; page-locked staging comes with the transfer engine
    return self._to(str(device))


def _reshape(self: Tensor, *shape: Any) -> Tensor:
    source = self if self.is_contiguous else _ops.copy(self)
    return source._reshape(_shape_argument(shape))


def _squeeze(self: Tensor, axis: int | None = None) -> Tensor:
    if axis is not None:
        return self._squeeze(axis)
    view = self
    for i in reversed(range(self.ndim)):
        view = view._squeeze(i) if self.shape[i] == 1 else view
    return view


def _namespace(self: Tensor, api_version: str | None = None) -> Any:
    import tensorcraft

    return tensorcraft


def _binary(name: str, reflected: bool) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        function = getattr(_ops, name)
        if not isinstance(other, Tensor) and not hasattr(other, "__dlpack__") and not isinstance(other, (int, float)):
            return NotImplemented
        return function(other, self) if reflected else function(self, other)

    return method


def _in_place(name: str) -> Any:
    def method(self: Tensor, other: Any) -> Tensor:
        getattr(_ops, name)(self, other, out=self)
        return self

    return method


_BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "matmul": "gemm"}
_METHODS: dict[str, Any] = {
    "__getitem__": _index,
    "__setitem__": _set_index,
    "__iter__": _iterate,
    "__len__": _length,
    "__repr__": _repr,
    "__float__": lambda self: float(_item(self)),
    "__int__": lambda self: int(_item(self)),
    "__bool__": lambda self: bool(_item(self)),
    "__neg__": lambda self: _ops.multiply(self, -1),
    "__array__": _array,
    "__array_namespace__": _namespace,
    "T": property(_transposed, doc="The matrix transposed, as a view."),
    "mT": property(_matrix_transposed, doc="The last two axes exchanged, as a view."),
    "item": _item,
    "tolist": lambda self: _host_values(self).tolist(),
    "reshape": _reshape,
    "permute_dims": lambda self, *axes: self._permute(tuple(_shape_argument(axes))),
    "squeeze": _squeeze,
    "expand_dims": lambda self, axis=0: self._expand_dims(axis),
    "contiguous": lambda self: self if self.is_contiguous else _ops.copy(self),
    "astype": lambda self, dtype: _ops.astype(self, dtype),
    "copy": lambda self: _ops.copy(self),
    "to": _to,
}


def install() -> None:
    """Gives the native class its NumPy-like methods; called once by the package."""
    for name, method in _METHODS.items():
        setattr(Tensor, name, method)
    for short, name in _BINARY.items():
        setattr(Tensor, f"__{short}__", _binary(name, reflected=False))
        setattr(Tensor, f"__r{short}__", _binary(name, reflected=True))
        if name != "gemm":
            setattr(Tensor, f"__i{short}__", _in_place(name))
    setattr(Tensor, "__array_priority__", 1000)  # NumPy leaves `array @ tensor` to the tensor
    setattr(Tensor, "__array_ufunc__", None)
