# SPDX-License-Identifier: Apache-2.0
"""check_layers.py refuses each kind of bad include, and passes a good tree."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import check_layers


def check(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")
    return list(check_layers.problems(root))


def test_the_tree_has_the_folders_and_parts_of_the_design():
    tree = ROOT / "tensorcraft"
    layers = re.findall(r"^\| `tensorcraft/(\w+)` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert {*layers} == {p.name for p in tree.iterdir() if p.is_dir()} >= {*check_layers.LAYERS}
    for folder in ("bindings/python", "python/tensorcraft", "cli", "bench", "benchmarks", "examples", "tests", "docs"):
        assert (ROOT / folder).is_dir(), folder
    for part in ("memory/block", "memory/pool", "memory/size_class", "scheduler/task", "scheduler/core", "transfer/engine",
                 "dispatch/controller"):  # fmt: skip
        assert (tree / "runtime" / f"{part}.hpp").exists(), part


@pytest.mark.parametrize(
    "path, include, reason",
    [
        ("core/a.hpp", '"tensorcraft/jit/b.hpp"', "goes down only"),
        ("op/a.cpp", '"tensorcraft/ops/gemm/gemm.hpp"', "goes down only"),
        ("ops/gemm/a.cpp", '"tensorcraft/ops/copy/copy.hpp"', "never includes another operator"),
        ("ops/gemm/a.cpp", '"tensorcraft/ops/all.hpp"', "includes ops/registry.hpp"),
        ("ops/gemm/a.cpp", '"gemm.hpp"', "from the repository root"),
        ("ops/gemm/00_naive.cuh", "<cuda_fp16.h>", "angle brackets"),
        ("ops/gemm/00_naive.cuh", '"tensorcraft/core/dims.hpp"', "only tensorcraft/device/"),
        ("ops/gemm/params.h", '"tensorcraft/ops/copy/params.h"', "only tensorcraft/device/"),
        ("device/a.cuh", '"tensorcraft/core/dims.hpp"', "only tensorcraft/device/"),
        ("simt/a.cpp", '"tensorcraft/jit/b.hpp"', "simt/ includes only"),
        ("runtime/a.cpp", '"tensorcraft/simt/b.hpp"', "jit/, op/, ops/ and diagnose/ alone"),
        ("ops/gemm/a.cpp", '"tensorcraft/diagnose/b.hpp"', "goes down only"),
        ("core/a.hpp", '"tensorcraft/device/reduce.cuh"', "only the float types"),
        ("core/a.hpp", '"tensorcraft/tensorcraft.hpp"', "umbrella"),
        ("misc/a.hpp", "<vector>", "no layer"),
        ("kernels/a.cuh", '"tensorcraft/core/tensor_view.hpp"', "needs no library"),
        ("kernels/a.cuh", '"tensorcraft/ops/gemm/gemm.hpp"', "needs no library"),
        ("ops/gemm/plan.h", '"tensorcraft/core/dtype.hpp"', "only device/"),
        ("ops/gemm/plan.h", '"tensorcraft/ops/softmax/plan.h"', "only device/"),
        ("op/choice/row_plan.h", '"tensorcraft/op/checks/rows.hpp"', "only device/"),
    ],
)
def test_a_bad_include_is_refused(tmp_path, path, include, reason):
    found = check(tmp_path, f"tensorcraft/{path}", f"#include {include}")
    assert len(found) == 1 and reason in found[0] and path in found[0]


@pytest.mark.parametrize(
    "path, include, reason",
    [
        ("bench/a.cpp", '"cli/console.hpp"', "only bench/ and the library"),
        ("bench/a.cpp", "<benchmark/benchmark.h>", "only bench/google_runner.cpp"),
        ("tensorcraft/op/a.cpp", '"bench/engine.hpp"', "from the repository root"),
    ],
)
def test_the_benchmark_is_above_the_library(tmp_path, path, include, reason):
    found = check(tmp_path, path, f"#include {include}")
    assert len(found) == 1 and reason in found[0] and path in found[0]


@pytest.mark.parametrize(
    "path, text, reason",
    [
        ("bindings/python/a.cpp", '#include "tensorcraft/ops/softmax/softmax.hpp"', "bindings convert"),
        ("bindings/python/a.cpp", '#include "tensorcraft/cuda/launch.hpp"', "bindings convert"),
        ("bindings/python/a.hpp", '#include "tensorcraft/op/launch/plan.hpp"', "bindings convert"),
        ("bindings/python/a.cpp", '#include "bench/engine.hpp"', "bindings convert"),
        ("bindings/python/a.cpp", "#include <cmath>", "compute nothing"),
        ("python/tensorcraft/_a.py", "import ctypes", "computes nothing"),
        ("python/tensorcraft/_a.py", "def f():\n    from array import array", "computes nothing"),
        ("python/tensorcraft/_a.py", "import random as r", "computes nothing"),
    ],
)
def test_bindings_hold_conversions_alone(tmp_path, path, text, reason):
    found = check(tmp_path, path, text)
    assert len(found) == 1 and reason in found[0] and path in found[0]


def test_bindings_include_what_they_convert(tmp_path):
    assert not check(tmp_path, "bindings/python/a.cpp", '#include "tensorcraft/ops/all.hpp"\n#include "b.hpp"\n#include <string>')
    assert not check(tmp_path, "python/tensorcraft/_a.py", "from . import _ops\nimport numpy as np\nfrom typing import Any\n# from here on")


def test_the_benchmark_includes_the_library_and_its_runner_google_benchmark(tmp_path):
    assert not check(tmp_path, "bench/a.cpp", '#include "tensorcraft/ops/all.hpp"\n#include "bench/b.hpp"')
    assert not check(tmp_path, "bench/google_runner.cpp", "#include <benchmark/benchmark.h>")


@pytest.mark.parametrize(
    "path, include",
    [
        ("jit/a.cpp", '"tensorcraft/core/dims.hpp"'),
        ("ops/gemm/00_naive.cuh", '"tensorcraft/ops/gemm/params.h"'),
        ("ops/gemm/gemm.cpp", '"tensorcraft/op/table.hpp"'),
        ("device/base.h", "<cmath>"),
        ("kernels/gemm.cuh", '"tensorcraft/ops/gemm/00_naive.cuh"'),
        ("kernels/gemm.cuh", '"tensorcraft/ops/gemm/plan.h"'),
        ("kernels/check.cuh", "<cuda_runtime_api.h>"),
        ("ops/gemm/plan.h", '"tensorcraft/op/choice/rung.h"'),
        ("ops/gemm/plan.h", '"tensorcraft/ops/gemm/params.h"'),
        ("tensorcraft.hpp", '"tensorcraft/ops/gemm/gemm.hpp"'),
    ],
)
def test_a_good_include_passes(tmp_path, path, include):
    assert check(tmp_path, f"tensorcraft/{path}", f"#include {include}") == []


def test_the_python_package_imports_in_no_circle(tmp_path):
    assert not check(tmp_path, "python/tensorcraft/_b.py", "from . import _native")
    assert not check(tmp_path, "python/tensorcraft/_a.py", "from ._b import f")
    (found,) = check(tmp_path, "python/tensorcraft/_b.py", "def f():\n    from . import _a\n")
    assert "_a <- _b <- _a" in found or "_b <- _a <- _b" in found
