# SPDX-License-Identifier: Apache-2.0
"""tc.load_jit: C++ by the host's compiler, CUDA C++ by nvcc, and what it refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import stand_in_compiler

import tensorcraft as tc

ROOT = Path(__file__).resolve().parents[2]
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "clang++", "c++"))), reason="there is no C++ compiler on PATH"
)
HAS_GPU = any(device.startswith("cuda") for device in tc.devices())

TEXT = """
#include <string>
namespace {
template <int factor> double scale(const tensorcraft::TensorView& y, const tensorcraft::TensorView& x, float a) {
  for (int64_t i = 0; i < x.size(); ++i) y.data_as<float>()[i] = a * factor * kMore * x.data_as<const float>()[i];
  return a;
}
bool is_long(std::string_view text, int64_t least) { return int64_t(text.size()) >= least; }
}
"""


def write(folder: Path, text: str = TEXT) -> Path:
    path = folder / "scale.cpp"
    path.write_text(text, encoding="utf-8")
    return path


def load(folder: Path, **options: object) -> tc.JitModule:
    wrappers = [("scale", f"scale<{tc.make_cpp_args(3)}>"), ("is_long", "is_long")]
    return tc.load_jit(
        "scale", "3", cpp_files=[write(folder)], cpp_wrappers=wrappers, extra_cflags=["-DkMore=2"], **options
    )


@needs_compiler
def test_exports_are_functions(tmp_path: Path) -> None:
    module = load(tmp_path)
    assert module.name == "tensorcraft_jit_scale_3" and repr(module) == "<tensorcraft_jit_scale_3: is_long, scale>"
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    assert module.scale(y, x, 0.5) == 0.5
    np.testing.assert_array_equal(y, 3 * x)
    assert module.is_long("four", 4) is True and module.is_long("four", 5) is False
    t = tc.zeros(4, device="cpu")
    module.scale(t, tc.asarray(x, device="cpu"), 1)
    np.testing.assert_array_equal(t.numpy(), 6 * x)
    assert "scale" in dir(module)
    with pytest.raises(AttributeError, match="tensorcraft_jit_scale_3 exports no other"):
        module.other  # noqa: B018
    with pytest.raises(TypeError, match="scale: takes 3 arguments, got 1"):
        module.scale(y)
    with pytest.raises(TypeError, match="scale: an argument must be an array that the caller keeps"):
        module.scale([1.0], x, 1)
    with pytest.raises(TypeError, match="is_long: argument 0 must be a text, got a tensor"):
        module.is_long(x, 1)


@needs_compiler
def test_flags_and_folders_reach_the_commands(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    module = load(tmp_path, extra_ldflags=["-lm"], extra_include_paths=[tmp_path], build_directory=kept)
    compile_, link = module.commands
    assert " -std=c++20 -O3 -DkMore=2 -fPIC " in compile_ and f"-I{tmp_path}" in compile_ and link.endswith(" -lm")
    assert (kept / "tensorcraft_jit_scale_3.so").exists()


@needs_compiler
def test_processes_that_ask_at_once_compile_once(tmp_path: Path) -> None:
    write(tmp_path)
    program = f"""
import tensorcraft as tc
tc.load_jit("scale", cpp_files=[{str(tmp_path / "scale.cpp")!r}], cpp_wrappers=[("f", "scale<1>")], extra_cflags=["-DkMore=1"])
print([item.arch for item in tc.cache.list()])
"""
    environment = {**os.environ, "TENSORCRAFT_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", program]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [p.communicate()[0] for p in running] == ["['module']\n"] * 3


@needs_compiler
def test_a_repeated_load_reads_no_file() -> None:
    def seconds() -> float:
        begin = time.perf_counter()
        tc.load_jit(
            "my_kernel",
            cpp_files=[ROOT / "examples/kernels/my_kernel.cpp"],
            cpp_wrappers=[("my_kernel", "my_kernel_of_host")],
        )
        return time.perf_counter() - begin

    seconds()
    # About 5 us, and 400 where all files are read; the least of many is what a busy machine leaves alone.
    assert min(seconds() for _ in range(500)) < 60e-6


MANY_MODULES = """
import os, resource
import tensorcraft as tc
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
for i in range(COUNT):
    module = tc.load_jit("many", cpp_files=[SOURCE], cpp_wrappers=[("f", "f")], extra_cflags=[f"-DkMore={i}"])
    assert module.f() is None
