# SPDX-License-Identifier: Apache-2.0
"""The package and a user's code pass mypy --strict with the stubs that are shipped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from valid_calls import files, valid_call

import tensorcraft as tc

HERE = Path(__file__).parent
PACKAGE = Path(tc.__file__).parent


def mypy(tmp_path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), *arguments]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=tmp_path)


class Name:
    """Written as `x`."""

    def __repr__(self) -> str:
        return "x"


def test_the_package_and_its_users_pass_strict_checks(tmp_path: Path) -> None:
    assert (PACKAGE / "py.typed").exists()
    result = mypy(tmp_path, "-p", "tensorcraft")
    assert result.returncode == 0, result.stdout
    result = mypy(tmp_path, str(HERE / "typing_check.py"))
    assert result.returncode == 0, result.stdout


def test_the_stubs_take_every_example_and_every_valid_call(tmp_path: Path) -> None:
    """Both are of the cases files; an array stands there as `x`."""
    lines = ["import numpy as np", "import tensorcraft as tc", "x = np.zeros(1)"]
    lines += [line for file in files() for line in file["examples"]]
    for name in tc.ops():
        args, options = valid_call(name, make=lambda *_: Name())
        given = [*map(repr, args), *(f"{option}={value!r}" for option, value in options.items())]
        lines.append(f"tc.{name}({', '.join(given)})")
    user = tmp_path / "user.py"
    user.write_text("\n".join(lines) + "\n")
    result = mypy(tmp_path, str(user))
    assert result.returncode == 0, result.stdout


def test_a_wrong_call_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text('import tensorcraft as tc\ntc.softmax([1.0], axis="a")\ntc.gelu([1.0], approximate="erf")\n')
    result = mypy(tmp_path, str(wrong))
    assert result.stdout.count("[arg-type]") == 2, result.stdout
