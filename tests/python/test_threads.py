# SPDX-License-Identifier: Apache-2.0
"""Python threads: first calls at one time, streams of each thread."""

import subprocess
import sys
import threading
from typing import Any

import tensorcraft as tc
from tensorcraft import _stream

FIRST_CALLS = """
import sys, threading
sys.setswitchinterval(1e-6)
import tensorcraft as tc
assert "numpy" not in sys.modules
start = threading.Barrier(4)
def work():
    start.wait()
    tc.exp([1.0])
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""


def test_first_calls_of_several_threads_do_not_wait_for_each_other() -> None:
    subprocess.run([sys.executable, "-c", FIRST_CALLS], timeout=60, check=True)


class FakeStream:
    device = "cuda:0"

    def __init__(self, handle: int) -> None:
        self.handle = handle


def test_two_threads_may_share_a_stream() -> None:
    shared: Any = FakeStream(64)
    own: Any = FakeStream(128)
    entered, left = threading.Event(), threading.Event()
    after: list[int] = []

    def other() -> None:
        _stream._enter(own)
        _stream._enter(shared)
        entered.set()
        left.wait(10)
        _stream._exit(shared)
        after.append(tc._native.current_stream(0))
        _stream._exit(own)

    thread = threading.Thread(target=other)
    before = tc._native.current_stream(0)
    _stream._enter(shared)
    thread.start()
    entered.wait(10)
    _stream._exit(shared)
    assert tc._native.current_stream(0) == before
    left.set()
    thread.join()
    assert after == [128]
