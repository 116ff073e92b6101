# SPDX-License-Identifier: Apache-2.0
"""benchmarks/nsight_figures.py with an ncu that reads a page from a file."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "nsight_figures.py"

# As ncu 2025 prints a raw page of a report in base units.
PAGE = """\
"ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum","dram__throughput.avg.pct_of_peak_sustained_elapsed",\
"lts__t_sectors.sum","lts__t_sector_hit_rate.pct","sm__inst_issued.avg.pct_of_peak_sustained_active",\
"sm__warps_active.avg.pct_of_peak_sustained_active","launch__registers_per_thread"
"","","ns","byte","%","sector","%","%","%","register/thread"
"0","softmax_naive(Params)","2,000,000","400,000,000","5.5","40,000,000","80.25","1","6","38"
"1","softmax_in_registers(Params)","100,000","400,000,000","82","8,500,000","50","57","92","32"
"""
FAKE = """#!/bin/sh
case "$*" in
  *--import*) cat "$PAGE" ;;
  *) for word; do
       [ "$last" != --export ] || : >"$word"
       [ "$last" != --json ] || echo '{"rows": [{"bytes": 200e6}]}' >"$word"
       last=$word
     done; echo "$*" >>"$CALLS" ;;
esac
"""


def run(tmp_path, path):
    environment = os.environ | {"PATH": path, "PAGE": str(tmp_path / "page"), "CALLS": str(tmp_path / "calls")}
    command = [sys.executable, str(SCRIPT), str(tmp_path), "tensorcraft"]
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True)


def test_a_row_for_each_kernel(tmp_path):
    (tmp_path / "page").write_text("==PROF== a line of ncu's own\n" + PAGE)
    (tmp_path / "ncu").write_text(FAKE)
    (tmp_path / "ncu").chmod(0o755)
    done = run(tmp_path, f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    rows = [r for r in json.loads((tmp_path / "nsight.json").read_text())["rows"] if r["case"] == "8192x8192 bfloat16"]
    naive, best = (
        next(r for r in rows if r["name"] == "softmax" and r["kernel"] == k)
        for k in ("softmax_naive", "softmax_in_registers")
    )
    assert naive["us"] == 2000 and naive["GB/s"] == 200 and naive["registers"] == 38 and naive["L2 hits %"] == 80.25
    assert best["us"] == 100 and best["GB/s"] == 4000 and best["of DRAM peak %"] == 82
    assert naive["transactions M"] == 40 and best["transactions M"] == 8.5, "32 bytes each"
    assert naive["of least bytes"] == best["of least bytes"] == 2
    assert (tmp_path / "nsight" / "softmax_8192x8192_bfloat16.ncu-rep").exists()
    assert "reached softmax_in_registers 8192x8192 bfloat16: 92 warps active in percent, the goal is 75" in done.stdout
    assert "missed  softmax_in_registers 8192x8192 bfloat16: 82 of DRAM peak in percent, the goal is 85" in done.stdout
    calls = (tmp_path / "calls").read_text()
    assert (
        "--kernel-id ::regex:^softmax_:3" in calls
        and "tensorcraft bench softmax 8192x8192 --dtype bfloat16 --variant all" in calls
    )


def test_says_what_is_missing(tmp_path):
    done = run(tmp_path, str(tmp_path))
    assert done.returncode == 1 and "there is no ncu here" in done.stderr
