# SPDX-License-Identifier: Apache-2.0
"""Goals of the benchmarks are found by architecture and dtype."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from targets import Architecture, target_tflops


@pytest.mark.parametrize("capability, dtype, tflops", [
    (90, "bfloat16", 780), (90, "float16", 780), (90, "float8_e4m3fn", 1550), (90, "tfloat32", 134), (90, "float32", 67),
    (80, "bfloat16", 100), (89, "float8_e4m3fn", 100), (75, "float32", 100), (120, "bfloat16", 780),
])  # fmt: skip
def test_a_goal_belongs_to_an_architecture_and_a_dtype(capability, dtype, tflops):
    assert target_tflops(capability, dtype) == tflops


def test_the_architectures_are_those_the_sources_name():
    assert [int(a) for a in Architecture] == [80, 86, 89, 90]
