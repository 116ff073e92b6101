# SPDX-License-Identifier: Apache-2.0
"""Modules of full C++ and CUDA C++, compiled where the compilers are installed."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any

from . import _tensorcraft as native
from .errors import TensorCraftTypeError, TensorCraftValueError

__all__ = ["JitModule", "load_jit", "make_cpp_args"]

Paths = Sequence[str | os.PathLike[str]]
Wrappers = Sequence[tuple[str, str]]

# How device text and host code spell a dtype.
_CPP_TYPES = {
    "bool": "bool",
    "float32": "float",
    "float16": "tensorcraft::f16",
    "bfloat16": "tensorcraft::bf16",
    "float8_e4m3fn": "tensorcraft::e4m3",
    "float8_e5m2": "tensorcraft::e5m2",
}


class JitModule:
    """The functions that a module exports, as attributes.

    They take arrays of any framework, numbers, bools and texts, and run on the stream of the first array on a GPU, which
    is `current_stream(device)` for them.
    """

    def __init__(self, module: native.JitModule) -> None:
        if not isinstance(module, native.JitModule):
            raise TensorCraftTypeError("a tc.JitModule is not made by its class; use tc.load_jit")
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        module = self.__dict__.get("_module")
        if module is None or name not in module.exports:
            raise AttributeError(f"{module.name if module else 'a module'} exports no {name}")

        def function(*arguments: Any) -> Any:
            return module.call(name, *arguments)

        function.__name__ = function.__qualname__ = name
        self.__dict__[name] = function
        return function

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._module.exports]

    def __repr__(self) -> str:
        return f"<{self.name}: {', '.join(self._module.exports)}>"

    @property
    def name(self) -> str:
        """tensorcraft_jit_ and the markers."""
        return self._module.name

    @property
    def commands(self) -> list[str]:
        """The commands that compiled and linked it, whenever that was."""
        return self._module.commands


def load_jit(
    *args: str,
    cpp_files: Paths | None = None,
    cuda_files: Paths | None = None,
    cpp_wrappers: Wrappers | None = None,
    cuda_wrappers: Wrappers | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Paths | None = None,
    build_directory: str | os.PathLike[str] | None = None,
) -> JitModule:
    """Compiles C++ files with the host's compiler and CUDA files with nvcc, and loads what they export.

    The module is called tensorcraft_jit_ and `args`, joined by _. A wrapper is a pair: the name to export, and a function
    of the files as C++ spells it, `("my_kernel", "MyKernel<256>::run")`. Its parameters are `tensorcraft::TensorView`,
    numbers, bool and `std::string_view`; it returns nothing, a number or a bool, and what it throws is raised here.

    C++ is compiled with -std=c++20 -O3, CUDA with -std=c++20 -O3 --expt-relaxed-constexpr for the first GPU (sm_90a where
    there is none), and the extra flags behind them. What was compiled is kept in the cache, by the content of all files,
    flags and compilers; many processes that ask at once compile once. `build_directory` keeps what is generated.

    Raises FileNotFoundError for a file that is not there, ValueError for a name or a wrapper that cannot be,
    CompileError with the compiler's messages, and NotImplementedError without nvcc if there are CUDA files, without a C++
    compiler, and without the library's headers.
    """
    lists = (cpp_files, cuda_files, cpp_wrappers, cuda_wrappers)
    flags = (extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths)
    return JitModule(native.load_jit(args, *lists, *flags, build_directory))


class _CppArgs(list[str]):
    """A list whose text joins it by ", "."""

    def __str__(self) -> str:
        return ", ".join(self)


def _cpp_arg(value: Any) -> str:
    import numpy as np  # importing the package imports it only if asked to

    if isinstance(value, (bool, np.bool_)):  # before int, of which bool is one
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise TensorCraftValueError(f"make_cpp_args: {value} is no number of C++; leave it to run time")
        return float(value).hex()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return str(operator.index(value))
    try:
        dtype = native.to_dtype(value).name
    except TypeError:
        raise TensorCraftTypeError(f"Unsupported argument type: {type(value)}") from None
    return _CPP_TYPES.get(dtype, f"{dtype}_t")


def make_cpp_args(*args: Any) -> list[str]:
    """Template arguments as C++ spells them: bools, ints, floats (exact), texts as they are, and dtypes.

    Numbers of NumPy are taken as those of Python. The list is for `load_jit(name, *args, ...)`, whose module it names; its
    text joins it by ", ": `f"MyKernel<{args}>::run"`.
    """
    return _CppArgs(_cpp_arg(value) for value in args)
