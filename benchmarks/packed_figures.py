"""Times products by weights of 4 bits beside those by bfloat16 weights: tc.gemm and torch.

    python benchmarks/packed_figures.py OUT.json [--sizes 8192] [--rows 1 2 4 8 16 64 256 1024 4096]

Weights are SIZE x SIZE, and every call reads another copy of them, so that none is in a cache. Needs torch and a GPU.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from typing import Any

import torch
from timing import gpu_timer, micro_summary, write

import tensorcraft as tc

FORMATS: dict[str, dict[str, Any]] = {
    "int4": {},
    "int4, float zeros": {"group": 32, "zero_points": "float"},
    "mxfp4": {"format": "mxfp4"},
    "nvfp4": {"format": "nvfp4"},
}
SETS = 8  # copies of the weights


class Weights:
    """SETS copies of a matrix, plain and in each format."""

    def __init__(self, size: int) -> None:
        self.made = torch.Generator("cuda").manual_seed(1)
        self.size, self.plain = size, [self.random(size, size) for _ in range(SETS)]
        self.packed = {name: self.copies(tc.pack_weight(tc.asarray(self.plain[0]).T, **o)) for name, o in FORMATS.items()}

    def random(self, *shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16, generator=self.made)

    @staticmethod
    def copies(w: tc.PackedWeight) -> list[tc.PackedWeight]:
        def copy() -> tc.PackedWeight:
            zeros = None if w.zeros is None else tc.copy(w.zeros)
            return tc.PackedWeight(tc.copy(w.codes), tc.copy(w.scales), zeros, w.tensor_scale)

        return [copy() for _ in range(SETS)]

    def candidates(self, rows: int) -> dict[str, Callable[[int], Any]]:
        a, out = self.random(rows, self.size), tc.asarray(self.random(rows, self.size))
        ours, transposed = tc.asarray(a), [tc.asarray(w).T for w in self.plain]
        found: dict[str, Callable[[int], Any]] = {
            "torch": lambda i: torch.nn.functional.linear(a, self.plain[i]),
            "gemm": lambda i: tc.gemm(ours, transposed[i], out=out),
        }
        found |= {name: lambda i, w=w: w[i].matmul(ours, out=out) for name, w in self.packed.items()}
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8192])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8, 16, 64, 256, 1024, 4096])
    parser.add_argument("--repeats", type=int, default=50)
    given = parser.parse_args()
    table = []
    for weights, rows in itertools.product(map(Weights, given.sizes), given.rows):
        size, calls = weights.size, weights.candidates(rows)
        timers = {}
        for name, call in calls.items():
            call(0)
            timers[name] = gpu_timer(call, itertools.cycle(range(SETS)), SETS, False)
        times: dict[str, list[float]] = {name: [] for name in timers}
        for _ in range(given.repeats):
            for name, once in timers.items():
                times[name].append(once())
        medians = {name: micro_summary(values)["median_us"] for name, values in times.items()}
        for name, values in times.items():
            table.append(
                {"name": f"packed_gemm {size}x{size}", "rows": rows, "weights": name, **micro_summary(values),
                 "times_as_fast_as_gemm": medians["gemm"] / medians[name]}
            )  # fmt: skip
    write(given.out, "products by packed weights", table)


if __name__ == "__main__":
    main()
