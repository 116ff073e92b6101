"""First call and warm call of fresh processes on a GPU, with an empty and a warm disk cache; warm calls of Python.

python benchmarks/jit_figures.py FOLDER PROGRAM      PROGRAM is the built jit_latency; writes FOLDER/jit_latency.json
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from targets import ADDED_US, COMPILE_GEMM_MS, COMPILE_MS, DISK_MS, LAUNCH_US
from timing import write

RUNS = 5


def run(program: str, cache: str) -> dict[str, Any]:
    environment = os.environ | {"TENSORCRAFT_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}
    output = subprocess.run([program], env=environment, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(output))


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    numbers = [k for k, v in runs[0].items() if isinstance(v, float)]
    return runs[0] | {k: statistics.median(r[k] for r in runs) for k in numbers}


def host_us(work: Callable[[], object], batch: int = 100, batches: int = 50) -> float:
    """Host time of one call, in batches short enough that the launch queue never fills."""
    import torch

    times = []
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(batch):
            work()
        times.append((time.perf_counter() - start) * 1e6 / batch)
        torch.cuda.synchronize()
    return statistics.median(times)


def python_calls(add_us: float) -> list[dict[str, Any]]:
    """Python calls with torch tensors, and add over the same call of C++; torch's own beside them."""
    import torch

    import tensorcraft as tc

    a, b, c = (torch.randn(64, 384, device="cuda") for _ in range(3))
    calls: dict[str, Callable[[], object]] = {
        "tc.add(a, b, out=c)": lambda: tc.add(a, b, out=c),
        "torch.add(a, b, out=c)": lambda: torch.add(a, b, out=c),
        "tc.add(a, b)": lambda: tc.add(a, b),
        "torch.add(a, b)": lambda: torch.add(a, b),
        "tc.rms_norm(a, out=c)": lambda: tc.rms_norm(a, out=c),
    }
    for work in calls.values():
        for _ in range(100):
            work()
    # In turns, so that what slows the machine down slows all of them.
    times = {name: statistics.median(host_us(work, batches=10) for _ in range(9)) for name, work in calls.items()}
    rows = [{"call": name, "python_us": us} for name, us in times.items()]
    return [rows[0] | {"cpp_us": add_us, "over_cpp_us": times["tc.add(a, b, out=c)"] - add_us}, *rows[1:]]


def verdicts(empty: dict[str, Any], warm: dict[str, Any]) -> list[tuple[str, bool]]:
    """What each target is held by, with an empty and a warm disk cache."""
    added = warm["warm_add_us"] - warm["bare_launch_us"]
    figures = [
        ("a launch of the driver", warm["bare_launch_us"], LAUNCH_US, "us"),
        ("a warm call beyond it", added, ADDED_US, "us"),
    ]
    for column, target in (
        ("elementwise_ms", COMPILE_MS),
        ("layer_norm_ms", COMPILE_MS),
        ("gemm_tensor_core_ms", COMPILE_GEMM_MS),
    ):
        name = column.removesuffix("_ms").replace("_", " ")
        figures += [
            (f"{name}, compiled", empty[column], target, "ms"),
            (f"{name} from disk", warm[column], DISK_MS, "ms"),
        ]
    return [
        (f"{name}: {value:.3g} {unit}, at most {target:g}", value <= target) for name, value, target, unit in figures
    ]


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    empty, warm = [], []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as cache:
            empty.append(run(sys.argv[2], cache))
            warm.append(run(sys.argv[2], cache))
    rows = [{"cache": "empty"} | median(empty), {"cache": "warm"} | median(warm)]
    held = verdicts(*rows)
    rows += python_calls(median(warm)["warm_add_us"])
    timing = f"medians of {RUNS} fresh processes, wall time beyond the context, the driver's own cache off"
    write(f"{sys.argv[1]}/jit_latency.json", "First call and warm call", rows, timing=timing)
    for line, reached in held:
        print("reached" if reached else "MISSED ", line)
    sys.exit(0 if all(reached for _, reached in held) else 1)


if __name__ == "__main__":
    main()
