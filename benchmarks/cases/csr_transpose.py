"""The variants of csr_transpose beside each other and beside CuPy's conversion, over sizes, shapes and fillings."""

from __future__ import annotations

import numpy as np
import torch
from figures import Call, Row, in_turn

import tensorcraft as tc

TITLE, REPEATS = "csr_transpose by variant", 30
SETS = 2
VARIANTS = ("buckets", "tiles", "naive")

# Rows, columns, elements of a row in the mean, and how their lengths spread: all alike, or of a power law.
CASES = [
    (8_192, 8_192, 400, "even"),
    (8_192, 8_192, 40, "even"),
    (2_048, 16_384, 1_600, "even"),
    (65_536, 65_536, 64, "even"),
    (65_536, 65_536, 64, "power law"),
    (1_000_000, 1_000_000, 24, "even"),
    (1_000_000, 1_000_000, 24, "power law"),
    (131_072, 8_192, 200, "even"),
    (262_144, 1_024, 24, "even"),
    (1_000_000, 1_024, 24, "even"),
    (1_000_000, 1_000_000, 0.05, "even"),
    (500, 500, 20, "even"),
]


def matrix(rows: int, columns: int, mean: float, spread: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(1)
    drawn = random.poisson(mean, rows) if spread == "even" else (random.pareto(1.2, rows) + 1) * mean / 6
    lengths = np.minimum(drawn, columns // 4).astype(np.int64)
    row = np.repeat(np.arange(rows), lengths)
    keys = np.unique(row * columns + random.integers(0, columns, row.size))
    starts = np.concatenate([[0], np.cumsum(np.bincount(keys // columns, minlength=rows))])
    indices, indptr = (torch.from_numpy(x.astype(np.int32)).cuda() for x in (keys % columns, starts))
    return torch.randn(len(keys), device="cuda"), indices, indptr


def candidates(of: tuple[torch.Tensor, torch.Tensor, torch.Tensor], rows: int, columns: int) -> dict[str, Call]:
    arrays = [tuple(x.clone() for x in of) for _ in range(SETS)]

    def by(name: str) -> Call:
        return lambda i: tc.csr_transpose(*arrays[i], columns, variant=name)

    calls = {"chosen": lambda i: tc.csr_transpose(*arrays[i], columns)} | {name: by(name) for name in VARIANTS}
    try:
        import cupy
        from cupyx.scipy.sparse import csr_matrix
    except ImportError:
        return calls
    theirs = [csr_matrix(tuple(cupy.asarray(x) for x in a), shape=(rows, columns)) for a in arrays]
    return calls | {"cuSPARSE (CuPy)": lambda i: theirs[i].tocsc()}


def rows(repeats: int) -> list[Row]:
    found: list[Row] = []
    for case in CASES:
        of = matrix(*case)
        nbytes = 2 * (len(of[0]) * 8 + case[0] * 4)  # read and written
        for name, figures in in_turn(candidates(of, case[0], case[1]), SETS, repeats).items():
            row = {"rows": case[0], "columns": case[1], "stored": len(of[0]), "lengths": case[3], "by": name}
            found.append(row | {"us": figures["median_us"], "GB/s": nbytes / figures["median_us"] / 1e3})
    return found
