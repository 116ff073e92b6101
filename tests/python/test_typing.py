# SPDX-License-Identifier: Apache-2.0
"""The package and a user's code pass mypy --strict with the stubs that are shipped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tensorcraft as tc

HERE = Path(__file__).parent
PACKAGE = Path(tc.__file__).parent


def mypy(tmp_path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), *arguments]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=tmp_path)


def test_the_package_and_its_users_pass_strict_checks(tmp_path: Path) -> None:
    assert (PACKAGE / "py.typed").exists()
    result = mypy(tmp_path, "-p", "tensorcraft")
    assert result.returncode == 0, result.stdout
    result = mypy(tmp_path, str(HERE / "typing_check.py"))
    assert result.returncode == 0, result.stdout


def test_a_wrong_call_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text('import tensorcraft as tc\ntc.softmax([1.0], axis="a")\ntc.gelu([1.0], approximate="erf")\n')
    result = mypy(tmp_path, str(wrong))
    assert result.stdout.count("[arg-type]") == 2, result.stdout
