# SPDX-License-Identifier: Apache-2.0
"""What a library that is written for the array API standard asks of the namespace."""

from __future__ import annotations

from typing import Any

from . import _tensorcraft as native
from ._dtypes import dtypes_of
from ._tensorcraft import DType

_NOT_IN_THE_STANDARD = (DType.float16, DType.bfloat16, DType.float8_e4m3fn, DType.float8_e5m2)


class NamespaceInfo:
    """What the devices and dtypes are; `tc.__array_namespace_info__()` makes one."""

    def capabilities(self) -> dict[str, Any]:
        """What the standard leaves open: masks index, results may take their shape from data, how many dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> str:
        """Where lists and NumPy arrays are computed."""
        return native.default_device()

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The dtypes of lists of numbers and of indices, the same on every device."""
        del device
        return {"real floating": DType.float32, "integral": DType.int64, "indexing": DType.int64}

    def devices(self) -> list[str]:
        """The devices that can be used."""
        return native.devices()

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, DType]:
        """The dtypes that the standard names, the same on every device; `kind` as in isdtype, None for all."""
        del device
        return {dtype.name: dtype for dtype in dtypes_of(kind) if dtype not in _NOT_IN_THE_STANDARD}


def array_namespace_info() -> NamespaceInfo:
    """Devices and dtypes, as the array API standard lets one ask for them."""
    return NamespaceInfo()
