# SPDX-License-Identifier: Apache-2.0
"""tc.kernel: the user's own device text, on device="simt" and its checks; on a GPU: test_kernel_gpu.py."""

import copy
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stand_in_compiler

import tensorcraft as tc

AXPY = """
__global__ void axpy(float* y, const float* x, float a, int64_t n) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""
SIGNATURE = "axpy(float* y, const float* x, float a, int64 n)"

on_simt = pytest.mark.skipif(
    "simt" not in tc.devices() or not any(map(shutil.which, ("g++", "clang++", "c++"))),
    reason="no emulator or no C++ compiler",
)


def axpy(**options: Any) -> Any:
    return tc.kernel(AXPY, SIGNATURE, device="simt", **options)


def vectors(n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n, dtype=np.float32), np.ones(n, np.float32)


@on_simt
def test_numpy_arrays_are_computed_in_place() -> None:
    x, y = vectors()
    k = axpy()
    assert k[4, 256](y, x, 2.0, 1000) is None
    np.testing.assert_array_equal(y, 1 + 2 * x)
    launch = k[(4, 1), (16, 16, 1), 0, None]
    launch(y, x, 2, np.int64(0))  # a kept launch; n is 0: nothing changes
    np.testing.assert_array_equal(y, 1 + 2 * x)


MANY_KERNELS = """
import os, resource
import numpy as np
import tensorcraft as tc
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
y = np.zeros(1, np.float32)
for i in range(COUNT):
    tc.kernel("__global__ void count(float* y) { y[0] += 1; }", "count(float* y)", device="simt", i=i)[1, 1](y)
print(int(y[0]), len(os.listdir("/proc/self/fd")) < 20)
"""


@on_simt
def test_kernels_keep_no_descriptor(tmp_path: Path) -> None:
    count = 10_000 if os.environ.get("TC_TEST_FULL") else 100
    path = stand_in_compiler.quick(tmp_path, 'extern "C" void user_count(float** y) { **y += 1; }')
    program = MANY_KERNELS.replace("COUNT", str(count))
    assert stand_in_compiler.printed(stand_in_compiler.start(program, path, tmp_path)) == f"{count} True\n"


COLD_KERNEL = """
import numpy as np
import tensorcraft as tc
y = np.zeros(1, np.float32)
tc.kernel("__global__ void cold(float* y) { y[0] += 1; }", "cold(float* y)", device="simt")[1, 1](y)
print(y[0])
"""


@on_simt
def test_processes_that_need_a_cold_kernel_compile_it_once(tmp_path: Path) -> None:
    path, calls = stand_in_compiler.counting(tmp_path)
    running = [stand_in_compiler.start(COLD_KERNEL, path, tmp_path) for _ in range(4)]
    assert [stand_in_compiler.printed(p) for p in running] == ["1.0\n"] * 4
    assert calls.read_text() == "\n" * 2, "one process compiled and linked"


@on_simt
def test_what_is_thrown_and_no_exception_is_an_error_of_ours() -> None:
    k = tc.kernel("__global__ void k(float* y) { throw 5; }", "k(float* y)", device="simt")
    with pytest.raises(tc.errors.TensorCraftTypeError, match="k: throws int, which is no std::exception"):
        k[1, 1](np.zeros(1, np.float32))


@on_simt
def test_a_table_of_addresses_is_taken() -> None:
    parts = [np.full(4, i + 1.0, np.float32) for i in range(3)]
    table = np.array([part.__array_interface__["data"][0] for part in parts], np.uint64)
    text = """__global__ void sums(float* y, const uint64_t* table) {
      for (int i = 0; i < 4; ++i) y[threadIdx.x] += ((const float*)table[threadIdx.x])[i];
    }"""
    k = tc.kernel(text, "sums(float* y, const uint64* table)", device="simt")
    y = np.zeros(3, np.float32)
    k[1, 3](y, table)
    np.testing.assert_array_equal(y, [4, 8, 12])
    k[1, 3](y, table.view(np.int64))
    np.testing.assert_array_equal(y, [8, 16, 24])
    with pytest.raises(TypeError, match="table: expected an array of uint64, got float32"):
        k[1, 3](y, y)
    with pytest.raises(TypeError, match="uint64 is not supported"):
        tc.add(table, table)


@on_simt
def test_tensors_of_the_device_need_no_word() -> None:
    x, y = (tc.asarray(v, device="simt") for v in vectors())
    k = tc.kernel(AXPY, SIGNATURE)
    k[4, 256](y, x, np.float32(0.5), 1000)
    np.testing.assert_array_equal(y.numpy(), 1 + 0.5 * x.numpy())


@on_simt
def test_every_dtype_of_arrays_and_numbers() -> None:
    text = "template <class T> TC_DEVICE void fill(T* y, T v) { y[threadIdx.x] = v; }"
    for dtype in (
        "float32",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
    ):
        y = tc.zeros((4,), dtype, device="simt")
        tc.kernel(text, "fill(T* y, T v)", T=dtype)[1, 4](y, 3)
        assert y.tolist() == [3] * 4, dtype
    y = tc.zeros((4,), "bool", device="simt")
    tc.kernel(text, "fill(T* y, T v)", T=tc.bool_)[1, 4](y, True)
    assert y.tolist() == [True] * 4


@on_simt
def test_constants_and_template_arguments_are_keywords() -> None:
    text = """
    template <class U, int count> __global__ void fill(U* y) {
      for (int i = 0; i < count; ++i) y[i] = U(kOn ? float(i) + kShift : 0.f);
    }"""
    k = tc.kernel(text, "fill<T, kCount>(T* y)", device="simt", T=np.float32, kCount=3, kShift=0.25, kOn=True)
    y = np.zeros(4, np.float32)
    k[1, 1](y)
    assert y.tolist() == [0.25, 1.25, 2.25, 0]
    assert repr(k) == "<tc.kernel fill<float, kCount>(float* y)>" and k.name == "fill"


@on_simt
@pytest.mark.parametrize("scalar", [np.float32(2.5), np.float64(2.5), np.float16(2.5), np.int8(2), np.uint64(2), np.True_])
def test_a_constant_may_be_any_numpy_scalar(scalar: Any) -> None:
    k = tc.kernel("void fill(float* y) { y[0] = float(kValue); }", "fill(float* y)", device="simt", kValue=scalar)
    y = np.zeros(1, np.float32)
    k[1, 1](y)
    assert y[0] == float(scalar)


@on_simt
def test_a_compile_is_kept_on_disk_and_needs_no_compiler_then(tmp_path: Any) -> None:
    program = f"""
