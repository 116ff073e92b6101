"""Causal attention with head_dims that no tile has: TFLOPS of their own products, beside the head_dim that they are filled up to."""

from __future__ import annotations

from functools import partial

import torch
from figures import Row, random
from timing import Work, interleaved_gpu
from torch.nn.functional import scaled_dot_product_attention

import tensorcraft as tc

TITLE, REPEATS = "attention by head_dim", 50
BATCH, HEADS, TOKENS = 4, 16, 4096
FILLED_UP = {40: 64, 72: 96, 80: 96, 112: 128, 160: 192, 320: 512}  # to the rows of a tile


def calls() -> dict[tuple[int, str], Work]:
    found: dict[tuple[int, str], Work] = {}
    for dim in sorted({*FILLED_UP, *FILLED_UP.values()}):
        q, k, v = (random(BATCH, HEADS, TOKENS, dim) for _ in range(3))
        out = torch.empty_like(q)
        found[dim, "ours"] = partial(tc.attention, q, k, v, causal=True, out=out)
        found[dim, "torch"] = partial(scaled_dot_product_attention, q, k, v, is_causal=True)
    return found


def rows(repeats: int) -> list[Row]:
    times = {case: of["median_ms"] for case, of in interleaved_gpu(calls(), repeats).items()}
    products = 4e-9 * BATCH * HEADS * TOKENS * (TOKENS + 1) / 2
    rate = {dim: products * dim / ms for (dim, by), ms in times.items() if by == "ours"}
    return [
        {
            "head_dim": dim, "us": times[dim, "ours"] * 1e3, "TFLOPS": rate[dim],
            "of torch": times[dim, "torch"] / times[dim, "ours"],
            **({"of": FILLED_UP[dim], "of its TFLOPS": rate[dim] / rate[FILLED_UP[dim]]} if dim in FILLED_UP else {}),
        }
        for dim in rate
    ]  # fmt: skip
