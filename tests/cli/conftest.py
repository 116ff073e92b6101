# SPDX-License-Identifier: Apache-2.0
"""The built command as a process, in an environment that holds nothing of the user's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from process import ROOT, Result, Run


def pytest_addoption(parser: pytest.Parser) -> None:
    default = ROOT / "build" / "release" / "install" / "bin" / "tensorcraft"
    parser.addoption("--command", type=Path, default=default, help="the installed tensorcraft")


@pytest.fixture(scope="session")
def command(request: pytest.FixtureRequest) -> Path:
    path: Path = request.config.getoption("--command").resolve()
    assert path.exists(), f"{path} does not exist; run scripts/build.sh, or name it with --command"
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home and a cache of its own; the user's NVRTC."""
    kept = {name: os.environ[name] for name in ("PATH", "TENSORCRAFT_NVRTC", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "HOME": str(tmp_path / "home"), "TENSORCRAFT_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def run(command: Path, environment: dict[str, str], tmp_path: Path) -> Run:
    """Runs the command; keyword arguments change the environment, None takes a variable away."""

    def call(*arguments: str, stdin: str = "", **changes: str | None) -> Result:
        merged = {**environment, **{k: v for k, v in changes.items() if v is not None}}
        for name in (k for k, v in changes.items() if v is None):
            merged.pop(name, None)
        done = subprocess.run(
            [command, *arguments], input=stdin, capture_output=True, text=True, env=merged, cwd=tmp_path, check=False,
            timeout=120,
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def has_nvrtc(run: Run) -> bool:
    checks = run("doctor", "--json").json()["checks"]
    return any(c["name"] == "NVRTC" and c["result"] != "FAIL" and " compiles for " in c["finding"] for c in checks)
