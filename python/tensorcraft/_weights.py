# SPDX-License-Identifier: Apache-2.0
"""Reading model weights."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from . import _tensorcraft as native
from ._tensorcraft import DType, Tensor
from .errors import TensorCraftKeyError, _make


class Weights(Mapping[str, Tensor]):
    """The tensors of a safetensors file by name, in the order of the file. Neither it nor they can be written to.

    A tensor whose dtype, or number of dimensions, the library lacks is among the names; asking for it is a TypeError,
    or a ValueError, that names it.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: dict[str, Any]) -> None:
        self._entries = entries  # a tensor, or (kind, text, dtype, shape) if it is refused

    def __getitem__(self, name: str) -> Tensor:
        entry = self._entries.get(name) if isinstance(name, str) else None
        if isinstance(entry, Tensor):
            return entry
        if entry is not None:
            raise _make(entry[0], entry[1])
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
        return "Weights({" + ", ".join(f"{name!r}: {dtypes[name]} {shapes[name]}" for name in self) + "})"


def load_safetensors(path: str | bytes | os.PathLike[Any], device: str | None = None) -> Weights:
    """The tensors of a safetensors file, of an index, or of a folder with one of the two, by name.

    Everything is read at once onto `device` (None: the default device). The mapping and its tensors are
    read-only. Raises FileNotFoundError for a missing path, OSError where it cannot be read, and ValueError
    where it breaks the format. A tensor of a dtype that the library lacks is an error only where it is asked for.
    """
    return Weights(native.load_safetensors(path, device))
