# SPDX-License-Identifier: Apache-2.0
"""The commands of the documents, as a reader would type them: every block marked `sh` runs here or in the test it names."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from process import ROOT

# Commands that would take the tests too long here, and what runs the same.
ELSEWHERE = {
    "scripts/test.sh": "scripts/test.sh",  # these tests are a part of it
    "scripts/setup.sh": "scripts/test.sh",
    "scripts/build.sh --no-tests": "scripts/test.sh",
    "python3 -m venv build/own": "tests/python/test_wheel.py",
    "build/own/bin/pip install .": "tests/python/test_wheel.py",
    "build/own/bin/python examples/quickstart.py": "tests/python/test_readme.py",
    "build/own/bin/tensorcraft doctor": "tests/python/test_wheel.py",
    "scripts/new_operator.py soft_clip": "tests/scripts/test_new_operator.py",
    "TC_TEST_FULL=1 ctest --test-dir build/release -R '^compile$'": "tests/compile/compile_test.cpp",
    "scripts/kernels_table.py --accept build/release/tests/gate/kernels.json": "tests/scripts/test_kernels_table.py",
}
PYTHON = ".venv/bin/python"
SAYS = {
    "build/first_kernel": "out[0] = 63, 0 of 256 are wrong",
    "build/naive_gemm": "0 of 153 are wrong",
    "build/axpy": "y[0] = 7, y[999] = 7",
    f"{PYTHON} examples/kernels/vector_scale.py": "expected an array of float32, got int32",
    f"{PYTHON} examples/kernels/tiled_matrix.py": "bfloat16 in tiles of 16 is exact",
    f"{PYTHON} examples/kernels/fused_softmax.py": "sum to one: True",
    f"{PYTHON} examples/kernels/memory_access.py": "staged, padded                         4                     1",
    "build/release/install/bin/tensorcraft explain transpose 8192x8192 --dtype float32 --arch sm_90a": "* tiled",
    f"{PYTHON} examples/exercises/coalesce.py": "not yet: 0 of 4096 are wrong, a warp stores to 32 sectors",
    f"{PYTHON} examples/exercises/barrier.py": "not yet: 128 of 256 are wrong",
    f"{PYTHON} examples/exercises/tile.py": "not yet: 0 of 1024 are wrong, 73728 loads",
    f"{PYTHON} examples/exercises/banks.py": "not yet: 0 of 1024 are wrong, a row takes 1 passes, a column 32",
    f"{PYTHON} examples/exercises/async_copy.py": "of 256 are wrong",
    f"{PYTHON} examples/exercises/fragment.py": "of 128 are wrong",
    f"{PYTHON} examples/exercises/warpgroup.py": "which a thread wrote without a fence.proxy.async after it",
    f"{PYTHON} examples/kernels/my_kernel.py": "Size mismatch for shape#0('n'): expected 1000 but got 10",
    f"{PYTHON} examples/kv_transfer.py": "every layer came back",
    f"{PYTHON} examples/quantized_products.py": "int8, sums alone: int32",
    "build/release/install/bin/tensorcraft trace -o build/streams.json .venv/bin/python examples/streams.py": "the sum of both products is exact",
    "build/without_barrier": "128 of 256 are wrong",
    "build/own_operator/center build/own_operator/librow_center.so": "simt: -2 -1 3 -1 0 1",
    f"{PYTHON} examples/own_operator/center.py build/own_operator/librow_center.so": "row_center for sm_90a: naive",
    'scripts/chat.sh "What is the capital of France?"': "The capital of France is Paris.",
    'scripts/demo.sh "how do plants make food?"': "Leaves turn sunlight",
    "build/quickstart/engine": "value, line",
    "build/quickstart/generate build/chat.safetensors 5 504 3575 282 4649 314": "7042 30 198 198 504\n",
    "build/quickstart/quickstart": "softmax: no variant is named",
    ".venv/bin/python examples/quickstart.py": "the first that accepts",
    ".venv/bin/tensorcraft doctor": "configuration",
}
PAGES = sorted(p for p in [ROOT / "README.md", *ROOT.glob("docs/*.md")] if "```sh\n" in p.read_text())


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [" ".join(shlex.split(line, comments=True, posix=False)) for block in blocks for line in block.splitlines()]


FIRST_KERNEL = commands(ROOT / "docs" / "first_kernel.md")
# The race library takes minutes to build: what uses it is run where it is there.
RACE = FIRST_KERNEL[FIRST_KERNEL.index("cmake --build build/release --target tensorcraft_race") :][:5]
ELSEWHERE.update(dict.fromkeys(RACE, "tests/cli/test_pages.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_says_runs(page: Path, command: Path, environment: dict[str, str]) -> None:
    if ROOT / "build" / "release" / "install" / "bin" / "tensorcraft" != command:
        pytest.skip("the pages speak of build/release")
    environment = {**environment, "PATH": f"{command.parent}:{environment['PATH']}", "HOME": os.environ.get("HOME", "/root")}
    for line in commands(page):
        if line in ELSEWHERE:
            continue
        done = subprocess.run(["bash", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        assert SAYS.get(line, "") in done.stdout, f"{line}\n{done.stdout}"


def run(command: str) -> str:
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.skipif(
    not (ROOT / "build" / "release" / "libtensorcraft_race.so").exists(), reason="there is no race library"
)
def test_the_race_library_names_both_lines_of_a_users_kernel() -> None:
    said = "".join(run(command) for command in RACE[1:])
    assert "race: this thread reads shared memory" in said
    assert "first_kernel.cpp:28, while thread (63, 0, 0) of block (0, 0, 0) writes it in" in said
    assert "first_kernel.cpp:24; nothing orders the two" in said


@pytest.mark.skipif(shutil.which("gdb") is None, reason="there is no gdb")
def test_a_debugger_shows_what_the_first_kernels_page_says(tmp_path: Path) -> None:
    program, script = tmp_path / "first_kernel", tmp_path / "script.gdb"
    run(FIRST_KERNEL[0].replace("build/first_kernel", str(program)))
    page = (ROOT / "docs" / "first_kernel.md").read_text()
    script.write_text("\n".join(re.findall(r"^\(gdb\) (.*)$", page, re.MULTILINE)) + "\n")
    said = run(f"taskset -c 0 gdb -q -batch -nx -x {script} {program}")
    assert "values = {0, 1, 2, 3, -nan(0x7fffff) <repeats 60 times>}" in said
    assert re.search(r"^28\t.*^\$1 = {0, 1, 2, 3, 4, 5, .*^\$2 = 3$", said, re.MULTILINE | re.DOTALL), said


def test_nothing_is_excused_that_no_page_says() -> None:
    said = {line for page in PAGES for line in commands(page)}
    assert said >= ELSEWHERE.keys() and said >= SAYS.keys()
    assert all((ROOT / place).exists() for place in ELSEWHERE.values())
