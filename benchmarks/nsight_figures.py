# SPDX-License-Identifier: Apache-2.0
"""What Nsight Compute counts in one launch of each variant of the key kernels: their bandwidth from rung to rung, and what
else fills up.

python benchmarks/nsight_figures.py FOLDER COMMAND
    COMMAND is the tensorcraft command, on a machine with a GPU and ncu. Writes FOLDER/nsight.json, and a profile of each
    call, FOLDER/nsight/*.ncu-rep, that ncu-ui opens.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from suites import Case, parse
from timing import write

# Each with the kernels it launches, a regular expression.
CALLS = {
    "add 16384x8192 16384x8192 --dtype bfloat16": "elementwise_",
    "softmax 8192x8192 --dtype bfloat16": "softmax_",
    "softmax 2048x131072 --dtype float32": "softmax_",
    "layer_norm 8192x8192 --dtype bfloat16 --option weight=8192 --option bias=8192": "norm_",
    "rms_norm 8192x8192 --dtype bfloat16 --option weight=8192": "norm_",
    "transpose 8192x8192 --dtype bfloat16": "permute_",
    "sum 16384x32768 --dtype bfloat16 --option axis=0": "reduce_",
    "quantize 8192x8192 --dtype bfloat16 --option scheme=token": "quantize_",
    "batch_norm 64x256x56x56 --dtype bfloat16 --option running_mean=256 --option running_var=256": "batch_norm_",
    "group_norm 64x256x56x56 --dtype bfloat16 --option num_groups=32": "group_norm_",
    "gemm 2048x2048 2048x2048 --dtype bfloat16": "gemm_",
}
LAUNCH = 3  # of each kernel: the first have cold caches
# Columns of the table, in the base units of the counters.
COUNTERS = {
    "us": "gpu__time_duration.sum",
    "MB": "dram__bytes.sum",
    "of DRAM peak %": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "L2 hits %": "lts__t_sector_hit_rate.pct",
    "issue slots %": "sm__inst_issued.avg.pct_of_peak_sustained_active",
    "warps active %": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
}


def profiled(command: str, case: Case, kernels: str, report: Path) -> list[dict[str, str]]:
    """Rows of ncu, the units first. What bench counted stands beside the report as JSON."""
    once = ["--variant", "all", "--peer", "none", "--warmup", "0", "--seconds", "0.001", "--json", str(report.with_suffix(".json"))]
    profile = ["ncu", "--clock-control", "none", "--kernel-id", f"::regex:^{kernels}:{LAUNCH}"]
    profile += ["--metrics", ",".join(COUNTERS.values()), "--force-overwrite", "--export", str(report)]
    subprocess.run([*profile, command, "bench", *case.words, *once], check=True, stdout=subprocess.DEVNULL)
    page = ["ncu", "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
    text = subprocess.run(page, check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(line for line in text.splitlines() if line.startswith('"')))


def modelled_megabytes(report: Path) -> float:
    """What the call has to move, each input read once and each output written once."""
    return max(row["bytes"] for row in json.loads(report.with_suffix(".json").read_text())["rows"]) / 1e6


def figures(launch: dict[str, str], modelled: float) -> dict[str, float]:
    """Counters of a launch. Below 1 of the model a cache held what was written; above 1 bytes moved more than once."""
    found = {column: float(launch[counter].replace(",", "")) for column, counter in COUNTERS.items()}
    found["GB/s"] = found["MB"] / found["us"]  # bytes a nanosecond
    found["MB"] /= 1e6
    found["us"] /= 1e3
    return found | {"of the model": found["MB"] / modelled}


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if not shutil.which("ncu"):
        sys.exit("nsight_figures: there is no ncu here, which comes with Nsight Compute")
    folder, command = Path(sys.argv[1]), sys.argv[2]
    (folder / "nsight").mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for line, kernels in CALLS.items():
        case = parse(line)
        report = folder / "nsight" / f"{case.op}_{'_'.join(case.shapes)}_{case.dtype}.ncu-rep".replace(":", "_")
        for launch in profiled(command, case, kernels, report)[1:]:
            row = {"name": case.op, "case": case.name, "kernel": launch["Kernel Name"].split("(")[0]}
            rows.append(row | figures(launch, modelled_megabytes(report)))
    method = f"launch {LAUNCH} of each kernel by itself, counters of Nsight Compute, clocks left alone"
    write(str(folder / "nsight.json"), "Counters", rows, method=method)


if __name__ == "__main__":
    main()
