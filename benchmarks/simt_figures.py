"""What the emulator costs on this CPU.

python benchmarks/simt_figures.py FOLDER PROGRAM      PROGRAM is the built simt_figures; writes FOLDER/simt.json
"""

from __future__ import annotations

import json
import subprocess
import sys

from timing import write

LIMITS = {"barrier_ns": 40, "shuffle_ns": 40, "naive_gemm_256_s": 0.1, "tensor_core_gemm_256_s": 2}


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    measured = json.loads(subprocess.run([sys.argv[2]], capture_output=True, text=True, check=True).stdout)
    rows = [{"name": name, "measured": measured[name], "limit": limit} for name, limit in LIMITS.items()]
    write(f"{sys.argv[1]}/simt.json", "The emulator", rows, timing="CPU time, best of 15, release build")


if __name__ == "__main__":
    main()
