"""What the native part asks of Python: conversions to the caller's framework."""

from __future__ import annotations

import sys
from collections import namedtuple
from functools import lru_cache
from typing import Any

from . import _tensorcraft as native


def from_dlpack(array_type: type, tensor: native.Tensor) -> Any:
    """`tensor` as an array of the framework that `array_type` belongs to, sharing its memory."""
    package = array_type.__module__.split(".")[0]
    module = sys.modules[{"jaxlib": "jax.numpy", "jax": "jax.numpy"}.get(package, package)]
    return module.from_dlpack(tensor)


def scalar(value: native.Tensor, dtype: str) -> native.Tensor:
    """A Python number, as a tensor of the dtype of the array beside it."""
    import numpy as np

    number = value.numpy().item()
    if dtype in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return native.from_any(np.float32(number)).astype(dtype)
    return native.from_any(np.asarray(number).astype(dtype))


@lru_cache(maxsize=None)
def _result_type(op: str, names: tuple[str, ...]) -> Any:
    title = "".join(part.capitalize() for part in op.split("_"))
    return namedtuple(f"{title}Result", names)


def named_tuple(op: str, names: tuple[str, ...], values: list[Any]) -> Any:
    """Several results of one call, with the names of the operator's outputs."""
    return _result_type(op, names)(*values)
