# SPDX-License-Identifier: Apache-2.0
"""The launchers that nvcc compiled beside the JIT route on a GPU: equal bits, and time within 3 %.

python benchmarks/aot_figures.py FOLDER PROGRAM      PROGRAM is the built aot_routes; writes FOLDER/aot_routes.json
"""

from __future__ import annotations

import json
import subprocess
import sys

from timing import write

MOST_SLOWER = 1.03


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    done = subprocess.run([sys.argv[2]], capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr)
    if not done.stdout:
        sys.exit(done.returncode or 1)
    found = json.loads(done.stdout)
    rows = found["rows"]
    write(f"{sys.argv[1]}/aot_routes.json", "Launchers of nvcc beside the JIT", rows, timing=found["timing"],
          cuda_runtime=found["cuda_runtime"])  # fmt: skip
    for row in rows:
        if not row["bits_equal"]:
            print(f"DIFFERENT BITS: {row['case']} ({row['variant']})")
        if row["ratio"] > MOST_SLOWER:
            print(f"slower than the JIT: {row['case']} ({row['variant']}): {row['ratio']:.3f}")
    print(f"{sum(row['bits_equal'] for row in rows)} of {len(rows)} cases with equal bits, "
          f"{sum(row['ratio'] <= MOST_SLOWER for row in rows)} within 3 % of the JIT's time")  # fmt: skip
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
