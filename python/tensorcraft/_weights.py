# SPDX-License-Identifier: Apache-2.0
"""Reading model weights."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, overload

from . import _tensorcraft as native
from ._tensorcraft import DType, Tensor
from .errors import TensorCraftKeyError, TensorCraftValueError, _make


class Weights(Mapping[str, Tensor]):
    """The tensors of a safetensors file by name, in the order of the file. Neither it nor they can be written to.

    A tensor whose dtype, or number of dimensions, the library lacks is among the names; asking for it is a TypeError,
    or a ValueError, that names it.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: dict[str, Any]) -> None:
        self._entries = entries  # a tensor, or (kind, text, dtype, shape) if it is refused

    def __getitem__(self, name: str) -> Tensor:
        entry = self._entry(name)
        if isinstance(entry, Tensor):
            return entry
        raise _make(entry[0], entry[1])

    def _entry(self, name: object) -> Any:
        entry = self._entries.get(name) if isinstance(name, str) else None
        if entry is not None:
            return entry
        some = ", ".join([*self._entries][:5]) + (", ..." if len(self._entries) > 5 else "")
        raise TensorCraftKeyError(f"no tensor is named {name!r}; there are {len(self._entries)}: {some}")

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor, of those too that are not loaded."""
        return {name: e.shape if isinstance(e, Tensor) else e[3] for name, e in self._entries.items()}

    @property
    def dtypes(self) -> dict[str, DType | str]:
        """The dtype of every tensor; of those that are not loaded the file's word, such as "F64"."""
        return {name: e.dtype if isinstance(e, Tensor) else e[2] for name, e in self._entries.items()}

    def __repr__(self) -> str:
        shapes, dtypes = self.shapes, self.dtypes
        tensors = ", ".join(f"{name!r}: {dtypes[name]} {shapes[name]}" for name in self)
        return f"{type(self).__name__}({{{tensors}}})"


class LazyStats(NamedTuple):
    """What lazy weights did. At any time `loaded_bytes - dropped_bytes == resident_bytes`."""

    resident: int  # tensors that are on the device now
    resident_bytes: int
    loads: int  # since the file was opened
    loaded_bytes: int
    reloads: int  # of the loads, those of a tensor that had been dropped
    reloaded_bytes: int
    drops: int
    dropped_bytes: int


class LazyWeights(Weights):
    """The tensors of a safetensors file by name, each loaded when it is first asked for.

    A tensor stays while the program holds it. Others are dropped if an allocation on the device finds no room or the
    quota is reached, the least recently used first, and loaded again when they are asked for next. So hold a tensor no
    longer than it is used: write `x @ weights["w"]` rather than keeping `weights["w"]`. Safe to use from several threads;
    a tensor that two of them ask for is loaded once.
    """

    __slots__ = ("_native",)

    def __init__(self, lazy: native.LazyWeights) -> None:
        super().__init__(lazy.entries())
        self._native = lazy

    def __getitem__(self, name: str) -> Tensor:
        self._entry(name)
        return self._native.get(name)

    def is_resident(self, name: str) -> bool:
        """Is the tensor on the device now?"""
        self._entry(name)
        return self._native.is_resident(name)

    def drop(self) -> int:
        """Drops all tensors that the program does not hold; returns how many bytes."""
        return self._native.drop()

    def verify(self) -> None:
        """Compares what is on the device with the hashes of the load; a RuntimeError names a tensor that changed.

        Raises ValueError unless the file was opened with `checksum=True`.
        """
        self._native.verify()

    def stats(self) -> LazyStats:
        """What is on the device now, and what was loaded and dropped."""
        return LazyStats(**self._native.stats())


@overload
def load_safetensors(
    path: str | bytes | os.PathLike[Any], device: str | None = None, *, lazy: Literal[False] = False
) -> Weights: ...
@overload
def load_safetensors(
    path: str | bytes | os.PathLike[Any],
    device: str | None = None,
    *,
    lazy: Literal[True],
    quota: int = 0,
    checksum: bool = False,
) -> LazyWeights: ...
def load_safetensors(
    path: str | bytes | os.PathLike[Any],
    device: str | None = None,
    *,
    lazy: bool = False,
    quota: int = 0,
    checksum: bool = False,
) -> Weights:
    """The tensors of a safetensors file, of an index, or of a folder with one of the two, by name.

    Everything is read at once onto `device` (None: the default device). The mapping and its tensors are
    read-only. Raises FileNotFoundError for a missing path, OSError where it cannot be read, and ValueError
    where it breaks the format. A tensor of a dtype that the library lacks is an error only where it is asked for.

    lazy: a tensor is read when it is first asked for, and dropped if memory is short and nothing holds it.
    quota: of lazy weights, bytes beyond which tensors that nothing holds are dropped; 0 for what the device has.
    checksum: of lazy weights, keep a hash of each tensor, for `verify()` and for what is loaded again.
    """
    if lazy:
        return LazyWeights(native.LazyWeights(path, device, quota, bool(checksum)))
    if quota or checksum:
        raise TensorCraftValueError("load_safetensors: quota and checksum are of lazy weights; give lazy=True too")
    return Weights(native.load_safetensors(path, device))
