# SPDX-License-Identifier: Apache-2.0
"""The serving example: two classes beside a flood, within a quota, on the CPU."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
tc = pytest.importorskip("tensorcraft")
import chat_model


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    model = str(chat_model.path())
    command = [sys.executable, str(EXAMPLES / "serving" / "serve.py"), "--model", model, "--device", "cpu", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_guaranteed_requests_are_answered_beside_a_flood(tmp_path: Path) -> None:
    trace = tmp_path / "serve.json"
    done = run("--requests", "4", "--max-tokens", "10", "--trace", str(trace))
    assert done.returncode == 0, done.stderr
    assert "What is the capital of France? The capital of France is Paris." in done.stdout
    medians = {
        who: float(ms) for who, ms in re.findall(r"^(chat \w+|search) +queue p50 +([\d.]+) ms", done.stdout, re.MULTILINE)
    }
    assert medians.keys() == {"chat guaranteed", "chat best_effort", "search"}
    found = re.search(r"(\d+) searches .*: (\d+) evictions, (\d+) restores\n(\d+) tasks, 0 failed", done.stdout)
    assert found, done.stdout
    searches, evictions, restores, tasks = map(int, found.groups())
    assert evictions >= restores > 0 and tasks > searches > 0
    events = json.loads(trace.read_text().rstrip().rstrip(",") + "]")
    names = {e["name"] for e in events}
    assert {"paged_attention", "argmax"} <= names
    assert any(n.startswith("admit task") and "chat guaranteed" in n for n in names)


def test_what_is_wrong_is_one_line() -> None:
    done = run("--requests", "1")
    assert done.returncode == 2 and "--requests must be at least 2" in done.stderr
    missing = run("--model", "/no/such/file.gguf")
    assert missing.returncode == 1 and "Traceback" not in missing.stderr and "/no/such/file.gguf" in missing.stderr
