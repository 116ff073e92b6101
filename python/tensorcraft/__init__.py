# SPDX-License-Identifier: Apache-2.0
"""TensorCraft: GPU operators with their own JIT compiler, on any array that speaks DLPack.

    import tensorcraft as tc
    y = tc.layer_norm(x)             # NumPy in, NumPy out; torch in, torch out
    print(tc.explain(tc.layer_norm, x))

Nothing here touches a GPU until the first call that needs one.
"""

import math as _math
import sys as _sys

from . import _ops, cache, dispatch, errors, linalg, memory, sparse
from . import _tensorcraft as _native
from ._arguments import broadcast_shapes
from ._creation import eye, meshgrid, tril, triu
from ._devices import default_device, device_info, devices, set_default_device, synchronize
from ._dtypes import can_cast, finfo, iinfo, isdtype, result_type
from ._explain import Explanation, explain, ops
from ._indexing import nonzero
from ._jit import JitModule, load_jit, make_cpp_args
from ._join import concat, split, stack
from ._kernel import KernelExplanation, kernel
from ._library import add_library
from ._manipulation import (
    broadcast_arrays,
    broadcast_to,
    diff,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    repeat,
    reshape,
    roll,
    squeeze,
    tile,
    unstack,
)
from ._methods import install as _install_methods
from ._namespace import array_namespace_info as _array_namespace_info
from ._operators import install as _install_operators
from ._ops import *
from ._packed import (
    PackedConvWeight,
    PackedWeight,
    pack_conv_weight,
    pack_weight,
    pack_weight_from_awq,
    pack_weight_from_gptq,
)
from ._protocols import install as _install_protocols
from ._registry import Operator
from ._scheduler import Decision, Scheduler, Task
from ._searching import searchsorted
from ._stream import Event, Graph, Stream, Trace, stream_wait_value, stream_write_value, trace
from ._tensor import (
    arange,
    asarray,
    astype,
    clip,
    empty,
    empty_like,
    from_dlpack,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from ._tensorcraft import DType, Tensor
from ._transfer import Copy, LaneStatistics, TransferEngine
from ._tune import TuningResult, tune
from ._weights import load_safetensors
from .errors import CompileError, DeviceLost, OutOfMemory, Unsupported
from .linalg import matmul, tensordot, vecdot
from .memory import MemoryPool

_install_methods()
_install_operators()
_install_protocols()
_native.add_prefix(_sys.prefix)  # NVRTC and oneDNN may be packages of this Python
__array_api_version__ = "2024.12"
__array_namespace_info__ = _array_namespace_info
__version__: str = _native.__version__

float32, float16, bfloat16 = DType.float32, DType.float16, DType.bfloat16
float8_e4m3fn, float8_e5m2 = DType.float8_e4m3fn, DType.float8_e5m2
int8, int16, int32, int64, uint8 = DType.int8, DType.int16, DType.int32, DType.int64, DType.uint8
bool_ = bool = DType.bool_  # `bool` is not in __all__: a star import must not hide the built-in
inf = _math.inf
"""Above all numbers."""
nan = _math.nan
"""Not a number."""
pi = _math.pi
"""The half circumference of a circle of radius 1."""
e = _math.e
"""The base of `tc.exp` and `tc.log`."""
newaxis = None
"""In a key: a new axis of size 1."""


__all__ = [
    *_ops.__all__,
    "CompileError",
    "Copy",
    "DType",
    "Decision",
    "DeviceLost",
    "Event",
    "Explanation",
    "Graph",
    "JitModule",
    "KernelExplanation",
    "LaneStatistics",
    "MemoryPool",
    "Operator",
    "OutOfMemory",
    "PackedConvWeight",
    "PackedWeight",
    "Scheduler",
    "Stream",
    "Task",
    "Tensor",
    "Trace",
    "TransferEngine",
    "TuningResult",
    "Unsupported",
    "add_library",
    "arange",
    "asarray",
    "astype",
    "bfloat16",
    "bool_",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "cache",
    "can_cast",
    "clip",
    "concat",
    "default_device",
    "device_info",
    "devices",
    "diff",
    "dispatch",
    "e",
    "empty",
    "empty_like",
    "errors",
    "expand_dims",
    "explain",
    "eye",
    "finfo",
    "flip",
    "float16",
    "float32",
    "float8_e4m3fn",
    "float8_e5m2",
    "from_dlpack",
    "full",
    "full_like",
    "iinfo",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "isdtype",
    "kernel",
    "linalg",
    "linspace",
    "load_jit",
    "load_safetensors",
    "make_cpp_args",
    "matmul",
    "matrix_transpose",
    "memory",
    "meshgrid",
    "moveaxis",
    "nan",
    "nonzero",
    "ones",
    "ones_like",
    "ops",
    "pack_conv_weight",
    "pack_weight",
    "pack_weight_from_awq",
    "pack_weight_from_gptq",
    "pi",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "searchsorted",
    "set_default_device",
    "sparse",
    "split",
    "squeeze",
    "stack",
    "stream_wait_value",
    "stream_write_value",
    "synchronize",
    "tensordot",
    "tile",
    "trace",
    "tril",
    "triu",
    "tune",
    "uint8",
    "unstack",
    "vecdot",
    "zeros",
    "zeros_like",
]