print(len(os.listdir("/proc/self/fd")) < 20)
"""


@needs_compiler
def test_modules_keep_no_descriptor(tmp_path: Path) -> None:
    count = 10_000 if os.environ.get("TC_TEST_FULL") else 100
    path = stand_in_compiler.quick(tmp_path, 'extern "C" void tensorcraft_export_f() {}')
    program = MANY_MODULES.replace("COUNT", str(count)).replace("SOURCE", repr(str(write(tmp_path, "void f() {}"))))
    assert stand_in_compiler.printed(stand_in_compiler.start(program, path, tmp_path)) == "True\n"


@needs_compiler
def test_what_is_thrown_and_no_exception_is_an_error_of_ours(tmp_path: Path) -> None:
    path = write(tmp_path, "void f(int n) { throw n; }\n")
    module = tc.load_jit("throws", cpp_files=[path], cpp_wrappers=[("f", "f")])
    with pytest.raises(tc.errors.TensorCraftTypeError, match="f: throws int, which is no std::exception"):
        module.f(5)


class OnlyDlpack:
    """An array of another framework."""

    def __init__(self, array: np.ndarray) -> None:
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


@needs_compiler
def test_a_table_of_addresses_is_taken(tmp_path: Path) -> None:
    text = """double first(const tensorcraft::TensorView& table) {
      double sum = 0;
      for (int64_t i = 0; i < table.size(); ++i)
        sum += *reinterpret_cast<const float*>(table.data_as<const uint64_t>()[i]);
      return sum;
    }
    """
    module = tc.load_jit("table", cpp_files=[write(tmp_path, text)], cpp_wrappers=[("first", "first")])
    parts = [np.full(4, i + 1.0, np.float32) for i in range(3)]
    table = np.array([part.__array_interface__["data"][0] for part in parts], np.uint64)
    assert module.first(table) == 6
    assert module.first(OnlyDlpack(table)) == 6


@needs_compiler
def test_a_failed_compile_shows_the_users_line(tmp_path: Path) -> None:
    path = write(tmp_path, "int f(int n) {\n  return n + foo;\n}\n")
    with pytest.raises(tc.CompileError, match=r"(?s)does not compile.*scale.cpp:2:.*return n \+ foo;"):
        tc.load_jit("wrong", cpp_files=[path], cpp_wrappers=[("f", "f")])


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        tc.load_jit("a", cpp_files=["/nowhere.cpp"])
    with pytest.raises(ValueError, match="exports nothing"):
        tc.load_jit("a", cpp_files=[path])
    with pytest.raises(ValueError, match="a module needs a name"):
        tc.load_jit(cpp_files=[path])
    with pytest.raises(TypeError, match="cpp_wrappers must be pairs"):
        tc.load_jit("a", cpp_files=[path], cpp_wrappers=["f"])
    with pytest.raises(TypeError, match="cpp_files must be a list"):
        tc.load_jit("a", cpp_files=str(path))


@needs_compiler
def test_without_nvcc_it_says_what_to_do(tmp_path: Path) -> None:
    if Path("/usr/local/cuda/bin/nvcc").exists():
        pytest.skip("there is nvcc, which is also looked for outside of PATH")
    program = f"""
import tensorcraft as tc
try:
    tc.load_jit("a", cuda_files=[{str(write(tmp_path))!r}], cuda_wrappers=[("f", "f")])
except NotImplementedError as error:
    print(error)
