# SPDX-License-Identifier: Apache-2.0
"""What a run of the command leaves."""

from __future__ import annotations

import json
import pty
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Result:
    """Exit code and what was written."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


def open_terminal() -> tuple[int, int]:
    """Both ends of a new terminal; the test is skipped where the machine has none to give, as a bare chroot."""
    try:
        return pty.openpty()
    except OSError as problem:
        pytest.skip(f"no terminal: {problem}")


def options_of(run: Run, *command: str) -> set[str]:
    """The options that the help of a command lists."""
    return set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", run(*command, "--help").out, re.MULTILINE))
