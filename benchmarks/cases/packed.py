"""Products by weights of 4 bits beside those by bfloat16 weights: tc.gemm and torch."""

from __future__ import annotations

from typing import Any

import torch
from figures import Call, Row, in_turn

import tensorcraft as tc

TITLE, REPEATS = "products by packed weights", 50
SIZE = 8192  # rows and columns of the weights
ROWS = (1, 2, 4, 8, 16, 64, 256, 1024, 4096)
FORMATS: dict[str, dict[str, Any]] = {
    "int4": {},
    "int4, float zeros": {"group": 32, "zero_points": "float"},
    "mxfp4": {"format": "mxfp4"},
    "nvfp4": {"format": "nvfp4"},
}
SETS = 8  # copies of the weights


class Weights:
    """SETS copies of a matrix, plain and in each format."""

    def __init__(self) -> None:
        self.made = torch.Generator("cuda").manual_seed(1)
        self.plain = [self.random(SIZE, SIZE) for _ in range(SETS)]
        self.packed = {name: self.copies(tc.pack_weight(tc.asarray(self.plain[0]).T, **o)) for name, o in FORMATS.items()}

    def random(self, *shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16, generator=self.made)

    @staticmethod
    def copies(w: tc.PackedWeight) -> list[tc.PackedWeight]:
        def copy() -> tc.PackedWeight:
            zeros = None if w.zeros is None else tc.copy(w.zeros)
            return tc.PackedWeight(tc.copy(w.codes), tc.copy(w.scales), zeros, w.tensor_scale)

        return [copy() for _ in range(SETS)]

    def candidates(self, rows: int) -> dict[str, Call]:
        a, out = self.random(rows, SIZE), tc.asarray(self.random(rows, SIZE))
        ours, transposed = tc.asarray(a), [tc.asarray(w).T for w in self.plain]
        found: dict[str, Call] = {
            "torch": lambda i: torch.nn.functional.linear(a, self.plain[i]),
            "gemm": lambda i: tc.gemm(ours, transposed[i], out=out),
        }
        found |= {name: lambda i, w=w: w[i].matmul(ours, out=out) for name, w in self.packed.items()}
        return found


def rows(repeats: int) -> list[Row]:
    weights, found = Weights(), []
    for count in ROWS:
        of = in_turn(weights.candidates(count), SETS, repeats)
        for name, figures in of.items():
            row = {"name": f"packed_gemm {SIZE}x{SIZE}", "rows": count, "weights": name, **figures}
            found.append(row | {"times_as_fast_as_gemm": of["gemm"]["median_us"] / figures["median_us"]})
    return found
