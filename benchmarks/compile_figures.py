# SPDX-License-Identifier: Apache-2.0
"""Cold compiles of the kernels of a suite: fresh processes with an empty cache, one at a time, on a machine that is quiet.

python benchmarks/compile_figures.py FOLDER COMMAND [ARCH]
    COMMAND is the tensorcraft command; ARCH such as sm_90a, else that of the GPU. Writes FOLDER/compile.json
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from suites import Case, suite
from timing import write

RUNS = 3
TARGET_MS = 100


def explain(command: str, case: Case, arch: list[str]) -> dict[str, Any]:
    """What the call would run, in a process whose kernels are not compiled yet."""
    options = [word for option in case.options for word in ("--option", option)]
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TENSORCRAFT_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}
        words = [command, "explain", case.op, *case.shapes, "--dtype", case.dtype, *options, *arch, "--json"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def rows_of(command: str, arch: list[str]) -> list[dict[str, Any]]:
    """Each kernel once: cases often share one."""
    rows: dict[str, dict[str, Any]] = {}
    for case in suite("headline"):
        runs = [explain(command, case, arch)]
        kernels = {which: kernel for which in ("kernel", "finish") if (kernel := runs[0][which])}
        for kernel in kernels.values():
            if "compile_ms" not in kernel:
                sys.exit(f"{case.op} {case.name}: {kernel['problem']}")
        if all(kernel["signature"] in rows for kernel in kernels.values()):
            continue
        runs += [explain(command, case, arch) for _ in range(RUNS - 1)]
        for which, kernel in kernels.items():
            variant = runs[0]["variant"] + (", second kernel" if which == "finish" else "")
            row = {
                "name": case.op, "case": case.name, "variant": variant,
                "ms": statistics.median(run[which]["compile_ms"] for run in runs),
                "registers": kernel["registers"], "code bytes": kernel["code_bytes"],
            }  # fmt: skip
            rows.setdefault(kernel["signature"], row)
    return list(rows.values())


def main() -> None:
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    arch = ["--arch", sys.argv[3]] if len(sys.argv) == 4 else []
    rows = rows_of(sys.argv[2], arch)
    timing = f"medians of {RUNS} fresh processes, wall time of the compiler, empty cache"
    write(f"{sys.argv[1]}/compile.json", "Cold compiles", rows, timing=timing)
    slow = [row["ms"] for row in rows if row["ms"] > TARGET_MS]
    print(f"{len(slow)} of {len(rows)} kernels take more than {TARGET_MS} ms; the median is {statistics.median(r['ms'] for r in rows):.0f} ms")


if __name__ == "__main__":
    main()
