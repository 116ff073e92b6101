# SPDX-License-Identifier: Apache-2.0
"""The README and docs/python.md agree with the package: their examples run."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command: str) -> str:
    environment = {**os.environ, "TENSORCRAFT_DEVICE": "cpu"}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_quickstart_runs() -> None:
    printed = run("examples/quickstart.py")
    assert "(4, 4) cpu" in printed and re.search(r"softmax (for sm_90a|on cuda:0): ", printed)


def test_the_tour_prints_what_its_comments_say() -> None:
    tour = "examples/python_tour.py"
    printed = run(tour)
    said = re.findall(r"^ *print\(.*\)  # (.*\d.*)$", (ROOT / tour).read_text(), re.MULTILINE)
    assert len(said) >= 4
    for text in said:
        assert f"{text}\n" in printed
    assert "TensorCraftTypeError relu: x: dtype float64" in printed
