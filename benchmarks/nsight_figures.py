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
from targets import BANDWIDTH_SHARE, OCCUPANCY_SHARE
from timing import write

# Each with the kernels it launches, a regular expression.
CALLS = {
    "add 16384x8192 16384x8192 --dtype bfloat16": "elementwise_",
    "softmax 8192x8192 --dtype bfloat16": "softmax_",
    "softmax 2048x131072 --dtype float32": "softmax_",
    "layer_norm 8192x8192 --dtype bfloat16 --option weight=8192 --option bias=8192": "norm_",
    "rms_norm 8192x8192 --dtype bfloat16 --option weight=8192": "norm_",
    "batch_norm 256x256x56x56 --dtype bfloat16 --option running_mean=256 --option running_var=256": "batch_norm_",
    "group_norm 32x512x64x64 --dtype bfloat16 --option num_groups=32": "group_norm_",
    "transpose 8192x8192 --dtype bfloat16": "permute_",
    "sum 16384x32768 --dtype bfloat16 --option axis=0": "reduce_",
    "quantize 8192x8192 --dtype bfloat16 --option scheme=token": "quantize_",
    "gemm 2048x2048 2048x2048 --dtype bfloat16": "gemm_",
}
LAUNCH = 3  # of each kernel: the first have cold caches
# Columns of the table, in the base units of the counters.
COUNTERS = {
    "us": "gpu__time_duration.sum",
    "GB/s": "dram__bytes.sum",
    "of DRAM peak %": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "transactions M": "lts__t_sectors.sum",
    "L2 hits %": "lts__t_sector_hit_rate.pct",
    "issue slots %": "sm__inst_issued.avg.pct_of_peak_sustained_active",
    "warps active %": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
}


def profiled(command: str, case: Case, kernels: str, report: Path) -> tuple[list[dict[str, str]], float]:
    """Rows of ncu, the units first, and the bytes of the problem: each input read once, each output written once."""
    results = report.with_suffix(".json")
    once = ["--variant", "all", "--peer", "none", "--warmup", "0", "--seconds", "0.001", "--json", str(results)]
    profile = ["ncu", "--clock-control", "none", "--kernel-id", f"::regex:^{kernels}:{LAUNCH}"]
    profile += ["--metrics", ",".join(COUNTERS.values()), "--force-overwrite", "--export", str(report)]
    subprocess.run([*profile, command, "bench", *case.words, *once], check=True, stdout=subprocess.DEVNULL)
    page = ["ncu", "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
    text = subprocess.run(page, check=True, capture_output=True, text=True).stdout
    rows = list(csv.DictReader(line for line in text.splitlines() if line.startswith('"')))
    return rows, json.loads(results.read_text())["rows"][0]["bytes"]


def figures(launch: dict[str, str], least: float) -> dict[str, float]:
    found = {column: float(launch[counter].replace(",", "")) for column, counter in COUNTERS.items()}
    found["of least bytes"] = found["GB/s"] / least
    found["GB/s"] /= found["us"]  # bytes a nanosecond
    found["us"] /= 1e3
    found["transactions M"] /= 1e6
    return found


def verdicts(rows: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """How the fastest kernel of each case that does all of it stands to the goals of kernels that bytes limit."""
    lines = []
    for name, case in dict.fromkeys((r["name"], r["case"]) for r in rows if r["name"] != "gemm"):
        whole = [r for r in rows if (r["name"], r["case"]) == (name, case) and r["of least bytes"] > 0.5]
        best = min(whole, key=lambda r: r["us"])
        for column, goal in (("of DRAM peak %", BANDWIDTH_SHARE), ("warps active %", OCCUPANCY_SHARE)):
            text = f"{best['kernel']} {case}: {best[column]:.0f} {column.replace(' %', ' in percent')}, the goal is {100 * goal:.0f}"
            lines.append((text, best[column] >= 100 * goal))
    return lines


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
        launches, least = profiled(command, case, kernels, report)
        for launch in launches[1:]:
            row = {"name": case.op, "case": case.name, "kernel": launch["Kernel Name"].split("(")[0]}
            rows.append(row | figures(launch, least))
    method = f"launch {LAUNCH} of each kernel by itself, counters of Nsight Compute, clocks left alone"
    write(str(folder / "nsight.json"), "Counters", rows, method=method)
    for line, reached in verdicts(rows):
        print("reached" if reached else "missed ", line)


if __name__ == "__main__":
    main()
