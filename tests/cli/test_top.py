# SPDX-License-Identifier: Apache-2.0
"""tensorcraft top: what another process tells."""

import subprocess
import sys
from pathlib import Path

from process import Run

PROGRAM = """
import sys
import tensorcraft as tc
x = tc.zeros(1 << 20, dtype=tc.float32, device="cpu")
gone = tc.zeros(1 << 21, dtype=tc.float32, device="cpu")
del gone
pool = tc.MemoryPool(1 << 20, "cpu")
block = pool.allocate(1 << 19)
pool.free(pool.allocate(1 << 18))
s = tc.Scheduler("cpu")
s.submit(int).result(30)
engine = tc.TransferEngine("cpu")
copied = engine.to(x, "cpu").result(30)  # it stays: whenever the process tells, as much is used
print("ready", flush=True)
sys.stdin.read()
s.close()
"""


def test_it_shows_what_a_process_tells(run: Run, environment: dict[str, str], tmp_path: Path) -> None:
    assert "no process tells its status; start one with TENSORCRAFT_STATUS=1" in run("top").out
    program = [sys.executable, "-c", PROGRAM]
    telling = {**environment, "TENSORCRAFT_STATUS": "1"}
    with subprocess.Popen(program, env=telling, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdin is not None
        try:
            assert child.stdout.readline() == "ready\n"
            while True:  # it tells once a second
                processes = run("top", "--json").json()["processes"]
                items = {i["kind"]: i["numbers"] for p in processes for i in p["items"]}
                if items.get("transfers", {}).get("completed") == 1:
                    break
            assert [p["pid"] for p in processes] == [child.pid]
            assert items["scheduler"]["completed"] == 1 and items["transfers"]["moved_bytes"] == 1 << 22
            assert items["memory"]["used_bytes"] >= 1 << 22
            assert items["memory"]["peak_bytes"] >= items["memory"]["used_bytes"] + (1 << 22)
            assert items["pool"]["used_bytes"] == 1 << 19 and items["pool"]["quota_bytes"] == 1 << 20
            assert items["pool"]["peak_bytes"] == (1 << 19) + (1 << 18)
            shown = run("top", "--once").out
            assert str(child.pid) in shown and "completed 1" in shown and "used 512.0 KiB" in shown
            assert " GB/s" in shown and "gb_per" not in shown
        finally:
            child.stdin.close()
    assert child.returncode == 0
    assert run("top", "--json").json()["processes"] == []
    assert list((tmp_path / "cache" / "status").iterdir()) == []


def test_a_process_that_is_not_asked_tells_nothing(run: Run, environment: dict[str, str], tmp_path: Path) -> None:
    code = "import tensorcraft as tc; tc.Scheduler('cpu').close()"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert not (tmp_path / "cache" / "status").exists()


def test_a_folder_that_cannot_be_used_ends_no_program(environment: dict[str, str]) -> None:
    code = "import tensorcraft as tc; tc.Scheduler('cpu').close(); print('done')"
    broken = {**environment, "TENSORCRAFT_STATUS": "1", "TENSORCRAFT_CACHE_DIR": "/dev/null"}
    done = subprocess.run([sys.executable, "-c", code], env=broken, check=True, capture_output=True, text=True)
    assert done.stdout == "done\n" and "status: it is not told to tensorcraft top" in done.stderr


def test_an_interval_is_bounded(run: Run) -> None:
    assert run("top", "--interval", "0").code == 2
