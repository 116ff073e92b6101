# SPDX-License-Identifier: Apache-2.0
"""The emulator compiles what a call asks for: any variant, dtype and shape, once for all processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorcraft as tc

pytestmark = pytest.mark.skipif(
    "simt" not in tc.devices() or not any(map(shutil.which, ("g++", "clang++", "c++"))),
    reason="no emulator or no C++ compiler",
)


def accepted(*call: object, **options: object) -> list[str]:
    return [row.name for row in tc.explain(*call, **options).variants if row.accepted]


@pytest.mark.parametrize("shape", [(8, 3000), (3, 517), (2, 9001)])
def test_every_variant_that_a_gpu_would_take_runs(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float16)
    expected = np.asarray(tc.softmax(x, device="cpu", variant="reference"))
    on_simt = tc.asarray(x, device="simt")
    variants = accepted("softmax", on_simt)
    assert {"online", "naive"} < set(variants)
    for variant in variants:
        np.testing.assert_allclose(tc.softmax(on_simt, variant=variant).numpy(), expected, rtol=2e-3, atol=1e-6, err_msg=variant)


def test_products_take_any_shape() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((64, 256)).astype(np.float16), rng.standard_normal((256, 512)).astype(np.float16)
    expected = np.asarray(tc.gemm(a, b, device="cpu", variant="reference"))
    for variant in ("wgmma", "warp_specialized"):
        got = tc.gemm(tc.asarray(a, device="simt"), tc.asarray(b, device="simt"), variant=variant)
        np.testing.assert_allclose(got.numpy(), expected, rtol=2e-2, atol=2e-2)


def test_an_expression_is_compiled_as_on_a_gpu() -> None:
    x = tc.asarray(np.linspace(-2, 2, 37, dtype=np.float32), device="simt")
    text = "tanh(x) * 3 + x"
    fused, strided = (tc.elementwise(text, x=x, variant=variant).numpy() for variant in ("fused", "strided"))
    assert tc.explain("elementwise", text, x=x).variant in ("fused", "strided")
    y = tc.elementwise(text, x=x)
    assert (fused == y.numpy()).all() and (strided == fused).all()
    np.testing.assert_allclose(y.numpy(), np.tanh(x.numpy()) * 3 + x.numpy(), rtol=1e-6)


CALL = """
import sys, numpy as np, tensorcraft as tc
x = tc.asarray(np.ones((3, 777), np.float16), device="simt")
print([(row.name, row.reason) for row in tc.explain("softmax", x).variants if row.name == "in_registers"])
print(tc.softmax(x).numpy().sum(dtype=np.float64).round(2))
tc.softmax(x, variant=sys.argv[1])
"""


def call_in(folder: Path, variant: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CALL, variant],
        env={**os.environ, "TENSORCRAFT_CACHE_DIR": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def entries(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_ino for path in folder.rglob("*") if path.is_file() and len(path.name) >= 64}


def test_another_process_finds_it_on_the_disk(tmp_path: Path) -> None:
    first = call_in(tmp_path, "in_registers")
    assert first.returncode == 0, first.stderr
    kept = entries(tmp_path)
    assert kept
    again = call_in(tmp_path, "in_registers")
    assert again.returncode == 0 and again.stdout == first.stdout
    assert entries(tmp_path) == kept


def test_without_a_compiler_the_library_runs_what_it_holds(tmp_path: Path) -> None:
    settings = tmp_path / "config.json"
    settings.write_text('{"jit": "off"}')
    for environment, why in (
        ({"PATH": "/nowhere"}, "there is no C++ compiler (g++, clang++ or c++) in the folders of PATH; install g++"),
        ({"TENSORCRAFT_CONFIG": str(settings)}, "the setting jit is off"),
    ):
        done = call_in(tmp_path, "in_registers", **environment)
        said, total = done.stdout.splitlines()
        assert "the emulator does not hold softmax_in_registers_float16" in said and why in said, done.stdout
        assert total == "3.0"
        assert done.returncode != 0 and "Unsupported" in done.stderr and why in done.stderr
        assert not entries(tmp_path)


@pytest.mark.parametrize("name, program", [("g++", "g++"), ("clang++", "clang++-19")])
def test_either_compiler_alone_is_enough(tmp_path: Path, name: str, program: str) -> None:
    if not shutil.which(program):
        pytest.skip(f"no {program}")
    folder = tmp_path / "bin"
    folder.mkdir()
    for link, tool in ((name, program), ("as", "as"), ("ld", "ld")):
        (folder / link).symlink_to(os.path.realpath(str(shutil.which(tool))))
    done = call_in(tmp_path / "cache", "in_registers", PATH=str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == "3.0" and entries(tmp_path / "cache")
