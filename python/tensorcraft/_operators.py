# SPDX-License-Identifier: Apache-2.0
"""The operators of a tc.Tensor: `+ - * / // % ** @ & | ^ ~ << >>`, comparisons, their reflected and in-place forms."""

from __future__ import annotations

from typing import Any

from . import _ops
from ._tensor import beside, is_numpy
from ._tensorcraft import Tensor
from .errors import TensorCraftValueError
from .linalg import matmul


def operand_of(self: Tensor, other: Any) -> Any:
    """What stands beside a Tensor: numbers, NumPy's too, as they are, arrays as Tensors; None for anything else."""
    if isinstance(other, (Tensor, int, float)):
        return other
    if isinstance(other, (list, tuple)):
        return beside(other, self.device)
    if getattr(other, "__array_ufunc__", other) is None:  # it does its arithmetic itself, as a sparse matrix does
        return None
    if not (hasattr(other, "__dlpack__") or hasattr(other, "dtype")):
        return None
    return other[()] if is_numpy(other) and other.ndim == 0 else beside(other, self.device)


def _unary(name: str) -> Any:
    function = getattr(_ops, name)

    def method(self: Tensor) -> Any:
        return function(self)

    method.__doc__ = f"tc.{name}, as an operator."
    return method


def _binary(name: str, function: Any, reflected: bool) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        operand = operand_of(self, other)
        if operand is None:
            return NotImplemented
        return function(operand, self) if reflected else function(self, operand)

    method.__doc__ = f"tc.{name}, as an operator."
    return method


def _in_place(name: str, function: Any) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        operand = operand_of(self, other)
        if operand is None:
            return NotImplemented
        if not isinstance(operand, Tensor) and hasattr(operand, "dtype"):
            operand = operand.tolist()  # a number of NumPy, which gives no dtype to what is written
        function(self, operand, out=self)  # which reads an operand across `self` before it writes
        return self

    method.__doc__ = f"tc.{name} into this tensor."
    return method


def _multiply_in_place(self: Tensor, other: Any) -> Any:
    """tc.matmul into this tensor, which has the shape of the product."""
    product = self @ other
    if product.shape != self.shape:
        raise TensorCraftValueError(f"@=: the product has shape {product.shape}, the tensor {self.shape}; use `a = a @ b`")
    _ops.copy(product, out=self)
    return self


def _divmod(self: Tensor, other: Any) -> Any:
    """The quotients rounded down, and the remainders."""
    return self // other, self % other


def _reflected_divmod(self: Tensor, other: Any) -> Any:
    """The quotients of `other` by the tensor rounded down, and the remainders."""
    return other // self, other % self


_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
# Python mirrors these itself: of `2 < tensor` it asks `tensor > 2`.
_COMPARISONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}


def install() -> None:
    """Gives the native class its operators; called once by the package."""
    methods = {
        "__divmod__": _divmod,
        "__rdivmod__": _reflected_divmod,
        "__matmul__": _binary("matmul", matmul, reflected=False),
        "__rmatmul__": _binary("matmul", matmul, reflected=True),
        "__imatmul__": _multiply_in_place,
    }
    for name, method in methods.items():
        setattr(Tensor, name, method)
    for short, name in _UNARY.items():
        setattr(Tensor, f"__{short}__", _unary(name))
    for short, name in _BINARY.items():
        function = getattr(_ops, name)
        setattr(Tensor, f"__{short}__", _binary(name, function, reflected=False))
        setattr(Tensor, f"__r{short}__", _binary(name, function, reflected=True))
        setattr(Tensor, f"__i{short}__", _in_place(name, function))
    for short, name in _COMPARISONS.items():
        setattr(Tensor, f"__{short}__", _binary(name, getattr(_ops, name), reflected=False))
