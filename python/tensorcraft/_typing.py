# SPDX-License-Identifier: Apache-2.0
"""Types of public signatures. NumPy is named to a type checker only: importing the package does not import it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NewType, Protocol

from ._tensorcraft import DType, Tensor

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    class SupportsDLPack(Protocol):
        """An array of any framework that shares memory through DLPack."""

        def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

    class SupportsStream(Protocol):
        """A CUDA stream of another framework; a tc.Stream is one too."""

        def __cuda_stream__(self) -> tuple[int, int]: ...

    class SupportsItemSize(Protocol):
        """A dtype of NumPy, torch or JAX."""

        @property
        def itemsize(self) -> int: ...

    Number = bool | int | float | np.generic
    # What a call takes as an array: nested lists too.
    ArrayLike = Tensor | npt.NDArray[Any] | SupportsDLPack | Number | list[Any] | tuple[Any, ...]
    # tc.float32, "float32", "f32", numpy.float32, torch.float32, ...
    DTypeLike = DType | str | type[Any] | SupportsItemSize
    StreamLike = int | SupportsStream
else:
    ArrayLike = NewType("ArrayLike", object)
    DTypeLike = NewType("DTypeLike", object)
    StreamLike = NewType("StreamLike", object)
