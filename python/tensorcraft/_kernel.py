# SPDX-License-Identifier: Apache-2.0
"""`tc.kernel`: the user's own device text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ._tensorcraft import UserKernel


class KernelExplanation(NamedTuple):
    """What the compiler made of a kernel for one GPU; str() is a table.

    Where `problem` is not empty it says why the figures are not known; they are 0 then.
    """

    signature: str  # readable, ends in the key's hash
    arch: str  # "sm_90a"
    block: tuple[int, int, int]  # that occupancy is for
    registers: int  # of each thread
    shared_bytes: int  # of each block, static and dynamic
    spill_bytes: int  # stores and loads
    stack_bytes: int  # of each thread
    code_bytes: int  # instructions
    compile_ms: float  # even if the image came from the cache
    origin: str  # "compiled" or "disk"
    blocks_per_sm: int  # at a time
    occupancy: float  # the part of a multiprocessor's warps that are in use at a time
    limited_by: str  # what leaves no room for one more block
    problem: str  # why the figures are not known; empty if they are
    text: str  # what str() gives

    def __str__(self) -> str:
        return self.text


def kernel(
    source: str, signature: str, *, name: str | None = None, device: str | None = None, **constants: Any
) -> UserKernel:
    """A kernel of your own, from device text and the signature of one function in it.

        axpy = tc.kernel('''
        __global__ void axpy(float* y, const float* x, float a, int64_t n) {
          const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
          if (i < n) y[i] += a * x[i];
        }''', "axpy(float* y, const float* x, float a, int64 n)")
        axpy[(n + 255) // 256, 256](y, x, 2.0, n)

    `source` may include "tensorcraft/device/...", and sees the names of the namespace tensorcraft. `signature` is the
    function's name and its parameters: a dtype ("float32", "int64", "bfloat16", "half") or a type of C, and a name; `*`
    makes it an array, `const` one that is only read. `name` is how messages of a compiler call the text. Other keywords
    are names that text and signature may use: a dtype is a type, a bool, an int or a float a `constexpr`. Template
    arguments stand behind the function's name: "scale<T, kUnroll>(T* y, float a)" with `T=tc.float16, kUnroll=4`.

    `k[grid, block, shared, stream](...)` launches it: grid and block are integers or tuples of up to three; `shared`, bytes
    of dynamic shared memory, and `stream` may be left out, which is then the current stream of the arrays' package.
    Arrays are anything with DLPack: contiguous, of the signature's dtype, all on one device. Numbers become what the
    signature says if they fit. The call gives None, and a GPU's work goes on when it returns. Nothing is compiled before
    the first launch; it is kept in the cache.

    Arrays of device "simt" run on the emulator: a C++ compiler on PATH makes the text once. `device="simt"` takes host
    arrays, such as NumPy's, there.

    Raises ValueError for a signature, constant or number that cannot be, a grid or block without threads or beyond the
    device's limits, arrays that are not contiguous or not on one device; TypeError for another dtype or number of
    arguments; BufferError for a read-only array without `const`; CompileError, with your lines, if the text does not compile;
    NotImplementedError without NVRTC, without a C++ compiler on "simt", and for a first launch while a graph is recorded.
    """
    return UserKernel(source, signature, name, device, constants)


def _explain(
    self: UserKernel,
    block: int | Sequence[int] = 256,
    shared: int = 0,
    *,
    device: str | None = None,
    arch: str | None = None,
) -> KernelExplanation:
    """Registers, spills, code and, for a block and its dynamic shared memory, occupancy on a GPU.

    Compiles if the cache has no kernel. `arch` ("sm_90a") asks about a GPU that need not be here.
    """
    return KernelExplanation(**self._explain(block, shared, device, arch))


UserKernel.explain = _explain  # type: ignore[method-assign]
