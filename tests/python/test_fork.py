# SPDX-License-Identifier: Apache-2.0
"""A child that is forked while another thread of the parent is inside the library does the same work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

import tensorcraft as tc

HAS_COMPILER = any(map(shutil.which, ("g++", "clang++", "c++")))
HAS_SIMT = "simt" in tc.devices()
FULL = os.environ.get("TC_TEST_FULL", "0") != "0"


class Part(NamedTuple):
    """What a thread does again and again, and each child once, or `child` instead; `make` comes before."""

    work: str
    make: str = ""
    child: str = ""
    forks: int = 60
    simt: bool = False
    compiles: bool = False


KERNEL = """
def kernel(factor):
    text = f"void scale(float* y, int n) {{ const int i = int(threadIdx.x); if (i < n) y[i] *= {factor}; }}"
    k = tc.kernel(text, "scale(float* y, int n)", device="simt")
    y = np.ones(32, np.float32)
    k[1, 32](y, 32)
    assert y[31] == factor
"""
MODULE = """
from pathlib import Path
def module(factor):
    file = Path(f"scale{factor}.cpp")
    if not file.exists():
        file.write_text(f"namespace {{ int64_t scaled(int64_t x) {{ return {factor} * x; }} }}\\n")
    assert tc.load_jit("fork", cpp_files=[file], cpp_wrappers=[("scaled", "scaled")]).scaled(3) == 3 * factor
"""
PRODUCTS = """
def products(n):
    for dtype in "float32", "bfloat16": tc.gemm(tc.ones((n, 64), dtype, "cpu"), tc.ones((64, 8 + n), dtype, "cpu"))
    tc.conv2d(tc.ones((1, 16, 8 + n % 50, 8 + n // 50), "float32", "cpu"), tc.ones((16, 16, 3, 3), "float32", "cpu"))
"""
SPARSE = """
x, ones = np.ones((64, 4), np.float32), np.ones(64, np.float32)
columns, rows = np.arange(64, dtype=np.int32), np.arange(65, dtype=np.int32)
"""
WEIGHTS = """
head = b'{"a":{"dtype":"F32","shape":[262144],"data_offsets":[0,1048576]}}'
with open("a.safetensors", "wb") as file: file.write(len(head).to_bytes(8, "little") + head + bytes(1 << 20))
weights = tc.load_safetensors("a.safetensors", "cpu", lazy=True)
"""
ROWS = "x = tc.ones((4, 64), 'float32', 'simt')"

PARTS = {
    "operators": Part("tc.gemm(x, x); tc.exp(x)", "x = tc.ones((256, 256), 'float32', 'cpu')"),
    # The child wants what the thread prepares.
    "operators of new shapes": Part("products(another())", PRODUCTS, "products(last)"),
    "tuned": Part("tc.gemm(x, x, epilogue='x * 2')", "x = tc.ones((64, 64), 'float32', 'cpu')"),
    "sparse": Part("m = tc.sparse.csr(ones, columns, rows, (64, 64)); m @ x; m.T @ x", SPARSE),
    "memory pool": Part("pool.free(pool.allocate(4096))", "pool = tc.MemoryPool(1 << 24, 'cpu')"),
    "new memory pool": Part("pool = tc.MemoryPool(1 << 24, 'cpu'); pool.free(pool.allocate(4096))"),
    "lazy weights": Part(
        "weights['a'].numpy(); weights.stats(); weights.drop()",
        WEIGHTS,
    ),
    "trace": Part("tc.exp(x); tc.softmax(x)", "x = tc.ones((64, 64), 'float32', 'cpu')"),
    # The scheduler has no tasks, as CPython's own locks may hang a child that is forked beside them (docs/threads.md).
    "scheduler": Part("tc.Scheduler('cpu', streams=2).close()"),
    "transfer": Part(
        "e = tc.TransferEngine('cpu'); e.to(x, 'cpu').result(10); e.close()", "x = tc.ones(1 << 18, 'float32', 'cpu')"
    ),
    "operators on simt": Part("tc.exp(x); tc.softmax(x)", ROWS, simt=True),
    "dispatch.record": Part(
        "with tc.dispatch.record(): tc.exp(x)\ntc.dispatch.stats(); tc.dispatch.recent(3)", ROWS, simt=True
    ),
    "expressions on simt": Part("tc.elementwise('x * 2 + 1', x=x)", ROWS, simt=True),
    "kernel": Part("kernel(3)", KERNEL, simt=True, compiles=True),
    "load_jit": Part("module(3)", MODULE, compiles=True),
    # The child wants what the thread compiles.
    "compiled kernel": Part("kernel(another())", KERNEL, "kernel(last)", forks=3, simt=True, compiles=True),
    "compiled module": Part("module(another())", MODULE, "module(last)", forks=3, compiles=True),
}

PROGRAM = """
import os, random, signal, sys, threading, time
import numpy as np
import tensorcraft as tc
last = 3
def another():
    global last
    last += 1
    return last
{make}
def work():
{work}
def child():
{child}
def busy():
    while True: work()
work()
threading.Thread(target=busy, daemon=True).start()
wrong = []
for i in range({forks}):
    time.sleep(random.uniform(1e-4, 3e-3))
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try: child()
        except BaseException as error: print(repr(error), flush=True); os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status: wrong.append("hung" if status == -signal.SIGALRM else status)
print("children that failed:", wrong, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("name", PARTS)
def test_a_child_works_that_is_forked_beside(name: str, tmp_path: Path) -> None:
    part = PARTS[name]
    if part.simt and not HAS_SIMT:
        pytest.skip("no emulator")
    if part.compiles and not HAS_COMPILER:
        pytest.skip("no C++ compiler on PATH")
    work, child = (textwrap.indent(text, "    ") for text in (part.work, part.child or "work()"))
    program = PROGRAM.format(make=part.make, work=work, child=child, forks=part.forks * (5 if FULL else 1))
    environment = {**os.environ, "TENSORCRAFT_DEVICE": "cpu", "TENSORCRAFT_CACHE_DIR": str(tmp_path / "kernels")}
    if name == "trace":
        environment["TENSORCRAFT_TRACE"] = str(tmp_path / "trace.json")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.stdout == "children that failed: []\n", done.stdout + done.stderr


def test_objects_with_threads_refuse_in_a_child(tmp_path: Path) -> None:
    program = """
import os, signal, sys, time
import numpy as np
import tensorcraft as tc
engine, tasks = tc.TransferEngine("cpu", bandwidth=1 << 20), tc.Scheduler("cpu")
x, y = tc.ones(1 << 20, "float32", "cpu"), tc.zeros(1 << 20, "float32", "cpu")
engine.to(x, "cpu")
late = engine.copy(x, out=y)  # seconds later
task = tasks.submit(time.sleep, 1)
pid = os.fork()
if pid == 0:
    signal.alarm(20)
    for call in (lambda: y + 1, lambda: engine.to(x, "cpu"), engine.statistics, lambda: tasks.submit(int), tasks.statistics):
        try: call()
        except NotImplementedError as error: assert "made before this process was forked" in str(error), error
        else: os._exit(2)
    assert (x + 1).tolist()[:2] == [2, 2]
    x[0] = 3  # nothing reads it here
    assert float(x[0]) == 3
    engine.close(); tasks.close()
    del engine, tasks, late, task
    os._exit(0)
print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.endswith("child 0\n"), done.stdout + done.stderr
