# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a long call soon, and what follows works; a process ends well whatever its threads compute."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

X = np.random.default_rng(1).standard_normal((4096, 4096)).astype(np.float32)
ROWS = X.reshape(1, 1, -1, 64)[:, :, :100_000]
# Each takes many times as long as it is given.
LONG: dict[str, Callable[[], Any]] = {
    "reference": lambda: tc.gemm(X, X, device="cpu", variant="reference"),
    "simt": lambda: tc.gemm(X, X, device="simt", variant="naive"),
    "simt, all blocks at barriers": lambda: tc.gemm(X, X, device="simt", variant="block_tiled"),
    "ranges": lambda: tc.attention(ROWS, ROWS, ROWS, device="cpu"),
}


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_a_long_call(name: str) -> None:
    timer = interrupt_after(0.2)
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        LONG[name]()
        time.sleep(60)  # the call was shorter: the signal comes here
    took = time.perf_counter() - begin
    timer.join()
    assert took < 10
    assert tc.relu(np.array([-1.0, 2.0], np.float32)).tolist() == [0.0, 2.0]
    assert tc.relu(np.array([-1.0, 2.0], np.float32), device="simt").tolist() == [0.0, 2.0]


@pytest.mark.skipif(
    "simt" not in tc.devices() or not any(map(shutil.which, ("g++", "clang++", "c++"))),
    reason="no emulator or no C++ compiler",
)
def test_an_interrupt_ends_a_kernel_that_spins() -> None:
    text = "__global__ void spin(const volatile float* x) { while (x[threadIdx.x] == 0) {} }"
    spin = tc.kernel(text, "spin(const float* x)", device="simt")
    spin[4, 32](np.ones(32, np.float32))
    timer = interrupt_after(0.2)
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        spin[4, 32](np.zeros(32, np.float32))
    took = time.perf_counter() - begin
    timer.join()
    assert took < 10
    spin[4, 32](np.ones(32, np.float32))


def test_what_a_handler_raises_is_what_is_raised() -> None:
    def handler(*_: Any) -> None:
        tc.add(X[:4, :4], 1.0)  # a call within a call
        raise LookupError("from the handler")

    signal.signal(signal.SIGINT, handler)
    timer = interrupt_after(0.2)
    with pytest.raises(LookupError, match="from the handler"):
        LONG["reference"]()
    timer.join()


def test_a_handler_that_returns_ends_nothing() -> None:
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    timer = interrupt_after(0.1)
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        tc.gemm(X[:512, :512], X[:512, :512], device="cpu", variant="reference")
    timer.join()
    assert seen == [1]


DAEMONS = """
import threading, time
import numpy as np
import tensorcraft as tc
x = np.ones(200_000, np.float32)
t = tc.asarray(x)
def work():
    while True:
        tc.add(x, x); tc.add(t, t); tc.topk(x[:64], 2)
for _ in range(3): threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""


def test_daemon_threads_may_compute_while_the_program_ends() -> None:
    for _ in range(int(os.environ.get("TC_TEST_FULL", "0")) * 45 + 5):
        done = subprocess.run([sys.executable, "-c", DAEMONS], timeout=60, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
