# SPDX-License-Identifier: Apache-2.0
"""A tour through the runtime while the system refuses what it is asked for; test_refusals.py runs it.

    LD_PRELOAD=libtensorcraft_refusals.so python runtime_tour.py KIND ROUNDS FOLDER [STOP ...]

Each stop of the tour runs in a fork of its own, once for each call of the kind that it makes: that call is refused, or
that one and all later ones. The stop gives its result or an error of the library's, and gives its result afterwards.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.testing import assert_array_equal

import tensorcraft as tc

KINDS = ("thread", "map", "allocation", "open", "memory_file")
LEAST_BYTES = 4 << 10  # smaller blocks come from what an allocator keeps
MORE_SECONDS = 5.0  # than a stop takes when nothing is refused

X = np.arange(6, dtype=np.float32)
LARGE = np.arange(5 << 16, dtype=np.float32)  # 1.25 MiB: no allocator keeps as much
SQUARE = np.ones((256, 256), np.float32)
KERNEL = "__global__ void twice(float* y, int64_t n) { for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] *= 2; }"
MODULE = "namespace { int64_t twice(int64_t n) { return 2 * n; } }"


def scheduler(device: str) -> None:
    x = tc.asarray(X, device=device)
    with tc.Scheduler(device, streams=3, max_running=3) as s:
        tasks = [s.submit(tc.add, x, x, stream=i) for i in range(4)]
        for task in tasks:
            assert_array_equal(np.asarray(task.result(20)), 2 * X)


def dropped_scheduler() -> None:
    s = tc.Scheduler("cpu", streams=2)
    assert s.submit(int, "7").result(20) == 7
    del s
    gc.collect()
    tc._tensorcraft.wait_for_background()


def transfers() -> None:
    with tc.TransferEngine("simt") as engine:
        there = engine.to(tc.asarray(LARGE), "simt").result(20)
        assert_array_equal(engine.to(there, "cpu").result(20).numpy(), LARGE)


def non_blocking() -> None:
    assert_array_equal(tc.asarray(LARGE).to("simt", non_blocking=True).numpy(), LARGE)


def pool() -> None:
    pool = tc.memory.MemoryPool(quota=4 << 20, device="cpu")
    first, second = pool.allocate(3 << 20), pool.allocate(1 << 20)
    x = pool.pin(first, 6, "float32")
    x[:] = X
    del x
    pool.evict(first)
    pool.free(second)
    assert_array_equal(pool.pin(first, 6, "float32").numpy(), X)


def large_tensors() -> None:
    x = tc.asarray(LARGE, device="simt")
    assert_array_equal(tc.concat([x, x]).numpy()[LARGE.size :], LARGE)


def weights(folder: Path, lazy: bool) -> None:
    path = folder / "weights.safetensors"
    loaded = tc.load_safetensors(path, device="simt", lazy=True) if lazy else tc.load_safetensors(path, device="simt")
    assert_array_equal(loaded["a"].numpy(), LARGE)
    assert_array_equal(loaded["b"].numpy(), X)


def write_weights(folder: Path) -> None:
    a, b = LARGE.tobytes(), X.tobytes()
    ends = [0, len(a), len(a) + len(b)]
    names = {"a": (LARGE, ends[:2]), "b": (X, ends[1:])}
    header = {n: {"dtype": "F32", "shape": list(v.shape), "data_offsets": at} for n, (v, at) in names.items()}
    text = json.dumps(header).encode()
    (folder / "weights.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + a + b)
    (folder / "module.cpp").write_text(MODULE, encoding="utf-8")


def module(folder: Path) -> None:
    loaded = tc.load_jit("tour", cpp_files=[folder / "module.cpp"], cpp_wrappers=[("twice", "twice")])
    assert loaded.twice(21) == 42


def kernel() -> None:
    y = X.copy()
    tc.kernel(KERNEL, "twice(float* y, int64 n)", device="simt")[1, 32](y, y.size)
    assert_array_equal(y, 2 * X)


def compiled() -> None:
    found = tc.kernel(KERNEL, "twice(float* y, int64 n)").explain(32, arch="sm_90a")
    assert found.registers > 0 or "NVRTC" in found.problem


def operators(device: str) -> None:
    x = tc.asarray(SQUARE, device=device)
    assert float(tc.gemm(x, x).numpy()[3, 4]) == 256
    assert float(tc.sum(x).numpy()) == 65536
    assert_array_equal(tc.add(x, x).numpy(), 2 * SQUARE)


def emulator() -> None:
    small = tc.asarray(SQUARE[:64, :64], device="simt")
    for variant in ("naive", "block_tiled"):
        assert float(tc.gemm(small, small, variant=variant).numpy()[3, 4]) == 64


def records() -> None:
    x = tc.asarray(X, device="simt")
    with tc.trace() as seen, tc.dispatch.record():
        tc.add(x, x)
        assert tc.dispatch.recent(1)
    assert "add" in str(seen)


def caches() -> None:
    assert tc.cache.stat()
    tc.cache.list()
    tc.cache.verify()


def stops(folder: Path) -> dict[str, Callable[[], None]]:
    """The tour, by name."""
    return {
        "scheduler on cpu": lambda: scheduler("cpu"),
        "scheduler on simt": lambda: scheduler("simt"),
        "dropped scheduler": dropped_scheduler,
        "transfers": transfers,
        "non-blocking copy": non_blocking,
        "pool": pool,
        "large tensors": large_tensors,
        "lazy weights": lambda: weights(folder, True),
        "weights": lambda: weights(folder, False),
        "load_jit": lambda: module(folder),
        "tc.kernel": kernel,
        "NVRTC": compiled,
        "operators on cpu": lambda: operators("cpu"),
        "emulator": emulator,
        "trace and record": records,
        "caches": caches,
    }


class refused:
    """The call number `first` of a kind, and if `lasts` each later one, is refused in the block; 0: none."""

    def __init__(self, kind: str, first: int, lasts: bool) -> None:
        self.plan = KINDS.index(kind), ctypes.c_long(first), lasts, ctypes.c_size_t(LEAST_BYTES)
        self.seen = self.given = 0  # calls that were made, and that were refused
        self.library = ctypes.CDLL(None)  # the one that LD_PRELOAD names

    def __enter__(self) -> refused:
        self.library.refusals_plan(*self.plan)
        return self

    def __exit__(self, *_: object) -> None:
        self.library.refusals_end()
        self.seen, self.given = self.library.refusals_seen(self.plan[0]), self.library.refusals_given(self.plan[0])


def outcome(stop: Callable[[], None], kind: str, first: int = 0, lasts: bool = False) -> dict[str, Any]:
    """What comes of the stop where calls are refused, and of the next one where none is."""
    said = ""
    calls = refused(kind, first, lasts)
    try:
        with calls:
            stop()
    except tc.errors.InternalError as error:
        said = f"a refusal is no fault of the library: {error}"
    except tc.errors.Error:
        pass
    except BaseException as error:  # noqa: BLE001 any other is what the tour looks for
        said = f"no error of the library's: {type(error).__name__}: {error}"
    try:
        stop()
    except BaseException as error:  # noqa: BLE001 any other is what the tour looks for
        said = said or f"the next one without refusals: {type(error).__name__}: {error}"
    return {"seen": calls.seen, "given": calls.given, "said": said}


def in_fork(work: Callable[[], dict[str, Any]], seconds: float) -> dict[str, Any]:
    """What the work gives in a child, or how that ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.write(writing, json.dumps(work()).encode())
        ctypes.CDLL(None).exit(0)  # as libraries end; the interpreter takes ten times as long
    os.close(writing)
    is_told = bool(select.select([reading], [], [], seconds)[0])
    told = os.read(reading, 1 << 16) if is_told else b""
    os.close(reading)
    until = time.monotonic() + MORE_SECONDS
    ended = (0, 0)
    while is_told and ended[0] == 0 and time.monotonic() < until:
        ended = os.waitpid(child, os.WNOHANG)
        time.sleep(0 if ended[0] else 0.001)
    if ended[0] == 0:
        os.kill(child, signal.SIGABRT)  # faulthandler says what it waits for
        os.waitpid(child, 0)
        return {"seen": 0, "given": 0, "said": f"no end after {seconds:.1f} s" if not is_told else "no exit"}
    if not told or ended[1] != 0:
        return {"seen": 0, "given": 0, "said": f"wait status {ended[1]}"}
    return dict(json.loads(told))