import numpy as np, tensorcraft as tc, time
k = tc.kernel({AXPY!r}, {SIGNATURE!r}, device="simt")
y = np.ones(8, np.float32)
k[1, 8](y, y.copy(), 1, 8)
assert y.tolist() == [2] * 8
print([item.arch for item in tc.cache.list()])
"""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TENSORCRAFT_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = ":".join(sys.path)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], check=False, capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "['simt']"
    nothing = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        env={**environment, "PATH": "/nowhere"},
    )
    assert "there is no C++ compiler" in nothing.stderr and "Unsupported" in nothing.stderr


@on_simt
def test_the_error_of_a_compile_has_the_users_line() -> None:
    k = tc.kernel("__global__ void k(float* y) {\n  y[0] = foo + 1;\n}\n", "k(float* y)", name="mine.cu", device="simt")
    with pytest.raises(tc.CompileError, match=r"mine\.cu:2:\d+: error: (.|\n)*y\[0\] = foo \+ 1;\n.*\^"):
        k[1, 1](np.zeros(1, np.float32))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((1, 2, 3), tc.errors.TensorCraftTypeError, "expected an array of float32, got int"),
        (([1.0], "x", 1, 1), tc.errors.TensorCraftTypeError, "expected an array of float32, got list"),
        (("i4", "x", 1, 1), tc.errors.TensorCraftTypeError, "y: expected an array of float32, got int32"),
        (("y", "strided", 1, 1), tc.errors.TensorCraftValueError, "x: .*not contiguous"),
        (("fixed", "x", 1, 1), tc.errors.TensorCraftBufferError, "y: the array is read-only"),
        (("y", "x", "x", 1), tc.errors.TensorCraftTypeError, "a: expected a number"),
        (("y", "x", None, 1), tc.errors.TensorCraftTypeError, "a: expected a number"),
        (("y", "x", 1e39, 1), tc.errors.TensorCraftValueError, "a: 1e\\+39 is beyond"),
        (("y", "x", 1, 2.0), tc.errors.TensorCraftTypeError, "n: the float 2 was given for int64"),
        (("y", "x", 1, 2**63), tc.errors.TensorCraftValueError, "n: 9223372036854775808 is not in"),
        (("y", "x", 1, -(2**63) - 1), tc.errors.TensorCraftValueError, "n: the number does not fit int64"),
        (("y", "x", 1, 2**80), tc.errors.TensorCraftValueError, "n: the number does not fit int64"),
        (("y", "x", 1), tc.errors.TensorCraftTypeError, "takes 4 arguments, got 3; n is missing"),
        (("y", "x", 1, 1, 1), tc.errors.TensorCraftTypeError, "takes 4 arguments, got more"),
        (("y", object(), 1, 1), tc.errors.TensorCraftTypeError, "x must be an array"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], error: type[Exception], text: str) -> None:
    x, y = vectors(8)
    fixed = y.copy()
    fixed.flags.writeable = False
    named = {"x": x, "y": y, "fixed": fixed, "strided": x[::2], "i4": np.zeros(8, np.int32)}
    given = [named.get(a, a) if isinstance(a, str) else a for a in arguments]
    with pytest.raises(error, match=text):
        axpy()[1, 8](*given)
    assert y.tolist() == [1] * 8


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        ((0, 1), ValueError, r"grid \(0, 1, 1\) is empty"),
        ((1, 0), ValueError, "has 0 threads"),
        ((1, 1025), ValueError, "a block has 1 to 1024"),
        ((1, (1, 1, 65)), ValueError, "at most"),
        (((1, 1, 1, 1), 1), ValueError, "grid has one to three numbers"),
        ((-1, 1), ValueError, "grid has -1"),
        ((1, 2**32), ValueError, "block has 4294967296"),
        ((1.5, 1), TypeError, "grid must be an integer"),
        ((1, 1, -1), ValueError, "shared must be bytes"),
        ((1, 1, "x"), TypeError, "shared must be a number"),
        ((1, 1, 2**30), ValueError, "at most .* bytes of shared memory"),
        ((1, 1, 0, 7), ValueError, "stream was given"),
        ((1, 1, 0, None, None), ValueError, "a launch is"),
        (1, ValueError, "a launch is"),
        ("ab", ValueError, "a launch is"),
    ],
)
@on_simt
def test_wrong_launches(key: Any, error: type[Exception], text: str) -> None:
    x, y = vectors(8)
    with pytest.raises(error, match=text) as caught:
        axpy()[key](y, x, 1, 8)
    assert isinstance(caught.value, tc.errors.Error)


def test_wrong_kernels() -> None:
    wrong = [
        (lambda: tc.kernel(AXPY, "axpy(flaot* y)"), ValueError, "did you mean float?"),
        (lambda: tc.kernel("", SIGNATURE), ValueError, "the text is empty"),
        (lambda: tc.kernel("a\0", SIGNATURE), ValueError, "has a NUL at byte 1"),
        (lambda: tc.kernel("\ud800", SIGNATURE), ValueError, "not UTF-8"),
        (lambda: tc.kernel(3, SIGNATURE), TypeError, "source must be text"),
        (lambda: tc.kernel(AXPY, 3), TypeError, "signature"),
        (lambda: tc.kernel(AXPY, SIGNATURE, k=object()), TypeError, "the constant k must be"),
        (lambda: tc.kernel(AXPY, SIGNATURE, k=2**70), ValueError, "the constant k does not fit"),
        (lambda: tc.kernel(AXPY, SIGNATURE, k=float("inf")), ValueError, "must be a finite float32"),
        (lambda: tc.kernel(AXPY, SIGNATURE, name="a/b"), ValueError, "name must be letters"),
        (lambda: tc.kernel(AXPY, SIGNATURE, device="tpu"), ValueError, "tpu"),
    ]
    for make, error, text in wrong:
        with pytest.raises(error, match=text) as caught:
            make()
        assert isinstance(caught.value, tc.errors.Error), text


def test_ten_thousand_malformed_signatures_and_sources() -> None:
    chooser = random.Random(5)
    alphabet = "axT_09 *&<>(),;:[]{}\"\\\n\t\0é#/'"
    for _ in range(10_000):
        texts = [list(AXPY), list(SIGNATURE)]
        for text in texts:
            for _ in range(chooser.randrange(4)):
                text[chooser.randrange(len(text))] = chooser.choice(alphabet)
        try:
            tc.kernel("".join(texts[0]), "".join(texts[1]))
        except tc.errors.TensorCraftValueError:
            pass


def test_host_arrays_need_a_device_that_runs_kernels() -> None:
    x, y = vectors(8)
    with pytest.raises(ValueError, match='y is in host memory, .* device="simt"'):
        tc.kernel(AXPY, SIGNATURE, device="cpu")[1, 8](y, x, 1, 8)


@on_simt
def test_arrays_of_two_devices_are_refused() -> None:
    class Elsewhere:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (10, 0)

        def __dlpack__(self, **_: Any) -> None:
            raise AssertionError

    _, y = vectors(8)
    with pytest.raises((ValueError, TypeError)):
        axpy()[1, 8](y, Elsewhere(), 1, 8)


def test_a_call_without_a_grid_says_how() -> None:
    with pytest.raises(tc.errors.TensorCraftTypeError, match=r"k\[grid, block\]\(arguments\)"):
        axpy()(*vectors(8), 1, 8)


def test_a_kernel_is_not_pickled() -> None:
    for refused in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(tc.errors.TensorCraftTypeError, match="cannot be pickled or copied"):
            refused(axpy())


def test_explain_needs_no_gpu() -> None:
    found = axpy().explain(arch="sm_90a")
    if "NVRTC" in found.problem:
        pytest.skip(found.problem)
    assert found.problem == "" and found.registers > 0 and found.spill_bytes == 0 and found.code_bytes > 0
    assert found.block == (256, 1, 1) and 0 < found.occupancy <= 1 and found.origin in ("compiled", "disk")
    assert "registers" in str(found) and found.signature.startswith("user_axpy_arch90a")
    assert axpy().explain(1024, 200_000, arch="sm_90a").blocks_per_sm == 1
    assert "ask about a GPU" in axpy().explain(device="cpu").problem
    wrong = tc.kernel("__global__ void k(float* y) {\n  y[0] = foo;\n}", "k(float* y)", name="mine.cu")
    assert "mine.cu(2): error" in wrong.explain(arch="sm_90a").problem


@on_simt
@pytest.mark.parametrize("example", ["vector_scale", "tiled_matrix", "fused_softmax"])
def test_the_examples_run(example: str) -> None:
    program = Path(__file__).parents[2] / "examples" / "kernels" / f"{example}.py"
    done = subprocess.run([sys.executable, str(program)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@on_simt
def test_the_example_of_accesses_counts_what_the_page_says() -> None:
    program = Path(__file__).parents[2] / "examples" / "kernels" / "memory_access.py"
    done = subprocess.run([sys.executable, str(program)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = {name: row.split() for name, row in re.findall(r"^(\w.*?)  +(\S.*)$", done.stdout, re.MULTILINE)}
    copies = {name: counts[name][0] for name in ("coalesced", "strided by 2", "strided by 32")}
    assert copies == {"coalesced": "4", "strided by 2": "8", "strided by 32": "32"}
    transposes = {name: counts[name][:2] for name in counts if name.startswith(("direct", "staged"))}
    assert transposes == {
        "direct": ["32", "none"],
        "staged, conflicts": ["4", "32"],
        "staged, padded": ["4", "1"],
        "staged, swizzled": ["4", "1"],
    }
    assert "100.0%" in done.stdout or "NVRTC" in done.stdout


@on_simt
def test_a_kernel_without_arrays_runs_where_it_was_made_for() -> None:
    text = "__global__ void nothing(int n) { while (n > 0) --n; }"
    tc.kernel(text, "nothing(int n)", device="simt")[1, 1](3)
    with pytest.raises(tc.CompileError):
        tc.kernel("__global__ void f() { while", "f()", device="simt")[1, 1]()


FAULTS = {
    "a barrier that some threads never reach": (
        "__global__ void k(float* y) {\n  if (threadIdx.x < 32)\n    __syncthreads();\n  else\n    __syncthreads();\n}",
        0,
        "barrier divergence",
    ),
    "dynamic shared memory that the launch does not give": (
        '#include "tensorcraft/device/shared.cuh"\nstruct Tile { float values[64]; };\n'
        + "__global__ void k(float* y) { y[0] = dynamic_shared<Tile>().values[0]; }",
        16,
        "lays out 256 bytes of dynamic shared memory, the launch gives 16",
    ),
}


@on_simt
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_kernel_is_one_class(fault: str) -> None:
    text, shared, said = FAULTS[fault]
    with pytest.raises(tc.errors.KernelFault, match=said) as caught:
        tc.kernel(text, "k(float* y)", device="simt")[1, 64, shared](np.zeros(64, np.float32))
    assert isinstance(caught.value, RuntimeError) and not isinstance(caught.value, tc.errors.InternalError)
    assert "block (0, 0, 0)" in str(caught.value) and "report" not in str(caught.value)
