# SPDX-License-Identifier: Apache-2.0
"""Goals of the benchmarks are found by architecture and dtype."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import jit_figures
from targets import Architecture, target_tflops


@pytest.mark.parametrize("capability, dtype, tflops", [
    (90, "bfloat16", 780), (90, "float16", 780), (90, "float8_e4m3fn", 1550), (90, "tfloat32", 134), (90, "float32", 67),
    (80, "bfloat16", None), (89, "float8_e4m3fn", None), (75, "float32", None), (120, "bfloat16", 780),
])  # fmt: skip
def test_a_goal_belongs_to_an_architecture_and_a_dtype(capability, dtype, tflops):
    assert target_tflops(capability, dtype) == tflops


def test_the_architectures_are_those_the_sources_name():
    assert [int(a) for a in Architecture] == [80, 86, 89, 90]


def test_targets_of_first_and_warm_calls_are_held_or_missed():
    warm = {
        "bare_launch_us": 3.0,
        "warm_add_us": 3.2,
        "elementwise_ms": 0.3,
        "layer_norm_ms": 0.3,
        "gemm_tensor_core_ms": 6.0,
    }
    empty = warm | {"elementwise_ms": 99.0, "layer_norm_ms": 101.0, "gemm_tensor_core_ms": 300.0}
    found = jit_figures.verdicts(empty, warm)
    assert [line for line, reached in found if not reached] == [
        "layer norm, compiled: 101 ms, at most 100",
        "gemm tensor core from disk: 6 ms, at most 5",
    ]
    assert ("a warm call beyond it: 0.2 us, at most 0.5", True) in found and len(found) == 8
