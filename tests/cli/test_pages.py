# SPDX-License-Identifier: Apache-2.0
"""The commands of the documents, as a reader would type them: every block marked `sh` runs here or in the test it names."""

import os
import re
import shlex
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
    "scripts/kernels_table.py --accept build/release/tests/gate/kernels.json": "tests/scripts/test_documents.py",
}
SAYS = {
    'scripts/demo.sh "how do plants make food?"': "Leaves turn sunlight",
    "build/quickstart/quickstart": "softmax: no variant is named",
    "PYTHONPATH=build/release/python .venv/bin/python examples/quickstart.py": "the first that accepts",
    "build/release/install/bin/tensorcraft doctor": "configuration",
}
PAGES = sorted(p for p in [ROOT / "README.md", *ROOT.glob("docs/*.md")] if "```sh\n" in p.read_text())


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [" ".join(shlex.split(line, comments=True, posix=False)) for block in blocks for line in block.splitlines()]


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


def test_nothing_is_excused_that_no_page_says() -> None:
    said = {line for page in PAGES for line in commands(page)}
    assert said >= ELSEWHERE.keys() and said >= SAYS.keys()
    assert all((ROOT / place).exists() for place in ELSEWHERE.values())
