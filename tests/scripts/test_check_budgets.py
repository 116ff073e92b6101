# SPDX-License-Identifier: Apache-2.0
"""check_budgets.py finds one planted violation of each rule, and nothing in a clean tree."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import check_budgets

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"
PREFIX = "TENSORCRAFT_"


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def tree(tmp_path):
    """A small tree without a violation."""
    write(tmp_path, "docs/environment.md", "\n".join(sorted(check_budgets.VARIABLES)) + "\n")
    write(tmp_path, "tensorcraft/core/config.cpp", LICENCE + 'std::getenv("HOME");\n')
    write(tmp_path, "tests/core/config_test.cpp", LICENCE)
    write(tmp_path, "tensorcraft/device/shared.cuh", LICENCE + "__shared__ S s;\n#define TC_X\n")
    write(tmp_path, "tensorcraft/core/a.hpp", LICENCE + "#include <vector>\n// getenv, asm and fmt:: in a comment\n")
    write(tmp_path, "CMakeLists.txt", f"option({PREFIX}BUILD_X)\n")
    return tmp_path


def test_a_clean_tree_passes(tree):
    assert list(check_budgets.problems(tree)) == []


@pytest.mark.parametrize(
    "path, text, reason",
    [
        ("tensorcraft/core/b.hpp", LICENCE + "\n" * 500, "501 lines, at most 500"),
        ("tensorcraft/ops/x/00_a.cuh", LICENCE + "\n" * 400, "401 lines, at most 400"),
        ("tensorcraft/core/b.hpp", LICENCE + "\n" * 485, "486 lines, within 3% of its limit of 500"),
        ("tensorcraft/ops/x/00_a.cuh", LICENCE + "\n" * 388, "389 lines, within 3% of its limit of 400"),
        ("docs/page.md", "\n" * 195, "195 lines, within 3% of its limit of 200"),
        ("docs/page.md", "\n" * 201, "201 lines, at most 200"),
        ("README.md", "\n" * 151, "151 lines, at most 150"),
        ("ARCHITECTURE.md", "\n" * 151, "151 lines, at most 150"),
        ("tensorcraft/core/b.hpp", "#pragma once\n", "names the licence"),
        ("tensorcraft/core/b.hpp", LICENCE + "static auto& one = *new Own;\n", "core/first_made.hpp"),
        ("tensorcraft/cuda/b.hpp", LICENCE + "static auto* const one = new Own;\n", "core/first_made.hpp"),
        ("tensorcraft/jit/b.hpp", LICENCE + "static T* const one = [] { return new T; }();\n", "core/first_made.hpp"),
        ("tensorcraft/op/b.hpp", LICENCE + "static const int quota =\n    cores();\n", "core/first_made.hpp"),
        ("tensorcraft/runtime/b.hpp", LICENCE + "static const auto all = make<a, b>(1);\n", "core/first_made.hpp"),
        ("tensorcraft/simt/b.hpp", LICENCE + "static const std::vector<Float> none;\n", "core/first_made.hpp"),
        ("bindings/python/b.cpp", LICENCE + "static auto* one = new Shelf;\n", "core/first_made.hpp"),
        ("tensorcraft/cuda/b.hpp", LICENCE + 'getenv("X");\n', "reads the environment"),
        ("python/tensorcraft/b.py", "os.environ\n", "reads the environment"),
        ("tensorcraft/jit/b.hpp", LICENCE + 'asm("nop");\n', "device/ptx/ only"),
        ("tensorcraft/ops/x/00_a.cuh", LICENCE + "__shared__ int a;\n", "device/shared.cuh"),
        ("tensorcraft/core/b.hpp", LICENCE + "fmt::string s;\n", "third-party type"),
        ("tensorcraft/core/b.hpp", LICENCE + "dnnl_engine_t e;\n", "third-party type"),
        ("tensorcraft/op/b.hpp", LICENCE + '#include "tensorcraft/op/host/onednn.hpp"\n', "private header"),
        ("tensorcraft/core/b.hpp", LICENCE + "#define CHECK(x) x\n", "start with TC_"),
        ("tensorcraft/core/b.hpp", LICENCE + "#include <dlpack/dlpack.h>\n", "std alone"),
        ("tensorcraft/core/b.hpp", LICENCE + "#include <sched.h>\n", "std alone"),
        ("tensorcraft/runtime/b.hpp", LICENCE + "cuMemAllocAsync();\n", "allocated in cuda/ only"),
        ("tensorcraft/jit/b.hpp", LICENCE + "cuda::allocate(4, stream);\n", "comes from runtime/memory"),
        ("tensorcraft/ops/b.hpp", LICENCE + "cuda::allocate_pinned(4);\n", "comes from runtime/memory"),
        ("bench/b.hpp", LICENCE + "cuda::deallocate_segment(p, 0);\n", "comes from runtime/memory"),
        ("tensorcraft/runtime/b.hpp", LICENCE + "d.mem_free(p);\n", "allocated in cuda/ only"),
        ("tensorcraft/jit/b.hpp", LICENCE + 'fail("needs CUDA 12");\n', "never a CUDA version"),
        ("python/tensorcraft/b.py", "import cupy\n", "no external CUDA package"),
        ("scripts/requirements.txt", "cuda-python\n", "no external CUDA package"),
        ("python/tensorcraft/b.py", "'GPU mode requires the package'\n", "must not exist"),
        ("python/tensorcraft/b.py", "import ctypes\n", "calls no CUDA API"),
        ("cmake/b.cmake", "add_definitions(-DTC_HAS_TMA)\n", "no build settings"),
        ("tests/b.py", f"{PREFIX}MINE\n", "none of the eight"),
        ("docs/environment.md", "nothing\n", "docs/environment.md: "),
        ("docs/page.md", "It takes 4.6 us.\n", "4.6 us: a figure comes from benchmarks/results"),
        ("docs/page.md", "It reads 3,800 GB/s.\n", "3,800 GB/s: a figure"),
        ("CHANGELOG.md", "- Sums take 12 % less.\n", "12 %: a figure"),
        ("CHANGELOG.md", "- Norms are 1.6 times as fast.\n", "1.6 times as fast: a figure"),
        ("tensorcraft/ops/x/README.md", "It had 0.93 of a copy.\n", "0.93: a figure"),
        ("tensorcraft/jit/b.cpp", LICENCE, "there is no tests/jit/b_test.cpp"),
        ("tensorcraft/ops/x/x.cpp", LICENCE, "there is no tests/ops/x_test.cpp"),
    ],
)
def test_a_violation_is_found(tree, path, text, reason):
    write(tree, path, text)
    found = list(check_budgets.problems(tree))
    assert found and all(reason in line or line.endswith("nothing reads it") for line in found), found
    assert any(reason in line and (path in line or "tensorcraft" in line) for line in found)


def test_static_objects_without_a_guard_stay(tree):
    made = "static constinit FirstMade<T, [] { return new T(f()); }> one;\nstatic std::atomic<int> last = 0;\n"
    write(tree, "tensorcraft/core/b.hpp", LICENCE + made + "static constexpr int kMost = f();\nstatic T of(int n = f());\n")
    write(tree, "tensorcraft/core/fork.cpp", LICENCE + "static auto* const one = [] { return new Registry; }();\n")
    write(tree, "tests/core/fork_test.cpp", LICENCE + "static auto& one = *new Own;\n")
    assert list(check_budgets.problems(tree)) == []


def test_a_file_with_room_below_its_limit_passes(tree):
    write(tree, "tensorcraft/core/b.hpp", LICENCE + "\n" * 484)
    write(tree, "docs/page.md", "\n" * 194)
    assert not [line for line in check_budgets.problems(tree) if "limit of" in line]


def test_figures_that_are_generated_or_settings_stay(tree):
    table = "<!-- results: x -->\n| 4.6 us | 12 % |\n<!-- /results -->\n"
    write(tree, "tensorcraft/ops/x/README.md", table + "```\n0.93\n```\nCalls of `10 us` and less, version 0.1.0, 2.5.2.\n")
    write(tree, "docs/page.md", "CUDA 12.0 or newer\n")
    assert list(check_budgets.problems(tree)) == []


def test_a_feature_macro_has_one_home(tree):
    for name in ("a", "b"):
        write(tree, f"tensorcraft/device/{name}.h", LICENCE + "#define TC_HAS_TMA 1\n")
    assert any("defined in 2 files" in line for line in check_budgets.problems(tree))


def test_a_table_of_measurements_may_be_long(tree):
    write(tree, "docs/performance.md", "<!-- results -->\n" + "| 1 |\n" * 300 + "<!-- /results -->\n")
    assert list(check_budgets.problems(tree)) == []


def test_the_median_file_stays_short(tree):
    for i in range(9):
        write(tree, f"tensorcraft/device/{i}.h", LICENCE + "\n" * 200)
    assert any("median" in line for line in check_budgets.problems(tree))


@pytest.fixture
def operator(tree):
    """An operator with the lines that it costs."""
    write(tree, "tensorcraft/ops/pad/params.h", LICENCE + "namespace tensorcraft::kernel::pad {}\n")
    write(tree, "tensorcraft/ops/all.hpp", LICENCE + '#include "tensorcraft/ops/pad/pad.hpp"\n')
    write(tree, "tensorcraft/ops/registry.hpp", LICENCE + "#define TC_FOLDERS(X) \\\n  X(pad)\n")
    write(tree, "tensorcraft/kernels/pad.cuh", LICENCE + '#include "tensorcraft/ops/pad/params.h"\n')
    write(tree, "tensorcraft/kernels/all.cuh", LICENCE + '// scripts/a.py writes this.\n#include "tensorcraft/kernels/pad.cuh"\n')
    write(tree, "tensorcraft/op/one.hpp", LICENCE + "using P = kernel::pad::Params;\n")
    return tree


def test_an_operator_costs_three_files_outside_its_folder(operator):
    assert list(check_budgets.problems(operator)) == []


@pytest.mark.parametrize(
    "path, text",
    [
        ("tensorcraft/op/two.hpp", '#include "tensorcraft/ops/pad/params.h"\n'),
        ("tensorcraft/simt/two.hpp", "TC_LIST(pad)\n"),
        ("cli/two.hpp", 'if (name == "pad") return;\n'),
        ("bindings/python/two.hpp", "ops::pad();\n"),
        ("tensorcraft/ops/two.hpp", "op::OperatorList pad();\n"),
    ],
)
def test_a_fourth_file_that_names_an_operator_is_found(operator, path, text):
    write(operator, path, LICENCE + text)
    (found,) = check_budgets.problems(operator)
    assert found.startswith("pad: 4 files outside its folder name it, at most 3: ") and path in found


@pytest.mark.parametrize(
    "path, text",
    [
        ("tensorcraft/op/two.hpp", "// ops/pad/ has the same.\nint pad = tensorcraft::pad(x);\n"),
        ("tensorcraft/jit/two.hpp", 'fail("as in tensorcraft::kernel::pad::naive");\n'),
        ("bench/two.hpp", 'if (name != "pad") return;\n'),
        ("tests/op/two.hpp", '#include "tensorcraft/ops/pad/params.h"\n'),
        ("examples/two.hpp", '#include "tensorcraft/ops/pad/pad.hpp"\n'),
        ("tensorcraft/ops/pad/two.hpp", '#include "tensorcraft/ops/pad/params.h"\n'),
        ("tensorcraft/kernels/pad_shape.hpp", '#include "tensorcraft/ops/pad/params.h"\n'),
    ],
)
def test_what_nothing_forces_does_not_count(operator, path, text):
    write(operator, path, LICENCE + text)
    assert list(check_budgets.problems(operator)) == []


@pytest.fixture
def rung(tree):
    """A rung in the three files that it costs, and in some that do not count."""
    row = '{.name = "by_warp", .file = "01_by_warp.cuh", .kernel = "ByWarp", .choose = by_warp}'
    write(tree, "tensorcraft/ops/pad/01_by_warp.cuh", LICENCE + "struct ByWarp {};\n")
    write(tree, "tensorcraft/ops/pad/plan.h", LICENCE + f"constexpr Rung kRungs[] = {{{row}}};\n")
    write(tree, "tensorcraft/kernels/pad.cuh", LICENCE + "Compiled<ByWarp> c;\n")
    write(tree, "tensorcraft/kernels/pad_shape.hpp", LICENCE + "Compiled<ByWarp> c;\n")
    write(tree, "tensorcraft/ops/pad/pad_cpu.cpp", LICENCE + "bool a = by_warp_refusal(p).empty();\n")
    write(tree, "tests/ops/pad_test.cpp", LICENCE + 'auto v = "by_warp";\n')
    return tree


def test_a_rung_costs_three_files(rung):
    assert list(check_budgets.problems(rung)) == []


@pytest.mark.parametrize(
    "text", ['auto v = "by_warp";', "ByWarp::run(p);", "Plan plan_by_warp();", "Choice by_warp_start();", "kByWarpRow"]
)
def test_a_fourth_file_that_names_a_rung_is_found(rung, text):
    write(rung, "tensorcraft/ops/pad/pad.hpp", LICENCE + text + "\n")
    (found,) = check_budgets.problems(rung)
    assert found.startswith("tensorcraft/ops/pad/01_by_warp.cuh: 4 files name the rung, at most 3: ") and "pad.hpp" in found


def test_plan_headers_of_one_folder_are_one_file(rung):
    write(rung, "tensorcraft/ops/pad/warp_plan.h", LICENCE + "inline Choice by_warp(); // ByWarp\nint k = kByWarp;\n")
    assert list(check_budgets.problems(rung)) == []


def test_a_header_that_only_ends_like_a_plan_counts(rung):
    write(rung, "tensorcraft/ops/pad/airplan.h", LICENCE + "int k = kByWarp;\n")
    (found,) = check_budgets.problems(rung)
    assert "4 files name the rung" in found and "ops/pad/airplan.h" in found


def test_a_word_that_is_no_rung_does_not_count(rung):
    write(rung, "tensorcraft/ops/pad/pad.hpp", LICENCE + "// ByWarp\nint by_warp = by_warp_of_2(ByWarps());\n")
    assert list(check_budgets.problems(rung)) == []


def test_the_smallest_operators_stay_small(tree):
    write(tree, "tensorcraft/ops/masked_mean/README.md", "\n" * 100)
    write(tree, "tensorcraft/ops/masked_mean/masked_mean.hpp", LICENCE + "\n" * 199)
    write(tree, "tensorcraft/kernels/masked_mean.cuh", LICENCE + "\n" * 149)
    assert list(check_budgets.problems(tree)) == []
    write(tree, "tensorcraft/kernels/masked_mean.cuh", LICENCE + "\n" * 150)
    (found,) = check_budgets.problems(tree)
    assert found == "tensorcraft/ops/masked_mean: 351 lines with its launcher, at most 350"


@pytest.mark.parametrize(
    "layer, path",
    [
        ("tensorcraft", "tensorcraft/tensorcraft.hpp"),
        ("tensorcraft/sparse", "tensorcraft/sparse/b.hpp"),
        ("tensorcraft/ops", "tensorcraft/ops/pad/params.h"),
        ("bindings", "bindings/python/b.hpp"),
        ("scripts", "scripts/b.sh"),
        ("cmake", "cmake/b.cmake"),
    ],
)
def test_a_layer_that_outgrows_its_ceiling_is_found(tree, monkeypatch, layer, path):
    write(tree, path, LICENCE + "\n" * 20)
    write(tree, path.replace("/b.", "/c."), LICENCE + "\n" * 20)
    lines = check_budgets.lines_of_layers(dict(check_budgets.files(tree)))[layer]
    monkeypatch.setitem(check_budgets.LINES_OF_LAYERS, layer, lines)
    assert list(check_budgets.problems(tree)) == []
    monkeypatch.setitem(check_budgets.LINES_OF_LAYERS, layer, lines - 1)
    (found,) = check_budgets.problems(tree)
    assert found.startswith(f"{layer}: {lines} lines of source, at most {lines - 1}: cut some")


def test_data_and_documents_count_for_no_layer(tree, monkeypatch):
    monkeypatch.setitem(check_budgets.LINES_OF_LAYERS, "benchmarks", 0)
    write(tree, "benchmarks/results/a.json", "{}\n")
    write(tree, "benchmarks/README.md", "# Benchmarks\n")
    assert list(check_budgets.problems(tree)) == []


def test_a_layer_without_a_ceiling_is_found(tree):
    write(tree, "extras/b.hpp", LICENCE)
    (found,) = check_budgets.problems(tree)
    assert found.startswith("extras: 1 lines of source, at most 0")


def test_every_ceiling_is_of_a_layer_that_there_is():
    tree = dict(check_budgets.files(Path(__file__).parents[2]))
    assert check_budgets.LINES_OF_LAYERS.keys() == check_budgets.lines_of_layers(tree).keys()
