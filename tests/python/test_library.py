# SPDX-License-Identifier: Apache-2.0
"""An operator that was built outside the package. It stays in a process that loads it, so each test has its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tensorcraft as tc

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(tc.__file__).resolve().parents[2] / "install"  # beside the package in a build folder


def run(*command: "str | Path") -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(tc.__file__).parents[1])},
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (INSTALLED / "lib" / "cmake").exists() or not shutil.which("cmake"):
        pytest.skip("there is no installed CMake package beside this one")
    folder = tmp_path_factory.mktemp("own_operator")
    run(
        "cmake",
        "-S",
        ROOT / "examples" / "own_operator",
        "-B",
        folder,
        "-G",
        "Ninja",
        f"-DCMAKE_PREFIX_PATH={INSTALLED}",
    )
    run("cmake", "--build", folder, "--target", "row_center")
    return folder / "librow_center.so"


def test_its_function_is_like_those_of_the_package(library: Path) -> None:
    code = f"""
import inspect
import numpy as np, tensorcraft as tc
before = tc.ops()
added = tc.add_library({str(library)!r})
assert list(added) == ["row_center"] and list(tc.ops()) == [*before, "row_center"] and "row_center" not in before
row_center = added["row_center"]
assert tc.ops()["row_center"] is row_center and tc.add_library({str(library)!r}) == added  # twice: nothing more
assert len(tc.ops()) == len(before) + 1

function = row_center.function
assert function.__name__ == "row_center" and inspect.getdoc(function).startswith("Subtracts the mean of each row.")
assert list(inspect.signature(function).parameters) == ["x", "out", "stream", "variant", "device"]
assert row_center.dtypes == ("float32", "float16", "bfloat16")
assert [v.name for v in row_center.variants] == ["naive", "cpu", "reference"]

rng = np.random.default_rng(5)
for shape in [(0, 3), (3, 0), (1,), (7, 31), (2, 3, 257)]:
    x = rng.standard_normal(shape).astype(np.float32)
    want = x - x.mean(-1, keepdims=True, dtype=np.float64) if x.size else x
    for device, variant in [("cpu", "cpu"), ("cpu", "reference"), ("simt", "naive")]:
        out = np.full(shape, np.nan, np.float32)
        assert row_center(x, out=out, device=device, variant=variant) is out
        np.testing.assert_allclose(out, want, atol=2e-6)
        half = row_center(x.astype(np.float16), device=device, variant=variant)
        np.testing.assert_allclose(half, want, atol=0.01)
x = rng.standard_normal((6, 5)).astype(np.float32)
np.testing.assert_allclose(row_center(x.T, device="simt"), x.T - x.T.mean(-1, keepdims=True), atol=2e-6)

for call, error, text in [
    (lambda: row_center(1.0), ValueError, "row_center: x: expected rows"),
    (lambda: row_center(np.ones(3, np.int32)), TypeError, "row_center: x: "),
    (lambda: row_center(x, variant="fast"), ValueError, 'no variant is named "fast"; there are naive, cpu, reference'),
    (lambda: tc.explain("row_centre", x), KeyError, "did you mean row_center?"),
]:
    try:
        call()
    except error as e:
        assert text in str(e), e
    else:
        raise AssertionError(text)

for name in ("row_center", row_center.function):
    found = tc.explain(name, x, arch="sm_90a")
    assert found.variant == "naive" and found.variants[0].file == "tensorcraft/ops/row_center/00_naive.cuh"
    problem = found.kernels[0].problem
    assert problem == "" or "NVRTC" in problem, problem  # its headers reach the compiler
"""
    run(sys.executable, "-c", code)


def test_a_library_that_does_not_fit_is_refused(library: Path, tmp_path: Path) -> None:
    copy = tmp_path / "librow_center.so"
    shutil.copy(library, copy)
    other = tmp_path / "other.cpp"
    other.write_text('extern "C" const char* tensorcraft_built_for() { return "9.8.7"; }\n')
    run("c++", "-shared", "-fPIC", other, "-o", tmp_path / "other.so")
    code = f"""
import pathlib, sys
import tensorcraft as tc
tc.add_library(pathlib.Path({str(library)!r}))
folder = pathlib.Path({str(tmp_path)!r})
for name, error, text in [
    ("librow_center.so", ValueError, 'an operator is named "row_center" already'),
    ("other.so", ValueError, "was built for tensorcraft 9.8.7, this is " + tc.__version__),
    ("other.cpp", ValueError, "cannot load"),
    ("missing.so", FileNotFoundError, "there is no file"),
    (3, TypeError, "path"),
]:
    before = list(tc.ops())
    try:
        tc.add_library(folder / name if name != 3 else name)
    except error as e:
        assert isinstance(e, tc.errors.Error) and text in str(e), e
    else:
        raise AssertionError(name)
    assert list(tc.ops()) == before
"""
    run(sys.executable, "-c", code)
