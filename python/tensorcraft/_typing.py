# SPDX-License-Identifier: Apache-2.0
"""Types of public signatures."""

from __future__ import annotations

from typing import Any

from ._tensorcraft import DType, Tensor

# A tc.Tensor, a NumPy array, anything with __dlpack__, a nested list or a number.
ArrayLike = Tensor | Any
# tc.float32, "float32", numpy.float32, torch.float32, ...
DTypeLike = DType | str | Any
