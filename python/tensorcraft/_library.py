# SPDX-License-Identifier: Apache-2.0
"""`tc.add_library`: operators that were built outside this package."""

from __future__ import annotations

import os
import threading

from . import _ops
from . import _tensorcraft as native
from ._registry import Operator

_adding = threading.Lock()


def _add_anew() -> None:
    """Frees the lock in a forked child: the thread that held it stayed behind."""
    global _adding
    _adding = threading.Lock()


os.register_at_fork(after_in_child=_add_anew)


def add_library(path: str | os.PathLike[str]) -> dict[str, Operator]:
    """Loads a shared library of operators and gives them by name; from then on they are in `tc.ops()` too.

    CMake's `tensorcraft_add_operator()` makes such a library (docs/own_operator.md). Its code runs in this process and
    stays until it ends; a second call with the same library adds nothing.

    Raises FileNotFoundError if there is no such file; ValueError if it is no such library, was built for another version
    of tensorcraft, or has an operator whose name is taken.
    """
    with _adding:
        names = native.add_library(path)
        # What the package's build writes into _ops for the library's own operators.
        exec(native.text_of_operators(len(_ops.OPERATORS)), vars(_ops))  # noqa: S102
    return {name: _ops.OPERATORS[name] for name in names}
