# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share."""

import ctypes
from pathlib import Path

import pytest

import tensorcraft as tc

# The kernels of the C++ tests' cases for the emulator, which are compiled together: else calls compile them one by one.
KERNELS = Path(str(tc.__file__)).parents[2] / "tests" / "libtensorcraft_case_kernels.so"
if KERNELS.exists():
    ctypes.CDLL(str(KERNELS))


@pytest.fixture(params=tc.devices())
def device(request: pytest.FixtureRequest) -> str:
    """Every usable device in turn."""
    return str(request.param)