"""
    environment = {**os.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert "has cuda_files, and there is no nvcc in the folders of PATH" in done.stdout


def test_make_cpp_args() -> None:
    args = tc.make_cpp_args(128, 4, True)
    assert args == ["128", "4", "true"] and f"<{args}>" == "<128, 4, true>"
    assert str(tc.make_cpp_args(False, -1, "Mode::fast", 0.5)) == "false, -1, Mode::fast, 0x1.0000000000000p-1"
    assert tc.make_cpp_args(tc.bfloat16, "int", np.float32, tc.int64, tc.bool_, tc.uint8) == [
        "tensorcraft::bf16", "int", "float", "int64_t", "bool", "uint8_t",
    ]  # fmt: skip
    assert tc.make_cpp_args() == [] and str(tc.make_cpp_args()) == ""


def test_make_cpp_args_takes_numbers_of_numpy() -> None:
    assert tc.make_cpp_args(np.int64(3), np.uint8(4), np.arange(2)[1], np.True_) == ["3", "4", "1", "true"]
    assert tc.make_cpp_args(np.float32(0.5), np.float64(0.25)) == ["0x1.0000000000000p-1", "0x1.0000000000000p-2"]


def test_make_cpp_args_refuses_what_cpp_has_no_text_for() -> None:
    with pytest.raises(TypeError, match="Unsupported argument type: <class 'list'>"):
        tc.make_cpp_args([1])
    with pytest.raises(ValueError, match="inf is no number of C"):
        tc.make_cpp_args(float("inf"))
    with pytest.raises(ValueError, match="nan is no number of C"):
        tc.make_cpp_args(np.float32("nan"))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
def test_the_example_compiles_for_a_gpu() -> None:
    sys.path.insert(0, str(ROOT / "examples/kernels"))
    import my_kernel

    module = my_kernel.my_module(128, cuda=True)
    assert module.name == "tensorcraft_jit_my_kernel_128"
    assert " -std=c++20 -O3 --expt-relaxed-constexpr -arch=" in module.commands[0]
    y = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match=r"my_kernel: out: Device value \[cpu\] not in the allowed options"):
        module.my_kernel(y, y)
    if HAS_GPU:
        with tc.Stream("cuda:0"):
            x = tc.asarray(np.arange(1000, dtype=np.float32), device="cuda:0")
            out = tc.empty_like(x)
            module.my_kernel(out, x)
        np.testing.assert_array_equal(out.numpy(), 2 * np.arange(1000))


LATE = """
#include "tensorcraft/cuda/launch_kernel.hpp"

#include <stdexcept>

namespace {
__global__ void write_late(float* x, int64_t n) {
  for (const long long begin = clock64(); clock64() - begin < 100'000'000;) {}
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) x[i] = 7;
}
void write_and_fail(const tensorcraft::TensorView& x) {
  tensorcraft::LaunchKernel(1, 256, x.device())(write_late, x.data_as<float>(), x.size());
  throw std::runtime_error("after the launch");
}
}  // namespace
"""


@pytest.mark.skipif(not HAS_GPU or shutil.which("nvcc") is None, reason="there is no GPU, or no nvcc")
def test_a_function_that_throws_has_used_its_arrays(tmp_path: Path) -> None:
    source = tmp_path / "late.cu"
    source.write_text(LATE, encoding="utf-8")
    module = tc.load_jit("late", cuda_files=[source], cuda_wrappers=[("write_and_fail", "write_and_fail")])
    x = tc.empty(1000, device="cuda:0")
    with tc.Stream("cuda:0"), pytest.raises(RuntimeError, match="after the launch"):
        module.write_and_fail(x)
    del x
    # Memory that goes back to the pool at once would be one of these, before the kernel writes it.
    others = [tc.zeros(1000, device="cuda:0") for _ in range(4)]
    time.sleep(0.2)
    for other in others:
        np.testing.assert_array_equal(other.numpy(), np.zeros(1000, np.float32))
