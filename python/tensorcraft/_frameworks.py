# SPDX-License-Identifier: Apache-2.0
"""What the native part asks of Python: the ways of the caller's framework."""

from __future__ import annotations

import sys
from typing import Any

from ._tensorcraft import Tensor


def from_dlpack(array_type: type, tensor: Tensor) -> Any:
    """`tensor` as an array of the framework that `array_type` belongs to, sharing its memory."""
    package = array_type.__module__.split(".")[0]
    module = sys.modules.get({"jaxlib": "jax.numpy", "jax": "jax.numpy"}.get(package, package))
    convert = getattr(module, "from_dlpack", None)
    return tensor if convert is None else convert(tensor)


def current_stream(array_type: type, device: int) -> int | None:
    """The handle of the stream that a framework works on now; None where it has no way to tell."""
    package = array_type.__module__.split(".")[0]
    module: Any = sys.modules.get(package)
    if package == "torch":
        return int(module.cuda.current_stream(device).cuda_stream)
    if package == "cupy":
        return int(module.cuda.get_current_stream(device).ptr)
    return None
