"""First call and warm call of fresh processes on a GPU, with an empty and a warm disk cache.

    python benchmarks/jit_figures.py FOLDER PROGRAM      PROGRAM is the built jit_latency; writes FOLDER/jit_latency.json
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from timing import write

RUNS = 5


def run(program: str, cache: str) -> dict[str, Any]:
    environment = os.environ | {"TENSORCRAFT_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}
    output = subprocess.run([program], env=environment, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(output))


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    numbers = [k for k, v in runs[0].items() if isinstance(v, float)]
    return runs[0] | {k: statistics.median(r[k] for r in runs) for k in numbers}


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    empty, warm = [], []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as cache:
            empty.append(run(sys.argv[2], cache))
            warm.append(run(sys.argv[2], cache))
    rows = [{"cache": "empty"} | median(empty), {"cache": "warm"} | median(warm)]
    timing = f"medians of {RUNS} fresh processes, wall time beyond the context, the driver's own cache off"
    write(f"{sys.argv[1]}/jit_latency.json", "First call and warm call", rows, timing=timing)


if __name__ == "__main__":
    main()
