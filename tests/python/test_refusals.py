# SPDX-License-Identifier: Apache-2.0
"""The runtime where the system refuses a thread, memory or a file: an error of the library's or the result, no hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tensorcraft as tc

HERE = Path(__file__).resolve().parent
REFUSALS = Path(tc.__file__).resolve().parents[2] / "tests" / "libtensorcraft_refusals.so"  # tests/support/refusals.cpp
IS_FULL = bool(os.environ.get("TC_TEST_FULL"))

pytestmark = [
    pytest.mark.skipif(not REFUSALS.exists(), reason="there is no libtensorcraft_refusals.so in this build"),
    pytest.mark.skipif("simt" not in tc.devices(), reason="no emulator"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the tours share: files, and the cache that keeps what they compile."""
    return tmp_path_factory.mktemp("tour")


def run(folder: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "LD_PRELOAD": str(REFUSALS),
        "OPENBLAS_NUM_THREADS": "1",
        "TENSORCRAFT_CACHE_DIR": str(folder / "cache"),
        "TENSORCRAFT_STATUS": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


# Calls of each kind that a usual run refuses at a stop; 0: all of them, which are few.
@pytest.mark.parametrize(
    ("kind", "rounds"), [("thread", 0), ("map", 2), ("allocation", 4), ("open", 3), ("memory_file", 0)]
)
def test_a_refused_call_is_an_error_of_the_librarys_or_no_matter(kind: str, rounds: int, folder: Path) -> None:
    said = run(folder, str(HERE / "runtime_tour.py"), kind, "0" if IS_FULL else str(rounds), str(folder))
    report = json.loads(said.splitlines()[-1])
    assert report["refused"] > 0 and not report["failures"], "\n".join(report["failures"])


THREADS = """
import tensorcraft as tc
from runtime_tour import refused

def scheduler():
    tc.Scheduler("cpu", streams=4).close()

def engine():
    tc.TransferEngine("cpu").close()

for make, threads in ((scheduler, 5), (engine, 1)):
    make()  # what the process has one of starts
    for first in range(1, threads + 1):
        for lasts in (False, True):
            with refused("thread", first, lasts):
                try:
                    make()
                except tc.errors.OutOfMemory as error:
                    print(first, error)
    make()
"""


def test_each_thread_of_a_scheduler_and_an_engine_that_is_refused_is_named(folder: Path) -> None:
    said = run(folder, "-c", THREADS).splitlines()
    assert [int(line.split()[0]) for line in said] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 1, 1]
    for line in said[:10]:
        assert "Scheduler: the system starts no further thread (" in line and "close schedulers that are done" in line
    for line in said[10:]:
        assert "TransferEngine: the system starts no further thread (" in line


STATUS = """
import os, time
from pathlib import Path
import tensorcraft as tc
from runtime_tour import refused

with refused("thread", 2, False) as calls:  # behind the scheduler's first one is that which tells of the process
    tc.Scheduler("cpu", streams=1).close()
assert calls.given == 1
told = Path(os.environ["TENSORCRAFT_CACHE_DIR"]) / "status" / f"{os.getpid()}.json"
assert not told.exists()
with tc.Scheduler("cpu", streams=1):
    until = time.monotonic() + 20
    while not told.exists() and time.monotonic() < until:
        time.sleep(0.01)
    print(told.exists())
"""


def test_a_process_that_had_no_thread_to_tell_top_tells_it_later(folder: Path) -> None:
    assert run(folder, "-c", STATUS).split() == ["True"]
