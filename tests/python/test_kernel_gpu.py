# SPDX-License-Identifier: Apache-2.0
"""tc.kernel on a GPU: values, streams, graphs, the text of a compile's log, and what a second call costs the host."""

import ctypes
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_kernel import AXPY, SIGNATURE

import tensorcraft as tc

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not any(d.startswith("cuda") for d in tc.devices()), reason="no GPU"),
]


def vectors(n: int = 1000) -> tuple[Any, Any]:
    return tc.arange(n, dtype=tc.float32, device="cuda"), tc.ones((n,), "float32", device="cuda")


def test_values_and_streams() -> None:
    x, y = vectors()
    k = tc.kernel(AXPY, SIGNATURE)
    k[4, 256](y, x, 2.0, 1000)
    stream = tc.Stream()
    tc.synchronize()
    k[(4, 1), (256, 1), 0, stream](y, x, 1, 1000)
    stream.synchronize()
    np.testing.assert_array_equal(y.numpy(), 1 + 3 * x.numpy())


def test_shared_memory_of_both_kinds() -> None:
    text = """
    __global__ void __launch_bounds__(64) reverse(float* y, const float* x) {
      extern __shared__ float moved[];
      __shared__ float tile[64];
      tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
      __syncthreads();
      moved[63 - threadIdx.x] = tile[threadIdx.x];
      __syncthreads();
      y[blockIdx.x * 64 + threadIdx.x] = moved[threadIdx.x];
    }"""
    x, y = vectors(256)
    k = tc.kernel(text, "reverse(float* y, const float* x)")
    k[4, 64, 256](y, x)
    np.testing.assert_array_equal(y.numpy(), x.numpy().reshape(4, 64)[:, ::-1].ravel())
    with pytest.raises(ValueError, match="the kernel takes at most 64"):
        k[4, 128, 256](y, x)
    with pytest.raises(ValueError, match="bytes of static shared memory are more than"):
        k[4, 64, 2**20](y, x)
    y2 = tc.ones((256,), "float32", device="cuda")
    k[4, 64, 100_000](y2, x)  # more than a block has without asking
    np.testing.assert_array_equal(y2.numpy(), y.numpy())


def test_a_graph_records_it() -> None:
    x, y = vectors()
    k = tc.kernel(AXPY, SIGNATURE)
    k[4, 256](y, x, 0.0, 1000)
    graph = tc.Graph(lambda: k[4, 256](y, x, 1.0, 1000))
    for _ in range(3):
        graph.launch()
    tc.synchronize()
    np.testing.assert_array_equal(y.numpy(), 1 + 3 * x.numpy())
    fresh = tc.kernel(AXPY + f"// {time.time_ns()}\n", SIGNATURE)
    with pytest.raises(NotImplementedError, match="warm up first"):
        tc.Graph(lambda: fresh[4, 256](y, x, 1.0, 1000))


def test_it_runs_between_operators_in_order() -> None:
    n = 1 << 22
    y, x = tc.zeros((n,), "float32", device="cuda"), tc.ones((n,), "float32", device="cuda")
    k = tc.kernel(AXPY, SIGNATURE)
    for step in range(20):
        z = tc.multiply(x, float(step))
        k[n // 256, 256](y, z, 1.0, n)
        x = tc.add(z, 1.0) if step == 0 else x
        y = tc.add(y, 0.0)
    assert float(tc.max(y)) == float(tc.min(y)) == sum(range(20))


def test_the_log_has_the_users_line_and_a_caret() -> None:
    _, y = vectors()
    k = tc.kernel("__global__ void k(float* y) {\n  y[0] = foo + 1;\n}\n", "k(float* y)", name="mine.cu")
    with pytest.raises(
        tc.CompileError, match=r'mine\.cu\(2\): error: identifier "foo" is undefined\n.*foo \+ 1;\n +\^'
    ):
        k[1, 1](y)


def test_torch_arrays_on_their_stream() -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.arange(1000.0, device="cuda"), torch.ones(1000, device="cuda")
    k = tc.kernel(AXPY, SIGNATURE)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        k[4, 256](y, x, 2.0, 1000)
        y += 1
    stream.synchronize()
    assert torch.equal(y, 2 + 2 * x)
    with pytest.raises(ValueError, match="not contiguous"):
        k[4, 256](y[::2], x, 2.0, 500)


def test_mixed_devices_are_refused() -> None:
    x, y = vectors(8)
    with pytest.raises(ValueError, match=r"x is in host memory|x is on simt"):
        tc.kernel(AXPY, SIGNATURE)[1, 8](y, np.ones(8, np.float32), 1, 8)
    with pytest.raises(ValueError, match="x is on simt, but y is on cuda:0"):
        tc.kernel(AXPY, SIGNATURE)[1, 8](y, tc.asarray(x.numpy(), device="simt"), 1, 8)


def test_explain() -> None:
    found = tc.kernel(AXPY, SIGNATURE).explain()
    assert found.problem == "" and 0 < found.registers < 40 and found.spill_bytes == 0 and found.blocks_per_sm >= 8


def host_us(call: Any, rounds: int = 15, calls: int = 400) -> float:
    """The best round's microseconds a call; the queue never fills, as each round begins empty."""
    best = float("inf")
    for _ in range(rounds):
        tc.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - begin) / calls)
    return best * 1e6


@pytest.mark.timing
def test_the_good_form_of_an_access_is_faster() -> None:
    program = Path(__file__).parents[2] / "examples" / "kernels" / "memory_access.py"
    done = subprocess.run([sys.executable, str(program)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    rows = re.findall(r"^(\w.*?)  +.* (\d+)$", done.stdout, re.MULTILINE)
    gbs = {name: float(rate) for name, rate in rows}
    assert gbs["coalesced"] > 2 * gbs["strided by 32"] and gbs["coalesced"] > gbs["strided by 2"]
    assert min(gbs["staged, padded"], gbs["staged, swizzled"]) > gbs["staged, conflicts"]
    assert min(gbs["staged, padded"], gbs["staged, swizzled"]) > gbs["direct"]


def driver_launch_us() -> float:
    """What the driver's own launch of an empty kernel costs; what ctypes costs is that of one it refuses at once."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    text = b".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry e() { ret; }\0"
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxPushCurrent_v2(context) == 0
    assert cuda.cuModuleLoadData(ctypes.byref(module), text) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"e") == 0
    launch, none = cuda.cuLaunchKernel, ctypes.c_void_p()
    times = [host_us(lambda g=grid: launch(function, g, 1, 1, 32, 1, 1, 0, none, none, none)) for grid in (1, 0)]
    cuda.cuCtxPopCurrent_v2(ctypes.byref(context))
    return times[0] - times[1]


@pytest.mark.timing
def test_what_a_second_call_costs_the_host() -> None:
    """Of three arrays and three numbers, over the driver's launch, with a launch that is kept: at most 2.0 us."""
    text = "__global__ void six(float* a, float* b, float* c, int n, float f, int64_t m) {}"
    k = tc.kernel(text, "six(float* a, float* b, float* c, int n, float f, int64 m)")
    a, b, c = (tc.zeros((32,), "float32", device="cuda") for _ in range(3))
    kept = k[1, 32]
    kept(a, b, c, 1, 2.0, 3)
    driver = driver_launch_us()
    over = host_us(lambda: kept(a, b, c, 1, 2.0, 3)) - driver
    whole = host_us(lambda: k[1, 32](a, b, c, 1, 2.0, 3)) - driver
    print(
        f"driver's launch {driver:.2f} us; over it {over:.2f} us with a kept launch, {whole:.2f} us with the subscript"
    )
    assert over <= 2.0
