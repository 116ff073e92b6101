# SPDX-License-Identifier: Apache-2.0
"""The exceptions TensorCraft raises. Each kind is also the built-in exception users expect."""

from __future__ import annotations


class Error(Exception):
    """Base of every TensorCraft exception."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)


class TensorCraftValueError(Error, ValueError):
    """A value, shape, axis or name is not accepted."""


class TensorCraftTypeError(Error, TypeError):
    """A type or dtype is not accepted."""


class TensorCraftIndexError(Error, IndexError):
    """An index is out of range."""


class TensorCraftAxisError(TensorCraftValueError, TensorCraftIndexError):
    """An axis is not there: a ValueError and an IndexError, as NumPy's."""


class TensorCraftKeyError(Error, KeyError):
    """A name is not there."""

    def __str__(self) -> str:  # KeyError would show the repr
        return str(self.args[0]) if self.args else ""


class Unsupported(Error, NotImplementedError):
    """No variant accepts the problem, or a part of the machine is missing."""


class OutOfMemory(Error, MemoryError):
    """A device or the host has no room left."""


class TensorCraftOSError(Error, OSError):
    """A file cannot be read or written."""


class TensorCraftFileNotFoundError(Error, FileNotFoundError):
    """A path does not exist."""


class TensorCraftBufferError(Error, BufferError):
    """Memory cannot be shared the way it was asked for."""


class Cancelled(Error, RuntimeError):
    """Work was cancelled before it finished."""


class TimedOut(Error, TimeoutError):
    """A wait took longer than it may."""


class CompileError(Error, RuntimeError):
    """A kernel does not compile; the text has the compiler's log."""


class DeviceLost(Error, RuntimeError):
    """The GPU failed for good in this process; the text has the first cause."""


class KernelFault(Error, RuntimeError):
    """The emulator saw a kernel do what no GPU allows; the text names kernel, block, thread and line.

    A kernel of an operator does not: there it is a fault of TensorCraft, so please report it.
    """


class InternalError(Error, RuntimeError):
    """A fault of TensorCraft itself; please report it."""


_BY_KIND = {
    "value": TensorCraftValueError,
    "type": TensorCraftTypeError,
    "index": TensorCraftIndexError,
    "key": TensorCraftKeyError,
    "unsupported": Unsupported,
    "out_of_memory": OutOfMemory,
    "io": TensorCraftOSError,
    "not_found": TensorCraftFileNotFoundError,
    "buffer": TensorCraftBufferError,
    "cancelled": Cancelled,
    "timed_out": TimedOut,
    "compile": CompileError,
    "device_lost": DeviceLost,
    "internal": InternalError,
    "axis": TensorCraftAxisError,
    "kernel_fault": KernelFault,
}


def _make(kind: str, message: str) -> Error:
    """The exception of a kind; called by the native part."""
    return _BY_KIND[kind](message)
