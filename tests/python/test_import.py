# SPDX-License-Identifier: Apache-2.0
"""What an import may cost, and what a forked child can do."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import tensorcraft as tc


def child(code: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_import_makes_no_thread_opens_no_file_and_loads_no_driver_nor_slow_modules() -> None:
    code = """
import os, sys
first = {*sys.modules}  # an environment's own start-up files import some
def files(): return sorted(os.readlink(f"/proc/self/fd/{f}") for f in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{f}"))
before = files()
import tensorcraft
maps = open("/proc/self/maps").read()
print(len(os.listdir("/proc/self/task")), files() == before, "libcuda.so" in maps, "libnvrtc" in maps, ({*sys.modules} - first) & {"numpy", "asyncio", "inspect"})
"""
    assert child(code) == ["1", "True", "False", "False", "set()"]


def test_calls_on_the_cpu_load_no_compiler_of_kernels() -> None:
    code = """
import numpy as np, tensorcraft as tc
x = np.ones((8, 8), np.float32)
for y in (tc.gemm(x, x, device="cpu"), tc.attention(x[None, None], x[None, None], x[None, None], device="cpu"), tc.asarray(x, device="cpu") + 1):
    tc.softmax(y, device="cpu")
tc.explain(tc.gemm, x, x, device="cpu"), tc.elementwise("x * 2", x=x, device="cpu")
print("libnvrtc" in open("/proc/self/maps").read())
"""
    assert child(code) == ["False"]


@pytest.mark.timing
def test_import_adds_at_most_150_ms_to_that_of_numpy() -> None:
    code = "import numpy, time; t = time.perf_counter(); import tensorcraft; print((time.perf_counter() - t) * 1e3)"
    assert min(float(child(code)[0]) for _ in range(5)) <= 150


COMPILE = r"""
import re
from pathlib import Path

import numpy as np
import tensorcraft as tc

compiled = not tc.explain("relu", np.ones(8, np.float32), arch="sm_90a").kernels[0].problem
maps = {line[line.index("/"):].rstrip() for line in open("/proc/self/maps") if "/" in line}
found = sorted(m for m in maps if re.search("nvrtc|cudart", Path(m).name))  # the driver is the machine's
print(compiled, tc.__file__, *found, sep="\n")
"""


def test_nvrtc_beside_the_package_is_all_that_a_kernel_needs(tmp_path: Path) -> None:
    """No toolkit, no variable that names one, no compiler: NVRTC that lies beside the library goes before any other."""

    def compile_with(**environment: str) -> list[str]:
        command = [sys.executable, "-c", COMPILE]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()

    compiled, _, *found = compile_with(**{**os.environ, "TENSORCRAFT_CACHE_DIR": str(tmp_path / "cache")})
    files = {Path(file).parent for file in found if "libnvrtc" in file}
    if compiled != "True" or not files:
        pytest.skip("there is no NVRTC")
    home = tmp_path / "a folder"  # with a space
    package = home / "tensorcraft"
    shutil.copytree(Path(tc.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in files.pop().glob("libnvrtc*"):
        if "alt" not in file.name:
            shutil.copy(file, package, follow_symlinks=False)
    compiled, place, *found = compile_with(PATH="/nonexistent", HOME=str(home), PYTHONPATH=str(home))
    assert (compiled, place) == ("True", str(package / "__init__.py"))
    assert found and {Path(file).parent for file in found} == {package}, found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_computes_on_the_cpu() -> None:
    x = np.random.default_rng(1).standard_normal((512, 512)).astype(np.float32)
    expected = tc.gemm(x, x, device="cpu")  # the parent's worker threads exist now
    for _ in range(int(os.environ.get("TC_TEST_FULL", "0")) * 950 + 50):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if np.array_equal(tc.gemm(x, x, device="cpu"), expected) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_the_extension_has_the_suffix_of_this_python() -> None:
    assert str(tc._native.__file__).endswith(sysconfig.get_config_var("EXT_SUFFIX"))


def test_the_version_is_that_of_the_library() -> None:
    assert tc.__version__.count(".") == 2 and tc.__version__ == tc._native.__version__


def test_a_machine_without_a_gpu_is_told_once_and_by_what_computes() -> None:
    def warnings(code: str, **environment: str) -> int:
        head = "import numpy as np, tensorcraft as tc; x = np.ones(3, np.float32)\n"
        done = subprocess.run(
            [sys.executable, "-c", head + code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
        )  # fmt: skip
        return done.stderr.count(
            "Falling back to CPU simulation backend: operators run on the CPU as native code, and no GPU is simulated; "
            "TENSORCRAFT_DEVICE=cpu says that this is meant"
        )

    if any(device.startswith("cuda") for device in tc.devices()):
        pytest.skip("a GPU is here")
    environment = {"TENSORCRAFT_DEVICE": ""}
    assert warnings("tc.explain(tc.relu, x); tc.devices(); tc.default_device(); tc.ops()", **environment) == 0
    assert warnings("tc.relu(x, device='cpu'); tc.relu(tc.asarray(x))", **environment) == 0
    assert warnings("tc.relu(x); tc.relu(x); tc.exp(x)", **environment) == 1
    assert warnings("tc.zeros(3)", **environment) == 1
    assert warnings("tc.relu(x)", TENSORCRAFT_DEVICE="cpu") == 0
    assert warnings("tc.set_default_device('cpu'); tc.relu(x)", **environment) == 0


def refused(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done
    return done.stderr


def test_a_second_import_is_an_import_error() -> None:
    text = refused("""
import sys
import tensorcraft
for name in [n for n in sys.modules if n.startswith("tensorcraft")]: del sys.modules[name]
import tensorcraft
""")
    assert "ImportError: tensorcraft is in this process already and cannot be imported again" in text


@pytest.mark.parametrize("first", ["", "import tensorcraft"])
def test_an_import_in_a_subinterpreter_is_an_import_error(first: str) -> None:
    text = refused(f"""
{first}
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
answer = interpreters.run_string(interpreters.create(), "import tensorcraft")
if answer is not None: raise SystemExit(answer.formatted)
""")
    assert "tensorcraft can be imported in the main interpreter only" in text or "subinterpreter" in text
