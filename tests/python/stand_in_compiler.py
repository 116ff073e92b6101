# SPDX-License-Identifier: Apache-2.0
"""Programs named g++ for tests: one that takes milliseconds, and one that counts its calls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

COMPILER = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), "")


def put(folder: Path, script: str) -> str:
    """A search path that has the script as its compiler."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "g++"
    program.write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def quick(folder: Path, text: str) -> str:
    """One that makes the library of `text`, whatever it is given."""
    (folder / "made.cpp").write_text(text, encoding="utf-8")
    library = folder / "made.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, folder / "made.cpp"], check=True)
    return put(
        folder,
        f'for word in "$@"; do\n  [ "$last" = -o ] && /bin/cp {library} "$word"\n  last=$word\ndone\n',
    )


def counting(folder: Path) -> tuple[str, Path]:
    """The real one, and a file that has a line for each call."""
    calls = folder / "calls"
    return put(folder, f'echo >> {calls}\nexec {COMPILER} "$@"\n'), calls


def start(program: str, path: str, folder: Path) -> subprocess.Popen[str]:
    """A process with this search path and an empty cache."""
    environment = {
        **os.environ, "PATH": path, "PYTHONPATH": ":".join(sys.path), "TENSORCRAFT_CACHE_DIR": str(folder / "cache"),
    }  # fmt: skip
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)


def printed(running: subprocess.Popen[str]) -> str:
    text, _ = running.communicate()
    assert running.returncode == 0
    return text
