# SPDX-License-Identifier: Apache-2.0
"""Shared memory under AddressSanitizer: the tests of DLPack and NumPy views again, in a process that begins with its library.

Its allocator knows what is freed: memory stays unused for long and is overwritten at once, so a stale read through NumPy has
another value, and one by a copy ends the process. Where `scripts/simt.sh asan` has built the library whose emulator and
its kernels are instrumented, as it has before the Python tests of `scripts/test.sh`, the package runs on that one, and a stale
read by a kernel ends the process too.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tensorcraft as tc

HERE = Path(__file__).parent
PACKAGE = Path(tc.__file__).parent
INSTRUMENTED = PACKAGE.parents[1] / "libtensorcraft_asan.so"


def library(name: str) -> str | None:
    """The compiler's runtime library of this name, or None."""
    compiler = shutil.which("c++")
    if not compiler:
        return None
    path = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    return path if os.path.isabs(path) else None


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of a process under AddressSanitizer."""
    first = [library("libasan.so"), library("libstdc++.so")]
    if not all(first):
        pytest.skip("there is no compiler with libasan")
    package = PACKAGE
    if INSTRUMENTED.exists():
        package = tmp_path_factory.mktemp("python") / "tensorcraft"
        package.mkdir()
        for file in PACKAGE.iterdir():
            if file.is_file() and not file.name.startswith("libtensorcraft"):
                shutil.copy2(file, package / file.name)
        (package / "libtensorcraft.so.0").symlink_to(INSTRUMENTED)
    return {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "LD_PRELOAD": " ".join(filter(None, first)),
        "CUDA_VISIBLE_DEVICES": "",  # the driver of a GPU wants memory that AddressSanitizer holds
        # What Python keeps until its end is no leak of ours.
        "ASAN_OPTIONS": "detect_leaks=0:max_free_fill_size=1000000000:free_fill_byte=221",
    }


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False, timeout=600)


def test_sources_that_go_first_are_safe(environment: dict[str, str]) -> None:
    files = ("test_dlpack.py", "test_protocols.py", "test_safetensors.py")
    # The instrumented library leaves out kernels of float16.
    done = run(environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not (simt and float16)", *files)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]


STALE = """
import gc, numpy, tensorcraft as tc
tensor = tc.full(1 << 16, 3, device="cpu")
held = tensor.numpy()
description = held.__array_interface__
del tensor, held
gc.collect()
class Stale:
    __array_interface__ = description
stale = numpy.asarray(Stale())
"""


@pytest.mark.parametrize("use", ["bytes(stale)", 'tc.add(stale, 1.0, device="simt")'])
def test_a_stale_view_ends_the_process(environment: dict[str, str], use: str) -> None:
    if "simt" in use and not INSTRUMENTED.exists():
        pytest.skip("kernels are not instrumented in this build")
    done = run(environment, "-c", STALE + use)
    assert done.returncode != 0 and "heap-use-after-free" in done.stderr, done.stderr[-3000:]


def test_a_stale_view_of_numpy_has_other_values(environment: dict[str, str]) -> None:
    done = run(environment, "-c", STALE + "print(stale[5])")
    assert done.returncode == 0 and float(done.stdout) not in (3, 0), done.stderr
