# SPDX-License-Identifier: Apache-2.0
"""The example of streams and events: exact on every device, and on a GPU two products run at one time."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tensorcraft as tc

PROGRAM = Path(__file__).parents[2] / "examples" / "streams.py"


def run(trace: Path) -> tuple[str, list[dict[str, Any]]]:
    """What it prints, and the calls that its trace holds; a trace of a process has no end."""
    environment = {**os.environ, "TENSORCRAFT_TRACE": str(trace)}
    done = subprocess.run([sys.executable, str(PROGRAM)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the sum of both products is exact" in done.stdout
    events = json.loads(trace.read_text().rstrip().rstrip(",]") + "]")
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return done.stdout, [{**e, "track": names[e["tid"]]} for e in events if e["ph"] == "X"]


@pytest.mark.skipif("simt" not in tc.devices() or "cuda:0" in tc.devices(), reason="no emulator, or a GPU")
def test_without_a_gpu_one_product_comes_after_the_other(tmp_path: Path) -> None:
    printed, calls = run(tmp_path / "trace.json")
    assert "on simt" in printed and [call["name"] for call in calls] == ["gemm", "gemm", "add"]
    first, second, _ = calls
    assert first["ts"] + first["dur"] <= second["ts"]


@pytest.mark.gpu
@pytest.mark.skipif("cuda:0" not in tc.devices(), reason="no GPU")
def test_on_a_gpu_the_trace_shows_two_streams_at_one_time(tmp_path: Path) -> None:
    printed, calls = run(tmp_path / "trace.json")
    print(printed)
    found = re.search(r"beside each other for (-?[\d.]+) ms", printed)
    assert found and float(found[1]) > 0
    products = [call for call in calls if call["name"] == "gemm" and not call["track"].startswith("thread")]
    assert any(
        a["track"] != b["track"] and a["ts"] < b["ts"] + b["dur"] and b["ts"] < a["ts"] + a["dur"]
        for a in products
        for b in products
    ), products
