# SPDX-License-Identifier: Apache-2.0
"""What scripts/new_operator.py makes passes every check, builds, and runs; nothing of it is edited."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import check_budgets
import check_layers
import launchers
import new_operator
import operator_pages

ROOT = Path(__file__).parents[2]
NAME = "lifted"
PAGE = ROOT / "docs" / "adding_an_operator.md"
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def copy_of_the_tree(to: Path) -> Path:
    """The files that git knows or would add."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    return to


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with a new operator, made by the command of the page."""
    root = copy_of_the_tree(tmp_path_factory.mktemp("tree"))
    command = [sys.executable, ROOT / "scripts/new_operator.py", NAME, "--launcher", "--root", root]
    subprocess.run(command, check=True, capture_output=True)
    return root


def test_the_checks_pass(tree: Path) -> None:
    assert list(check_layers.problems(tree)) == []
    # A new operator adds lines to a layer, which may need a higher ceiling; its commit says so.
    assert [problem for problem in check_budgets.problems(tree) if "lines of source" not in problem] == []
    assert launchers.update(tree, check=True) == []
    assert list(operator_pages.all_problems(tree)) == [] and operator_pages.update(tree, check=True) == []


def test_the_format_is_that_of_the_tree(tree: Path) -> None:
    new = [p for p in tree.rglob(f"*{NAME}*") if p.suffix in (".hpp", ".cpp", ".cuh")]
    new += [p for p in (tree / f"tensorcraft/ops/{NAME}").iterdir() if p.suffix in (".h", ".cuh", ".hpp")]
    lists = [tree / "tensorcraft/ops/all.hpp", tree / "tensorcraft/ops/registry.hpp"]
    done = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *new, *lists], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_lists_stay_sorted(tree: Path) -> None:
    folders = re.findall(r"^  X\((\w+)\)", (tree / "tensorcraft/ops/registry.hpp").read_text(), re.MULTILINE)
    assert NAME in folders and folders == sorted(folders)
    includes = re.findall(r'^#include "tensorcraft/ops/(\S+)/', (tree / "tensorcraft/ops/all.hpp").read_text(), re.MULTILINE)
    assert NAME in includes and includes == sorted(includes)


def test_every_file_says_where_to_edit(tree: Path) -> None:
    for path, template in {**new_operator.FILES, **new_operator.LAUNCHER}.items():
        text = (tree / new_operator.filled(path, NAME)).read_text()
        assert not re.search(r"@\w+@", text), path
        assert ("EDIT: " in text) != (template == "cases"), path  # JSON has no comments


def test_what_is_made_is_what_the_page_lists(tree: Path) -> None:
    """So nothing that the page says of files is counted by hand."""
    page = PAGE.read_text()
    files = {Path(new_operator.filled(path, "NAME")).name for path in new_operator.FILES}
    assert files == set(re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE))


@pytest.mark.parametrize(
    "name, reason",
    [
        ("Lifted", "is no name of an operator: expected words of lower-case letters"),
        ("2lifted", "is no name of an operator"),
        ("lifted__up", "is no name of an operator"),
        ("../lifted", "is no name of an operator"),
        ("class", "is a word of C++ or Python"),
        ("lambda", "is a word of C++ or Python"),
        ("softmax", "is taken: there is tensorcraft/ops/softmax/"),
        ("rms_norm", "is taken: there is "),
        ("add", "is taken: tensorcraft/ops/"),  # of a folder of another name
        ("device_info", "is taken: tensorcraft/cuda/device.hpp uses it"),
        ("simt", "is taken: "),
        ("asarray", "is taken: python/tensorcraft/__init__.py uses it"),
    ],
)
def test_a_bad_or_taken_name_is_refused(name: str, reason: str) -> None:
    with pytest.raises(SystemExit, match="^new_operator: ") as refused:
        new_operator.check_name(name, ROOT)
    assert f'"{name}" {reason}' in str(refused.value)


def test_a_folder_that_is_no_tree_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts/new_operator.py", NAME, "--root", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode and "is no tree of TensorCraft" in done.stderr and not list(tmp_path.iterdir())


# The rest builds it: its own files, and those that list or test all operators, against the library that is built already.
COMPILED = (
    *(f"tensorcraft/ops/{NAME}/{NAME}{part}.cpp" for part in ("", "_cpu")),
    "tensorcraft/ops/all.cpp",
    f"tests/ops/{NAME}_test.cpp",
    "tests/ops/conformance_test.cpp",
    "tests/support/cases.cpp",
    "tests/support/drawn_cases.cpp",
    "tests/support/simt_cases.cpp",
    "kernel_test.cpp",
    "embedded.cpp",
)
# The kernel of a call on a GPU that is not there, through the library's own NVRTC.
KERNEL_TEST = """
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/ops/all.hpp"
#include <gtest/gtest.h>
namespace tensorcraft {
TEST(Kernel, IsCompiledForAGpu) {
  try {
    cuda::nvrtc_architectures();
  } catch (const Error&) {
    GTEST_SKIP() << "no NVRTC";
  }
  alignas(64) static char memory[64];
  const TensorView t(memory, DType::bfloat16, {2, 3});
  const op::Value options[] = {0.5};
  const DeviceInfo gpu = device_info_of_arch("sm_90a");
  auto e = find_operator("%s").explain(std::span(&t, 1), {.inputs = std::span(&t, 1), .options = options}, gpu);
  ASSERT_EQ(e.variant, "naive");
  op::add_kernel_reports(e, gpu);
  ASSERT_EQ(e.kernels.size(), 1u);
  EXPECT_EQ(e.kernels[0].problem, "");
  EXPECT_GT(e.kernels[0].registers, 0);
}
}  // namespace tensorcraft
"""


def build_folder() -> Path:
    """That of the package under test; a test without one is skipped."""
    package = importlib.util.find_spec("tensorcraft")
    places = [Path(package.origin).parents[2]] if package and package.origin else []
    for folder in [*places, ROOT / "build/release"]:
        if (folder / "compile_commands.json").exists() and (folder / "libtensorcraft.so").exists():
            return folder
    pytest.skip("no build folder with the library")


def compiler_and_options(build: Path) -> list[str]:
    """Those of a test program, for files of the copy: without a precompiled header, and quick to compile."""
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
    assert compiler
    entries = json.loads((build / "compile_commands.json").read_text())
    words = shlex.split(next(e["command"] for e in entries if "/cases_objects.dir/" in e["command"] and e["file"].endswith(".cpp")))
    words = words[words.index(compiler[1]) + 1 : words.index("-o")]
    if "-include" in words:
        del words[words.index("-include") : words.index("-include") + 2]
    others = re.compile(r"-O|-I|-Winvalid-pch|-fpch|-DTENSORCRAFT_CASES")
    return [compiler[1], *(w for w in words if not others.match(w)), "-O0"]


def embed(tree: Path) -> None:
    """The device text of the copy as a source file, as CMakeLists.txt makes it."""
    texts = sorted(p for pattern in ("device/*.h", "device/**/*.h", "device/**/*.cuh", "ops/**/*.cuh", "ops/*/params.h")
                   for p in (tree / "tensorcraft").glob(pattern))  # fmt: skip
    (tree / "texts.txt").write_text("\n".join(dict.fromkeys(map(str, texts))))
    subprocess.run(["cmake", f"-DROOT={tree}", f"-DLIST={tree}/texts.txt", "-DNAME=Embedded", f"-DOUT={tree}/embedded.cpp",
                    "-P", tree / "cmake/embed.cmake"], check=True)  # fmt: skip


@pytest.fixture(scope="module")
def program(tree: Path) -> Path:
    """Tests of all operators with the new one; the library's registry and device text are replaced by the copy's."""
    build = build_folder()
    embed(tree)
    (tree / "kernel_test.cpp").write_text(KERNEL_TEST % NAME)
    ccache = shutil.which("ccache")
    launcher = ["env", f"CCACHE_BASEDIR={tree}", "CCACHE_NOHASHDIR=1", ccache] if ccache else []
    options = compiler_and_options(build)
    command = [*launcher, *options, "-I.", '-DTENSORCRAFT_CASES="tests/ops/cases"', "-c"]

    def compiled(source: str) -> str:
        target = source.replace("/", "_") + ".o"
        done = subprocess.run([*command, source, "-o", target], cwd=tree, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, COMPILED))
    linked = next(line for line in (build / "build.ninja").read_text().splitlines() if "LINK_LIBRARIES" in line and "gtest_main" in line)
    gtest = [str(build / w) for w in linked.split() if re.search(r"libgtest\w*\.(a|so)", w)]
    subprocess.run([options[0], *objects, f"-L{build}", f"-Wl,-rpath,{build}", "-ltensorcraft", *gtest, "-pthread", "-o", "program"],
                   cwd=tree, check=True)  # fmt: skip
    return tree / "program"


def passed(program: Path, tests: str) -> str:
    """Runs these tests, of which there must be some."""
    done = subprocess.run([program, f"--gtest_filter={tests}"], cwd=program.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Running 0 tests" not in done.stdout, f"{tests} are no tests"
    return done.stdout


def test_it_agrees_with_its_reference_on_every_device(program: Path) -> None:
    printed = passed(program, f"*Conformance*{NAME}*")
    assert f"{NAME}_cpu" in printed or f"{NAME}_cuda" in printed
    commands = (build_folder() / "compile_commands.json").read_text()
    assert f"{NAME}_simt" in printed or "-DTENSORCRAFT_SIMT=0" in commands


def test_its_own_test_passes(program: Path) -> None:
    passed(program, f"{new_operator.in_pascal_case(NAME)}.*")


def test_its_kernel_compiles(program: Path) -> None:
    if "SKIPPED" in passed(program, "Kernel.*"):
        pytest.skip("no NVRTC")


@pytest.mark.skipif(NVCC is None, reason="no nvcc")
def test_its_launcher_compiles(tree: Path) -> None:
    (tree / "a.cu").write_text(
        f'#include "tensorcraft/kernels/{NAME}.cuh"\n'
        f"template std::string_view tensorcraft::kernels::launch_{NAME}(const float*, float*, int64_t, float, cudaStream_t, "
        "tensorcraft::DebugInfo);\n"
    )
    command = [NVCC, "-std=c++20", "-I.", "-arch=sm_90a", "-Ofc=max", "-O0", "-c", "a.cu", "-o", "a.o"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