def chosen(count: int, rounds: int) -> list[int]:
    """All calls, or the first and the last and some between."""
    if rounds == 0 or count <= rounds:
        return list(range(1, count + 1))
    return sorted({1 + round(i * (count - 1) / (rounds - 1)) for i in range(rounds)})


def main() -> None:
    kind, rounds, folder, only = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
    faulthandler.enable()
    write_weights(folder)
    report: dict[str, Any] = {"refused": 0, "failures": [], "calls": {}}
    for name, stop in stops(folder).items():
        if only and name not in only:
            continue
        in_fork(partial(outcome, stop, kind), 60)  # compiles what the cache keeps
        begin = time.monotonic()
        usual = in_fork(partial(outcome, stop, kind), 60)
        seconds = time.monotonic() - begin + MORE_SECONDS
        report["calls"][name] = usual["seen"]
        if usual["said"]:
            report["failures"].append(f"{name}: without refusals: {usual['said']}")
            continue
        for first in chosen(usual["seen"], rounds):
            for lasts in (False, True):
                got = in_fork(partial(outcome, stop, kind, first, lasts), seconds)
                report["refused"] += got["given"]
                if got["said"]:
                    which = f"call {first} and later ones" if lasts else f"call {first}"
                    report["failures"].append(f"{name}: {which}: {got['said']}")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
