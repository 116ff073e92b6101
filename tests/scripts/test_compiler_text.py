# SPDX-License-Identifier: Apache-2.0
"""What the compiler says: feature macros of faked toolkits, and readable refusals of wrong uses."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CXX = os.environ.get("CXX") or shutil.which("c++") or "g++"


def run(*options, text):
    command = [CXX, "-std=c++20", f"-I{ROOT}", "-x", "c++", *options, "-"]
    return subprocess.run(command, check=False, input=text, capture_output=True, text=True, timeout=120)


def macros(*definitions):
    """The values of the feature macros under a faked compiler."""
    names = ["CUDA_11", "CUDA_12", "CUDA_13", "HAS_WMMA", "HAS_TMA", "HAS_WGMMA", "HAS_FP8"]
    names += ["ARCH_VOLTA", "ARCH_AMPERE", "ARCH_HOPPER", "CPP17", "CPP20", "CPP23"]
    questions = [f"#if TC_{name}\n{name}\n#endif\n" for name in names]
    done = run("-E", "-P", *definitions, text='#include "tensorcraft/device/features.h"\n' + "".join(questions))
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("major, missing", [(11, {"CUDA_12", "CUDA_13", "HAS_TMA", "HAS_WGMMA", "HAS_FP8"}),
                                            (12, {"CUDA_13"}), (13, set())])  # fmt: skip
def test_a_toolkit_has_its_features(major, missing):
    every = {"CUDA_11", "CUDA_12", "CUDA_13", "HAS_WMMA", "HAS_TMA", "HAS_WGMMA", "HAS_FP8"}
    assert macros(f"-D__CUDACC_VER_MAJOR__={major}") == every - missing | {"CPP17", "CPP20"}


def test_a_plain_compiler_has_no_toolkit_and_no_architecture():
    assert macros() == {"CPP17", "CPP20"}


@pytest.mark.parametrize("arch, expected", [(750, {"VOLTA"}), (800, {"VOLTA", "AMPERE"}),
                                            (890, {"VOLTA", "AMPERE"}), (900, {"VOLTA", "AMPERE", "HOPPER"}),
                                            (1200, {"VOLTA", "AMPERE", "HOPPER"})])  # fmt: skip
def test_device_code_knows_its_architecture(arch, expected):
    assert {m for m in macros(f"-D__CUDA_ARCH__={arch}") if m.startswith("ARCH")} == {"ARCH_" + e for e in expected}


def test_each_feature_macro_is_defined_in_one_place():
    found = {}
    for file in (ROOT / "tensorcraft").rglob("*"):
        if file.suffix in {".h", ".hpp", ".cuh", ".cpp"}:
            for name in ("TC_HAS_TMA", "TC_HAS_WGMMA", "TC_HAS_FP8", "TC_HAS_WMMA"):
                if f"#define {name}" in file.read_text():
                    found.setdefault(name, []).append(file.name)
    assert found == {name: ["features.h"] for name in ("TC_HAS_TMA", "TC_HAS_WGMMA", "TC_HAS_FP8", "TC_HAS_WMMA")}


REFUSED = {
    "a vector of three": ("device/vec.cuh", "AlignedVector<float, 3> v;", "N must be a power of two, such as 2, 4 or 8"),
    "a copy of a tensor": ("runtime/memory/tensor.hpp", "Tensor f(Tensor& t) { return t; }", "deleted"),
    "a count of elements as bytes": ("compat.hpp", "auto f(int* p) { return pointer::offset(p, 1); }", "pointer::offset"),
    "a stream of number zero": ("cuda/stream.hpp", "StreamRef s(0);", "deleted"),
    "a matcher that is kept": ("core/tensor_matcher.hpp", "void f(TensorMatcher& m, TensorView t) { m.verify(t); }", "verify"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_use_does_not_compile(name):
    header, use, reason = REFUSED[name]
    include = f'#include "tensorcraft/{header}"\nusing namespace tensorcraft;\n'
    assert run("-fsyntax-only", text=include).returncode == 0
    done = run("-fsyntax-only", text=include + use)
    assert done.returncode != 0 and reason in done.stderr, done.stderr
