# SPDX-License-Identifier: Apache-2.0
"""TensorCraft: GPU operators with their own JIT compiler, on any array that speaks DLPack.

    import tensorcraft as tc
    y = tc.layer_norm(x)             # NumPy in, NumPy out; torch in, torch out
    print(tc.explain(tc.layer_norm, x))

Nothing here touches a GPU until the first call that needs one.
"""

import sys as _sys

from . import _ops, cache, errors
from . import _tensorcraft as _native
from ._explain import Explanation, explain, ops
from ._join import concat, split, stack
from ._ops import *
from ._protocols import install as _install_protocols
from ._registry import Operator
from ._stream import Event, Stream, Trace, trace
from ._tensor import (
    arange,
    asarray,
    empty,
    empty_like,
    from_dlpack,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from ._tensor import (
    install as _install,
)
from ._tensorcraft import DType, Tensor, default_device, device_info, devices, set_default_device
from ._weights import load_safetensors
from .errors import CompileError, DeviceLost, OutOfMemory, Unsupported

_install()
_install_protocols()
_native.add_prefix(_sys.prefix)  # NVRTC and oneDNN may be packages of this Python
__version__: str = _native.__version__

float32, float16, bfloat16 = DType.float32, DType.float16, DType.bfloat16
float8_e4m3fn, float8_e5m2 = DType.float8_e4m3fn, DType.float8_e5m2
int8, int16, int32, int64, uint8 = DType.int8, DType.int16, DType.int32, DType.int64, DType.uint8
bool_ = bool = DType.bool_  # `bool` is not in __all__: a star import must not hide the built-in


def synchronize(device: str | None = None) -> None:
    """Waits for all work on a device; None is the default device."""
    _native.synchronize(default_device() if device is None else device)


__all__ = [
    *_ops.__all__,
    "CompileError",
    "DType",
    "DeviceLost",
    "Event",
    "Explanation",
    "Operator",
    "OutOfMemory",
    "Stream",
    "Tensor",
    "Trace",
    "Unsupported",
    "arange",
    "asarray",
    "bfloat16",
    "bool_",
    "cache",
    "concat",
    "default_device",
    "device_info",
    "devices",
    "empty",
    "empty_like",
    "errors",
    "explain",
    "float16",
    "float32",
    "float8_e4m3fn",
    "float8_e5m2",
    "from_dlpack",
    "full",
    "full_like",
    "int16",
    "int32",
    "int64",
    "int8",
    "load_safetensors",
    "ones",
    "ones_like",
    "ops",
    "set_default_device",
    "split",
    "stack",
    "synchronize",
    "trace",
    "uint8",
    "zeros",
    "zeros_like",
]
