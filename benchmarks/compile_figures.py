# SPDX-License-Identifier: Apache-2.0
"""Cold compiles of the kernels of suites, one at a time, on a machine that is quiet: as the first kernel of a fresh
process, which starts the compiler too, and as a later one. The disk cache is empty. Beside them an empty kernel.

python benchmarks/compile_figures.py FOLDER COMMAND [ARCH]
    COMMAND is the tensorcraft command; ARCH such as sm_90a, else that of the GPU. Writes FOLDER/compile.json
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from suites import suite
from timing import write

TEXT: Any = {"capture_output": True, "text": True}
RUNS = 7  # each compiles all kernels in turn, so that those of one kernel are seconds apart
FIRST_RUNS = 3
SUITES = ("headline", "gemm", "gemm-epilogue", "attention")
TARGET_MS = 100
STARTS_THE_COMPILER = "abs 16"  # before the later ones


def cases() -> list[Any]:
    return [case for name in SUITES for case in suite(name)]


def run(command: list[str], text: str = "") -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TENSORCRAFT_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}
        done = subprocess.run(command, input=text, env=environment, **TEXT, check=True)
    return dict(json.loads(done.stdout))


def empty_ms(command: str) -> float:
    """What the same NVRTC takes for a kernel without text, after the first."""
    checks = json.loads(subprocess.run([command, "doctor", "--json"], **TEXT, check=False).stdout)["checks"]
    finding = next(check["finding"] for check in checks if check["name"] == "NVRTC")
    nvrtc = ctypes.CDLL(re.search(r" at (\S+);", finding)[1])  # type: ignore[index]
    options = (ctypes.c_char_p * 2)(b"-arch=sm_90a", b"-std=c++20")
    times = []
    for _ in range(2 * RUNS):
        program = ctypes.c_void_p()
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), b'extern "C" __global__ void k() {}', b"k", 0, None, None)
        start = time.perf_counter()
        if nvrtc.nvrtcCompileProgram(program, 2, options):
            sys.exit("NVRTC does not compile an empty kernel")
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[1:])


def later_ms(command: str, arch: list[str]) -> dict[str, list[float]]:
    """By kernel, its name without the architecture: in each process that compiles them all in turn."""
    calls = "\n".join([STARTS_THE_COMPILER, *(" ".join(case.words) for case in cases())])
    times: dict[str, list[float]] = {}
    for _ in range(RUNS):
        for kernel in run([command, "warmup", "-", "--threads", "1", *arch, "--json"], calls)["kernels"]:
            times.setdefault(kernel["name"], []).append(kernel["milliseconds"])
    return times


def rows_of(command: str, arch: list[str]) -> list[dict[str, Any]]:
    """Each kernel once: cases often share one."""
    later, empty = later_ms(command, arch), empty_ms(command)
    rows: dict[str, dict[str, Any]] = {}
    for case in cases():
        explain = [command, "explain", *case.words, *arch, "--json"]
        runs = [run(explain)]
        kernels = runs[0]["kernels"]
        for kernel in kernels:
            if "compile_ms" not in kernel:
                sys.exit(f"{case.op} {case.name}: {kernel['problem']}")
        if all(kernel["signature"] in rows for kernel in kernels):
            continue
        runs += [run(explain) for _ in range(FIRST_RUNS - 1)]
        for number, kernel in enumerate(kernels):
            variant = runs[0]["variant"] + (f", kernel {number + 1}" if number else "")
            times = later[kernel["signature"].rsplit("_arch", 1)[0]]
            row = {
                "name": case.op, "case": case.name, "variant": variant,
                "ms": statistics.median(times), "fastest ms": min(times), "of empty": statistics.median(times) / empty,
                "first ms": statistics.median(each["kernels"][number]["compile_ms"] for each in runs),
                "registers": kernel["registers"], "code bytes": kernel["code_bytes"],
            }  # fmt: skip
            rows.setdefault(kernel["signature"], row)
    return list(rows.values())


def main() -> None:
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    arch = ["--arch", sys.argv[3]] if len(sys.argv) == 4 else []
    rows = rows_of(sys.argv[2], arch)
    timing = (f"wall time of the compiler, empty cache; ms: after other kernels, median and fastest of {RUNS} "
              f"processes; of empty: times as long as an empty kernel; "
              f"first ms: as the process's first, median of {FIRST_RUNS}")  # fmt: skip
    write(f"{sys.argv[1]}/compile.json", "Cold compiles", rows, timing=timing)
    for column in ("ms", "fastest ms", "first ms"):
        slow = sum(row[column] > TARGET_MS for row in rows)
        print(f"{column}: {slow} of {len(rows)} kernels take more than {TARGET_MS} ms; "
              f"the median is {statistics.median(row[column] for row in rows):.0f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
