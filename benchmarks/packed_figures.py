"""Times products by weights of 4 bits beside those by bfloat16 weights: tc.gemm and torch.

    python benchmarks/packed_figures.py OUT.json [--sizes 8192] [--rows 1 2 4 8 16 64 256 1024]

Weights are SIZE x SIZE, and every call reads another copy of them, so that none is in a cache. Needs torch and a GPU.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from typing import Any

from timing import gpu_timer, micro_summary, write

import tensorcraft as tc

FORMATS = ("int4", "mxfp4", "nvfp4")
SETS = 8  # copies of the weights


def candidates(rows: int, size: int) -> dict[str, Callable[[int], Any]]:
    import torch

    made = torch.Generator("cuda").manual_seed(1)

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16, generator=made)

    a, weights = random(rows, size), [random(size, size) for _ in range(SETS)]
    ours, out = tc.asarray(a), tc.asarray(random(rows, size))
    transposed = [tc.asarray(w).T for w in weights]
    found: dict[str, Callable[[int], Any]] = {
        "torch": lambda i: torch.nn.functional.linear(a, weights[i]),
        "gemm": lambda i: tc.gemm(ours, transposed[i], out=out),
    }
    for name in FORMATS:
        packed = tc.pack_weight(transposed[0], format=name)
        sets = [(tc.copy(packed.codes), tc.copy(packed.scales)) for _ in range(SETS)]
        found[name] = lambda i, sets=sets, by=packed.tensor_scale: tc.packed_gemm(
            ours, *sets[i], tensor_scale=by, out=out
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8192])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8, 16, 64, 256, 1024])
    parser.add_argument("--repeats", type=int, default=50)
    given = parser.parse_args()
    table = []
    for size, rows in itertools.product(given.sizes, given.rows):
        calls = candidates(rows, size)
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
