# SPDX-License-Identifier: Apache-2.0
"""Rows of two tables that teach: `results: fusion`, and `results: counters NAME...` of Nsight Compute's counters."""

import math

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
# What calls made apart move beyond the one call, in results: what one of them writes and the next one reads again.
SILU_AND_MUL = 2  # silu of a half is written, and read
RESIDUAL = 1  # the sum is written in both, and read again
ACTIVATION = 2  # the product is written, and read
GATE = 4  # a product of twice the columns is written, and read, where half of them leave the one call
SHOWN = ("transactions M", "of DRAM peak %", "L2 hits %", "issue slots %", "warps active %", "registers")


# Operator, what its options name, the calls apart, who makes them, and what that moves beyond.
FUSED = [
    ("silu_and_mul", "", "`silu`, then a product of elements", "torch", SILU_AND_MUL),
    ("rms_norm", "residual=", "a residual, then `rms_norm`", "torch", RESIDUAL),
    ("layer_norm", "residual=", "a residual, then `layer_norm`", "torch", RESIDUAL),
    ("layer_norm", "activation=gelu", "`layer_norm`, then `gelu`", "torch", ACTIVATION),
    ("gemm", "activation=silu", "`gemm` with a bias, then `silu`", "cublaslt+kernel", ACTIVATION),
    ("gemm", "gated=silu", "`gemm`, then a gate", "cublaslt+kernel", GATE),
]


def elements_of_result(row):
    first, *others = [tuple(map(int, shape.split("x"))) for shape in row["shape"].split()]
    halves = row["op"].endswith("_and_mul") or "gated=" in row["options"]
    # Of two matrices the second is transposed in each of these cases.
    columns = first[-1] if not others else others[0][0]
    return math.prod(first[:-1]) * columns // (2 if halves else 1)


def fusion_row(case, short_shape, us):
    """The calls apart beside the one call, if both were measured; or None."""
    row = case.first
    what = next((f for f in FUSED if f[0] == row["op"] and f[1] in row["options"]), None)
    if not what or not case.ours or case.peers.get(what[3], {"error": "not measured"}).get("error"):
        return None
    *_, text, peer, more = what
    apart = case.peers[peer]
    moved = case.ours["bytes"]
    before = moved + more * elements_of_result(row) * BYTES[row["dtype"]]
    return {
        "calls": text, "shape": short_shape(row), "dtype": row["dtype"],
        "MB apart": f"{before / 1e6:,.0f}", "MB in one": f"{moved / 1e6:,.0f}", "of the bytes": f"{before / moved:.2f}",
        "apart by": peer, "us apart": us(apart), "us in one": us(case.ours), "times as fast": f"{apart['median_us'] / case.ours['median_us']:.2f}",
    }  # fmt: skip


def counter_rows(document, names):
    """Each kernel of these operators, from the fastest, with what was busy in it."""
    for name in names:
        rows = [r for r in document["rows"] if r["name"] == name]
        for case in dict.fromkeys(r["case"] for r in rows):
            for r in sorted((r for r in rows if r["case"] == case), key=lambda r: r["us"]):
                moved = f"{r['of least bytes']:.2f}"
                yield {"kernel": f"`{r['kernel']}`", "case": case, "of least bytes": moved} | {column: f"{r[column]:.0f}" for column in SHOWN}
