# SPDX-License-Identifier: Apache-2.0
"""The NumPy-like methods of tc.Tensor, over the operators and the native views."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from . import _ops
from ._indexing import get_item, nonzero, set_item
from ._tensor import astype, clip
from ._tensorcraft import DType, Tensor
from .errors import TensorCraftTypeError, TensorCraftValueError

_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
_NOT_IN_NUMPY = (DType.bfloat16, DType.float8_e4m3fn, DType.float8_e5m2)


def _shape_argument(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise TensorCraftTypeError("a tensor of rank 0 cannot be iterated over")
    return (self._select(0, i) for i in range(self.shape[0]))


def _length(self: Tensor) -> int:
    if self.ndim == 0:
        raise TensorCraftTypeError("a tensor of rank 0 has no length")
    return int(self.shape[0])


def _host_values(self: Tensor) -> Any:
    """NumPy array of the values; dtypes NumPy lacks are widened to float32."""
    return (_ops.astype(self, DType.float32) if self.dtype in _NOT_IN_NUMPY else self).numpy()


def _item(self: Tensor) -> Any:
    """The only element as a Python number; waits for the device."""
    if self.size != 1:
        raise TensorCraftValueError(f"item: the tensor has {self.size} elements, not 1")
    return _host_values(self).item()


def _repr(self: Tensor) -> str:
    import numpy as np

    values = np.array2string(_host_values(self), separator=", ", threshold=64, edgeitems=3, prefix="Tensor(")
    return f"Tensor({values}, shape={self.shape}, dtype={self.dtype.name}, device={self.device!r})"


def _transposed(self: Tensor) -> Tensor:
    """The matrix transposed, as a view."""
    if self.ndim != 2:
        raise TensorCraftValueError(f"T: the tensor has {self.ndim} dimensions, not 2; use mT or permute_dims")
    return self._permute((1, 0))


def _matrix_transposed(self: Tensor) -> Tensor:
    """The last two axes exchanged, as a view."""
    if self.ndim < 2:
        raise TensorCraftValueError("mT: the tensor has fewer than 2 dimensions")
    return self._permute((*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))


_native_numpy = Tensor.numpy


def _numpy(self: Tensor) -> Any:
    """The values as a NumPy array: shares host memory, copies from a GPU and waits."""
    return _native_numpy(self)


def _to(self: Tensor, device: str, non_blocking: bool = False) -> Tensor:
    """The tensor on a device; itself where it is there already. Copies between host and device wait.

    With `non_blocking=True` a copy from or to a GPU is made beside the program, and this returns at once. The result may
    be used at once: what reads it comes after the copy, on a GPU in the order of the stream, on the host by waiting. What
    writes this tensor through TensorCraft comes after the copy too; NumPy does not know of it.
    """
    return self._to(device, non_blocking)


def _to_device(self: Tensor, device: str, /, *, stream: Any = None) -> Tensor:
    """The tensor on a device, as `to`; a copy between devices waits, so `stream` may be any."""
    del stream
    return self._to(device)


def _reshape(self: Tensor, *shape: Any) -> Tensor:
    """The elements in another shape; one -1 is inferred. Copies where the tensor is not contiguous."""
    source = self if self.is_contiguous else _ops.copy(self)
    return source._reshape(_shape_argument(shape))


def _squeeze(self: Tensor, axis: int | None = None) -> Tensor:
    """Without an axis of size 1, or without all of them, as a view."""
    if axis is not None:
        return self._squeeze(axis)
    view = self
    for i in reversed(range(self.ndim)):
        view = view._squeeze(i) if self.shape[i] == 1 else view
    return view


def _namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The package, for code that is written for the array API standard."""
    import tensorcraft

    if api_version not in (None, *_API_VERSIONS):
        raise TensorCraftValueError(f"__array_namespace__: api_version must be one of {_API_VERSIONS}, got {api_version!r}")
    return tensorcraft


def _permute_dims(self: Tensor, *axes: Any) -> Tensor:
    """The axes in another order, as a view: permute_dims(1, 0) or permute_dims((1, 0))."""
    return self._permute(_shape_argument(axes))


def _expand_dims(self: Tensor, axis: int = 0) -> Tensor:
    """A new axis of size 1, as a view."""
    return self._expand_dims(axis)


def _contiguous(self: Tensor) -> Tensor:
    """The tensor in row-major order; itself where it is so already."""
    return self if self.is_contiguous else self.copy()


def _astype(self: Tensor, dtype: Any, *, copy: bool = True) -> Tensor:
    """A tensor of another dtype; copy=False gives the tensor itself if it has that dtype."""
    return astype(self, dtype, copy=copy)


def _copy(self: Tensor) -> Tensor:
    """A tensor with memory of its own."""
    result: Tensor = _ops.copy(self)
    return result


def _to_list(self: Tensor) -> Any:
    """Nested lists of Python numbers; waits for the device."""
    return _host_values(self).tolist()


def _statistic(name: str) -> Any:
    """The method of an operator that np.mean, np.var and np.std call, with their dtype and ddof."""
    function = getattr(_ops, name)

    @functools.wraps(function)
    def method(self: Tensor, *args: Any, dtype: Any = None, **options: Any) -> Any:
        if name != "mean" and "ddof" in options:
            options["correction"] = options.pop("ddof")
        return function(self if dtype is None else astype(self, dtype), *args, **options)

    return method


# Operators that are methods too, of their first argument.
_AS_METHODS = (
    "all", "any", "argmax", "argmin", "cumulative_sum", "max", "min", "prod", "round", "sum", "take",
)  # fmt: skip
_STATISTICS = ("mean", "std", "var")  # methods too, which NumPy's functions of these names call
_METHODS: dict[str, Any] = {
    "__iter__": _iterate,
    "__len__": _length,
    "__repr__": _repr,
    "__float__": lambda self: float(_item(self)),
    "__int__": lambda self: int(_item(self)),
    "__getitem__": get_item,
    "__setitem__": set_item,
    "__hash__": object.__hash__,  # by identity, though == compares elements
    "__array_namespace__": _namespace,
    "T": property(_transposed),
    "mT": property(_matrix_transposed),
    "item": _item,
    "numpy": _numpy,
    "tolist": _to_list,
    "reshape": _reshape,
    "permute_dims": _permute_dims,
    "squeeze": _squeeze,
    "expand_dims": _expand_dims,
    "contiguous": _contiguous,
    "astype": _astype,
    "clip": clip,
    "nonzero": nonzero,
    "copy": _copy,
    "to": _to,
    "to_device": _to_device,
}


def install() -> None:
    """Gives the native class its NumPy-like methods; called once by the package."""
    for name, method in _METHODS.items():
        setattr(Tensor, name, method)
    for name in (n for n in _AS_METHODS if hasattr(_ops, n)):
        setattr(Tensor, name, getattr(_ops, name))
    for name in _STATISTICS:
        setattr(Tensor, name, _statistic(name))
