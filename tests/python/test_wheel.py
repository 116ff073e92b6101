# SPDX-License-Identifier: Apache-2.0
"""The sdist, and the wheel built from it, installed into a fresh environment without a compiler."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from typing import Any

import numpy
import pytest

pytest.importorskip("scikit_build_core")
pytest.importorskip("nanobind")

ROOT = Path(__file__).resolve().parents[2]
USE = """
import numpy as np, tensorcraft as tc
np.testing.assert_allclose(tc.l2_normalize(np.array([[3, 4]], np.float32), device="cpu"), [[0.6, 0.8]], rtol=1e-6)
print(tc.__version__, tc.__file__)
"""
MODULE = """
import sys, tensorcraft as tc
print(tc.load_jit("half", cpp_files=[sys.argv[1]], cpp_wrappers=[("half", "half")]).half(3))
"""


def run(*command: Any, cwd: Path, **environment: str) -> str:
    result = subprocess.run(
        [str(c) for c in command],
        check=False,
        cwd=cwd,
        text=True,
        capture_output=True,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    return result.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    code = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", code, folder, cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # Python 3.11.4 has it
    return folder / archive.name.removesuffix(".tar.gz")


def build_wheel(source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, "."]
    # Everything is named as in the build that the tests are of, so ccache knows what that compiled.
    environment = source / ".venv"
    environment.symlink_to(sys.prefix)
    settings = ["build-dir=build/wheel", f"cmake.define.CMAKE_PREFIX_PATH={environment}"]
    command += [f"--config-settings={setting}" for setting in settings]  # Debian 12's pip has no short form
    compilers = {name: os.environ.get(name, usual) for name, usual in (("CC", "cc"), ("CXX", "c++"))}
    run(*command, cwd=source, CMAKE_BUILD_PARALLEL_LEVEL="2", **compilers)
    (wheel,) = folder.glob("*.whl")
    return wheel


def compile_a_module(python: Path, folder: Path) -> None:
    """Where there is a compiler: the wheel brings the headers that a module needs."""
    if not any(map(shutil.which, ("g++", "clang++", "c++"))):
        return
    source = folder / "half.cpp"
    source.write_text("double half(double x) { return x / 2; }\n", encoding="utf-8")
    printed = run(python, "-c", MODULE, source, cwd=folder, PYTHONPATH="", TENSORCRAFT_CACHE_DIR=str(folder / "cache"))
    assert printed == "1.5\n"


def try_out(wheel: Path, folder: Path) -> None:
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    (site,) = (folder / "lib").glob("python*/site-packages")
    for package in Path(numpy.__file__).parents[1].glob("numpy*"):  # the one dependency, without a download
        (site / package.name).symlink_to(package)
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel, cwd=folder)
    printed = run(python, "-c", USE, cwd=folder, PATH=str(folder / "bin"), PYTHONPATH="")
    version, place = printed.strip().split(maxsplit=1)
    assert wheel.name.startswith(f"tensorcraft-{version}-") and place.startswith(str(folder))
    command = folder / "bin" / "tensorcraft"
    assert run(command, "--version", cwd=folder) == f"tensorcraft {version}\n"
    doctor = json.loads(run(command, "doctor", "--json", cwd=folder, PYTHONPATH=""))
    checks = {c["name"]: c for c in doctor["checks"]}
    assert checks["Python package"]["finding"] == f"{version} in {site / 'tensorcraft'}"
    files = {p.name for p in (site / "tensorcraft").iterdir()}
    assert {"py.typed", "_ops.pyi", "_tensorcraft.pyi", "libtensorcraft.so.0"} <= files
    assert not list((site / "tensorcraft").glob("*.hpp")), "headers are in a folder of their own"
    compile_a_module(python, folder)
    assert [name for name in files if name.startswith("libtensorcraft.so")] == ["libtensorcraft.so.0"], "the library once"
    (metadata,) = site.glob("tensorcraft-*.dist-info/METADATA")
    assert {"Summary", "License-Expression", "Description-Content-Type", "Classifier", "Keywords"} <= {
        line.split(":")[0] for line in metadata.read_text().splitlines()
    }


def test_the_sdist_holds_the_tree(sdist: Path) -> None:
    """So a wheel of the checkout is the wheel of the sdist."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    tracked = set(run("git", "ls-files", cwd=ROOT).splitlines())
    assert not {name for name in tracked if not (sdist / name).exists() and not name.startswith(".ci/")}
    assert not (sdist / "build").exists()


def test_the_wheel_of_the_sdist_works_without_a_compiler(sdist: Path, tmp_path: Path) -> None:
    try_out(build_wheel(sdist, tmp_path), tmp_path / "venv")
