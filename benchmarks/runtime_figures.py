# SPDX-License-Identifier: Apache-2.0
"""What the runtime costs on a GPU: copies, loads of weights, watched launches, queue delays and allocations, each beside the
driver's or torch's in the same run.

usage: runtime_figures.py GPU_TESTS POOL_COST FILE    where Python finds the built package
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from timing import interleaved_many, write

TESTS = "GpuTransferTiming.*:GpuTransferLoadTiming.*:GpuDispatchTiming.*:SchedulerGpu*"
SIZES = (256, 3000, 65536, 1000000, 5000, 40000)  # bytes, those of pool_cost


def of_tests(program: str) -> list[dict[str, Any]]:
    """The figures that tests report: "figures of WHAT" = "NAME=NUMBER; ..."."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tests.json"
        command = [program, f"--gtest_filter={TESTS}", f"--gtest_output=json:{file}"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # a missed floor is a figure too
        suites = json.loads(file.read_text())["testsuites"]
    rows = []
    for case in (case for suite in suites for case in suite["testsuite"]):
        for name, text in case.items():
            if name.startswith("figures of "):
                figures = dict(part.split("=") for part in text.split("; "))
                numbers = {key: float(value) for key, value in figures.items()}
                rows.append({"name": name.removeprefix("figures of "), **numbers})
    return rows


def of_pool(program: str) -> list[dict[str, Any]]:
    """Nanoseconds of an allocation and its free, in C++, and the memory that a recorded model's servers cost."""
    command = [program, "--benchmark_format=json", "--benchmark_repetitions=9", "--benchmark_report_aggregates_only"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["benchmarks"]
    ns = {b["run_name"]: b["real_time"] for b in found if b["aggregate_name"] == "median" and not b.get("error_occurred")}
    rows: list[dict[str, Any]] = [
        {"name": f"allocate and free, {name.replace('_', ' ')}, no driver", "pool ns": ns[name]}
        for name in ("warm", "among_holes")
    ]
    rows += [
        {"name": "memory of a served model, 10^6 operations at 90 % live", "reserved over used": b["reserved_over_used"]}
        for b in found if b["aggregate_name"] == "median" and "reserved_over_used" in b
    ]  # fmt: skip
    for suffix, stream in (("", "default stream"), ("_own_stream", "a stream of its own")):
        pool, driver = ns[f"on_gpu/pool{suffix}"], ns[f"on_gpu/driver{suffix}"]
        rows.append({"name": f"allocate and free on a GPU, {stream}", "pool ns": pool, "driver ns": driver,
                     "times as fast as driver": driver / pool})  # fmt: skip
    return rows


def of_python() -> dict[str, Any]:
    """Nanoseconds of an array that is made and dropped in Python, ours and torch's in turns."""
    import torch

    import tensorcraft as tc

    def size(call: int) -> int:
        return SIZES[call % len(SIZES)]

    found = interleaved_many({
        "ours": lambda call: tc.empty(size(call), dtype=tc.uint8, device="cuda:0"),
        "torch": lambda call: torch.empty(size(call), dtype=torch.uint8, device="cuda:0"),
    })  # fmt: skip
    ours, theirs = (found[name]["median_ms"] * 1e6 for name in ("ours", "torch"))
    return {"name": "an array made and dropped in Python", "pool ns": ours, "torch ns": theirs,
            "times as fast as torch": theirs / ours}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpu_tests")
    parser.add_argument("pool_cost")
    parser.add_argument("out")
    given = parser.parse_args()
    rows = [*of_tests(given.gpu_tests), *of_pool(given.pool_cost), of_python()]
    write(given.out, "copies, loads, launches, delays and allocations", rows)


if __name__ == "__main__":
    main()
