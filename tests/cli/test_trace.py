# SPDX-License-Identifier: Apache-2.0
"""tensorcraft trace: a program of Python, its events and its exit code."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from process import ROOT, Run

PROGRAM = """
import sys, threading
import numpy as np
import tensorcraft as tc
x = tc.asarray(np.ones(8, np.float32), device="cpu")
def work():
    tc.add(x, x)
thread = threading.Thread(target=work)
thread.start()
thread.join()
with tc.trace() as rows:
    tc.exp(x)  # the trace of the program's own has it
with tc.Scheduler("cpu") as s:
    s.submit(tc.multiply, x, x, name="square", qos="guaranteed").result(30)
with tc.TransferEngine("cpu") as engine:
    engine.to(x, "cpu", priority=3).result(30)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_it_writes_what_a_program_does(run: Run, program: Path, tmp_path: Path) -> None:
    done = run("trace", "-o", "t.json", sys.executable, str(program), "0", PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert done.code == 0, done.err
    assert done.out.startswith(f"{tmp_path / 't.json'}: ") and " events on " in done.out
    events = json.loads((tmp_path / "t.json").read_text())
    spans = {e["name"]: e for e in events if e["ph"] == "X"}
    assert spans["add"]["args"] == {"variant": "cpu", "device": "cpu"} and spans["add"]["dur"] >= 0
    assert "exp" not in spans
    assert spans["multiply"]["ts"] >= spans["add"]["ts"] + spans["add"]["dur"]
    task = next(e for name, e in spans.items() if "square" in name)
    assert task["args"]["class"] == "guaranteed" and task["args"]["state"] == "completed"
    assert task["ts"] <= spans["multiply"]["ts"] and task["dur"] >= spans["multiply"]["dur"]
    tracks = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    assert {"scheduler decisions", "tasks of stream 0"} <= tracks.keys()
    assert spans["add"]["tid"] != spans["multiply"]["tid"]  # of two threads
    copy = spans["32 bytes"]
    assert copy["tid"] == tracks["transfers cpu d2d"]
    assert copy["args"] == {"state": "completed", "priority": "3", "staged": "no"}
    decisions = [e["name"] for e in events if e["ph"] == "i" and e["tid"] == tracks["scheduler decisions"]]
    assert any(d.startswith("admit task") and "square" in d for d in decisions)


def test_the_exit_code_is_the_programs(run: Run, program: Path) -> None:
    done = run("trace", "--json", sys.executable, str(program), "5")
    assert done.code == 5
    summary = done.json()
    assert summary["exit_code"] == 5 and summary["processes"] == 1 and summary["events"] >= 4
    killed = run("trace", "sh", "-c", "kill -9 $$")
    assert killed.code == 137 and "no events" in killed.out


def test_processes_share_a_file_and_a_killed_one_leaves_what_it_did(run: Run, tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        "import os, signal, tensorcraft as tc\n"
        "for _ in range(2000): tc.exp([1.0], device='cpu')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = run("trace", "--json", "sh", "-c", f"'{sys.executable}' '{child}'; '{sys.executable}' '{child}'")
    assert done.code == 137
    summary = done.json()
    assert summary["processes"] == 2 and summary["events"] > 1000
    json.loads(Path(summary["file"]).read_text())


def test_what_is_wrong_is_said(run: Run, tmp_path: Path) -> None:
    assert run("trace").code == 2 and "give a program" in run("trace").err
    frob = run("trace", "--frob", "true")
    assert frob.code == 2 and "there is no option --frob" in frob.err
    missing = run("trace", "no-such-program")
    assert missing.code == 3 and "no-such-program cannot be started" in missing.err
    nowhere = run("trace", "-o", "/no/such/folder/t.json", "true")
    assert nowhere.code == 3 and "/no/such/folder/t.json cannot be written" in nowhere.err
    assert "no events" in run("trace", "true").out
    bad = run("devices", TENSORCRAFT_TRACE="/no/such/folder/t.json")
    assert bad.code == 0


KERNELS = """
import tensorcraft as tc
tc.softmax(tc.full((1000, 100), 1.0, device="simt"))
"""


@pytest.mark.parametrize("place", ["variable", "file"])
def test_a_setting_times_the_kernels_of_a_run(place: str, tmp_path: Path) -> None:
    """What a build with a macro would do, each program does that is asked to."""
    path, settings = tmp_path / "t.json", tmp_path / "config.json"
    settings.write_text(json.dumps({"trace": str(path)} if place == "file" else {}))
    environment = {**os.environ, "TENSORCRAFT_CONFIG": str(settings)}
    if place == "variable":
        environment["TENSORCRAFT_TRACE"] = str(path)
    began = time.monotonic_ns()
    subprocess.run([sys.executable, "-c", KERNELS], env=environment, check=True)
    took_us = (time.monotonic_ns() - began) / 1000
    events = [json.loads(line.rstrip(",")) for line in path.read_text().splitlines() if line != "["]
    spans = {e["name"]: e for e in events if e["ph"] == "X"}
    assert spans["softmax"]["args"] == {"variant": "in_registers", "device": "simt"}
    assert 0 < spans["softmax"]["dur"] < took_us
    assert spans["fill"]["ts"] + spans["fill"]["dur"] <= spans["softmax"]["ts"]


def test_a_setting_says_what_is_compiled(run: Run, has_nvrtc: bool) -> None:
    if not has_nvrtc:
        pytest.skip("there is no NVRTC")
    call = ("explain", "relu", "4", "--arch", "sm_90a")
    assert "jit: " in run(*call, TENSORCRAFT_LOG="debug").err
    assert "jit: " not in run(*call).err


def test_its_example_is_a_command(run: Run) -> None:
    assert "trace python examples/quickstart.py" in run("trace", "--help").out
    assert (ROOT / "examples" / "quickstart.py").exists()
