# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share."""

import pytest

import tensorcraft as tc


@pytest.fixture(params=tc.devices())
def device(request: pytest.FixtureRequest) -> str:
    """Every usable device in turn."""
    return str(request.param)
