# SPDX-License-Identifier: Apache-2.0
"""Reading model weights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from . import _tensorcraft as native
from ._tensorcraft import Tensor


def load_safetensors(path: str | os.PathLike[str], device: str | None = None) -> Mapping[str, Tensor]:
    """The tensors of a safetensors file, of an index, or of a folder with one of the two, by name.

    Everything is read at once onto `device` (None: the default device). The mapping and its tensors are
    read-only. Raises FileNotFoundError for a missing path, OSError where it cannot be read, and ValueError
    where it breaks the format.
    """
    return MappingProxyType(native.load_safetensors(os.fspath(path), device))
